"""SCOMP2: the worked examples of ALGORITHMS.md, section 5, with given seed sets."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

from instances import ARITH8, DET4, linear
from playing import as_dict, play, play_by, seed_that_draws, start
from roundel import Run
from roundel.policies.schedule import batch_size


def det4(wanted: set[int], horizon: int = 1000, rounds: int = 6) -> Run:
    return Run("scomp2", 4, horizon, rounds, seed=seed_that_draws(4, 0.5, wanted))


def test_the_best_arm_as_the_seed() -> None:
    """Test 1: one seed, so no duels among seeds; estimates are from the round alone, g < 1/2 first in round 3."""
    played = play(det4({0}), DET4)
    assert [(len(plan), set(plan.values())) for plan in played.plans] == [(3, {3}), (3, {10}), (3, {31})]
    assert (played.alone, played.batches, played.regret) == (132, 4, pytest.approx(33.0))
    level = log(3 * 4**2 * 6 * 1000)
    assert level == pytest.approx(12.570716, abs=5e-7)
    radii = [sqrt(level / 2 / batch_size(1000, 6, r)) for r in range(1, 7)]
    assert radii == pytest.approx([1.4475, 0.7928, 0.4503, 0.2507, 0.1410, 0.0793], abs=5e-5)
    assert played.run.eliminations[0].threshold == pytest.approx(0.5 + radii[2])


def test_a_seed_too_weak_to_switch_before_the_horizon() -> None:
    """Test 2: S = {2}."""
    played = play(det4({2}), DET4)
    assert [len(plan) for plan in played.plans] == [3, 3, 3, 2, 2, 2]
    assert (played.run.spent, played.regret, played.batches) == (1000, pytest.approx(380.5), 6)
    assert [(e.round, e.arm) for e in played.run.eliminations] == [(3, 3)]


@pytest.mark.parametrize(("seeds", "batches", "alone", "regret"), [({0, 2}, 7, 132, 33.0), ({1, 3}, 9, None, 272.0)])
def test_two_seeds(seeds: set[int], batches: int, alone: int | None, regret: float) -> None:
    """Test 2, continued: each round is two batches while there are two seeds."""
    played = play(det4(seeds), DET4)
    assert (played.batches, played.regret) == (batches, pytest.approx(regret))
    assert alone is None or played.alone == alone
    assert set(played.plans[0]) == {(min(seeds), max(seeds))}
    assert set(played.plans[1]) == {(min(min(seeds), j), max(min(seeds), j)) for j in {0, 1, 2, 3} - seeds}


def test_a_switch() -> None:
    """Test 3: S = {2}, T = 10^6, B = 13: the switch comes after round 7, which PCOMP repeats on arms 0 and 1."""
    played = play(det4({2}, 10**6, 13), DET4)
    assert played.plans[-1] == {(0, 1): 1701}
    assert (played.alone, played.regret, played.batches) == (6995, pytest.approx(2423.5), 9)
    assert [e.arm for e in played.run.eliminations] == [3, 2, 1]
    assert played.run.eliminations[1].by in (0, 1)  # the candidate leaves by those that beat it
    level = log(3 * 4**2 * 13 * 10**6)
    assert level == pytest.approx(20.251661, abs=5e-7)
    assert played.run.eliminations[2].threshold == pytest.approx(0.5 + sqrt(level / 2 / 1701))


def test_the_candidate_is_the_seed_with_the_best_mean_share_and_the_lowest_index_on_ties() -> None:
    seed = seed_that_draws(5, 5**-0.5, {1, 2, 4})
    for wins, candidate in (([3, 2, 2], 1), ([1, 1, 3], 2), ([1, 0, 1], 4), ([2, 2, 2], 1)):
        run = start("scomp2", 5, 10**4, 6, seed)
        first = run.ask()
        assert first is not None
        assert as_dict(first) == {(1, 2): 4, (1, 4): 4, (2, 4): 4}
        run.tell(wins)
        second = run.ask()
        assert second is not None
        assert as_dict(second) == {(min(candidate, j), max(candidate, j)): 4 for j in (0, 3)}


def test_equal_mean_shares_are_equal_whatever_the_order_they_are_added_up_in() -> None:
    """With three duels a pair, 1 against 0 and 2 each hold 4 of 6: as floats, 0.6666666666666665 and ...6666."""
    run = start("scomp2", 4, 1000, 6, seed_that_draws(4, 0.5, {0, 1, 2}))
    first = run.ask()
    assert first is not None
    assert as_dict(first) == {(0, 1): 3, (0, 2): 3, (1, 2): 3}
    run.tell([1, 0, 2])
    second = run.ask()
    assert second is not None
    assert as_dict(second) == {(1, 3): 3}


def test_all_pairs_after_a_switch_start_with_fresh_statistics() -> None:
    """Five seeds that go round in a circle: nobody among them is eliminated, and 3 and 4 surely beat candidate 0.

    They met in that round, 500 to 500. Afterwards 3 takes 620 of 1,000: enough by itself (0.62 > 0.597), not with
    the duels from before the switch (0.56 < 0.569).
    """
    seed = seed_that_draws(5, 5**-0.5, {0, 1, 2, 3, 4})
    run = start("scomp2", 5, 10**6, 2, seed)
    first = run.ask()
    assert first is not None
    sure = {(0, 1): 1, (0, 2): 1, (1, 2): 1, (0, 3): 0, (0, 4): 0, (2, 3): 1, (2, 4): 1}
    run.tell([round(1000 * sure.get((i, j), 0.5)) for i, j, _ in first])
    assert run.active.tolist() == [3, 4]
    second = run.ask()
    assert second is not None
    assert as_dict(second) == {(3, 4): 1000}
    run.tell([620])
    assert run.winner == 3


def test_the_scale_multiplies_the_level() -> None:
    for scale in (1.0, 0.25):
        run = Run("scomp2", 4, 1000, 6, seed=seed_that_draws(4, 0.5, {0}), conf_scale=scale)
        play(run, DET4)
        gone = run.eliminations[0]
        n = batch_size(1000, 6, gone.round)
        assert gone.threshold == pytest.approx(0.5 + sqrt(scale * log(3 * 4**2 * 6 * 1000) / 2 / n))
        assert gone.round == (3 if scale == 1 else 2)


def test_the_horizon_may_end_between_the_two_batches_of_a_round() -> None:
    """Nothing is decided on a cut round."""
    run = Run("scomp2", 4, 12, 2, seed=seed_that_draws(4, 0.5, {0, 2}))  # q = 3, 12
    played = play(run, DET4)
    assert played.plans == [{(0, 2): 3}, {(0, 1): 3, (0, 3): 3}, {(0, 2): 3}]
    assert run.active.tolist() == [0, 1, 2, 3]
    assert run.eliminations == []


def test_rounds_never_exceed_two_a_round_and_one() -> None:
    rng = np.random.default_rng(5)
    for seed in range(100):
        matrix = linear(rng, 9) if seed % 2 else ARITH8
        run = start("scomp2", len(matrix), 10**5, 4, seed)
        assert play(run, matrix, rng).batches <= 9


def test_a_seed_set_of_all_arms_still_plays() -> None:
    run = det4({0, 1, 2, 3})
    played = play(run, DET4)
    assert run.winner == 0
    assert [len(plan) for plan in played.plans] == [6, 6, 6]


def test_verdicts_by_nobody_leave_everybody_in_play() -> None:
    run = det4({1, 3})
    play_by(run, lambda plan, _: (0 * plan.times, None, 0 * plan.times))
    assert run.active.tolist() == [0, 1, 2, 3]
    assert run.spent == 0
    assert run.rounds <= 13


# T = 10^6 and B = 2: q = 1000 and, for K = 4, g = 0.0962, so that 3g, 4g and 5g end at 0.789, 0.885 and 0.981.
FACTORS = {(0.99, 0.85): [0, 1], (0.99, 0.75): [0], (0.95, 0.9): [0, 1, 2, 3], (0.99, 0.99): [0, 1]}


@pytest.mark.parametrize(("shares", "active"), FACTORS.items())
def test_the_switch_comes_with_five_radii_and_keeps_who_leads_by_three(
    shares: tuple[float, float], active: list[int]
) -> None:
    """Seed 2 alone; arms 0 and 1 take these shares of it, and arm 3 is even."""
    run = start("scomp2", 4, 10**6, 2, seed_that_draws(4, 0.5, {2}))
    plan = run.ask()
    assert plan is not None
    assert as_dict(plan) == {(0, 2): 1000, (1, 2): 1000, (2, 3): 1000}
    run.tell([round(1000 * share) for share in (*shares, 0.5)])
    assert run.active.tolist() == active
    following = run.ask() if run.winner is None else None
    if active == [0, 1]:
        assert following is not None
        assert as_dict(following) == {(0, 1): 1000}
    if len(active) == 4:
        assert following is not None
        assert set(as_dict(following)) == {(0, 2), (1, 2), (2, 3)}


def test_a_seed_that_another_seed_beats_is_no_candidate_whatever_its_mean() -> None:
    """Seed 1 has the best mean share, but loses surely to 4; seed 2 loses to 1; the candidate is 4."""
    run = start("scomp2", 5, 10**6, 2, seed_that_draws(5, 5**-0.5, {1, 2, 4}))
    first = run.ask()
    assert first is not None
    assert as_dict(first) == dict.fromkeys([(1, 2), (1, 4), (2, 4)], 1000)
    run.tell([1000, 390, 500])
    assert run.active.tolist() == [0, 3, 4]
    second = run.ask()
    assert second is not None
    assert as_dict(second) == dict.fromkeys([(0, 4), (3, 4)], 1000)


def test_nothing_is_decided_where_the_horizon_ends_among_the_seeds() -> None:
    run = start("scomp2", 4, 2000, 1, seed_that_draws(4, 0.5, {0, 2}))
    assert play(run, DET4).plans == [{(0, 2): 2000}]
    assert run.eliminations == []
    assert run.active.tolist() == [0, 1, 2, 3]


def test_nothing_is_decided_where_the_horizon_ends_among_the_rest() -> None:
    """334 sure duels a pair would be plenty, but the round was cut."""
    run = start("scomp2", 4, 1000, 1, seed_that_draws(4, 0.5, {0}))
    assert play(run, DET4).plans == [{(0, 1): 334, (0, 2): 333, (0, 3): 333}]
    assert run.eliminations == []
    assert run.winner is None
