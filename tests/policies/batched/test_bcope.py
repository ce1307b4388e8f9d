"""BCOPE: the worked examples of ALGORITHMS.md, section 14."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from instances import DET4, NOCW5, RPS3, condorcet
from playing import play, play_by, start
from roundel import Run
from roundel.errors import PolicyError
from roundel.policies.batched.bcope import copeland_bounds, decide
from roundel.tally import hoeffding_level


def test_det4() -> None:
    """Test 1."""
    played = play(Run("bcope", 4, 1000, 6), DET4)
    assert [(len(plan), set(plan.values())) for plan in played.plans] == [(6, {3}), (6, {10}), (6, {31})]
    assert (played.run.winner, played.alone, played.batches, played.regret) == (0, 264, 4, pytest.approx(99.0))


def test_rock_paper_scissors() -> None:
    """Test 2: all pairs are decided after round 3, scores are (1, 1, 1), arm 0 by its index."""
    played = play(Run("bcope", 3, 1000, 6), RPS3)
    assert [sum(plan.values()) for plan in played.plans] == [9, 30, 93]
    assert (played.run.winner, played.alone, played.batches) == (0, 132, 4)
    assert played.run.no_condorcet_evidence


def decided(run: Run) -> NDArray[np.bool_]:
    win, _ = decide(run.tally, hoeffding_level(run.arms, run.max_rounds, run.horizon))
    return win


@given(st.integers(0, 2**32), st.integers(2, 6), st.integers(2, 9))
def test_bounds_close_in_and_decided_pairs_are_never_played_again(seed: int, arms: int, rounds: int) -> None:
    """Tests 3 and 4, with gaps large enough that much is decided."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.choice([0.1, 0.5, 0.9, 1.0], (arms, arms)), 1)
    matrix = upper + np.tril(1 - upper.T, -1)
    run = start("bcope", arms, 30_000, rounds)
    low, high = np.zeros(arms), np.full(arms, 2 * (arms - 1))
    while (plan := run.ask()) is not None:
        win = decided(run)
        assert not (win | win.T)[plan.first, plan.second].any()
        now_low, now_high = copeland_bounds(win, np.zeros_like(win))
        assert (now_low >= low).all()
        assert (now_high <= high).all()
        assert (now_low <= now_high).all()
        # every pair played has an endpoint whose upper score is the largest, and every such open pair is played
        best = now_high == now_high.max()
        assert (best[plan.first] | best[plan.second]).all()
        if plan.total < run.left:
            open_pairs = np.triu(~(win | win.T) & (best[:, None] | best[None, :]), 1)
            assert len(plan) == open_pairs.sum()
        low, high = now_low, now_high
        run.tell(rng.binomial(plan.times, matrix[plan.first, plan.second]))
    assert run.rounds <= rounds
    assert run.winner is not None or run.left == 0
    if run.winner is not None:
        low, high = copeland_bounds(decided(run), np.zeros((arms, arms), bool))
        assert low[run.winner] >= np.delete(high, run.winner).max(initial=0)


def test_with_a_condorcet_winner_it_is_the_winner() -> None:
    """Test 5."""
    rng = np.random.default_rng(0)
    found = 0
    for arms in (2, 3, 5, 8):
        for _ in range(10):
            winner = play(start("bcope", arms, 10**6, 13), condorcet(rng, arms), rng).run.winner
            assert winner in (0, None)
            found += winner == 0
    assert found >= 30


def test_the_winner_of_most_duels_where_nobody_beats_all() -> None:
    """NOCW5: arms 0 and 1 beat three others each."""
    rng = np.random.default_rng(0)
    winners = {play(Run("bcope", 5, 10**5, 11), NOCW5, rng).run.winner for _ in range(20)}
    assert winners <= {0, 1}


def test_an_exact_tie_plays_to_the_horizon_or_is_declared() -> None:
    """Test 6: K = 2 with P = 1/2; with eps = 0.1 the tie is declared after round 8, at N = 6665."""

    def even(plan, _):  # type: ignore[no-untyped-def]
        return plan.times // 2, plan.times % 2, None

    run = play_by(Run("bcope", 2, 10**5, 11), even)
    assert (run.spent, run.winner) == (10**5, None)
    run = play_by(Run("bcope", 2, 10**5, 11, eps=0.1), even)
    assert (run.winner, run.spent, run.rounds) == (0, 6665, 8)
    assert hoeffding_level(2, 11, 10**5) == pytest.approx(15.2971, abs=5e-5)


def test_declared_ties_count_half() -> None:
    win, tie = np.zeros((3, 3), bool), np.zeros((3, 3), bool)
    win[0, 1] = tie[0, 2] = tie[2, 0] = True
    low, high = copeland_bounds(win, tie)
    assert low.tolist() == [3, 0, 1]  # in halves: 0 beats 1 and ties with 2
    assert high.tolist() == [3, 2, 3]  # 2 may still beat 1


def test_who_cannot_win_any_more_leaves_the_field() -> None:
    """Arm 0 beats all; the others' best possible score is below its own before every pair is decided."""
    run = play(Run("bcope", 4, 1000, 6), DET4).run
    assert run.active.tolist() == [0]
    assert {(e.arm, e.by, e.rule) for e in run.eliminations} == {(j, 0, "copeland") for j in (1, 2, 3)}
    assert all(e.statistic == 3 > e.threshold for e in run.eliminations)


@pytest.mark.parametrize("eps", [-0.01, 1.01])
def test_a_gap_is_a_number_from_0_to_1(eps: float) -> None:
    with pytest.raises(PolicyError, match=f"eps is {eps}"):
        Run("bcope", 4, 1000, eps=eps)
