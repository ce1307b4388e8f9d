from __future__ import annotations

from math import floor

import numpy as np
import pytest

from instances import SIX
from roundel.errors import PolicyError
from roundel.policies.sequential.winner_stays import ROUND
from stepping import Pair, Steps, agree, random_matrix


class Literal:
    """Section 12.12 of the specification, line by line; it lists all choices that are equal."""

    def __init__(self, arms: int, beta: float | None = None) -> None:
        self.C, self.last, self.beta = np.zeros(arms, int), (), beta
        self.round, self.until, self.t, self.Z = 1, 0, 0, 0
        self.rounds_end: list[int] = []

    def highest(self, arms: list[int]) -> list[int]:
        top = [k for k in arms if self.C[k] == self.C[arms].max()]
        return next(([k] for k in self.last if k in top), top)

    def choose(self, t: int) -> list[Pair]:
        self.t, arms = t, list(range(len(self.C)))
        if len(arms) == 1:
            return [(0, 0)]
        if t <= self.until:
            return [(self.Z, self.Z)]
        return [(f, s) for f in self.highest(arms) for s in self.highest([k for k in arms if k != f])]

    def learn(self, i: int, j: int, points: int) -> None:
        self.C[i] += points - 1
        self.C[j] -= points - 1
        self.last = (i, j)
        self.Z, K = int(np.argmax(self.C)), len(self.C)
        ended = self.C[self.Z] == (K - 1) * self.round and (np.delete(self.C, self.Z) == -self.round).all()
        if ended:
            self.rounds_end.append(self.t)
            if self.beta is not None:
                self.until = self.t + floor(self.beta**self.round)
            self.round += 1


@pytest.mark.parametrize("seed", range(21))
def test_ws_w_chooses_what_the_pseudo_code_chooses(seed: int) -> None:
    arms = 1 + seed % 7
    agree("ws-w", Literal(arms), random_matrix(seed, arms), 1500, seed, 0.3 * (seed % 2))


@pytest.mark.parametrize("beta", [1.1, 2.0])
@pytest.mark.parametrize("seed", range(14))
def test_ws_s_chooses_what_the_pseudo_code_chooses(seed: int, beta: float) -> None:
    arms = 1 + seed % 7
    agree("ws-s", Literal(arms, beta), random_matrix(seed, arms), 1500, seed, 0.3 * (seed % 2), beta=beta)


def test_the_comparison_catches_exploitation_after_other_rounds() -> None:
    with pytest.raises(AssertionError, match="the pseudo-code"):
        agree("ws-s", Literal(6, 1.2), SIX, 1500, beta=1.1)


def test_the_path_passes_through_the_end_of_every_round() -> None:
    literal = Literal(6)
    chosen = agree("ws-w", literal, SIX, 20_000)
    assert all(i != j for i, j in chosen)
    assert literal.C.sum() == 0
    # 494 rounds in one published run. A round is a random walk of mean length about 40 and similar deviation,
    # so that 20,000 duels hold 490 +- 25 rounds; six deviations leave 2e-9 on either side.
    assert 340 < len(literal.rounds_end) < 640


def test_exploitation_follows_a_whole_round() -> None:
    steps, world = Steps("ws-s", 6, 5000, beta=1.5), np.random.default_rng(0)
    runs, t = [], 0
    while t < 5000:
        t += 1
        i, j = steps.choose(t)
        if i == j:
            played = steps.state.memory[ROUND] - 1
            assert steps.state.lead[i] == 5 * played
            assert sorted(steps.state.lead)[:5] == [-played] * 5
            runs.append(steps.idle(t) - t + 1)
            t = steps.idle(t)
        else:
            steps.learn(i, j, 2 * int(world.random() < SIX[i, j]))
    assert runs == [floor(1.5**r) for r in range(1, len(runs) + 1)]
    assert len(runs) > 10


def test_equals_are_chosen_equally_often() -> None:
    first, second, third = np.zeros(6), np.zeros(6), np.zeros(6)
    for seed in range(4000):
        steps = Steps("ws-w", 6, 100, seed)
        i, j = steps.choose(1)
        steps.learn(i, j, 2)
        first[i], second[j] = first[i] + 1, second[j] + 1
        third[steps.choose(2)[1]] += 1  # the next challenger, of the four that wait

    def distance(seen: np.ndarray) -> float:
        return float(((seen - seen.mean()) ** 2 / seen.mean()).sum())

    # Chi-square with 5 degrees of freedom is above 34 with chance 2.4e-6.
    assert max(map(distance, (first, second, third))) < 34
    first[0] += 200  # the control: one arm is chosen 30 percent more often
    assert distance(first) > 34


@pytest.mark.parametrize("beta", [1.0, 0.5])
def test_refuses_a_beta_without_meaning(beta: float) -> None:
    with pytest.raises(PolicyError, match="beta"):
        Steps("ws-s", 3, beta=beta)
