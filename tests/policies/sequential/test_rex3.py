from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
import pytest

from instances import DET2, SIX
from roundel._jit import wrapping
from roundel.errors import PolicyError
from roundel.policies.sequential._exponential import chance, draw, grow, weights
from roundel.rng import Stream
from sampling import departs
from stepping import Steps, duels, verdict


def test_the_first_duel_by_hand() -> None:
    steps = Steps("rex3", 3, gamma=0.3)
    table = steps.state.weights
    assert [chance(table, 0, k) for k in range(3)] == pytest.approx([1 / 3] * 3)
    steps.learn(0, 2, 2)
    assert table.weight[0] == pytest.approx([1.161834, 1.0, 0.860708], abs=1e-6)  # without the factor 1/2: 1.35, .74
    steps.choose(2)
    assert [chance(table, 0, k) for k in range(3)] == pytest.approx([0.369073, 0.331593, 0.299334], abs=1e-6)


def test_equal_arms_and_ties_change_nothing() -> None:
    steps = Steps("rex3", 3, gamma=0.3)
    steps.learn(1, 2, 1)
    assert steps.state.weights.weight[0].tolist() == [1, 1, 1]
    for t in range(1, 200):
        before = steps.state.weights.weight.copy()
        i, j = steps.choose(t)
        if i != j:
            steps.learn(i, j, 2)
        else:
            assert steps.state.weights.weight.tolist() == before.tolist()


@pytest.mark.parametrize(("arms", "horizon"), [(6, 10**5), (5, 12), (1, 10), (136, 10**6)])
def test_gamma_by_default(arms: int, horizon: int) -> None:
    gamma = Steps("rex3", arms, horizon).state.weights.gamma
    assert gamma == pytest.approx(min(0.5, sqrt(arms * log(arms) / horizon)))


@pytest.mark.parametrize("gamma", [0.3, 0.01])
def test_chances_are_those_of_the_pseudo_code_at_every_step(gamma: float) -> None:
    steps, world, w = Steps("rex3", 6, gamma=gamma), np.random.default_rng(0), np.ones(6)
    table = steps.state.weights
    for t in range(1, 3001):
        i, j = steps.choose(t)
        p = (1 - gamma) * w / w.sum() + gamma / 6
        assert [chance(table, 0, k) for k in range(6)] == pytest.approx(p.tolist(), rel=1e-9)
        if i != j:
            points = verdict(world, SIX[i, j], 0.1)
            steps.learn(i, j, points)
            if points != 1:
                winner, loser = (i, j) if points == 2 else (j, i)
                up, down = exp(gamma / 6 / (2 * p[winner])), exp(-gamma / 6 / (2 * p[loser]))
                w[winner] *= up
                w[loser] *= down


def test_arms_are_drawn_by_their_chances() -> None:
    table, rng = weights(2, 4, 0.2), Stream(1).state
    for k, exponent in enumerate((0.0, 1.0, -1.0, 2.0)):
        grow(table, 1, k, exponent)
    sample = [int(wrapping(draw)(table, 1, rng)) for _ in range(3000)]
    p = {k: chance(table, 1, k) for k in range(4)}
    assert sum(p.values()) == pytest.approx(1)
    assert not departs(sample, p)
    assert departs(sample, {k: (v - 0.05) / 0.8 for k, v in p.items()})  # without exploration


def test_weights_may_grow_without_end() -> None:
    table = weights(1, 3, 0.1)
    for n in range(5000):
        grow(table, 0, 1, 0.9)
        grow(table, 0, 2, 0.9 if n % 2 else 0.8)
    wrapping(draw)(table, 0, Stream(0).state)
    assert np.isfinite(table.weight).all()
    assert table.weight.max() > 0
    assert table.log_weight[0, 1] - table.log_weight[0, 2] == pytest.approx(250)
    assert chance(table, 0, 1) == pytest.approx(0.9 + 0.1 / 3)


def test_a_sure_winner_prevails() -> None:
    _, times = duels("rex3", DET2, 3000)
    assert len(times) < 400


@pytest.mark.parametrize("gamma", [0.0, 0.6])
def test_refuses_a_gamma_without_meaning(gamma: float) -> None:
    with pytest.raises(PolicyError, match="gamma"):
        Steps("rex3", 3, gamma=gamma)
