from __future__ import annotations

from math import e, exp, log, sqrt

import numpy as np
import pytest

from instances import RPS3, SIX
from roundel.errors import PolicyError
from roundel.policies.sequential._exponential import chance
from sampling import departs
from stepping import Steps, verdict


@pytest.mark.parametrize("gamma", [0.3, 0.02])
def test_chances_are_those_of_the_pseudo_code_at_every_step(gamma: float) -> None:
    steps, world, w = Steps("sparring-exp3", 6, gamma=gamma), np.random.default_rng(0), np.ones((2, 6))
    table, coins = steps.state.weights, []
    for t in range(1, 2001):
        before = table.log_weight.copy()
        i, j = steps.choose(t)
        p = (1 - gamma) * w / w.sum(axis=1, keepdims=True) + gamma / 6
        for side in range(2):
            if i != j:
                assert [chance(table, side, k) for k in range(6)] == pytest.approx(p[side].tolist(), rel=1e-9)
        if i != j:
            x = verdict(world, SIX[i, j], 0.1) / 2
            steps.learn(i, j, int(2 * x))
        else:
            x = float(table.log_weight[0, i] != before[0, i])  # the coin
            coins.append(x)
        w[0, i] *= exp(gamma / 6 / p[0, i] * x)
        w[1, j] *= exp(gamma / 6 / p[1, j] * (1 - x))
        assert table.weight / table.weight.sum(axis=1, keepdims=True) == pytest.approx(
            w / w.sum(axis=1, keepdims=True), rel=1e-9
        )
    assert not departs(coins, {0.0: 0.5, 1.0: 0.5})


@pytest.mark.parametrize(("arms", "horizon"), [(6, 10**5), (5, 2), (1, 10)])
def test_gamma_by_default(arms: int, horizon: int) -> None:
    gamma = Steps("sparring-exp3", arms, horizon).state.weights.gamma
    assert gamma == pytest.approx(min(1, sqrt(arms * log(arms) / ((e - 1) * horizon))))


def test_the_average_strategy_approaches_the_von_neumann_winner() -> None:
    """On RPS3 it is uniform. A strategy that is worth at least 1/2 - eps against every arm is within 2 eps of it."""
    horizon = 6000
    steps, mean = Steps("sparring-exp3", 3, horizon, 3), np.zeros(3)
    for t in range(1, horizon + 1):
        i, j = steps.choose(t)
        table = steps.state.weights
        w = table.weight / table.weight.sum(axis=1, keepdims=True)
        mean += w.mean(axis=0) / horizon
        if i != j:
            steps.learn(i, j, int(2 * RPS3[i, j]))
    # the bound of Exp3 on each side's regret, 2 sqrt((e-1) K ln K / T) in expectation
    assert (mean @ RPS3).min() >= 0.5 - 2 * sqrt((e - 1) * 3 * log(3) / horizon)


@pytest.mark.parametrize("gamma", [0.0, 1.1])
def test_refuses_a_gamma_without_meaning(gamma: float) -> None:
    with pytest.raises(PolicyError, match="gamma"):
        Steps("sparring-exp3", 3, gamma=gamma)
