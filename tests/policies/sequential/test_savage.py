from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

from instances import DET2, RPS3, SIX, order
from roundel.errors import PolicyError
from stepping import Pair, Steps, agree, duels, random_matrix


class Literal:
    """Section 11 of the specification, line by line."""

    def __init__(self, arms: int, horizon: int, delta: float | None = None) -> None:
        self.L = log(max(1, arms * (arms - 1)) * horizon / (delta or 1 / horizon))
        self.A, self.W = list(range(arms)), np.zeros((arms, arms))

    def choose(self, t: int) -> Pair:
        if len(self.A) == 1:
            return self.A[0], self.A[0]
        pairs = [(i, j) for i in self.A for j in self.A if i < j]
        return min(pairs, key=lambda p: (self.W[p] + self.W[p[::-1]], p))

    def learn(self, i: int, j: int, points: int) -> None:
        self.W[i, j] += points / 2
        self.W[j, i] += 1 - points / 2
        n = self.W[i, j] + self.W[j, i]
        c = sqrt(self.L / (2 * n))
        if self.W[i, j] / n + c < 0.5:
            self.A.remove(i)
        elif self.W[j, i] / n + c < 0.5:
            self.A.remove(j)


@pytest.mark.parametrize("seed", range(20))
def test_chooses_what_the_pseudo_code_chooses(seed: int) -> None:
    arms = 1 + seed % 7
    delta = 0.4 if seed % 3 else None
    literal = Literal(arms, 1200, delta)
    agree("savage", literal, random_matrix(seed, arms), 1200, seed, 0.2 * (seed % 2), delta=delta)


def test_the_comparison_catches_another_radius() -> None:
    with pytest.raises(AssertionError, match="the pseudo-code"):
        agree("savage", Literal(5, 1200, 0.1), order(5, 0.9), 1200, delta=0.2)


def test_radius() -> None:
    state = Steps("savage", 6, 10**5).state
    assert 2 * state.level == pytest.approx(26.427048, abs=1e-6)
    assert sqrt(state.level / 100) == pytest.approx(0.363504, abs=1e-6)
    assert next(n for n in range(1, 1000) if sqrt(state.level / n) < 0.5) == 53
    assert 2 * Steps("savage", 6, 10**5, delta=1e-5).state.level == pytest.approx(26.427048, abs=1e-6)


def test_the_union_bound_does_not_overflow() -> None:
    state = Steps("savage", 100, 10**6).state  # K (K-1) T = 9.9e9 needs more than 32 bits, times T more than 53
    assert 2 * state.level == pytest.approx(log(9900) + 2 * log(10**6))


def test_a_sure_pair() -> None:
    steps, times = duels("savage", DET2, 1000)
    assert (len(times), steps.active()) == (30, [0])


def test_pairs_in_play_are_dueled_equally_often() -> None:
    steps, world = Steps("savage", 6, 5000), np.random.default_rng(2)
    matrix, counts, sizes = order(6, 0.85), np.zeros((6, 6), int), set()
    for t in range(1, 5001):
        i, j = steps.choose(t)
        if i == j:
            break
        counts[i, j] += 1
        steps.learn(i, j, 2 * int(world.random() < matrix[i, j]))
        active = steps.active()
        sizes.add(len(active))
        inside = [counts[a, b] for a in active for b in active if a < b]
        assert not inside or max(inside) - min(inside) <= 1
    assert steps.active() == [0]
    assert sizes == {1, 2, 3, 4, 5, 6}


def test_one_arm_remains_of_a_cycle_too() -> None:
    steps, times = duels("savage", RPS3, 1000)
    assert steps.remaining() == 1
    assert len(times) < 200


def test_nobody_goes_while_the_arms_are_close() -> None:
    steps, times = duels("savage", SIX, 500)
    assert (steps.remaining(), len(times)) == (6, 500)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0])
def test_refuses_a_delta_without_meaning(delta: float) -> None:
    with pytest.raises(PolicyError, match="delta"):
        Steps("savage", 3, delta=delta)
