from __future__ import annotations

from itertools import pairwise
from math import log, sqrt

import numpy as np
import pytest

from instances import DET4, SIX
from roundel.rng import Stream
from stepping import Pair, Steps, agree, random_matrix, verdict


class Literal:
    """Section 12.10 of the specification, line by line; random orders and the first arm are taken over."""

    def __init__(self, steps: Steps) -> None:
        self.order = steps.state.machines.order.copy()
        self.y = int(steps.state.last[0])
        self.rng = Stream(0)
        self.rng.state[:] = steps.rng.state
        self.n, self.sum = np.zeros(self.order.shape), np.zeros(self.order.shape)

    def choose(self, t: int) -> Pair:
        y, n = self.y, self.n[self.y]
        plays = int(n.sum())
        if plays < len(n):
            j = int(self.order[y, plays])
        else:
            j = int(
                np.argmax([s / m + sqrt(2.5 * log(plays)) * (1 / sqrt(m)) for s, m in zip(self.sum[y], n, strict=True)])
            )
        self.y = j
        if y == j:
            self.learn(y, j, 2 - 2 * self.rng.below(2))
        return y, j

    def learn(self, i: int, j: int, points: int) -> None:
        self.n[i, j] += 1
        self.sum[i, j] += 1 - points / 2


@pytest.mark.parametrize("seed", range(8))
def test_chooses_what_the_pseudo_code_chooses(seed: int) -> None:
    arms = 1 + seed
    literal = Literal(Steps("multisbm", arms, seed=seed))
    chosen = agree("multisbm", literal, random_matrix(seed, arms), 900, seed, 0.2 * (seed % 2))
    assert all(after[0] == before[1] for before, after in pairwise(chosen))


def test_the_comparison_catches_rewards_for_the_first_arm() -> None:
    class Wrong(Literal):
        def learn(self, i: int, j: int, points: int) -> None:
            super().learn(i, j, 2 - points)

    with pytest.raises(AssertionError, match="the pseudo-code"):
        agree("multisbm", Wrong(Steps("multisbm", 4, seed=1)), DET4, 900, 1)


def test_a_machine_plays_as_often_as_its_arm_was_first() -> None:
    steps, world, first = Steps("multisbm", 6, seed=3), np.random.default_rng(3), np.zeros(6, int)
    for t in range(1, 1201):
        i, j = steps.choose(t)
        first[i] += 1
        if i != j:
            steps.learn(i, j, verdict(world, SIX[i, j], 0.0))
        assert steps.state.machines.total.tolist() == first.tolist()
    assert steps.state.machines.plays.sum(axis=1).tolist() == first.tolist()
