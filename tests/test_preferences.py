"""Preferences: refused with the entry's name, and every answer against a definition spelled out."""

from __future__ import annotations

from itertools import chain, combinations, permutations
from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from instances import ARITH8, CYC4, NOCW5, RPS3, SIX, linear
from roundel.errors import InputError, NoCondorcetWinnerError, PreferencesError
from roundel.preferences import Preferences

Floats = NDArray[np.float64]
CLOSE = 1e-9


@st.composite
def matrices(draw: st.DrawFn) -> Floats:
    """Few distinct chances, so that ties and equal scores abound; or the utilities of an order with ties in it."""
    arms = draw(st.integers(1, 5))
    if draw(st.booleans()):
        utilities = np.array([draw(st.integers(0, 4)) for _ in range(arms)]) / 10
        return np.asarray(0.5 + utilities[:, None] - utilities[None, :])
    matrix = np.full((arms, arms), 0.5)
    for i, j in combinations(range(arms), 2):
        matrix[i, j] = draw(st.sampled_from([0, 0.25, 0.5, 0.625, 0.75, 1]))
        matrix[j, i] = 1 - matrix[i, j]
    return matrix


def is_sst(d: Floats, order: tuple[int, ...]) -> bool:
    return all(d[i, j] >= -CLOSE for i, j in combinations(order, 2)) and all(
        d[i, k] >= max(d[i, j], d[j, k]) - CLOSE for i, j, k in combinations(order, 3)
    )


def is_sti(d: Floats, order: tuple[int, ...]) -> bool:
    return all(d[i, j] >= -CLOSE for i, j in combinations(order, 2)) and all(
        d[i, k] <= d[i, j] + d[j, k] + CLOSE for i, j, k in combinations(order, 3)
    )


def smith_set(matrix: Floats) -> tuple[int, ...]:
    arms = range(len(matrix))
    subsets = chain.from_iterable(combinations(arms, n) for n in range(1, len(matrix) + 1))
    return next(s for s in subsets if all(matrix[i, j] > 0.5 for i in s for j in arms if j not in s))


@given(matrices())
def test_every_answer_agrees_with_its_definition(matrix: Floats) -> None:
    p, arms = Preferences(matrix), range(len(matrix))
    beaten = [{j for j in arms if matrix[i, j] > 0.5} for i in arms]
    winners = [i for i in arms if beaten[i] == set(arms) - {i}]
    assert p.winner == (winners[0] if winners else None)
    assert p.copeland.tolist() == [len(b) for b in beaten]
    assert p.copeland_winners == tuple(i for i in arms if len(beaten[i]) == max(map(len, beaten)))
    borda = [sum(matrix[i, j] for j in arms if j != i) / max(1, len(arms) - 1) for i in arms]
    assert p.borda == pytest.approx(borda if len(arms) > 1 else [0.5])
    if len(arms) > 1:
        assert p.borda_winners == tuple(i for i in arms if borda[i] > max(borda) - CLOSE)
    assert p.smith_set == smith_set(matrix)
    if p.winner is not None:
        assert p.smith_set == (p.winner,) == p.copeland_winners
        assert p.gaps == pytest.approx([matrix[p.winner, j] - 0.5 for j in arms])


@given(matrices())
def test_transitivity_agrees_with_a_search_of_all_orders(matrix: Floats) -> None:
    p, d = Preferences(matrix), matrix - 0.5
    orders = list(permutations(range(len(matrix))))
    unbeaten = [o for o in orders if all(d[i, j] >= -CLOSE for i, j in combinations(o, 2))]
    assert (p.order is None) is (not unbeaten)
    assert p.sst is any(is_sst(d, o) for o in orders)
    # With exact ties the triangle inequality alone may depend on the order; with SST it does not.
    assert (p.sst and p.sti) is any(is_sst(d, o) and is_sti(d, o) for o in orders)
    if p.order is not None:
        assert p.order in unbeaten
        assert p.sti is is_sti(d, p.order)


