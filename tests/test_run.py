"""Run: ask and tell, what is refused, partial verdicts, and replay."""

from __future__ import annotations

import pickle
import warnings
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roundel
from instances import DET4, SIX
from playing import play, play_by, snapshot, start
from roundel import Plan, Run
from roundel.errors import InputError, PolicyError, ReplayError, RoundelError, ScheduleWarning, VerdictError
from roundel.run import Round


def one_round(policy: str = "c2b-kl") -> Run:
    """A run on 4 arms whose second round is open: 6 pairs, 10 duels each."""
    run = Run(policy, arms=4, horizon=1000, rounds=6)
    assert run.ask() is not None
    run.tell([2, 2, 2, 2, 2, 2], ties=[1, 0, 0, 0, 0, 0])
    plan = run.ask()
    assert plan is not None
    assert list(plan) == [(i, j, 10) for i in range(4) for j in range(i + 1, 4)]
    return run


def test_the_loop_of_the_first_page() -> None:
    run = Run("c2b-kl", arms=6, horizon=100_000, rounds=11, seed=0)
    while (plan := run.ask()) is not None:
        assert not run.finished
        assert run.left == run.horizon - run.spent
        run.tell(wins=plan.times)
    assert run.finished
    assert run.winner == run.leader == 0
    assert run.active.tolist() == [0]
    assert run.tally.duels == run.spent == sum(past.plan.total for past in run.history)
    assert len(run.history) == run.rounds


def test_asking_again_gives_the_same_plan() -> None:
    run = one_round()
    before = snapshot(run)
    assert run.ask() is run.ask()
    assert snapshot(run) == before


def test_what_is_seen_before_the_first_verdict() -> None:
    run = Run("pcomp", arms=3, horizon=100)
    assert (run.arms, run.rounds, run.spent, run.left, run.winner, run.leader) == (3, 0, 0, 100, None, 0)
    assert (run.max_rounds, run.seed, run.finished, run.history, run.eliminations) == (4, 0, False, [], [])
    assert run.tally.duels == 0
    assert repr(run) == "<Run pcomp: 0 rounds, 0 of 100 duels, 3 of 3 arms active>"


WINS = [5, 5, 5, 5, 5, 5]
BAD = {
    "too few pairs": ({"wins": WINS[:5]}, r"wins has shape \(5,\): the plan has 6 pairs"),
    "too many pairs": ({"wins": [*WINS, 5]}, r"wins has shape \(7,\)"),
    "a table": ({"wins": [WINS]}, r"wins has shape \(1, 6\)"),
    "one number": ({"wins": 5}, r"wins has shape \(\)"),
    "nothing": ({"wins": None}, "wins holds None"),
    "an empty list": ({"wins": []}, r"wins has shape \(0,\)"),
    "ragged": ({"wins": [[1], [1, 2]]}, "wins is ragged"),
    "negative wins": ({"wins": [5, 5, -1, 5, 5, 5]}, r"pair \(0, 3\): -1 wins"),
    "negative ties": ({"wins": WINS, "ties": [0, 0, 0, 0, 0, -2]}, r"pair \(2, 3\): -2 ties"),
    "negative played": ({"wins": [0] * 6, "played": [0, -1, 0, 0, 0, 0]}, r"pair \(0, 2\): -1 played"),
    "fractional": ({"wins": [5, 5, 5, 2.5, 5, 5]}, "wins holds 2.5"),
    "not a number": ({"wins": [5, 5, 5, float("nan"), 5, 5]}, "wins holds nan"),
    "infinite": ({"wins": [5, 5, 5, float("inf"), 5, 5]}, "wins holds inf"),
    "booleans": ({"wins": [True] * 6}, "wins holds"),
    "text": ({"wins": ["5"] * 6}, "wins holds .*'5'"),
    "complex": ({"wins": [5j] * 6}, "wins holds"),
    "more wins than duels": ({"wins": [5, 11, 5, 5, 5, 5]}, r"pair \(0, 2\): 11 wins and ties against 10 duels judged"),
    "wins and ties": ({"wins": WINS, "ties": [0, 0, 6, 0, 0, 0]}, r"pair \(0, 3\): 11 wins and ties against 10"),
    "wins of none": ({"wins": WINS, "played": [10, 4, 10, 10, 10, 10]}, r"pair \(0, 2\): 5 wins and ties against 4"),
    "more than planned": (
        {"wins": WINS, "played": [10, 10, 10, 10, 10, 11]},
        r"pair \(2, 3\): 11 duels judged against 10 duels planned",
    ),
    "played in another shape": ({"wins": WINS, "played": [10]}, r"played has shape \(1,\)"),
    "ties in another shape": ({"wins": WINS, "ties": 0}, r"ties has shape \(\)"),
    "ties that overflow": ({"wins": [2**62] * 6, "ties": [2**62] * 6}, "9223372036854775808 wins and ties against 10"),
    "a count that overflows": ({"wins": [2**63] * 6}, "below 2\\*\\*63"),
    "a float that overflows": ({"wins": [1e30] * 6}, "below 2\\*\\*63"),
}


