"""Tally: exact points, and the estimates, radii and evidence that the policies read from them."""

from __future__ import annotations

from decimal import Decimal, localcontext
from math import inf, log, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from roundel.errors import InputError
from roundel.plan import Plan
from roundel.tally import Tally, hoeffding_level, kl_half, radius


def naive_kl(p: float) -> float:
    return sum(x * log(2 * x) for x in (p, 1 - p) if x > 0)


@st.composite
def tallies(draw: st.DrawFn, most: int = 30) -> Tally:
    arms = draw(st.integers(1, 6))
    points = np.zeros((arms, arms), np.int64)
    for i in range(arms):
        for j in range(i):
            played = draw(st.integers(0, most))
            points[i, j] = draw(st.integers(0, 2 * played))
            points[j, i] = 2 * played - points[i, j]
    return Tally(points)


def test_the_evidence_of_the_worked_example() -> None:
    """ALGORITHMS.md 2, test 1."""
    tally = Tally(2 * np.array([[0, 30, 22], [10, 0, 18], [18, 22, 0]]))
    assert tally.phat[0, 1] == 0.75
    assert tally.phat[0, 2] == 0.55
    assert tally.phat[1, 2] == 0.45
    assert float(kl_half(0.75)) == pytest.approx(0.1308120, abs=5e-8)
    assert float(kl_half(0.55)) == pytest.approx(0.0050084, abs=5e-8)
    assert tally.evidence() == pytest.approx([0, 5.432816, 0.200335], abs=5e-7)
    assert tally.evidence(np.array([2, 1])) == pytest.approx([0.200335, 5.432816], abs=5e-7)
    losses = tally.losses()
    assert losses[1] == pytest.approx([40 * 0.1308120, 0, 40 * 0.0050084], abs=5e-6)
    assert losses[2] == pytest.approx([40 * 0.0050084, 0, 0], abs=5e-6)


@given(tallies())
def test_estimates_and_evidence_agree_with_their_definitions(tally: Tally) -> None:
    points, arms = tally.points, tally.arms
    counts, phat, evidence = tally.counts, tally.phat, tally.evidence()
    assert tally.duels == points.sum() // 2
    for i in range(arms):
        total = 0.0
        for j in range(arms):
            n = (points[i, j] + points[j, i]) / 2
            p = points[i, j] / (2 * n) if n else 0.5
            assert counts[i, j] == n
            assert phat[i, j] == pytest.approx(p, abs=1e-15)
            if n and p < 0.5:
                total += n * naive_kl(p)
        assert evidence[i] == pytest.approx(total, rel=1e-12, abs=1e-12)
    assert np.allclose(phat + phat.T, 1)
    assert (evidence >= 0).all()


@given(tallies(), st.data())
def test_a_block_of_the_tables_is_that_block(tally: Tally, data: st.DataObject) -> None:
    some = st.permutations(range(tally.arms)).flatmap(
        lambda arms: st.integers(1, len(arms)).map(lambda n: np.array(arms[:n]))
    )
    rows, columns = data.draw(some), data.draw(some)
    block = np.ix_(rows, columns)
    phat, counts = tally.between(rows, columns)
    assert np.array_equal(phat, tally.phat[block])
    assert np.array_equal(counts, tally.counts[block])
    assert np.array_equal(tally.between(rows)[0], tally.phat[rows])
    assert np.array_equal(tally.between(None, columns)[1], tally.counts[:, columns])
    assert np.allclose(tally.evidence(rows), tally.evidence()[rows], rtol=1e-12)
    assert np.allclose(tally.losses(rows), tally.losses()[rows], rtol=1e-12)


@given(tallies(), st.floats(0, 40))
@example(Tally([[0, 8], [0, 0]]), 1.0)  # phat = 1, N = 4: 1 > 1/2 + sqrt(1/4) is an equality, and so false
@example(Tally([[0, 0], [0, 0]]), 0.0)  # nothing dueled: nobody leads, at any level
def test_a_lead_is_a_share_above_a_half_and_the_radius_strictly(tally: Tally, level: float) -> None:
    everyone = np.arange(tally.arms)
    leads = tally.leads(level, everyone, everyone)
    for i in everyone:
        for j in everyone:
            n = int(tally.counts[i, j])
            margin = tally.phat[i, j] - (0.5 + (sqrt(level / n) if n else inf))
            if abs(margin) > 1e-12:
                assert leads[i, j] == (margin > 0)
            elif n and level:  # a tie: decide by the exact squares, (w - l)^2 against 8 L (w + l)
                ahead = int(tally.points[i, j] - tally.points[j, i])
                assert leads[i, j] == (ahead > 0 and ahead**2 > 8 * level * 2 * n)
            else:
                assert not leads[i, j] or tally.points[i, j] > tally.points[j, i]


def test_the_defeat_radius_of_the_worked_example() -> None:
    """ALGORITHMS.md 1, test 4: K = 3, q = 100, N = 200: c = 0.273780; 0.78 defeats and 0.77 does not."""
    level = 2 * log(2 * 3**2 * 100)
    assert float(radius(level, 200)) == pytest.approx(0.273780, abs=5e-7)
    me, you = np.array([0]), np.array([1])
    for share, defeats in ((0.78, True), (0.77, False)):
        points = np.zeros((3, 3), np.int64)
        points[0, 1], points[1, 0] = round(400 * share), round(400 * (1 - share))
        assert tally_leads(Tally(points), level, me, you) is defeats


