from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np
import pytest

from instances import ARITH8, DET4, SIX, order
from roundel.errors import PolicyError
from roundel.policies.sequential import borda_elimination as borda
from stepping import Pair, Steps, random_matrix, verdict

Floats = np.ndarray[Any, np.dtype[np.float64]]


def radius(K: int, tau: int, delta: float = 0.1) -> float:
    return K / (K - 1) * sqrt(2 * log(4 * K * tau**2 / delta) / tau)


class Literal:
    """Section 12.17 of the specification, line by line; it takes over who the reference arm is."""

    def __init__(self, steps: Steps | None, arms: int, k: int = 0, gate: int = 0, factor: float = 6.0) -> None:
        self.K, self.A, self.tau = arms, list(range(arms)), 0
        self.k, self.gate, self.factor = k, gate, factor
        self.Z, self.wins = np.zeros(arms), np.zeros((arms, arms))
        self.queue: list[int] = []
        self.steps = steps
        self.sparse = 0

    def scores(self) -> Floats:
        return self.K / (self.K - 1) * self.Z / self.tau

    def eliminate(self) -> None:
        s = self.scores()
        gone = {j for j in self.A if max(s[self.A]) - s[j] > radius(self.K, self.tau)}
        if self.k and self.tau > self.gate:
            level = log(4 * self.K**2 * self.tau**2 / 0.1)
            C = sqrt(2 * self.K * level / self.tau) + 2 * self.K / (3 * self.tau) * level
            p = self.K / self.tau * self.wins
            for j in self.A:
                for i in self.A:
                    others = sorted(set(range(self.K)) - {i, j}, key=lambda w: -abs(p[i, w] - p[j, w]))[: self.k]
                    lead = 2 * (p[i, j] - 0.5) + sum(p[i, w] - p[j, w] for w in others)
                    if i != j and j not in gone and lead > self.factor * (self.k + 1) * C:
                        gone.add(j)
                        self.sparse += 1
        self.A = [j for j in self.A if j not in gone] or self.A[-1:]

    def choose(self, t: int) -> Pair:
        while len(self.A) > 1 and not self.queue:
            if self.tau:
                self.eliminate()
            if len(self.A) > 1:
                self.tau += 1
                assert self.steps is not None
                self.I = int(self.steps.state.memory[borda.REFERENCE])
                self.queue = [j for j in self.A if j != self.I]
        return (self.queue[0], self.I) if len(self.A) > 1 else (self.A[0], self.A[0])

    def learn(self, i: int, j: int, points: int) -> None:
        self.queue.pop(0)
        self.Z[i] += points / 2
        self.wins[i, j] += points / 2


def follow(matrix: Floats, seed: int, horizon: int, ties: float = 0.0, **parameters: Any) -> Literal:
    names = {"k": parameters.get("sparsity", 0), "gate": parameters.get("gate", 0)}
    literal = Literal(None, len(matrix), **names, factor=parameters.get("factor", 6.0))
    literal.steps = Steps("borda-se", len(matrix), horizon, seed, **parameters)
    world = np.random.default_rng(seed)
    for t in range(1, horizon + 1):
        pair = literal.steps.choose(t)
        assert pair == literal.choose(t)
        assert literal.steps.active() == literal.A
        if pair[0] != pair[1]:
            points = verdict(world, matrix[pair], ties)
            literal.steps.learn(*pair, points)
            literal.learn(*pair, points)
    return literal


@pytest.mark.parametrize("seed", range(6))
def test_chooses_what_the_pseudo_code_chooses(seed: int) -> None:
    follow(random_matrix(seed, 1 + seed), seed, 2000, 0.2 * (seed % 2))


def test_chooses_what_the_pseudo_code_chooses_to_the_last_arm() -> None:
    literal = follow(order(5, 0.95), 1, 3000)
    assert literal.A == [0]


def test_the_sparse_rule_is_the_literal_one() -> None:
    literal = follow(order(6, 0.95), 2, 2500, sparsity=2, gate=3, factor=0.1)
    assert literal.sparse > 1


def test_no_sparse_rule_before_the_gate() -> None:
    assert follow(order(6, 0.95), 2, 800, sparsity=2, gate=10**6, factor=0.1).sparse == 0


@pytest.mark.parametrize(("tau", "value"), [(10, 1.7043), (100, 0.6505), (1000, 0.2357), (10**4, 0.0830)])
def test_radius(tau: int, value: float) -> None:
    assert radius(6, tau) == pytest.approx(value, abs=5e-5)


@pytest.mark.parametrize("tau", [10, 100, 1000])
def test_an_arm_goes_just_above_the_radius(tau: int) -> None:
    """The best has taken all its duels; half a win less, or more, against the radius decides."""
    for more in (0, 1):
        state = Steps("borda-se", 6).state
        state.memory[borda.ROUND] = tau
        state.reward[:] = 2 * tau
        gap = radius(6, tau) * 5 / 6 * tau  # in wins
        if gap > tau:
            assert tau == 10  # nobody can go that early
            return
        state.reward[3] = 2 * tau - int(2 * gap) - more
        borda._eliminate(state)
        assert state.stays.tolist() == [1, 1, 1, 1 - more, 1, 1]


@pytest.mark.parametrize(
    ("matrix", "scores"),
    [
        (SIX, [0.572, 0.546, 0.502, 0.482, 0.454, 0.444]),
        (ARITH8, [0.7, 0.642857, 0.585714, 0.528571, 0.471429, 0.414286, 0.357143, 0.3]),
    ],
)
def test_scores_are_estimated_without_bias(matrix: Floats, scores: list[float]) -> None:
    """In 8 runs of 150 rounds, too short to eliminate anybody.

    K/(K-1)/2/sqrt(1200) bounds the standard error of a score; at five of them an alarm has a chance of 6e-7 an arm.
    """
    K = len(matrix)
    assert pytest.approx(scores, abs=1e-6) == (matrix.sum(axis=1) - 0.5) / (K - 1)
    runs = [follow(matrix, seed, 150 * (K - 1)) for seed in range(8)]
    assert all(len(literal.A) == K for literal in runs)
    rounds = sum(literal.tau for literal in runs)  # the last of a run is cut short
    assert 8 * 140 < rounds <= 8 * 172
    error = 5 * K / (K - 1) / 2 / sqrt(rounds) + 8 / rounds
    mean = sum(literal.Z for literal in runs) / rounds
    assert K / (K - 1) * mean == pytest.approx(scores, abs=error)
    assert mean != pytest.approx(scores, abs=error)  # without K / (K - 1)


def test_the_last_arm_plays_itself() -> None:
    literal = follow(DET4, 0, 2500)
    steps = literal.steps
    assert steps is not None
    assert (steps.choose(2501), steps.idle(2501) > 10**18, steps.remaining()) == ((0, 0), True, 1)


@pytest.mark.parametrize(
    ("name", "value"), [("delta", 0.0), ("delta", 1.0), ("sparsity", -1), ("gate", -1), ("factor", 0.0)]
)
def test_refuses_parameters_without_meaning(name: str, value: float) -> None:
    with pytest.raises(PolicyError, match=name):
        Steps("borda-se", 3, **{name: value})
