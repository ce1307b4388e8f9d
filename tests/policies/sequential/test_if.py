from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

from instances import DET2, SIX, order
from roundel.rng import Stream
from stepping import Pair, Steps, agree, duels, random_matrix


class Literal:
    """Section 10 of the specification, line by line."""

    def __init__(self, arms: int, horizon: int, rng: Stream, prune: bool = True) -> None:
        self.level, self.prune = 4 * log(horizon * arms**2), prune
        self.b = rng.below(arms) if arms > 1 else 0
        self.A = [j for j in range(arms) if j != self.b]
        self.n, self.w = dict.fromkeys(self.A, 0), dict.fromkeys(self.A, 0.0)

    def choose(self, t: int) -> Pair:
        return (self.b, min(self.A, key=lambda j: (self.n[j], j))) if self.A else (self.b, self.b)

    def learn(self, i: int, j: int, points: int) -> None:
        self.n[j] += 1
        self.w[j] += points / 2
        if len({self.n[k] for k in self.A}) > 1:
            return
        P = {k: self.w[k] / self.n[k] for k in self.A}
        c = sqrt(self.level / self.n[j])
        self.A = [k for k in self.A if not P[k] - c > 0.5]
        rivals = [k for k in self.A if P[k] + c < 0.5]
        if rivals:
            self.b = min(rivals, key=lambda k: (P[k], k))
            self.A = [k for k in self.A if k != self.b and not (self.prune and P[k] > 0.5)]
            self.n, self.w = dict.fromkeys(self.A, 0), dict.fromkeys(self.A, 0.0)


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize("seed", range(14))
def test_chooses_what_the_pseudo_code_chooses(seed: int, prune: bool) -> None:
    arms = 1 + seed % 7
    literal = Literal(arms, 2500, Stream(seed, "steps"), prune)
    agree("if", literal, random_matrix(seed, arms), 2500, seed, 0.2 * (seed % 2), prune=prune)


@pytest.mark.parametrize("seed", range(6))
def test_the_lowest_of_equal_rivals_takes_over(seed: int) -> None:
    literal = Literal(4, 2500, Stream(seed, "steps"))
    agree("if", literal, order(4), 2500, seed)
    assert literal.b == 0


def test_pruning_spares_an_arm_that_is_level_with_the_old_incumbent() -> None:
    steps = Steps("if", 3, 1000)
    b = incumbent = steps.choose(1)[0]
    level, rival = (k for k in range(3) if k != b)
    for t in range(1, 1001):
        incumbent, j = steps.choose(t)
        if incumbent != b:
            break
        steps.learn(incumbent, j, 1 if j == level else 0)
    assert (incumbent, steps.active()) == (rival, sorted((level, rival)))


def test_the_comparison_catches_another_radius() -> None:
    with pytest.raises(AssertionError, match="the pseudo-code"):
        agree("if", Literal(5, 2000, Stream(0, "steps")), order(5, 0.9), 2500)


def test_radius() -> None:
    level = Steps("if", 6, 10**5).state.level
    assert level / 4 == pytest.approx(15.096444, abs=1e-6)
    assert sqrt(level / 100) == pytest.approx(0.777083, abs=1e-6)
    assert next(n for n in range(1, 1000) if sqrt(level / n) < 0.5) == 242


@pytest.mark.parametrize("seed", range(4))
def test_a_sure_pair(seed: int) -> None:
    steps, times = duels("if", DET2, 1000, seed)
    assert len(times) == 133
    assert steps.active() == [0]


def test_both_arms_of_a_pair_can_come_first() -> None:
    assert {Steps("if", 2, 1000, seed).choose(1)[0] for seed in range(10)} == {0, 1}


@pytest.mark.parametrize("prune", [True, False])
def test_passes_are_even_and_a_beaten_incumbent_never_returns(prune: bool) -> None:
    steps, world = Steps("if", 6, 20_000, 1, prune=prune), np.random.default_rng(1)
    matrix, incumbents, reign = order(6, 0.8), [], np.zeros(6, int)
    for t in range(1, 20_001):
        i, j = steps.choose(t)
        if not incumbents or incumbents[-1] != i:
            incumbents.append(i)
            reign[:] = 0
        if i == j:
            assert steps.remaining() == 1
            break
        reign[j] += 1
        others = [k for k in steps.active() if k != i]
        assert reign[others].max() - reign[others].min() <= 1
        steps.learn(i, j, 2 * int(world.random() < matrix[i, j]))
    assert len(set(incumbents)) == len(incumbents) > 1
    assert incumbents[-1] == 0


def test_no_self_duel_before_one_arm_is_left() -> None:
    steps, times = duels("if", SIX, 3000)
    assert steps.remaining() > 1
    assert times == list(range(1, 3001))
