"""Generated problems: the models they claim to be, and the same numbers for ever."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundel.datasets import bradley_terry, hard_condorcet, linear_utilities, mallows, random_condorcet
from roundel.errors import InputError

EVERY = [bradley_terry, linear_utilities, random_condorcet, hard_condorcet, mallows]
sizes = st.integers(2, 12)
seeds = st.integers(0, 2**40)


@pytest.mark.parametrize("make", EVERY)
@given(arms=sizes, seed=seeds)
def test_size_winner_and_determinism(make, arms, seed):
    problem = make(arms=arms, seed=seed)
    assert problem.arms == arms
    assert problem.winner is not None
    assert (problem.matrix == make(arms=arms, seed=seed).matrix).all()


@pytest.mark.parametrize("make", EVERY)
def test_the_seed_matters(make):
    winners = {make(arms=20, seed=seed).winner for seed in range(40)}
    assert len(winners) > 5  # 40 uniform draws of 20 hit at most 5 with a chance below 1e-20


# Pinned: these numbers must outlive every version of numpy and of this package.
PINNED = {
    bradley_terry: [0.78153, 0.23323, 0.56121],
    linear_utilities: [0.65713, 0.51085, 0.33928],
    random_condorcet: [0.31882, 0.26919, 0.08257],
    hard_condorcet: [0.1, 0.1, 0.45],
    mallows: [0.55556, 0.44444, 0.44444],
}


@pytest.mark.parametrize("make", EVERY)
def test_numbers_stay(make):
    m = make(arms=4, seed=2).matrix
    assert [m[0, 1], m[0, 2], m[2, 3]] == pytest.approx(PINNED[make], abs=1e-5)


@given(arms=sizes, seed=seeds, spread=st.floats(0.1, 3))
def test_bradley_terry_log_odds_add_up_and_sst_sti_hold(arms, seed, spread):
    problem = bradley_terry(arms=arms, seed=seed, spread=spread)
    odds = np.log(problem.matrix / (1 - problem.matrix))
    assert odds[:, :1] + odds[:1, :] == pytest.approx(odds, abs=1e-6)
    assert problem.sst
    assert problem.sti


def test_bradley_terry_strengths_are_normal_with_that_spread():
    odds = np.log(1 / bradley_terry(arms=1000, seed=1, spread=2.0).matrix[:, 0] - 1)
    # The variance of n normals has a relative standard deviation of sqrt(2 / n) = 0.045; six of them.
    assert np.var(odds) == pytest.approx(4.0, rel=0.27)


@given(arms=sizes, seed=seeds)
def test_linear_utilities_gaps_add_up(arms, seed):
    problem = linear_utilities(arms=arms, seed=seed)
    d = problem.matrix - 0.5
    assert d[:, :1] + d[:1, :] == pytest.approx(d, abs=1e-12)
    assert problem.sst
    assert problem.sti


@given(arms=sizes, seed=seeds, gap=st.floats(0.001, 0.49))
def test_condorcet_winners_keep_their_gap(arms, seed, gap):
    loose = random_condorcet(arms=arms, seed=seed, gap=gap)
    assert np.delete(loose.gaps, loose.winner).min() >= gap - 1e-12
    hard = hard_condorcet(arms=arms, seed=seed, gap=gap)
    assert np.delete(hard.gaps, hard.winner) == pytest.approx(gap)


@given(arms=st.integers(3, 15), seed=seeds)
def test_hard_condorcet_misleads_borda_and_cycles(arms, seed):
    problem = hard_condorcet(arms=arms, seed=seed)
    assert problem.winner not in problem.borda_winners
    assert problem.order is None or arms < 5  # a circle takes three
    wins = sorted(problem.copeland.tolist())
    assert wins[-1] == arms - 1
    assert wins[-2] == arms - 2
    assert wins[-3] - wins[0] <= 1  # the circle is as even as its size lets it be


def pair_chances(arms: int, dispersion: float) -> np.ndarray:
    """The chance that i stands before j in a Mallows ranking with centre 0, 1, 2, ...: by enumeration."""
    total, before = 0.0, np.zeros((arms, arms))
    for ranking in permutations(range(arms)):
        swaps = sum(ranking[a] > ranking[b] for a in range(arms) for b in range(a + 1, arms))
        weight = dispersion**swaps
        total += weight
        for a in range(arms):
            for b in range(a + 1, arms):
                before[ranking[a], ranking[b]] += weight
    return before / total


@pytest.mark.parametrize("dispersion", [0.0, 0.1, 0.5, 0.8, 0.99, 0.9999])
@pytest.mark.parametrize("arms", [2, 3, 5])
def test_mallows_is_exact(arms, dispersion):
    problem = mallows(arms=arms, seed=11, dispersion=dispersion)
    centre = problem.order
    assert centre is not None
    sorted_matrix = problem.restrict(list(centre)).matrix
    expected = pair_chances(arms, dispersion) + 0.5 * np.eye(arms)
    assert sorted_matrix == pytest.approx(expected, abs=1e-9)


@given(arms=sizes, seed=seeds, dispersion=st.floats(0, 0.9999))
def test_mallows_is_strongly_transitive(arms, seed, dispersion):
    assert mallows(arms=arms, seed=seed, dispersion=dispersion).sst


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (mallows, {"arms": 1}, r"arms is 1: it must be at least 2"),
        (bradley_terry, {"arms": 20_000}, r"arms is 20000: it must be at most 10000"),
        (linear_utilities, {"seed": -1}, r"seed is -1"),
        (mallows, {"dispersion": 1.0}, r"dispersion is 1.0: it must be a number at least 0 and at most 0.9999"),
        (mallows, {"dispersion": 1 - 1e-9}, r"dispersion is 0.999999999: it must be"),
        (random_condorcet, {"gap": 0.0}, r"gap is 0.0: it must be a number above 0 and at most 0.5"),
        (hard_condorcet, {"gap": float("nan")}, r"gap is nan"),
        (hard_condorcet, {"strength": "big"}, r"strength is 'big'"),
        (bradley_terry, {"spread": True}, r"spread is True"),
    ],
)
def test_bad_parameters(make, given, message):
    with pytest.raises(InputError, match=message):
        make(**given)
