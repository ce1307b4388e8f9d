from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

from instances import DET4, SIX
from roundel.policies.sequential import doubler
from sampling import departs
from stepping import Pair, Steps, verdict


class Literal:
    """Section 12.9 of the specification, line by line; what is drawn is taken over from the policy beside it."""

    def __init__(self, steps: Steps) -> None:
        self.steps, self.epoch, self.end = steps, 0, 0
        self.M = [int(np.flatnonzero(steps.state.former)[0])]
        self.second: list[int] = []

    def choose(self, t: int) -> list[Pair]:
        if t > self.end:
            self.M = self.second or self.M
            self.epoch += 1
            self.end += 2**self.epoch
            self.second = []
            self.n, self.sum = np.zeros(self.K), np.zeros(self.K)
        plays = int(self.n.sum())
        if plays < self.K:
            j = int(self.steps.state.machine.order[0, plays])
        else:
            j = int(
                np.argmax(
                    [s / m + sqrt(2.5 * log(plays)) * (1 / sqrt(m)) for s, m in zip(self.sum, self.n, strict=True)]
                )
            )
        self.second.append(j)
        return [(i, j) for i in sorted(set(self.M))]

    @property
    def K(self) -> int:
        return len(self.steps.state.former)

    def learn(self, j: int, reward: float) -> None:
        self.n[j] += 1
        self.sum[j] += reward


@pytest.mark.parametrize("seed", range(6))
def test_chooses_what_the_pseudo_code_chooses(seed: int) -> None:
    arms = 1 + seed
    matrix = SIX[:arms, :arms]
    steps, world = Steps("doubler", arms, seed=seed), np.random.default_rng(seed)
    literal, ends = Literal(steps), []
    for t in range(1, 1200):
        before = steps.state.machine.points.copy()
        i, j = steps.choose(t)
        assert (i, j) in literal.choose(t)
        if not ends or steps.state.memory[doubler.END] != ends[-1]:
            ends.append(int(steps.state.memory[doubler.END]))
            before[:] = 0
        if i == j:
            literal.learn(j, (steps.state.machine.points - before)[0, j] / 2)
        else:
            points = verdict(world, matrix[i, j], 0.2)
            steps.learn(i, j, points)
            literal.learn(j, 1 - points / 2)
    assert ends == [2, 6, 14, 30, 62, 126, 254, 510, 1022, 2046]


def test_the_first_arm_of_the_first_epoch_is_constant() -> None:
    for seed in range(10):
        steps, first = Steps("doubler", 6, seed=seed), set()
        for t in (1, 2):
            i, j = steps.choose(t)
            first.add(i)
            if i != j:
                steps.learn(i, j, 2)
        assert len(first) == 1


def test_first_arms_are_drawn_as_often_as_they_were_second() -> None:
    steps = Steps("doubler", 4)
    steps.state.former[:] = [5, 0, 1, 10]
    steps.state.memory[:] = 10**9, 16
    sample = [steps.choose(2)[0] for _ in range(3000)]
    assert not departs(sample, {0: 5 / 16, 2: 1 / 16, 3: 10 / 16})
    assert departs(sample, {0: 1 / 3, 2: 1 / 3, 3: 1 / 3})


def test_the_machine_forgets_at_the_end_of_an_epoch() -> None:
    steps, world = Steps("doubler", 4), np.random.default_rng(0)
    for t in range(1, 16):
        i, j = steps.choose(t)
        if t == 15:
            assert steps.state.machine.total[0] == int(i == j)
            assert steps.state.former.sum() == steps.state.memory[doubler.LENGTH] == 8
        if i != j:
            steps.learn(i, j, verdict(world, DET4[i, j], 0.0))