@pytest.mark.parametrize("case", BAD)
def test_verdicts_that_do_not_answer_the_plan_change_nothing(case: str) -> None:
    told, message = BAD[case]
    run, twin = one_round(), one_round()
    before = snapshot(run)
    with pytest.raises(VerdictError, match=message):
        run.tell(**told)
    assert snapshot(run) == before
    for one in (run, twin):  # and nothing hidden changed: both go on alike
        play(one, DET4)
    assert snapshot(run) == snapshot(twin)


def test_telling_twice_is_refused_until_the_next_plan_was_asked_for() -> None:
    run = one_round()
    run.tell(WINS)
    with pytest.raises(VerdictError, match=r"was not asked for: call ask\(\) before tell\(\)"):
        run.tell(WINS)
    assert run.rounds == 2
    assert run.ask() is not None


def test_telling_a_run_that_has_finished_is_refused() -> None:
    run = play(Run("pcomp", 2, 1000), DET4[:2, :2]).run
    before = snapshot(run)
    with pytest.raises(VerdictError, match="the run has finished"):
        run.tell([1])
    assert snapshot(run) == before
    assert run.ask() is None


def test_wins_ties_losses_become_half_wins() -> None:
    run = Run("pcomp", arms=3, horizon=1000, rounds=6)
    run.ask()
    run.tell(wins=[1, 0, 2], ties=[1, 3, 0], played=[3, 3, 2])  # (0,1): 1-1-1, (0,2): 0-3-0, (1,2): 2-0-0
    assert run.tally.points.tolist() == [[0, 3, 3], [3, 0, 4], [3, 0, 0]]
    assert run.spent == 8
    (past,) = run.history
    assert (past.wins.tolist(), past.ties.tolist(), past.played.tolist()) == ([1, 0, 2], [1, 3, 0], [3, 3, 2])
    for column in (past.wins, past.ties, past.played):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 9


def test_whole_floats_and_other_integers_are_counts() -> None:
    told: list[Any] = [[2.0, 2.0, 2.0], np.array([2, 2, 2], np.uint8), (2, 2, 2), np.array([2, 2, 2], np.float32)]
    runs = [Run("pcomp", 3, 1000, 6) for _ in told]
    for run, wins in zip(runs, told, strict=True):
        run.ask()
        run.tell(wins)
        assert run.tally == runs[0].tally


def test_what_was_told_may_be_changed_afterwards() -> None:
    run = Run("pcomp", 3, 1000, 6)
    run.ask()
    wins, ties, played = np.array([1, 2, 3]), np.array([1, 0, 0]), np.array([3, 3, 3])
    run.tell(wins, ties, played)
    before = snapshot(run)
    for array in (wins, ties, played):
        assert array.flags.writeable
        array[:] = 0
    run.history.clear()
    run.eliminations.append(None)  # type: ignore[arg-type]
    assert snapshot(run) == before