def test_the_standard_instances() -> None:
    six, arith = Preferences(SIX), Preferences(ARITH8)
    assert six.winner == arith.winner == Preferences(CYC4).winner == 0
    assert six.gaps == pytest.approx([0, 0.05, 0.05, 0.04, 0.11, 0.11])
    assert six.borda == pytest.approx([0.572, 0.546, 0.502, 0.482, 0.454, 0.444])
    assert arith.borda[0] == pytest.approx(0.7)
    assert arith.borda[1] == pytest.approx(0.642857, abs=5e-7)
    assert arith.borda[7] == pytest.approx(0.3)
    assert arith.sst
    assert arith.sti
    assert not six.sst
    none = Preferences(NOCW5, name="nocw5")
    assert none.winner is None
    assert none.copeland.tolist() == [3, 3, 2, 1, 1]
    assert none.copeland_winners == (0, 1)
    assert none.smith_set == (0, 1, 2, 3, 4)
    assert Preferences(CYC4).smith_set == (0,)
    assert Preferences(CYC4).restrict([1, 2, 3]).smith_set == (0, 1, 2)
    assert Preferences(RPS3).order is None
    for question in ("gaps", "lower_bound_coefficient"):
        with pytest.raises(NoCondorcetWinnerError, match=r"'nocw5' has no Condorcet winner.*copeland or borda"):
            getattr(none, question)


def test_the_lower_bounds_of_the_standard_instances() -> None:
    """ALGORITHMS.md 0.6."""
    for matrix, coefficient, at_100_000 in ((SIX, 20.735, 238.7), (ARITH8, 12.712, 146.4)):
        p = Preferences(matrix)
        assert p.lower_bound_coefficient == pytest.approx(coefficient, abs=5e-4)
        assert p.lower_bound(1e5) == pytest.approx(at_100_000, abs=0.05)
    sure = Preferences([[0.5, 1], [0, 0.5]])
    for horizon in (0, -1, float("nan")):
        with pytest.raises(InputError, match=f"horizon is {horizon}: it must be at least 1"):
            sure.lower_bound(horizon)
    assert sure.lower_bound_coefficient == pytest.approx(0.25 / log(2))


def test_random_utilities_are_transitive_and_their_cycles_are_not() -> None:
    rng = np.random.default_rng(0)
    for arms in (3, 10, 40):
        matrix = linear(rng, arms)
        shuffled = rng.permutation(arms)
        p = Preferences(matrix[np.ix_(shuffled, shuffled)])
        assert p.sst
        assert p.sti
        assert p.order is not None
        assert [int(shuffled[a]) for a in p.order] == list(range(arms))
        matrix[0, 2], matrix[2, 0] = 0.45, 0.55
        assert not Preferences(matrix).sst


@given(matrices(), st.data())
def test_relabelling_and_restriction_relabel_the_answers(matrix: Floats, data: st.DataObject) -> None:
    arms = data.draw(st.permutations(range(len(matrix))))
    some = arms[: data.draw(st.integers(1, len(arms)))]
    p = Preferences(matrix, [f"arm {i}" for i in range(len(matrix))], name="m")
    part = p.restrict(some)
    assert np.array_equal(part.matrix, p.matrix[np.ix_(some, some)])
    assert part.labels == tuple(f"arm {i}" for i in some)
    assert part.name == "m"
    assert p.restrict(some, "part").name == "part"
    whole = p.restrict(arms)
    assert sorted(arms[i] for i in whole.smith_set) == list(p.smith_set)
    assert whole.sst is p.sst
    assert p.labels == tuple(f"arm {i}" for i in range(len(matrix)))


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ([], "at least one arm"),
        ([0, 3], "arm 3 does not exist: arms go from 0 to 2"),
        ([-1], "arm -1 does not exist"),
        ([1, 1], "name each arm once"),
        ([0.0, 1.0], "at least one arm"),
        ([[0], [1]], "at least one arm"),
        ([True, False, True], "at least one arm"),
        ([[0], [1, 2]], "at least one arm"),
    ],
)
def test_restrictions_to_what_is_not_there_are_refused(arms: Any, message: str) -> None:
    with pytest.raises(PreferencesError, match=message):
        Preferences(RPS3).restrict(arms)


