"""PCOMP: the worked examples of ALGORITHMS.md, section 3."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances import DET2, DET4, RPS3, SIX
from playing import play, play_by, start
from roundel import Run
from roundel.policies.schedule import batch_size


@pytest.mark.parametrize("estimates", ["cumulative", "round"])
def test_det4(estimates: str) -> None:
    """Test 1, except that an estimate of the round alone has N = 31 in round 3, g = .430: still below a half."""
    played = play(Run("pcomp", 4, 1000, 6, estimates=estimates), DET4)
    assert [(len(plan), set(plan.values())) for plan in played.plans] == [(6, {3}), (6, {10}), (6, {31})]
    assert (played.alone, played.batches, played.regret) == (264, 4, pytest.approx(99.0))
    threshold = {"cumulative": 0.5 + (11.472103 / 88) ** 0.5, "round": 0.5 + (11.472103 / 62) ** 0.5}[estimates]
    assert played.run.eliminations[0].threshold == pytest.approx(threshold, abs=5e-7)


@given(st.integers(0, 2**32), st.integers(3, 7))
def test_every_round_plays_all_pairs_of_the_active_arms(seed: int, rounds: int) -> None:
    """Test 2: sizes divided by q_r are triangular numbers, unless the horizon cuts the round."""
    rng = np.random.default_rng(seed)
    run = start("pcomp", 6, 20_000, rounds)
    while (plan := run.ask()) is not None:
        n, q = len(run.active), batch_size(20_000, rounds, run.rounds + 1)
        if plan.total < run.left:
            assert len(plan) == n * (n - 1) // 2
            assert set(plan.times.tolist()) == {q}
        assert set(np.concatenate([plan.first, plan.second]).tolist()) <= set(run.active.tolist())
        run.tell(rng.binomial(plan.times, SIX[plan.first, plan.second]))


def test_two_equal_arms_stay_to_the_end() -> None:
    """Test 5: nearly no gap."""
    run = Run("pcomp", 2, 10**5, 11)
    play_by(run, lambda plan, _: (plan.times // 2, plan.times % 2, None))
    assert run.active.tolist() == [0, 1]
    assert run.spent == 10**5
    assert all(len(past.plan) == 1 for past in run.history)


def test_estimates_of_the_round_forget_and_cumulative_ones_do_not() -> None:
    """0 wins all of round 4 after losing everything before."""
    runs = {e: Run("pcomp", 2, 1000, 6, estimates=e) for e in ("cumulative", "round")}
    for run in runs.values():
        play_by(run, lambda plan, r: (plan.times if r == 4 else plan.times * (r % 2), None, None), most=4)
    # rounds 1-4 give 0: 3 of 3, 0 of 10, 31 of 31, 100 of 100
    assert runs["round"].winner == 0
    assert runs["round"].eliminations[0].round == 3
    assert runs["cumulative"].eliminations[0].round == 4
    assert runs["cumulative"].eliminations[0].statistic == pytest.approx(134 / 144)


def test_a_sure_winner_of_two() -> None:
    played = play(Run("pcomp", 2, 1000, 6), DET2)
    assert played.run.winner == 0
    assert [set(plan) for plan in played.plans] == [{(0, 1)}] * 3


def test_the_arms_are_never_all_eliminated() -> None:
    run = play(Run("pcomp", 3, 1000, 6), RPS3).run
    assert run.no_condorcet_evidence
    assert run.active.tolist() == [0, 1, 2]
    assert run.spent == 1000
