"""SCOMP and R-SCOMP: the worked examples of ALGORITHMS.md, sections 4 and 6, with given seed sets."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances import DET4, linear
from playing import as_dict, play, play_by, seed_that_draws, start
from roundel import Plan, Run
from roundel.policies.batched.scomp import draw_seeds
from roundel.rng import Stream

ONE_SEED_0 = {(0, 1), (0, 2), (0, 3)}
ONE_SEED_2 = {(0, 2), (1, 2), (2, 3)}


def det4(wanted: set[int], horizon: int = 1000, rounds: int = 6) -> Run:
    return Run("scomp", 4, horizon, rounds, seed=seed_that_draws(4, 0.5, wanted))


def test_the_best_arm_as_the_seed() -> None:
    """Section 4, test 1."""
    played = play(det4({0}), DET4)
    assert played.plans == [dict.fromkeys(ONE_SEED_0, q) for q in (3, 10, 31)]
    assert (played.alone, played.batches, played.regret) == (132, 4, pytest.approx(33.0))
    assert played.run.winner == 0


def test_a_switch_late_in_the_horizon() -> None:
    """Section 4, test 2: arm 3 leaves after round 3, the switch comes in round 5, which PCOMP repeats with 36 duels."""
    played = play(det4({2}), DET4)
    assert played.plans == [
        dict.fromkeys(ONE_SEED_2, 3),
        dict.fromkeys(ONE_SEED_2, 10),
        dict.fromkeys(ONE_SEED_2, 31),
        {(0, 2): 100, (1, 2): 100},
        {(0, 2): 316, (1, 2): 316},
        {(0, 1): 36},
    ]
    assert (played.run.spent, played.batches, played.regret) == (1000, 6, pytest.approx(376.0))
    gone = [(e.round, e.arm, e.by, e.rule) for e in played.run.eliminations]
    # no duel follows the cut round, but its result still shows in the report
    assert [(round_, arm, rule) for round_, arm, _, rule in gone] == [
        (3, 3, "hoeffding"),
        (5, 2, gone[1][3]),
        (6, 1, "hoeffding"),
    ]
    assert gone[1][2] in (0, 1)  # the seed leaves by those that beat it


def test_a_switch_in_time() -> None:
    """Section 4, test 3."""
    played = play(det4({2}, 10**5, 11), DET4)
    assert [(len(plan), set(plan.values())) for plan in played.plans[-2:]] == [(2, {533}), (1, {533})]
    assert (played.alone, played.batches, played.regret) == (2267, 8, pytest.approx(795.75))
    assert played.run.winner == 0


def test_without_seeds_it_is_pcomp_with_its_own_level() -> None:
    """An empty seed set: all pairs from round 1, L = ln(K^2 (B+1) T)."""
    run = det4(set())
    assert play(run, DET4).plans == play(Run("pcomp", 4, 1000, 6), DET4).plans
    level = log(4**2 * 7 * 1000)
    assert level == pytest.approx(11.626254, abs=5e-7)
    assert run.eliminations[0].threshold == pytest.approx(0.5 + (level / 88) ** 0.5)


def test_the_chance_of_a_seed_is_one_over_the_root_of_k() -> None:
    """Section 4: Pr(S is empty) = (1 - 1/sqrt K)^K, seen in the first plans of 4,000 runs; 5 standard errors."""
    for arms, empty in ((6, 0.043), (16, 0.010)):
        assert (1 - arms**-0.5) ** arms == pytest.approx(empty, abs=5e-4)
        n = 4000
        whole = arms * (arms - 1) // 2
        drawn = [draw_seeds(np.arange(arms), arms**-0.5, Stream(seed, "policy")).size for seed in range(n)]
        assert abs(np.mean(drawn) - arms**0.5) < 5 * (arms**0.5 * (1 - arms**-0.5) / n) ** 0.5
        assert abs(drawn.count(0) / n - empty) < 5 * (empty / n) ** 0.5
        for seed in range(30):
            plan = start("scomp", arms, 10**5, 11, seed=seed).ask()
            s = drawn[seed]
            assert plan is not None
            assert len(plan) == (whole if s == 0 else s * (s - 1) // 2 + s * (arms - s))


@pytest.mark.parametrize("policy", ["scomp", "scomp2", "r-scomp"])
def test_a_switch_keeps_the_best_arm_and_only_arms_better_than_all_seeds(policy: str) -> None:
    """Section 4, test 4; section 5, test 4; section 6: random linear utilities, arm 0 the best."""
    rng = np.random.default_rng(7)
    switches = 0
    for seed in range(150):
        arms = int(rng.integers(4, 17))
        matrix = linear(rng, arms)
        run = start(policy, arms, 10**6, 13, seed=seed)
        chance = arms ** (1 / 3) / arms if policy == "r-scomp" else arms**-0.5
        seeds = draw_seeds(np.arange(arms), chance, Stream(seed, "policy"))
        seen = 0
        while (plan := run.ask()) is not None:
            run.tell(rng.binomial(plan.times, matrix[plan.first, plan.second]))
            assert 0 in run.active
            rules = [e.rule for e in run.eliminations]
            if rules.count("switch") and not seen:
                seen = 1
                if seeds.size:
                    assert run.active.max() < seeds.min()
        switches += seen
    assert switches >= 20


def test_the_best_arm_among_the_seeds_never_switches() -> None:
    """Section 4, test 5: on the good event, whose complement has probability 1/T, here 1e-6 a run."""
    rng = np.random.default_rng(8)
    for arms, wanted in ((5, {0}), (5, {0, 3}), (9, {0, 4, 5})):
        seed = seed_that_draws(arms, arms**-0.5, wanted)
        for _ in range(20):
            run = play(start("scomp", arms, 10**6, 13, seed=seed), linear(rng, arms), rng).run
            assert all(e.rule == "hoeffding" for e in run.eliminations)


def test_seeds_never_all_go_by_elimination_alone() -> None:
    """Two seeds that surely beat each other's like: the pass is undone."""
    seed = seed_that_draws(4, 0.5, {0, 1, 2})
    run = Run("scomp", 4, 1000, 6, seed=seed)
    cycle = {(0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)}
    play_by(run, lambda plan, _: ([n if (i, j) in cycle else 0 for i, j, n in plan], None, None))
    assert run.no_condorcet_evidence
    assert {0, 1, 2} <= set(run.active.tolist())
    assert run.spent == 1000


