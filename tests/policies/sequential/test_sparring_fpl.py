from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest

from instances import NOCW5, RPS3, SIX
from roundel._jit import wrapping
from roundel.policies.sequential import sparring_fpl
from roundel.policies.sequential.sparring_fpl import _two_thirds_power
from sampling import departs, differ
from stepping import Steps, verdict

Floats = np.ndarray[Any, np.dtype[np.float64]]


def explored(matrix: Floats, horizon: int, seed: int) -> Steps:
    """Play until the mixed strategy is there."""
    steps, world = Steps("sparring-fpl", len(matrix), horizon, seed), np.random.default_rng(seed)
    for t in range(1, steps.state.explore + 2):
        i, j = steps.choose(t)
        if i != j:
            steps.learn(i, j, verdict(world, matrix[i, j], 0.0))
    return steps


def strategy(steps: Steps) -> Floats:
    return np.asarray(steps.state.mix / (2 * steps.state.explore))


def exact_matrix(matrix: Floats, horizon: int, seed: int) -> Steps:
    """The simulation alone, on shares that are the true chances."""
    steps = Steps("sparring-fpl", len(matrix), horizon, seed)
    steps.state.points[:] = np.rint(2000 * matrix)
    steps.choose(steps.state.explore + 1)
    return steps


@pytest.mark.parametrize(
    ("matrix", "winner"),
    [(RPS3, [1 / 3] * 3), (SIX, [1, 0, 0, 0, 0, 0]), (NOCW5, [1 / 3, 1 / 3, 0, 0, 1 / 3])],
)
def test_von_neumann_winners_of_the_instances(matrix: Floats, winner: list[float]) -> None:
    """A strategy that no arm beats is one; mixing in any other arm makes it worse, so it is the only one."""
    w = np.array(winner, float)
    assert (w @ matrix).min() == pytest.approx(0.5)
    for k in range(len(w)):
        for other in range(len(w)):
            moved = w.copy()
            moved[k] -= 0.01
            moved[other] += 0.01
            if moved.min() >= 0 and k != other:
                assert (moved @ matrix).min() < 0.5 - 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_follows_a_cycle_uniformly(seed: int) -> None:
    steps = explored(RPS3, 10**4, seed)
    v = strategy(steps)
    assert v == pytest.approx([1 / 3] * 3, abs=0.05)
    assert (v @ RPS3).min() > 0.45
    assert v.sum() == pytest.approx(1)


def test_finds_a_condorcet_winner() -> None:
    v = strategy(exact_matrix(SIX, 10**6, 0))
    assert v[0] == pytest.approx(0.92, abs=0.02)
    assert (v @ SIX).min() >= 0.495
    assert strategy(exact_matrix(SIX[::-1, ::-1], 10**6, 0))[5] == pytest.approx(0.92, abs=0.02)


def literal_strategy(M: Floats, n: int, rng: np.random.Generator) -> Floats:
    a_sum, b_sum, v = np.zeros(len(M)), np.zeros(len(M)), np.zeros(len(M))
    for _ in range(n):
        a = int(np.argmax(a_sum + rng.uniform(0, sqrt(n), len(M))))
        b = int(np.argmax(b_sum + rng.uniform(0, sqrt(n), len(M))))
        a_sum += M[:, b]
        b_sum += M[:, a]
        v[[a]] += 1
        v[[b]] += 1
    return v


def test_the_simulation_is_distributed_as_in_the_specification() -> None:
    """How often an arm is played in 22 steps by both, over many simulations."""
    horizon, rng = 100, np.random.default_rng(0)
    n = _two_thirds_power(horizon)
    ours = np.array([exact_matrix(NOCW5, horizon, seed).state.mix for seed in range(1500)])
    wanted = np.array([literal_strategy(NOCW5 - 0.5, n, rng) for _ in range(3000)])
    for k in (0, 1, 4):
        assert not differ(ours[:, k].tolist(), wanted[:, k].tolist())
        assert differ((ours[:, k] + 1).tolist(), wanted[:, k].tolist())


def test_explores_pairs_uniformly_and_then_draws_from_the_strategy() -> None:
    steps = Steps("sparring-fpl", 3, 10**6)
    sample = [steps.choose(t) for t in range(1, 3001)]
    pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
    assert not departs(sample, dict.fromkeys(pairs, 1 / 6))
    steps = explored(NOCW5, 1000, 1)
    v, frozen = strategy(steps), steps.state.mix.tolist()
    sample = [steps.choose(500 + t) for t in range(3000)]
    assert not departs(sample, {(i, j): v[i] * v[j] for i in range(5) for j in range(5) if v[i] * v[j] > 0})
    steps.learn(0, 1, 2)
    assert steps.state.mix.tolist() == frozen
    assert steps.state.points.sum() == 2 * 100


@pytest.mark.parametrize("horizon", [1, 2, 8, 26, 27, 28, 1000, 10**6, 10**6 + 1, 10**12, 10**18])
def test_exploration_is_the_two_thirds_power_of_the_horizon(horizon: int) -> None:
    m = _two_thirds_power(horizon)
    assert m**3 >= horizon**2
    assert (m - 1) ** 3 < horizon**2


def test_unseen_pairs_count_as_even() -> None:
    assert wrapping(sparring_fpl._margin)(np.zeros((2, 2), np.int64), 0, 1) == 0.0
    assert Steps("sparring-fpl", 2, 8, seed=1).state.explore == 4