def test_a_round_of_which_nothing_was_judged_still_counts_as_a_round() -> None:
    run = Run("pcomp", arms=3, horizon=1000, rounds=6)
    for _ in range(6):
        assert run.ask() is not None
        run.tell([0, 0, 0], played=[0, 0, 0])
    assert (run.rounds, run.spent, run.ask(), run.winner) == (6, 0, None, None)
    assert run.active.tolist() == [0, 1, 2]


def test_a_pair_that_was_never_judged_eliminates_nobody() -> None:
    run = Run("pcomp", arms=3, horizon=1000, rounds=6)
    while (plan := run.ask()) is not None:
        met = np.array([(i, j) != (0, 1) for i, j, _ in plan])
        run.tell(np.where(met, plan.times, 0), played=np.where(met, plan.times, 0))
    # 0 and 1 both beat 2 and never met: both are left, and the missing duels are not made up for
    assert run.active.tolist() == [0, 1]
    assert run.winner is None
    assert run.spent < run.horizon


def test_the_leader_has_the_least_evidence_against_it_then_the_most_points() -> None:
    run = Run("pcomp", arms=4, horizon=1000, rounds=6)
    run.ask()  # pairs 01 02 03 12 13 23, 3 duels each
    run.tell([1, 2, 1, 2, 2, 1])
    assert run.leader == int(np.argmin(run.tally.evidence()))
    run = Run("pcomp", arms=3, horizon=1000, rounds=6)
    run.ask()
    run.tell([0, 0, 1], ties=[3, 3, 1])  # nothing against 0 and 1; 1 has more points
    assert run.tally.evidence().tolist() == [0, 0, 0]
    assert run.leader == 0
    run = Run("pcomp", arms=3, horizon=1000, rounds=6)
    run.ask()
    run.tell([0, 0, 3], ties=[3, 3, 0])
    assert run.leader == 1


def test_history_can_be_left_out() -> None:
    run = play(Run("c2b", 4, 1000, 6, keep_history=False), DET4).run
    assert run.history == []
    assert run.winner == 0


def told_at_random(plan: Plan, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    played = rng.binomial(plan.times, rng.choice([0.0, 0.5, 1.0], plan.times.size))
    wins = rng.binomial(played, SIX[plan.first, plan.second])
    return wins, rng.binomial(played - wins, 0.2), played


@pytest.mark.parametrize("policy", ["c2b-kl:defeat=majority", "scomp", "scomp2", "bcope:eps=0.2", "c2b:fallback=true"])
def test_a_replay_from_any_prefix_is_the_same_run(policy: str) -> None:
    rng = np.random.default_rng(3)
    run = play_by(start(policy, 6, 10_000, 9, seed=5), lambda plan, _: told_at_random(plan, rng))
    states = []
    for k in range(run.rounds + 1):
        again = start(policy, 6, 10_000, 9, seed=5)
        again.replay(run.history[:k])
        states.append(snapshot(again))
        again.replay(run.history[k:])
        assert snapshot(again) == snapshot(run)
    for state, past in zip(states, run.history, strict=False):
        assert state["plan"] == list(past.plan)


def test_a_replay_that_plans_otherwise_names_round_and_pair() -> None:
    run = play(Run("c2b", 4, 1000, 6, defeat="majority"), DET4).run
    with pytest.raises(ReplayError, match=r"^round 2: pair \(1, 2\): 10 times against 0"):
        Run("c2b", 4, 1000, 6).replay(run.history)
    with pytest.raises(ReplayError, match=r"^round 1: pair \(0, 1\): 2 times against 3"):
        Run("c2b", 4, 1000, 7).replay(run.history)
    with pytest.raises(ReplayError, match=r"^round 1: pair \(0, 4\): 3 times against 0"):
        Run("c2b", 5, 1000, 6).replay(run.history)
    changed = list(run.history)
    plan, wins, ties, played = changed[0]
    changed[0] = Round(plan, played - wins, ties, played)
    with pytest.raises(ReplayError, match=r"^round 2: pair"):
        Run("c2b", 4, 1000, 6, defeat="majority").replay(changed)


def test_a_record_longer_than_the_run_is_refused() -> None:
    run = play(Run("c2b", 4, 1000, 6), DET4).run
    with pytest.raises(ReplayError, match="round 4 was recorded, but the replay finished after round 3"):
        Run("c2b", 4, 1000, 6).replay([*run.history, run.history[-1]])


def test_a_run_is_neither_pickled_nor_copied() -> None:
    run = one_round()
    for copy in (pickle.dumps, deepcopy):
        with pytest.raises(TypeError, match="a Run is not pickled: keep its history and replay it"):
            copy(run)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"arms": 0}, "arms is 0: it must be at least 1"),
        ({"arms": -3}, "arms is -3"),
        ({"arms": 10**20}, "arms is 100000000000000000000: it must be at most 100000"),
        ({"arms": 2.5}, "arms is 2.5: it must be a whole number"),
        ({"arms": True}, "arms is True: it must be a whole number"),
        ({"arms": "4"}, "arms is '4': it must be a whole number"),
        ({"arms": None}, "arms is None"),
        ({"horizon": 0}, "horizon is 0: it must be at least 1"),
        ({"horizon": float("nan")}, "horizon is nan"),
        ({"horizon": float("inf")}, "horizon is inf"),
        ({"horizon": 10**18 + 1}, "horizon is 1000000000000000001: it must be at most 1000000000000000000"),
        ({"rounds": 0}, "rounds is 0: it must be at least 1"),
        ({"rounds": "many"}, "rounds is 'many'"),
        ({"rounds": False}, "rounds is False"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"seed": None}, "seed is None"),
        ({"policy": "nobody"}, "there is no policy 'nobody'"),
        ({"colour": "red"}, "pcomp has no parameter 'colour'"),
    ],
)
def test_arguments_that_start_no_run_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Run(**{"policy": "pcomp", "arms": 4, "horizon": 1000, **arguments})
    assert isinstance(caught.value, RoundelError)
    assert isinstance(caught.value, ValueError)