def test_seeds_in_a_circle_are_no_evidence_against_a_winner_outside() -> None:
    """Seeds 1, 2 and 3 beat each other in a circle, and arm 0 beats them all."""
    run = Run("scomp", 4, 10**6, 13, seed=seed_that_draws(4, 0.5, {1, 2, 3}))
    sure = {(0, 1), (0, 2), (0, 3), (1, 2), (2, 3)}
    play_by(run, lambda plan, _: ([n if (i, j) in sure else 0 for i, j, n in plan], None, None))
    assert run.winner == 0
    assert not run.no_condorcet_evidence


def test_a_circle_after_a_switch_is_no_evidence_against_an_arm_that_the_switch_left_behind() -> None:
    """Arms 0, 1 and 2 beat seed 3 and each other in a circle; arm 4, even with the seed, might beat them all."""
    run = Run("scomp", 5, 10**6, 13, seed=seed_that_draws(5, 5**-0.5, {3}))
    sure = {(0, 3), (1, 3), (2, 3), (0, 1), (1, 2)}

    def verdicts(plan: Plan, _: int) -> tuple[list[int], None, None]:
        return [n // 2 if (i, j) == (3, 4) else n if (i, j) in sure else 0 for i, j, n in plan], None, None

    play_by(run, verdicts)
    assert run.active.tolist() == [0, 1, 2]
    assert {(e.arm, e.rule) for e in run.eliminations} == {(3, "hoeffding"), (4, "switch")}
    assert not run.no_condorcet_evidence


# R-SCOMP --------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 10))
def test_one_level_is_scomp(seed: int, arms: int, rounds: int) -> None:
    """Section 6: m = 1 gives the same plans for the same stream."""
    matrix = linear(np.random.default_rng(seed), arms, 1.0)
    one = play(start("r-scomp", arms, 10**5, rounds, seed, levels=1), matrix, np.random.default_rng(seed))
    other = play(start("scomp", arms, 10**5, rounds, seed), matrix, np.random.default_rng(seed))
    assert one.plans == other.plans
    assert one.run.winner == other.run.winner


def test_a_level_starts_at_the_round_of_the_switch_with_fresh_statistics() -> None:
    """Two levels on an order of 9: seeds {6}, then one of those that beat it."""
    arms, horizon, rounds = 9, 10**6, 13
    matrix = np.triu(np.ones((arms, arms)), 1) + np.eye(arms) / 2
    seed = seed_that_draws(arms, arms ** (1 / 3) / arms, {6})
    stream = Stream(seed, "policy")
    draw_seeds(np.arange(arms), arms ** (1 / 3) / arms, stream)
    second = draw_seeds(np.arange(6), arms ** (1 / 3) / 6, stream)
    run = start("r-scomp", arms, horizon, rounds, seed)
    played = play(run, matrix)
    sizes = [max(plan.values()) for plan in played.plans]
    switch = next(k for k in range(1, len(sizes)) if sizes[k] == sizes[k - 1])
    assert switch + 1 <= len(played.plans)
    before, after = played.plans[switch - 1], played.plans[switch]
    assert all(6 in pair for pair in before)
    expected = {(i, j) for j in range(6) for i in range(j) if not second.size or i in second or j in second}
    assert set(after) == expected
    assert run.winner == 0


def test_a_level_draws_its_seeds_from_the_arms_in_play_with_the_chance_that_fits_their_number() -> None:
    """Six of nine arms are left: each is a seed with chance 9^(1/3) / 6, not 9^(1/3) / 9."""
    arms, wanted = 9, 9 ** (1 / 3)

    def levels(seed: int, second: int) -> tuple[set[int], set[int]]:
        stream = Stream(seed, "policy")
        first = draw_seeds(np.arange(arms), wanted / arms, stream)
        return set(first.tolist()), set(draw_seeds(np.arange(6), wanted / second, stream).tolist())

    seed = next(s for s in range(100_000) if levels(s, 6)[0] == {6} and levels(s, 6)[1] > levels(s, 9)[1] > set())
    plans = play(start("r-scomp", arms, 10**6, 13, seed), np.triu(np.ones((arms, arms)), 1) + np.eye(arms) / 2).plans
    after = next(plan for plan in plans if not any(6 in pair for pair in plan))
    seeds = levels(seed, 6)[1]
    assert set(after) == {(i, j) for j in range(6) for i in range(j) if i in seeds or j in seeds}


def test_levels_bound_the_rounds() -> None:
    rng = np.random.default_rng(9)
    longest = 0
    for seed in range(200):
        run = start("r-scomp:levels=3", 12, 10**5, 6, seed)
        played = play(run, linear(rng, 12), rng)
        assert played.batches <= 9
        longest = max(longest, played.batches)
    assert longest > 6


def test_a_seeded_round_compares_seeds_with_everyone_once() -> None:
    seed = seed_that_draws(5, 5**-0.5, {1, 3})
    plan = start("scomp", 5, 10**5, 11, seed).ask()
    assert plan is not None
    assert as_dict(plan) == dict.fromkeys([(0, 1), (0, 3), (1, 2), (1, 3), (1, 4), (2, 3), (3, 4)], 2)