def test_one_arm_is_its_own_winner() -> None:
    p = Preferences([[0.5]])
    assert (p.winner, p.smith_set, p.copeland_winners, p.borda_winners) == (0, (0,), (0,), (0,))
    assert p.gaps.tolist() == [0]
    assert p.sst
    assert p.sti
    assert p.lower_bound_coefficient == 0
    assert p.labels == ("0",)


def broken(i: int, j: int, value: float) -> Floats:
    matrix = SIX.copy()
    matrix[i, j] = value
    return matrix


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (broken(2, 4, 0.52), r"P\[2, 4\] is 0.52 and P\[4, 2\] is 0.49: they must add up to 1"),
        (broken(3, 3, 0.4), r"P\[3, 3\] is 0.4: the diagonal must be 0.5"),
        (broken(5, 1, float("nan")), r"P\[5, 1\] is nan: it must be a finite number"),
        (broken(1, 0, float("inf")), r"P\[1, 0\] is inf: it must be a finite number"),
        (broken(4, 0, -0.1), r"P\[4, 0\] is -0.1: it must be a probability"),
        (broken(0, 4, 1.1), r"P\[0, 4\] is 1.1: it must be a probability"),
        (broken(2, 4, 0.51 + 1e-6), r"P\[2, 4\].*add up to 1"),
        ([[0.5, 0.6]], r"shape \(1, 2\): it must be square"),
        ([0.5], r"shape \(1,\): it must be square"),
        ([], "must be square"),
        (np.zeros((0, 0)), "must be square"),
        ([["a"]], "not a number"),
        (np.array([[0.5 + 1j]]), "not a number"),
        ([[0.5, 0.5], [0.5]], "not a number"),
    ],
)
def test_a_matrix_that_is_none_is_refused_by_its_entry(matrix: Any, message: str) -> None:
    with pytest.raises(PreferencesError, match=message):
        Preferences(matrix)


def test_rounding_is_tolerated_and_nothing_is_written_back() -> None:
    matrix = broken(2, 4, 0.51 + 1e-12)
    before = matrix.copy()
    p = Preferences(matrix)
    assert np.array_equal(matrix, before)
    assert matrix.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        p.matrix[0, 1] = 0.7


@pytest.mark.parametrize("off", [2**-53, 2**-52, 4e-10])
def test_arms_that_are_even_but_for_rounding_are_even(off: float) -> None:
    for sign in (1, -1):
        p = Preferences([[0.5, 0.5 + sign * off], [0.5 + sign * off, 0.5]])
        assert (p.winner, p.copeland.tolist(), p.smith_set, p.order) == (None, [0, 0], (0, 1), (0, 1))
    kept = Preferences([[0.5, 0.5 + off], [0.5 - off, 0.5]])
    assert kept.winner == (0 if 0.5 + off > 0.5 else None)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", "b"], "2 labels for 3 arms"),
        (["a", "b", "a"], "label 'a' stands twice"),
        (["a", "", "c"], "label '' is not a name"),
        (["a", 2, "c"], "label 2 is not a name"),
        ("abc", "labels is 'abc': give a list"),
        (3, "labels is 3: give a list"),
    ],
)
def test_labels_are_unique_names(labels: Any, message: str) -> None:
    with pytest.raises(PreferencesError, match=message):
        Preferences(RPS3, labels)
    assert Preferences(RPS3, ["rock", "paper", "scissors"]).labels == ("rock", "paper", "scissors")
