"""The batch schedule, as tables written by hand and against its definition."""

from __future__ import annotations

from math import floor, log

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roundel.policies.schedule import batch_size, default_rounds

TABLES = {
    (10**5, 11): (2, 8, 23, 65, 187, 533, 1519, 4328, 12328, 35111, 100000),
    (10**6, 13): (2, 8, 24, 70, 203, 587, 1701, 4923, 14251, 41246, 119377, 345510, 1000000),
    (10**5, 17): (1, 3, 7, 15, 29, 58, 114, 225, 443, 873, 1719, 3383, 6660, 13111, 25808, 50802, 100000),
    (10**6, 19): (
        *(2, 4, 8, 18, 37, 78, 162, 335, 695, 1438, 2976, 6158, 12742, 26366),
        *(54555, 112883, 233572, 483293, 1000000),
    ),
    (1000, 6): (3, 10, 31, 100, 316, 1000),
    (1000, 3): (10, 100, 1000),  # floats say 9, 99, 999
    (20, 2): (4, 20),
    (1, 1): (1,),
    (7, 1): (7,),
    (10**18, 2): (10**9, 10**18),
    (10**18, 3): (10**6, 10**12, 10**18),
}


@pytest.mark.parametrize(("horizon", "rounds"), TABLES)
def test_the_tables_of_the_specification(horizon: int, rounds: int) -> None:
    """ALGORITHMS.md 0.4."""
    assert tuple(batch_size(horizon, rounds, r) for r in range(1, rounds + 1)) == TABLES[horizon, rounds]


@given(st.integers(1, 10**12), st.integers(1, 60), st.data())
@example(10**18, 41, None)
@example(10**18, 2, None)
@example(3**36, 36, None)
@example(3**36 - 1, 36, None)
@example(2**59, 59, None)
def test_every_batch_size_is_the_exact_integer_root(horizon: int, rounds: int, data: st.DataObject | None) -> None:
    """q_r is the largest m with m^B <= T^r."""
    for r in range(rounds + 1) if data is None else [data.draw(st.integers(0, rounds))]:
        q = batch_size(horizon, rounds, r)
        assert q**rounds <= horizon**r < (q + 1) ** rounds
    assert batch_size(horizon, rounds, 0) == 1
    assert batch_size(horizon, rounds, rounds) == horizon
    assert batch_size(horizon, rounds, rounds + 1) == horizon


@given(st.integers(2, 10**12), st.integers(1, 39))
def test_with_a_ratio_of_two_all_rounds_together_are_at_most_twice_the_last(horizon: int, rounds: int) -> None:
    if 2**rounds <= horizon:
        sizes = [batch_size(horizon, rounds, r) for r in range(1, rounds + 1)]
        assert all(sum(sizes[: r + 1]) <= 2 * sizes[r] for r in range(rounds))


def test_below_a_ratio_of_two_they_are_not() -> None:
    sizes = TABLES[10**5, 17]
    assert sum(sizes[:6]) > 2 * sizes[4]
    assert any(sum(sizes[: r + 1]) > 2 * sizes[r] for r in range(17))


def test_the_default_number_of_rounds_is_the_natural_logarithm() -> None:
    assert [default_rounds(t) for t in (1, 2, 3, 7, 8, 10**5, 10**6)] == [1, 1, 1, 1, 2, 11, 13]
    assert default_rounds(10**18) == floor(18 * log(10)) == 41
