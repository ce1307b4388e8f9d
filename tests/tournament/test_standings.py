"""Ratings, leaders and outcomes, against a well-kept library and worked examples."""

from __future__ import annotations

import choix
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundel.tally import Tally
from roundel.tournament.outcome import borda_winner, copeland_winners, find_cycle
from roundel.tournament.standings import (
    RIDGE,
    SCALE,
    _derivatives,
    bradley_terry,
    leader,
    shrunk_evidence,
    unseparated,
    wilson,
)


def tally_of(wins: list[list[int]]) -> Tally:
    return Tally(2 * np.array(wins, np.int64))


@given(st.integers(2, 6), st.integers(0, 10**6))
def test_ratings_agree_with_choix_where_both_are_defined(arms: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    wins = draw.integers(1, 30, (arms, arms))
    np.fill_diagonal(wins, 0)
    data = [(i, j) for i in range(arms) for j in range(arms) for _ in range(wins[i, j])]
    ridge = 0.3
    theirs = choix.opt_pairwise(arms, data, alpha=ridge / 2)
    ours = bradley_terry(tally_of(wins.tolist()), ridge)
    assert ours.converged
    np.testing.assert_allclose(ours.strength, theirs - theirs.mean(), atol=2e-4)


def test_an_unbeaten_option_has_a_finite_rating() -> None:
    fit = bradley_terry(tally_of([[0, 50, 50], [0, 0, 25], [0, 25, 0]]))
    assert fit.converged
    assert np.isfinite(fit.strength).all()
    assert np.isfinite(fit.error).all()
    assert fit.strength[0] > 3
    assert abs(fit.strength[1] - fit.strength[2]) < 1e-9


def test_ratings_of_extreme_counts_converge() -> None:
    for wins in ([[0, 10**9], [0, 0]], [[0, 1, 0], [0, 0, 10**9], [1, 0, 0]], [[0] * 4] * 4):
        fit = bradley_terry(tally_of(wins))
        assert fit.converged
        assert np.isfinite(fit.strength).all()


def test_ratings_converge_where_counts_differ_by_twelve_orders_of_magnitude() -> None:
    draw = np.random.default_rng(0)
    for trial in range(150):
        arms = int(draw.integers(2, 15))
        duels = np.triu(10 ** (12 * draw.random((arms, arms))) * (draw.random((arms, arms)) < 0.5), 1).astype(np.int64)
        chance = (draw.random((arms, arms)), np.ones((arms, arms)), draw.choice([0, 0.5, 1], (arms, arms)))[trial % 3]
        wins = np.floor(duels * chance).astype(np.int64)
        fit = bradley_terry(Tally(2 * (wins + (duels - wins).T)))
        assert fit.converged, trial
        points = wins + (duels - wins).T.astype(np.float64)
        gradient, curvature = _derivatives(fit.strength, points, points + points.T, RIDGE)
        left = np.abs(np.linalg.solve(curvature, gradient)).max() * SCALE
        assert left < 0.01, "a rating is off by more than it is rounded to"


def test_intervals_cover_the_truth() -> None:
    """95% intervals of 4 strengths, 300 campaigns of 600 duels: 1,200 intervals, 60 misses expected.

    The misses of one campaign's 4 intervals are dependent, so at worst 300 blocks of 4: above 60 + 6 standard
    deviations (4 sqrt(300 * 0.05 * 0.95) = 15.1) lies probability below 1e-8; the penalty moves little here.
    """
    truth = np.array([0.6, 0.2, -0.2, -0.6])
    chance = 1 / (1 + np.exp(truth[None, :] - truth[:, None]))
    draw = np.random.default_rng(1)
    missed = narrow = 0
    for _ in range(300):
        wins = np.zeros((4, 4), np.int64)
        for i in range(4):
            for j in range(i + 1, 4):
                wins[i, j] = draw.binomial(100, chance[i, j])
                wins[j, i] = 100 - wins[i, j]
        fit = bradley_terry(tally_of(wins.tolist()))
        missed += int((np.abs(fit.strength - truth) > 1.96 * fit.error).sum())
        narrow += int((np.abs(fit.strength - truth) > 0.5 * 1.96 * fit.error).sum())
    assert missed <= 60 + 6 * 15.1
    assert narrow > 60 + 6 * 15.1, "the control: intervals half as wide must fail"


def test_shrinking_moves_from_the_rating_to_the_evidence() -> None:
    # 0 beats 1 and 2 narrowly, 1 beats 2 and 3 by far: a rating puts 1 first, the pairs say 0.
    wins = [[0, 55, 55, 55], [45, 0, 95, 95], [45, 5, 0, 50], [45, 5, 50, 0]]
    everyone = np.arange(4)
    few, many = tally_of(wins), tally_of([[100 * n for n in row] for row in wins])
    assert int(bradley_terry(few).strength.argmax()) == 1
    assert leader(few, everyone, pull=1000.0) == 1
    assert leader(many, everyone) == 0
    assert shrunk_evidence(many, bradley_terry(many), pull=1.0)[0] == 0
    assert leader(many, np.array([1, 2])) == 1, "only who is in play can lead"


def test_the_leader_is_about_as_good_as_the_better_of_rating_and_evidence() -> None:
    """One matrix that a rating fits and one that it does not, 300 repeats each; counts of the best being named.

    Both methods see the same votes: on the first the leader names the best at least as often as the rating less
    30 of 300 (three standard deviations of a difference that is at most sqrt(300) = 17 either way is 52; measured
    0 to 3), on the second as the evidence less 30; and the other method is worse by more than that: the control.
    """
    strength = np.linspace(0.9, 0, 12)
    fits = 1 / (1 + np.exp(strength[None, :] - strength[:, None]))
    no_fit = np.full((6, 6), 0.5)  # 0 beats all narrowly; 1 beats the others by far, so that its rating is higher
    no_fit[0, 1:], no_fit[1, 2:] = 0.56, 0.95
    no_fit = np.triu(no_fit, 1) + np.tril(1 - no_fit.T, -1)
    draw = np.random.default_rng(2)
    right = {}
    for name, chance, times in (("fits", fits, 20), ("no fit", no_fit, 300)):
        arms = len(chance)
        upper = np.triu_indices(arms, 1)
        counts = dict.fromkeys(("rating", "evidence", "leader"), 0)
        for _ in range(300):
            wins = np.zeros((arms, arms), np.int64)
            wins[upper] = draw.binomial(times, chance[upper])
            wins[upper[1], upper[0]] = times - wins[upper]
            tally = tally_of(wins.tolist())
            fit = bradley_terry(tally)
            counts["rating"] += int(fit.strength.argmax()) == 0
            counts["evidence"] += int(tally.evidence().argmin()) == 0
            counts["leader"] += leader(tally, np.arange(arms), fit) == 0
        right[name] = counts
    assert right["fits"]["leader"] >= right["fits"]["rating"] - 30 > right["fits"]["evidence"]
    assert right["no fit"]["leader"] >= right["no fit"]["evidence"] - 30 > right["no fit"]["rating"]


def test_before_the_first_duel_the_first_option_leads() -> None:
    empty = Tally.zero(3)
    assert leader(empty, np.arange(3)) == 0
    assert unseparated(empty, np.arange(3), 0) == [1, 2]


def test_who_is_separated() -> None:
    # ln(2 / 0.05) = 3.69; 30 to 10 gives 40 kl(1/4, 1/2) = 5.23, 12 to 8 gives 0.40
    tally = tally_of([[0, 30, 12], [10, 0, 0], [8, 0, 0]])
    assert unseparated(tally, np.arange(3), 0) == [2]
    assert unseparated(tally, np.array([0]), 0) == []


def test_wilson() -> None:
    assert wilson(0, 0) is None
    low, high = wilson(100, 100) or (0, 0)  # 50 wins of 100
    assert (round(low, 4), round(high, 4)) == (0.4038, 0.5962)


def test_cycles_copeland_and_borda() -> None:
    ring = np.zeros((5, 5), bool)
    for a, b in ((0, 1), (1, 2), (2, 0), (3, 0), (2, 4)):
        ring[a, b] = True
    found = find_cycle(ring)
    assert sorted(found) == [0, 1, 2]
    assert all(ring[a, b] for a, b in zip(found, [*found[1:], found[0]], strict=True))
    assert find_cycle(np.triu(np.ones((4, 4), bool), 1)) == []
    assert find_cycle(np.zeros((3, 3), bool)) == []
    tally = tally_of([[0, 6, 5, 9], [4, 0, 6, 9], [5, 4, 0, 9], [1, 1, 1, 0]])
    assert copeland_winners(tally) == [0]
    assert borda_winner(tally) == 0


@pytest.mark.parametrize("arms", [2, 3, 7])
@given(seed=st.integers(0, 10**6))
def test_every_ring_is_found(arms: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    beats = draw.random((arms, arms)) < 0.4
    beats &= ~(beats.T & np.tri(arms, k=-1, dtype=bool))
    np.fill_diagonal(beats, False)
    found = find_cycle(beats)
    reach = beats.copy()
    for _ in range(arms):
        reach |= (reach.astype(int) @ reach.astype(int)) > 0
    assert bool(found) == bool(np.diagonal(reach).any())
    if found:
        assert len(set(found)) == len(found)
        assert all(beats[a, b] for a, b in zip(found, [*found[1:], found[0]], strict=True))
