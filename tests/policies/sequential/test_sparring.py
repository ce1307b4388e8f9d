from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

from instances import DET4
from roundel.errors import PolicyError
from roundel.policies import registry
from roundel.policies.sequential._singleton import Machines
from roundel.rng import Stream
from stepping import Pair, Steps, agree, duels, random_matrix


class Ucb1:
    """Section 12.7 of the specification, line by line; it takes over the random order of the first plays."""

    def __init__(self, machines: Machines, m: int, alpha: float = 2.5) -> None:
        self.order, self.alpha = machines.order[m].tolist(), alpha
        self.n, self.sum = np.zeros(len(self.order)), np.zeros(len(self.order))

    def advance(self) -> int:
        plays = int(self.n.sum())
        if plays < len(self.n):
            return int(self.order[plays])
        scale = sqrt(self.alpha * log(plays))
        return int(np.argmax([s / n + scale * (1 / sqrt(n)) for s, n in zip(self.sum, self.n, strict=True)]))

    def feedback(self, arm: int, reward: float) -> None:
        self.n[arm] += 1
        self.sum[arm] += reward


class Literal:
    """Section 12.8 of the specification, line by line; `rng` is a copy of the policy's stream, for its coin."""

    def __init__(self, steps: Steps, alpha: float = 2.5) -> None:
        self.sides = [Ucb1(steps.state.sides, side, alpha) for side in range(2)]
        self.rng = Stream(0)
        self.rng.state[:] = steps.rng.state
        self.steps, self.coins = steps, list[int]()

    def choose(self, t: int) -> Pair:
        i, j = (side.advance() for side in self.sides)
        if i == j:
            self.coins.append(self.rng.below(2))
            self.learn(i, j, 2 * self.coins[-1])
        return i, j

    def learn(self, i: int, j: int, points: int) -> None:
        self.sides[0].feedback(i, points / 2)
        self.sides[1].feedback(j, 1 - points / 2)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("alpha", [2.5, 0.7])
def test_chooses_what_the_pseudo_code_chooses(seed: int, alpha: float) -> None:
    arms = 1 + seed
    literal = Literal(Steps("sparring", arms, seed=seed, alpha=alpha), alpha)
    agree("sparring", literal, random_matrix(seed, arms), 900, seed, 0.2 * (seed % 2), alpha=alpha)
    assert arms > 4 or sum(literal.coins) > 0


def test_the_comparison_catches_another_alpha() -> None:
    literal = Literal(Steps("sparring", 4, seed=1), 2.4)
    with pytest.raises(AssertionError, match="the pseudo-code"):
        agree("sparring", literal, random_matrix(1, 4), 900, 1)


def test_rewards_of_a_duel_sum_to_one() -> None:
    steps, _ = duels("sparring", DET4, 500)
    sides = steps.state.sides
    assert sides.points.sum() == 2 * 500  # half-wins, self-duels included
    assert sides.plays.sum(axis=1).tolist() == [500, 500]


def test_each_side_plays_every_arm_first_in_an_order_of_its_own() -> None:
    orders = set()
    for seed in range(20):
        steps = Steps("sparring", 5, seed=seed)
        first = []
        for t in range(1, 6):
            first.append(pair := steps.choose(t))
            if pair[0] != pair[1]:
                steps.learn(*pair, 1)
        left, right = (tuple(pair[side] for pair in first) for side in (0, 1))
        assert sorted(left) == sorted(right) == [0, 1, 2, 3, 4]
        orders |= {left, right}
    assert len(orders) > 25


@pytest.mark.parametrize("name", ["sparring", "multisbm", "doubler"])
def test_the_defaults_and_limits_of_the_reductions(name: str) -> None:
    assert registry.find(name).complete({}) == {"alpha": 2.5}
    with pytest.raises(PolicyError, match=r"alpha is 0\.0"):
        Steps(name, 3, alpha=0.0)
