"""The winner is never eliminated more often than the bounds of ALGORITHMS.md allow, over 10,000 runs each.

A test fails by chance only if a count reaches what Binomial(10,000, bound) reaches with probability 1e-6 (by exact
summation); the true rates lie well below the bounds, so the chance is smaller still. Every bound is spelled out, and
a crippled policy must break it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from math import ceil, e, exp, log
from typing import Any

import numpy as np
import pytest

from instances import Floats, linear, order
from playing import binomial_limit, start
from roundel.policies.schedule import batch_size

RUNS = 10_000
ALARM = 1e-6


def losses(policy: str, matrix: Floats, horizon: int, rounds: int, seed: int, runs: int = RUNS) -> int:
    """In how many runs arm 0, the winner, was out at the end (or another was committed to)."""
    rng = np.random.default_rng([seed, horizon, rounds])
    arms, lost = len(matrix), 0
    for number in range(runs):
        run = start(policy, arms, horizon, rounds, number, keep_history=False)
        while (plan := run.ask()) is not None:
            run.tell(rng.binomial(plan.times, matrix[plan.first, plan.second]))
        lost += 0 not in run.active or run.winner not in (0, None)
    return lost


def union(arms: int, horizon: int, rounds: int) -> float:
    """PCOMP, SCOMP: the number of duels behind an estimate is not random: K(K-1)/2 pairs x B rounds x 2 exp(-L)."""
    level = log(arms**2 * rounds * horizon)
    return arms * (arms - 1) * rounds * exp(-level)


def peeling(arms: int, horizon: int, rounds: int) -> float:
    """C2B (section 1.1): (K-1) e ceil(L ln T) exp(-L)."""
    level = log(arms**2 * rounds * horizon)
    return (arms - 1) * e * ceil(level * log(horizon)) * exp(-level)


def peeling_all(arms: int, horizon: int, rounds: int) -> float:
    """BCOPE (section 14): K(K-1)/2 pairs, two sides."""
    return arms * peeling(arms, horizon, rounds)


def seeded(arms: int, horizon: int, rounds: int) -> float:
    """SCOMP: as `union`, with B+1 batches in the level and in the union."""
    return union(arms, horizon, rounds + 1)


def seeded_on_two_levels(arms: int, horizon: int, rounds: int) -> float:
    """R-SCOMP: as `union`, with B+m batches in the level and in the union; m = 2."""
    return union(arms, horizon, rounds + 2)


def chernoff(arms: int, horizon: int, rounds: int) -> float:
    """C2B-KL for K = 2: one pair, counts not random, B looks: each N kl(phat, 1/2) > x with chance at most exp(-x)."""
    assert arms == 2
    return rounds * exp(-(log(horizon) + 0.3 * 2**1.01))


def seeded_twice(arms: int, horizon: int, rounds: int) -> float:
    """SCOMP2: L = ln(3 K^2 B T), K(K-1)/2 pairs x (2B+1) batches x 2 sides."""
    return arms * (arms - 1) * (2 * rounds + 1) * exp(-log(3 * arms**2 * rounds * horizon))


Bound = Callable[[int, int, int], float]
UTILITIES = linear(np.random.default_rng(0), 4, 0.3)
CASES: dict[str, tuple[Floats, int, int, Bound]] = {
    "pcomp": (order(3, 0.52), 100, 3, union),
    "pcomp:estimates=round": (order(3, 0.52), 100, 3, union),
    "c2b": (order(3, 0.52), 400, 5, peeling),
    "c2b:defeat=majority": (order(3, 0.52), 400, 5, peeling),
    "c2b-kl": (order(2, 0.51), 64, 6, chernoff),
    "bcope": (order(3, 0.52), 2000, 5, peeling_all),
    "scomp": (UTILITIES, 200, 4, seeded),
    "r-scomp": (UTILITIES, 200, 4, seeded_on_two_levels),
    "scomp2": (UTILITIES, 200, 3, seeded_twice),
}


@pytest.mark.parametrize("policy", CASES)
def test_the_winner_is_lost_no_more_often_than_the_bound(policy: str, statistics_seed: int) -> None:
    matrix, horizon, rounds, bound = CASES[policy]
    allowed = bound(len(matrix), horizon, rounds)
    assert allowed < 0.2  # a bound that says something
    assert losses(policy, matrix, horizon, rounds, statistics_seed) < binomial_limit(RUNS, allowed, ALARM)


CRIPPLED: dict[str, tuple[str, str, Any]] = {
    "pcomp": ("roundel.policies.batched.pcomp", "hoeffding_level", lambda *_: 0.5),
    "pcomp:estimates=round": ("roundel.policies.batched.pcomp", "hoeffding_level", lambda *_: 0.5),
    "c2b": ("roundel.policies.batched.c2b", "hoeffding_level", lambda *_: 0.5),
    "c2b:defeat=majority": ("roundel.policies.batched.c2b", "hoeffding_level", lambda *_: 0.5),
    "c2b-kl": ("roundel.policies.batched.c2b", "log", lambda x: -0.5),
    "bcope": ("roundel.policies.batched.bcope", "hoeffding_level", lambda *_: 0.5),
    "scomp": ("roundel.policies.batched.scomp", "log", lambda x: 0.5),
    "r-scomp": ("roundel.policies.batched.scomp", "log", lambda x: 0.5),
    "scomp2": ("roundel.policies.batched.scomp2", "log", lambda x: 0.5),
}


@pytest.mark.parametrize("policy", CRIPPLED)
def test_a_shrunk_radius_loses_the_winner_more_often(
    policy: str, statistics_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: the same test with a tenth of the runs must fail once the level is made small."""
    matrix, horizon, rounds, bound = CASES[policy]
    allowed = bound(len(matrix), horizon, rounds)
    module, name, value = CRIPPLED[policy]
    monkeypatch.setattr(importlib.import_module(module), name, value)
    runs = RUNS // 10
    assert losses(policy, matrix, horizon, rounds, statistics_seed, runs) >= binomial_limit(runs, allowed, ALARM)


@pytest.mark.parametrize("policy", ["pcomp", "c2b", "bcope"])
def test_flipped_verdicts_lose_the_winner(policy: str, statistics_seed: int) -> None:
    """The negative control with real gaps: what was arm 0 now loses every pair."""
    assert losses(policy, order(3, 0.9).T, 2000, 5, statistics_seed, 100) > 90


def test_the_limits_of_the_binomial_tests() -> None:
    assert binomial_limit(4, 0.5, 5 / 16) == 3
    assert binomial_limit(4, 0.5, 1 / 16) == 4
    assert binomial_limit(10, 0.5, 1e-9) == 11
    assert batch_size(100, 3, 1) == 4
