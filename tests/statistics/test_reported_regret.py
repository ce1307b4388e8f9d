"""Regrets of the second-priority policies against the few runs that ALGORITHMS.md, section 12, reports.

Those means are of 3 to 4 runs whose spread is not given. Ours stands for it: with 3 runs there and n here, means
agree within 4 sd sqrt(1/3 + 1/n), and the rounding. For normal means that is a two-sided four-sigma event, with
probability 6.3e-5 for each of the 24 rows: 0.0015 in all. The spread is that of 30 runs and some are skewed
(SelfSparring above all), so call it 0.01; the default seed is fixed, so no test is flaky. Where 20 runs of a peer
with their spread are given, these are used.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import pytest

from instances import ARITH8, NOCW5, SIX
from playing import binomial_limit
from roundel.policies import parse
from roundel.preferences import Preferences
from roundel.rng import seeded
from roundel.simulation.drive import Drive, drive
from roundel.simulation.regret import regret_table

pytest.importorskip("numba", reason="plain Python takes minutes for these runs")

Floats = np.ndarray[Any, np.dtype[np.float64]]
HORIZON, RUNS, SIGMAS = 100_000, 30, 4
INSTANCES = {"six": SIX, "arith8": ARITH8, "nocw5": NOCW5}


class Reported(NamedTuple):
    """A mean regret; its runs; their standard deviation, if known; to how much it is rounded."""

    mean: float
    runs: int = 3
    sd: float | None = None
    rounding: float = 0.5


STRONG = {
    ("merge-rucb", "six"): Reported(793),
    ("d-ts", "six"): Reported(153),
    ("d-ts+", "six"): Reported(133),
    ("rcs", "six"): Reported(326),
    ("ccb", "six"): Reported(531),
    ("scb", "six"): Reported(6219),
    ("ecw-rmed", "six"): Reported(240),
    ("sparring", "six"): Reported(1454),
    ("doubler", "six"): Reported(2944),
    ("multisbm", "six"): Reported(2674),
    ("self-sparring", "six"): Reported(97),
    ("versatile-db", "six"): Reported(427),
    ("versatile-db:shared=false", "six"): Reported(590),
    ("rex3", "six"): Reported(652),
    ("sparring-exp3", "six"): Reported(1498),
    ("ucb-ts", "six"): Reported(1773),
    ("ucb-ts:solution=uncovered", "six"): Reported(1662),
}
PEERS = {
    ("sparring", "six"): Reported(1502, 20, 122),
    ("sparring", "arith8"): Reported(1272, 20, 78),
    ("multisbm", "six"): Reported(2651, 20, 171),
    ("multisbm", "arith8"): Reported(2511, 20, 144),
}
COPELAND = {
    ("ccb", "nocw5"): Reported(1440, rounding=5),
    ("d-ts", "nocw5"): Reported(738),
    ("ecw-rmed", "nocw5"): Reported(210, rounding=5),
}


def play(text: str, chance: Floats, cost: Floats, seed: Any, horizon: int = HORIZON) -> Drive:
    policy, parameters = parse(text)
    own, world = seeded(0, seed, "policy"), seeded(0, seed, "world")
    return drive(policy.kernels, chance, cost, horizon, [horizon], own, world, parameters)


def regrets(text: str, instance: str, kind: str, seed: int, flip: bool = False, runs: int = RUNS) -> Floats:
    matrix = INSTANCES[instance]
    cost = regret_table(Preferences(matrix), kind)
    shown = np.ascontiguousarray(matrix.T) if flip else matrix
    return np.array([play(text, shown, cost, f"{seed} {text} {instance} {n}").regret for n in range(runs)])


def apart(row: Reported, sample: Floats) -> bool:
    """Whether a sample is further from a reported mean than chance allows."""
    spread = sample.std(ddof=1)
    error = SIGMAS * sqrt((row.sd or spread) ** 2 / row.runs + spread**2 / len(sample)) + row.rounding
    return bool(abs(sample.mean() - row.mean) > error)


@pytest.mark.parametrize(("policy", "instance"), STRONG)
def test_strong_regret_is_the_reported_one(policy: str, instance: str, statistics_seed: int) -> None:
    assert not apart(STRONG[policy, instance], regrets(policy, instance, "strong", statistics_seed))


@pytest.mark.parametrize(("policy", "instance"), PEERS)
def test_strong_regret_is_that_of_a_peer(policy: str, instance: str, statistics_seed: int) -> None:
    assert not apart(PEERS[policy, instance], regrets(policy, instance, "strong", statistics_seed))


@pytest.mark.parametrize(("policy", "instance"), COPELAND)
def test_copeland_regret_is_the_reported_one(policy: str, instance: str, statistics_seed: int) -> None:
    assert not apart(COPELAND[policy, instance], regrets(policy, instance, "copeland", statistics_seed))


# SCB still explores all pairs alike at this horizon, so that it costs the same whoever wins.
@pytest.mark.parametrize(("policy", "instance"), [row for row in STRONG if row[0] != "scb"])
def test_flipped_verdicts_are_far_apart(policy: str, instance: str, statistics_seed: int) -> None:
    sample = regrets(policy, instance, "strong", statistics_seed, flip=True, runs=8)
    assert apart(STRONG[policy, instance], sample)


@pytest.mark.parametrize(
    ("policy", "other"),
    [
        ("merge-rucb", "merge-rucb:alpha=4"),
        ("rcs", "rcs:alpha=2"),
        ("ccb", "ccb:alpha=2"),
        ("sparring", "sparring:alpha=0.5"),
        ("multisbm", "multisbm:alpha=0.5"),
        ("doubler", "doubler:alpha=0.3"),
        ("rex3", "rex3:gamma=0.3"),
        ("sparring-exp3", "sparring-exp3:gamma=0.5"),
        ("ucb-ts", "ucb-ts:alpha=2"),
    ],
)
def test_another_parameter_is_far_apart(policy: str, other: str, statistics_seed: int) -> None:
    assert apart(STRONG[policy, "six"], regrets(other, "six", "strong", statistics_seed))


# claims without a reported number -----------------------------------------------------------------------------------


def test_merge_dts_costs_less_than_merge_rucb(statistics_seed: int) -> None:
    """By four standard errors of the difference."""
    ours, theirs = (regrets(name, "six", "strong", statistics_seed, runs=60) for name in ("merge-dts", "merge-rucb"))
    error = SIGMAS * sqrt((ours.var(ddof=1) + theirs.var(ddof=1)) / 60)
    assert ours.mean() < theirs.mean() - error


def test_the_reduced_variance_costs_less(statistics_seed: int) -> None:
    ours, theirs = (
        regrets(name, "six", "strong", statistics_seed) for name in ("versatile-db:reduced=true", "versatile-db")
    )
    assert ours.mean() < theirs.mean() - SIGMAS * sqrt((ours.var(ddof=1) + theirs.var(ddof=1)) / RUNS)


@pytest.mark.parametrize("text", ["borda-se", "borda-se:sparsity=1,factor=0.5"])
def test_the_borda_winner_is_found_with_the_stated_confidence(text: str, statistics_seed: int) -> None:
    """At confidence 0.9 wrong answers are binomial with chance 0.1 at most; the limit has an alarm rate of 1e-6.

    Arm 1 is the Condorcet winner, arm 0 the Borda winner: 0.7 against 0.55, 0.25.
    """
    matrix = np.array([[0.5, 0.45, 0.95], [0.55, 0.5, 0.55], [0.05, 0.45, 0.5]])
    cost = regret_table(Preferences(matrix), "borda")
    runs = [play(text, matrix, cost, f"{statistics_seed} {n}", 100_000) for n in range(200)]
    assert all(end.active.sum() == 1 for end in runs)
    assert sum(int(not end.active[0]) for end in runs) < binomial_limit(200, 0.1, 1e-6)
    flipped = play(text, np.ascontiguousarray(matrix.T), cost, "flipped", 100_000)
    assert not flipped.active[0]


@pytest.mark.parametrize("name", ["d-ts", "d-ts+", "rcs", "merge-rucb", "merge-dts", "ecw-rmed"])
def test_a_horizon_of_a_billion_costs_what_its_duels_cost(name: str) -> None:
    """Were the self-duels not jumped over, this would take minutes."""
    end = play(name, SIX, regret_table(Preferences(SIX), "strong"), "long", 10**9)
    assert end.duels < 3_000_000
    assert end.duels + end.selfduels.sum() == 10**9
    assert end.selfduels.argmax() == 0
