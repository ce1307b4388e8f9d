"""Plan: canonical, frozen, truncated round-robin, with a digest that never changes."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundel.errors import PlanError
from roundel.plan import Plan

# SHA-256 of the three columns as little-endian 64-bit integers
KNOWN = "8dde36d36e3efee4bca19df15f2bb71869be3d7c58e0b95935ddef6921fcb53a"

pairs = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda p: p[0] != p[1]),
    unique_by=lambda p: (min(p), max(p)),
    max_size=12,
)


@st.composite
def plans(draw: st.DrawFn, most: int = 9) -> Plan:
    chosen = draw(pairs)
    times = [draw(st.integers(0, most)) for _ in chosen]
    return Plan([i for i, _ in chosen], [j for _, j in chosen], times)


@given(pairs, st.data())
def test_a_plan_is_canonical_however_its_pairs_were_written(chosen: list[tuple[int, int]], data: st.DataObject) -> None:
    times = [data.draw(st.integers(0, 3)) for _ in chosen]
    plan = Plan([i for i, _ in chosen], [j for _, j in chosen], times)
    expected = sorted((min(p), max(p), n) for p, n in zip(chosen, times, strict=True) if n > 0)
    assert list(plan) == expected
    assert plan.total == sum(times)
    assert len(plan) == len(expected)


def test_one_number_of_times_serves_all_pairs() -> None:
    assert list(Plan([2, 1], [0, 0], 5)) == [(0, 1, 5), (0, 2, 5)]
    assert list(Plan(3, 1, 2)) == [(1, 3, 2)]
    assert list(Plan([1.0], [0.0], 1e6)) == [(0, 1, 1_000_000)]


@pytest.mark.parametrize(
    ("first", "second", "times", "message"),
    [
        ([1], [1], 1, "arm 1 is set against itself"),
        ([0, 1], [1, 0], 1, r"pair \(0, 1\) stands twice"),
        ([0], [-2], 1, "arm -2 does not exist"),
        ([0], [1], -3, "times holds -3"),
        ([0], [1], 1.5, "times holds 1.5"),
        ([0], [1], float("nan"), "times holds nan"),
        ([0], [1], float("inf"), "times holds inf"),
        ([0], [1], 2.0**63, "below 2\\*\\*63"),
        ([0], [1], np.uint64(2**63), "below 2\\*\\*63"),
        ([0], [1], True, "times holds"),
        ([0], [1], "3", "times holds"),
        ([0, 1], [1], 1, "shape"),
        ([0], [1], [1, 1], "shape"),
        ([[0]], [[1]], 1, "shape"),
        ([[0], [1, 2]], [0], 1, "ragged"),
    ],
)
def test_duels_that_no_round_may_hold_are_refused(first: Any, second: Any, times: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Plan(first, second, times)


def test_a_plan_cannot_be_written_into() -> None:
    first, second, times = np.array([0, 1]), np.array([1, 2]), np.array([3, 4])
    for plan in (Plan(first, second, times), Plan.all_pairs([0, 1, 2], 3), Plan.empty(), Plan(first, second, times)):
        for column in (plan.first, plan.second, plan.times):
            with pytest.raises(ValueError, match="read-only"):
                column[...] = 0
    plan = Plan(first, second, times)
    first[:] = 7
    times[:] = 7
    assert list(plan) == [(0, 1, 3), (1, 2, 4)]
    assert times.flags.writeable


def test_the_planners_of_whole_fields_are_canonical_whatever_the_order_of_the_arms() -> None:
    assert Plan.all_pairs([4, 1, 3], 2) == Plan.all_pairs([1, 3, 4], 2)
    assert Plan.all_pairs([1, 3, 4], 0) == Plan.empty()
    assert Plan.all_pairs(np.arange(3), np.float64(1e6)) == Plan.all_pairs([0, 1, 2], 10**6)


@pytest.mark.parametrize(
    ("arms", "times", "message"),
    [
        ([1, 1, 2], 1, "arm 1 is set against itself"),
        ([-1, 0], 1, "arm -1 does not exist"),
        ([0, 1], -1, "times holds -1"),
        ([0, 1, 2], 2.5, "times holds 2.5"),
        ([0, 1], float("nan"), "times holds nan"),
        ([0, 1], "3", "times holds"),
        ([0, 1], 10**19, "below 2\\*\\*63"),
        ([0, 1], [1, 2], r"times \(2,\): give one list of arms and one number"),
        ([0.5, 1.7], 1, "arms holds 0.5"),
        ([[0, 1]], 1, r"arms has shape \(1, 2\)"),
        (3, 1, r"arms has shape \(\)"),
    ],
)
def test_fields_that_cannot_meet_are_refused(arms: Any, times: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Plan.all_pairs(arms, times)


def test_the_planners_of_whole_fields() -> None:
    assert list(Plan.all_pairs([1, 3, 4], 2)) == [(1, 3, 2), (1, 4, 2), (3, 4, 2)]
    assert list(Plan.all_pairs([5], 2)) == []
    # ALGORITHMS.md 1, test 2: A = {0..4}, candidate 1 defeats {2, 3, 4}, so U = {0}; the candidate meets everyone.
    plan = Plan.touching(np.arange(5), np.array([True, True, False, False, False]), 9)
    assert [(i, j) for i, j, _ in plan] == [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4)]
    assert set(plan.times.tolist()) == {9}
    wanted = np.array([[True, True, False], [True, True, True], [True, False, True]])
    assert list(Plan.where([2, 5, 9], wanted, 1)) == [(2, 5, 1), (5, 9, 1)]


@pytest.mark.parametrize(("n", "u", "size"), [(5, 4, 10), (5, 0, 4), (6, 2, 12)])
def test_the_number_of_pairs_of_a_round(n: int, u: int, size: int) -> None:
    """|P_r| = (n-1) + u(u-1)/2 + u(n-1-u) for a candidate that leaves u arms undefeated."""
    hub = np.zeros(n, bool)
    hub[: u + 1] = True  # the candidate and U
    assert len(Plan.touching(np.arange(n), hub, 1)) == size == (n - 1) + u * (u - 1) // 2 + u * (n - 1 - u)


def round_robin(plan: Plan, limit: int) -> list[tuple[int, int, int]]:
    """The specification to the letter: repeat k of every pair before repeat k+1 of any; keep the first `limit`."""
    rows = list(plan)
    duels = [(i, j) for k in range(max((n for *_, n in rows), default=0)) for i, j, n in rows if k < n]
    return sorted((i, j, n) for (i, j), n in Counter(duels[:limit]).items())


@given(plans(), st.integers(0, 120))
def test_truncation_keeps_the_first_duels_in_round_robin_order(plan: Plan, limit: int) -> None:
    before = list(plan)
    cut = plan.truncate(limit)
    assert list(cut) == round_robin(plan, limit)
    assert cut.total == min(limit, plan.total)
    assert list(plan) == before


def test_truncation_of_even_plans_is_floor_and_remainder() -> None:
    """ALGORITHMS.md 1, test 5: 3 pairs x 20 cut to 8 duels are 3, 3, 2."""
    assert list(Plan.all_pairs([0, 1, 2], 20).truncate(8)) == [(0, 1, 3), (0, 2, 3), (1, 2, 2)]


def test_counts_beyond_64_bits_in_the_sum_are_exact() -> None:
    field, times = np.arange(40), 10**18
    plan = Plan.all_pairs(field, times)
    assert plan.total == 780 * times  # past 2**63: this would wrap
    cut = plan.truncate(10**18 + 7)
    assert cut.total == 10**18 + 7
    assert set(cut.times.tolist()) == {(10**18 + 7) // 780, (10**18 + 7) // 780 + 1}
    assert np.all(np.diff(cut.times) <= 0)
    uneven = Plan([0, 0, 1], [1, 2, 2], [1, 4 * 10**18, 5 * 10**18])
    assert uneven.total == 9 * 10**18 + 1
    assert list(uneven.truncate(6 * 10**18)) == [(0, 1, 1), (0, 2, 3 * 10**18), (1, 2, 3 * 10**18 - 1)]


def test_digests_last() -> None:
    """Recorded rounds are compared by digest, perhaps years later and elsewhere: these numbers may never change."""
    assert Plan([0, 1], [2, 2], [3, 4]).digest() == KNOWN
    assert Plan([2, 2], [1, 0], [4, 3]).digest() == KNOWN
    assert Plan.empty().digest() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@given(plans(2), plans(2))
def test_equal_plans_and_only_they_share_digest_and_hash(one: Plan, other: Plan) -> None:
    same = list(one) == list(other)
    assert (one == other) is same
    assert (one.digest() == other.digest()) is same
    assert (one.difference(other) is None) is same
    if same:
        assert hash(one) == hash(other)


def test_a_plan_equals_no_other_thing() -> None:
    assert Plan.empty() != []
    assert Plan.empty() == Plan([], [], [])


@given(plans(3), plans(3))
def test_the_difference_names_the_first_pair_that_is_not_shared(one: Plan, other: Plan) -> None:
    mine, theirs = ({(i, j): n for i, j, n in plan} for plan in (one, other))
    apart = sorted(p for p in mine.keys() | theirs.keys() if mine.get(p, 0) != theirs.get(p, 0))
    difference = one.difference(other)
    if not apart:
        assert difference is None
    else:
        first = apart[0]
        assert difference == f"pair {first}: {mine.get(first, 0)} times against {theirs.get(first, 0)}"


@given(plans())
def test_a_pickled_plan_is_the_same_plan(plan: Plan) -> None:
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_repr_tells_duels_and_pairs() -> None:
    assert repr(Plan.all_pairs([0, 1, 2], 5)) == "<Plan: 15 duels over 3 pairs>"
