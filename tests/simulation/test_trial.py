"""One simulated run: regret kinds, curves that are exact inside rounds, what is reported."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import SFC64, Generator, SeedSequence

from instances import ARITH8, CYC4, DET4, NOCW5, RPS3, SIX
from roundel.errors import InputError, NoCondorcetWinnerError, PolicyError, ScheduleWarning
from roundel.policies.registry import _policies, batched
from roundel.preferences import Preferences
from roundel.run import Run
from roundel.simulation import simulate
from roundel.simulation.regret import best_arms, regret_table
from roundel.simulation.trial import _split, checkpoints

BATCHED = ["c2b", "c2b-kl", "c2b-kl:defeat=majority", "pcomp", "pcomp:estimates=round", "scomp", "scomp2", "bcope"]


def test_the_regret_of_a_duel_by_kind() -> None:
    problem = Preferences(SIX)
    strong, weak = regret_table(problem, "strong"), regret_table(problem, "weak")
    assert strong[1, 4] == pytest.approx((0.05 + 0.11) / 2)
    assert weak[1, 4] == pytest.approx(0.05)
    assert strong[4, 4] == pytest.approx(0.11)  # a self-duel counts its arm twice
    assert strong[0, 0] == weak[0, 0] == weak[0, 5] == 0
    odd = Preferences(NOCW5)  # Copeland scores 3, 3, 2, 1, 1
    assert regret_table(odd, "copeland")[2, 4] == pytest.approx((6 - 2 - 1) / 8)
    assert best_arms(odd, "copeland") == (0, 1)
    scores = [0.572, 0.546, 0.502, 0.482, 0.454, 0.444]
    assert regret_table(problem, "borda")[1, 3] == pytest.approx((2 * 0.572 - scores[1] - scores[3]) / 2)
    for kind in ("strong", "weak", "copeland", "borda"):
        table = regret_table(problem, kind)
        assert (table == table.T).all()
        assert (table >= -1e-15).all()


def test_a_condorcet_regret_is_refused_without_a_condorcet_winner() -> None:
    for kind in ("strong", "weak"):
        with pytest.raises(NoCondorcetWinnerError, match=r"no Condorcet winner.*copeland or borda"):
            simulate("c2b", Preferences(RPS3), 100, regret=kind)
    assert simulate("bcope", Preferences(RPS3), 100, regret="copeland").regret == pytest.approx(
        0
    )  # all scores are equal
    with pytest.raises(InputError, match="regret is 'sharp'"):
        simulate("c2b", Preferences(SIX), 100, regret="sharp")


@pytest.mark.parametrize(
    ("policy", "regret", "batches", "alone"),
    [
        ("c2b", 99.0, 4, 264),
        ("c2b:defeat=majority", 37.5, 4, 141),
        ("c2b-kl", 29.25, 3, 78),
        ("c2b-kl:defeat=majority", 14.25, 3, 48),
        ("pcomp", 99.0, 4, 264),
        ("pcomp:estimates=round", 99.0, 4, 264),
        ("bcope", 99.0, 4, 264),
    ],
)
def test_runs_on_det4_as_worked_by_hand(policy: str, regret: float, batches: int, alone: int) -> None:
    trial = simulate(policy, Preferences(DET4), 1000, 6)
    assert trial.regret == pytest.approx(regret)
    assert (trial.batches, trial.rounds, trial.duels_to_winner, trial.duels) == (batches, batches - 1, alone, alone)
    assert (trial.winner, trial.leader, trial.right) == (0, 0, True)


def _duel_by_duel(policy: str, matrix: np.ndarray, horizon: int, rounds: int, seed: int, kind: str) -> np.ndarray:
    """Cumulative regret after every single duel, by spelling each round out in round-robin order."""
    problem = Preferences(matrix)
    costs = regret_table(problem, kind)
    for_world, own = _split(seed)
    world = Generator(SFC64(for_world))
    run, paid = Run(policy, problem.arms, horizon, rounds, own), []
    while (plan := run.ask()) is not None:
        for number in range(1, int(plan.times.max()) + 1):
            paid += [costs[i, j] for i, j, times in plan if times >= number]
        run.tell(world.binomial(plan.times, matrix[plan.first, plan.second]))
    paid += [costs[run.leader, run.leader]] * (horizon - len(paid))
    return np.cumsum(paid)


@given(
    policy=st.sampled_from(BATCHED),
    case=st.sampled_from([(SIX, "strong"), (ARITH8, "weak"), (CYC4, "borda"), (NOCW5, "copeland")]),
    horizon=st.integers(1, 3000),
    rounds=st.integers(1, 12),
    seed=st.integers(0, 2**32),
)
def test_curves_are_exact_at_every_checkpoint(policy, case, horizon, rounds, seed) -> None:
    matrix, kind = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScheduleWarning)
        trial = simulate(policy, Preferences(matrix), horizon, rounds, seed, regret=kind, points=60)
        exact = _duel_by_duel(policy, matrix, horizon, rounds, seed, kind)
    np.testing.assert_allclose(trial.curve.regret, exact[trial.curve.t - 1], rtol=1e-9, atol=1e-9)
    assert trial.curve.t[-1] == horizon
    assert trial.regret == trial.curve.regret[-1]


@pytest.mark.filterwarnings("ignore::roundel.errors.ScheduleWarning")
def test_curves_are_exact_for_a_policy_that_repeats_its_pairs_unevenly() -> None:
    @batched("uneven", paper="none")
    def uneven(arms, horizon, rounds, rng):
        """Duel some pairs more often than others."""
        from roundel.plan import Plan

        yield Plan([0, 0, 1, 2], [1, 3, 2, 3], [1, 7, 2, 5])
        yield Plan([0, 1], [1, 2], [3, 40])

    try:
        for horizon in (1, 8, 15, 16, 30, 40, 500):  # after 58 duels it stops, with a leader and no winner
            trial = simulate("uneven", Preferences(SIX[:4, :4]), horizon, 2, seed=1, points=40)
            exact = _duel_by_duel("uneven", SIX[:4, :4], horizon, 2, 1, "strong")
            np.testing.assert_allclose(trial.curve.regret, exact[trial.curve.t - 1], rtol=1e-12)
    finally:
        del _policies["uneven"]


def test_the_same_seed_gives_the_same_trial_and_another_seed_another() -> None:
    problem = Preferences(SIX)
    for policy in ("c2b-kl", "scomp2", "rucb"):
        first, again, other = (simulate(policy, problem, 5000, seed=seed) for seed in (1, 1, 2))
        np.testing.assert_array_equal(first.curve.regret, again.curve.regret)
        assert first.regret != other.regret
        child = SeedSequence(1)
        by_sequence = [simulate(policy, problem, 5000, seed=child).regret for _ in range(2)]
        assert by_sequence == [first.regret] * 2  # using a seed sequence does not use it up


def test_a_sequential_run_reports_rounds_of_one_duel_and_jumps_over_self_duels() -> None:
    problem = Preferences(DET4)
    trial = simulate("rmed1", problem, 10**9, points=20)
    assert trial.rounds == trial.duels < 2000
    assert trial.right
    assert trial.winner is None  # RMED never eliminates
    assert trial.curve.regret[-1] == trial.regret
    steps, jumps = (simulate("rmed1", problem, 20_000, skip=skip) for skip in (False, True))
    np.testing.assert_array_equal(steps.curve.regret, jumps.curve.regret)


def test_one_arm_costs_nothing_and_asks_nothing() -> None:
    for policy in ("c2b-kl", "pcomp", "bcope", "if", "rucb", "ws-s"):
        trial = simulate(policy, Preferences([[0.5]]), 50)
        assert (trial.regret, trial.duels, trial.leader, trial.right) == (0, 0, 0, True)
        assert (trial.winner, trial.duels_to_winner, trial.rounds, trial.batches) == (0, 0, 0, 1)
        assert Run(policy, 1, 50).winner == 0


def test_checkpoints_are_log_spaced_distinct_and_end_at_the_horizon() -> None:
    for horizon in (1, 2, 3, 99, 10**6, 10**12, 10**18):
        times = checkpoints(horizon)
        assert times[-1] == horizon
        assert (np.diff(times) > 0).all()
        assert times[0] == 1
        assert len(times) <= 101


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"horizon": 0}, "horizon is 0"),
        ({"horizon": 2.5}, "horizon is 2.5"),
        ({"horizon": True}, "horizon is True"),
        ({"horizon": 10, "points": 1}, "points is 1"),
        ({"horizon": 10, "rounds": 0}, "rounds is 0"),
        ({"horizon": 10, "seed": -1}, "seed is -1"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, message) -> None:
    with pytest.raises(InputError, match=message):
        simulate("c2b", Preferences(SIX), **arguments)


def test_bad_policies_and_problems_are_refused() -> None:
    with pytest.raises(PolicyError, match="no policy 'c3b'"):
        simulate("c3b", Preferences(SIX), 10)
    with pytest.raises(PolicyError, match="has no parameter 'gamma'"):
        simulate("c2b", Preferences(SIX), 10, gamma=2)
    with pytest.raises(InputError, match="it must be Preferences"):
        simulate("c2b", SIX, 10)  # type: ignore[arg-type]
