"""The fallback of ALGORITHMS.md, section 14: the verdicts refute a Condorcet winner, and the run goes on as BCOPE."""

from __future__ import annotations

import numpy as np
import pytest

from instances import DET4, NOCW5, RPS3, SIX, sure
from playing import play, play_by
from roundel import Run

HOSTS = ["c2b:fallback=true", "c2b-kl:fallback=true", "pcomp:fallback=true"]


@pytest.mark.parametrize("policy", HOSTS)
def test_a_sure_cycle_is_recognised_and_settled_at_once(policy: str) -> None:
    """Every arm is confidently beaten after round 3; all pairs are decided, so BCOPE commits without a further duel."""
    played = play(Run(policy, 3, 1000, 6), RPS3)
    assert [sum(plan.values()) for plan in played.plans] == [9, 30, 93]
    assert played.run.no_condorcet_evidence
    assert (played.run.winner, played.alone, played.batches) == (0, 132, 4)


# A cycle 0 > 1 > 2 > 0; 3 loses to 0 and 4 to 1; all other pairs are even.
OPEN = sure(5, [(0, 1), (1, 2), (2, 0), (0, 3), (1, 4)])


@pytest.mark.parametrize("policy", ["c2b:fallback=true", "pcomp:fallback=true"])
def test_no_round_is_lost_and_the_statistics_are_kept(policy: str) -> None:
    run = Run(policy, 5, 1000, 6)

    def verdicts(plan, _):  # type: ignore[no-untyped-def]
        chance = OPEN[plan.first, plan.second]
        return np.where(chance == 1, plan.times, 0), np.where(chance == 0.5, plan.times, 0), None

    play_by(run, verdicts, most=2)
    assert not run.no_condorcet_evidence
    play_by(run, verdicts, most=1)
    assert run.no_condorcet_evidence
    assert run.eliminations == []
    assert run.active.tolist() == [0, 1, 2, 3, 4]
    # round 4 of the schedule, and only the pairs that three rounds of 3, 10 and 31 duels left open
    plan = run.ask()
    assert plan is not None
    assert list(plan) == [(0, 4, 100), (1, 3, 100), (2, 3, 100), (2, 4, 100), (3, 4, 100)]
    run.tell([100, 0, 0, 0, 0])  # 0 beats 4 as well: three wins, and nobody else can still have more than two
    assert run.tally.counts[0, 4] == 144
    assert run.tally.counts[0, 1] == 44
    assert run.winner == 0


@pytest.mark.parametrize("policy", HOSTS)
def test_without_a_cycle_it_changes_nothing(policy: str) -> None:
    plain = policy.partition(":")[0]
    for matrix in (DET4, SIX):
        one = play(Run(policy, len(matrix), 20_000, 9), matrix, np.random.default_rng(4))
        other = play(Run(plain, len(matrix), 20_000, 9), matrix, np.random.default_rng(4))
        assert one.plans == other.plans
        assert one.run.winner == other.run.winner
        assert one.run.eliminations == other.run.eliminations
        assert not one.run.no_condorcet_evidence


@pytest.mark.parametrize("policy", HOSTS)
def test_it_stays_within_the_rounds_and_ends_on_a_copeland_winner(policy: str) -> None:
    rng = np.random.default_rng(1)
    fell_back = 0
    for _ in range(20):
        played = play(Run(policy, 5, 10**5, 11), NOCW5, rng)
        assert played.batches <= 11
        assert played.run.spent == 10**5 or played.run.winner is not None
        if played.run.no_condorcet_evidence:
            fell_back += 1
            assert played.run.winner in (0, 1, None)
    # Rarely: mostly one arm alone is left before every arm is confidently beaten, as eliminations end the duels.
    assert fell_back or policy.startswith("c2b-kl")


@pytest.mark.parametrize("policy", ["c2b:fallback=true", "pcomp:fallback=true"])
def test_who_was_out_before_comes_back_and_leaves_by_the_rule_of_copeland(policy: str) -> None:
    """Arm 3 loses to all and is out after round 3; after round 4 the cycle of the others is sure as well."""
    share = {(0, 1): 0.8, (0, 2): 0.2, (1, 2): 0.8}

    def verdicts(plan, _):  # type: ignore[no-untyped-def]
        return [round(n * share.get((i, j), 1)) for i, j, n in plan], None, None

    run = play_by(Run(policy, 4, 1000, 6), verdicts, most=3)
    assert run.active.tolist() == [0, 1, 2]
    assert [(e.round, e.arm, e.rule) for e in run.eliminations] == [(3, 3, "hoeffding")]
    play_by(run, verdicts, most=1)
    assert run.no_condorcet_evidence
    assert run.winner == 0
    assert [(e.round, e.arm, e.rule) for e in run.eliminations] == [(4, 3, "copeland")]
    assert run.active.tolist() == [0, 1, 2]


def test_who_left_by_evidence_does_not_hide_a_cycle() -> None:
    """Arm 3 loses to all and leaves C2B-KL after round 2, with few duels; after round 3 the others surely cycle."""
    played = play(Run("c2b-kl:fallback=true", 4, 2000, 6), sure(4, [(0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)]))
    assert played.run.no_condorcet_evidence
    assert (played.run.winner, played.run.spent < 1000) == (0, True)


def test_a_winner_that_left_by_mistake_comes_back() -> None:
    """Arm 0 loses its first duels by bad luck and leaves; the cycle of the others brings it back, and it wins."""
    chance = sure(4, [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3), (3, 1)])

    def verdicts(plan, r):  # type: ignore[no-untyped-def]
        wins = np.where(chance[plan.first, plan.second] == 1, plan.times, 0)
        return np.where((plan.first == 0) & (r <= 2), 0, wins), None, None

    run = play_by(Run("c2b-kl:fallback=true", 4, 20_000, 9), verdicts, most=2)
    assert 0 not in run.active
    play_by(run, verdicts)
    assert run.winner == 0
    assert not run.no_condorcet_evidence