def test_a_million_may_be_written_as_people_write_it() -> None:
    run = Run("pcomp", np.int64(4), 1e6, rounds=13.0, seed=np.uint8(3))  # type: ignore[arg-type]
    assert (run.arms, run.horizon, run.max_rounds, run.seed) == (4, 1_000_000, 13, 3)
    assert all(type(value) is int for value in (run.horizon, run.max_rounds, run.seed))


def test_more_rounds_than_the_theory_covers_are_warned_of_and_played() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Run("pcomp", 4, 1024, rounds=10)
        Run("pcomp", 4, 1, rounds=1)
        Run("pcomp", 4, 3)
    for rounds in (11, 10**12):  # the second would not fit into memory as a power of two
        with pytest.warns(ScheduleWarning, match=f"rounds is {rounds}: above log2 of the horizon") as caught:
            run = Run("pcomp", 4, 1024 if rounds == 11 else 50, rounds=rounds)
        assert caught[0].filename == __file__
        assert play(run, DET4).run.spent <= run.horizon


def test_a_policy_can_be_given_as_it_is() -> None:
    policy = roundel.policies()["pcomp"]
    assert Run(policy, 4, 1000, estimates="round").parameters["estimates"] == "round"
    with pytest.raises(PolicyError, match="estimates is 'none at all'"):
        Run(policy, 4, 1000, estimates="none at all")


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 10**6), st.integers(1, 9))
def test_points_and_duels_are_conserved(seed: int, arms: int, horizon: int, rounds: int) -> None:
    rng = np.random.default_rng(seed)
    run = start("c2b-kl", arms, horizon, rounds, defeat="majority")
    won = tied = judged = 0
    while (plan := run.ask()) is not None:
        wins, ties, played = told_at_random(plan, rng)
        run.tell(wins, ties, played)
        won, tied, judged = won + wins.sum(), tied + ties.sum(), judged + played.sum()
    upper = np.triu(run.tally.points)
    assert run.tally.duels == run.spent == judged
    assert upper.sum() == 2 * won + tied