def tally_leads(tally: Tally, level: float, me: NDArray[np.int64], you: NDArray[np.int64]) -> bool:
    return bool(tally.leads(level, me, you)[0, 0])


@given(tallies(), st.integers(0, 20))
def test_a_majority_needs_enough_duels_and_more_than_half_the_points(tally: Tally, least: int) -> None:
    everyone = np.arange(tally.arms)
    expected = (tally.counts >= least) & (tally.points > tally.points.T)
    assert np.array_equal(tally.majorities(least, everyone, everyone), expected)


@given(st.floats(0, 1))
def test_kl_half_is_symmetric_above_pinsker_and_at_most_ln_2(p: float) -> None:
    value = float(kl_half(p))
    assert value == pytest.approx(naive_kl(p), abs=1e-14)
    assert value == pytest.approx(float(kl_half(1 - p)), abs=1e-14)
    assert 2 * (p - 0.5) ** 2 - 1e-14 <= value <= log(2) + 1e-15


def test_kl_half_at_its_ends() -> None:
    assert np.array_equal(kl_half([0, 0.5, 1]), [log(2), 0, log(2)])


def test_a_radius_where_nothing_was_dueled_is_infinite() -> None:
    assert radius(8.0, [0, 2, 8]).tolist() == [inf, 2, 1]


def test_the_level_of_the_radii() -> None:
    """ALGORITHMS.md 3, test 1: ln(K^2 B T) for K = 4, B = 6, T = 1000."""
    assert hoeffding_level(4, 6, 1000) == pytest.approx(11.472103, abs=5e-7)
    assert float(radius(hoeffding_level(4, 6, 1000) / 2, 44)) == pytest.approx(0.3611, abs=5e-5)
    assert hoeffding_level(10**5, 50, 10**18) == pytest.approx(log(1e10 * 50) + log(1e18))


@given(tallies(4), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9)), max_size=6))
def test_adding_and_taking_back_a_round(tally: Tally, duels: list[tuple[int, int, int]]) -> None:
    rows = {(min(i, j), max(i, j)): n for i, j, n in duels if i != j and max(i, j) < tally.arms and n}
    plan = Plan([i for i, _ in rows], [j for _, j in rows], list(rows.values()))
    before = tally.points.copy()
    points, played = plan.times.copy(), np.maximum(plan.times - 1, 0)
    points = np.minimum(points, 2 * played)
    after = tally.plus(plan, points, played)
    assert np.array_equal(tally.points, before)
    assert after.duels == tally.duels + played.sum()
    for pair, (i, j, _) in enumerate(plan):
        assert after.points[i, j] == before[i, j] + points[pair]
        assert after.points[j, i] == before[j, i] + 2 * played[pair] - points[pair]
    assert after.minus(tally) == Tally.zero(tally.arms).plus(plan, points, played)
    assert (after == tally) is bool(played.sum() == 0)


def test_a_tie_is_half_a_win_each_and_exact() -> None:
    plan = Plan([0], [1], 3)
    tally = Tally.zero(2).plus(plan, np.array([3]), np.array([3]))  # three ties
    assert tally.points.tolist() == [[0, 3], [3, 0]]
    assert tally.phat[0, 1] == 0.5
    assert tally.evidence().tolist() == [0, 0]


def test_the_points_cannot_be_written_into() -> None:
    table = np.array([[0, 2], [0, 0]])
    tally = Tally(table)
    table[0, 1] = 100
    assert tally.points[0, 1] == 2
    for one in (tally, Tally.zero(2), tally.plus(Plan([0], [1], 1), np.array([2]), np.array([1]))):
        with pytest.raises(ValueError, match="read-only"):
            one.points[0, 1] = 4
    with pytest.raises(TypeError, match="unhashable"):
        hash(tally)


@pytest.mark.parametrize("n", [10**6, 10**12, 10**15, 10**18])
@pytest.mark.parametrize("deviations", [0.5, 2, 6])
def test_evidence_is_exact_however_many_duels(n: int, deviations: float) -> None:
    """Half a million million duels next to an even split: the evidence is a small difference of huge numbers."""
    shift = round(deviations * sqrt(n))
    tally = Tally([[0, n - shift], [n + shift, 0]])
    with localcontext() as context:
        context.prec = 60
        w, total = Decimal(n - shift), Decimal(2 * n)
        exact = (w * (2 * w / total).ln() + (total - w) * (2 * (total - w) / total).ln()) / 2
    assert tally.evidence()[0] == pytest.approx(float(exact), rel=1e-4)
    assert tally.evidence()[1] == 0


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([[0, 1]], "shape"),
        ([0, 1], "shape"),
        ([[0, -2], [0, 0]], "holds -2"),
        ([[2, 0], [0, 0]], r"points\[0, 0\] is 2"),
        ([[0, 0, 0], [0, 0, 3], [0, 2, 0]], "arms 1 and 2 share 5 points"),
        ([[0, 0.5], [1.5, 0]], "holds 0.5"),
        ([[0, float("nan")], [0, 0]], "holds nan"),
        ([["0", "1"], ["1", "0"]], "holds"),
        ([[0, 1], [1]], "ragged"),
        ([[0, 2**63 - 1], [2**63 - 1, 0]], "holds 9223372036854775807: two arms share fewer"),
    ],
)
def test_points_that_no_duels_give_are_refused(points: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Tally(points)
