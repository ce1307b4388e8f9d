from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest

from instances import NOCW5, SIX
from roundel._jit import wrapping
from roundel.policies.sequential import versatile_db
from roundel.policies.sequential.versatile_db import weigh
from roundel.rng import Stream
from sampling import departs
from stepping import Steps, random_matrix, verdict

Floats = np.ndarray[Any, np.dtype[np.float64]]
draw = wrapping(versatile_db._draw)


def literal_weights(L: Floats, eta: float) -> Floats:
    """Section 12.13 of the specification: bisection for x, then renormalise."""
    low, high = L.min() - 2 * sqrt(len(L)) / eta, L.min() - 2 / eta
    for _ in range(60):
        x = (low + high) / 2
        if (4 / (eta * (L - x)) ** 2).sum() > 1:
            high = x
        else:
            low = x
    w = 4 / (eta * (L - low)) ** 2
    return np.asarray(w / w.sum())


def weights(L: Any, eta: float, shift: float = -1.0) -> Floats:
    state = Steps("versatile-db", len(L)).state
    state.loss[0], state.shift[0] = L, shift
    weigh(state, 0, eta)
    return np.asarray(state.weight[0])


@pytest.mark.parametrize(
    ("L", "eta", "w"),
    [
        ((0, 0, 0), 1.0, (1 / 3, 1 / 3, 1 / 3)),
        ((0, 1, 2), 2.0, (0.695504, 0.206783, 0.097712)),
        ((0, 5, 10), 0.5, (0.751925, 0.173146, 0.074929)),
    ],
)
def test_weights_by_hand(L: tuple[int, ...], eta: float, w: tuple[float, ...]) -> None:
    assert weights(L, eta) == pytest.approx(w, abs=1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_weights_are_those_of_the_bisection_wherever_the_search_starts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    L = rng.exponential(10 ** rng.uniform(-2, 5), 1 + seed % 9)
    eta = 10 ** rng.uniform(-3, 0.6)
    wanted = literal_weights(L, eta)
    for shift in (-1.0, L.min() - 1e6, L.min() - 2 / eta, L.min() - 3 / eta, L.max() + 5):
        assert weights(L, eta, shift) == pytest.approx(wanted, abs=1e-10)
    assert weights(L + 1234.5, eta) == pytest.approx(wanted, abs=1e-8)


class Literal:
    """The losses, by the text; the weights by bisection."""

    def __init__(self, arms: int, shared: bool, reduced: bool) -> None:
        self.shared, self.reduced = shared, reduced
        self.L = np.zeros((2, arms))

    def weights(self, t: int) -> Floats:
        self.eta = (4 if self.reduced else 2) / sqrt(t)
        sides = [literal_weights(self.L[0 if self.shared else side], self.eta) for side in range(2)]
        self.w = np.array(sides)
        return self.w

    def learn(self, i: int, j: int, x: float) -> None:
        estimates = np.zeros(self.L.shape)
        for side, (arm, loss) in enumerate(((i, 1 - x), (j, x))):
            b = np.where(self.w[side] >= self.eta**2, 0.5, 0.0) if self.reduced else np.zeros(len(self.w[side]))
            estimates[side] = b
            estimates[side, arm] += (loss - b[arm]) / self.w[side, arm]
        if self.shared:
            self.L += estimates.sum(axis=0) / 2
        else:
            self.L += estimates


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("reduced", [True, False])
def test_weights_are_those_of_the_pseudo_code_at_every_step(seed: int, shared: bool, reduced: bool) -> None:
    arms = (5, 1, 3)[seed]
    matrix, world = (NOCW5, SIX[:1, :1], random_matrix(5, 3))[seed], np.random.default_rng(seed)
    steps = Steps("versatile-db", arms, 500, seed, shared=shared, reduced=reduced)
    literal = Literal(arms, shared, reduced)
    for t in range(1, 501):
        wanted = literal.weights(t)
        before = steps.state.loss.copy()
        i, j = steps.choose(t)
        ours = steps.state.weight
        assert ours[0] == pytest.approx(wanted[0], abs=1e-8)
        if not shared:
            assert ours[1] == pytest.approx(wanted[1], abs=1e-8)
        if i != j:
            x = verdict(world, matrix[i, j], 0.2) / 2
            steps.learn(i, j, int(2 * x))
        else:  # the coin shows in what it did; the shared learner charges the same either way
            change = steps.state.loss - before
            literal.learn(i, i, 0.0)
            x = 0.0
            if not np.allclose(change[: 2 - shared], (literal.L - literal_before(literal, before))[: 2 - shared]):
                x = 1.0
            literal.L[:] = literal_before(literal, before)
        literal.learn(i, j, x)
        literal.L[: 2 - shared] = check(steps.state.loss[: 2 - shared], literal.L[: 2 - shared])


def literal_before(literal: Literal, before: Floats) -> Floats:
    return np.array([before[0], before[0] if literal.shared else before[1]])


def check(ours: Floats, wanted: Floats) -> Floats:
    """Both must be close; go on from ours, so that roundings do not add up."""
    assert ours == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    return ours


def test_a_self_duel_of_the_shared_learner_charges_half_a_loss() -> None:
    for seed in range(10):
        steps = Steps("versatile-db", 3, seed=seed)
        i, j = steps.choose(1)
        if i == j:
            assert steps.state.loss[0, i] == pytest.approx(1 / (2 * steps.state.weight[0, i]))
            assert steps.state.loss[0].sum() == steps.state.loss[0, i]


def test_the_baseline_is_added_for_every_arm() -> None:
    """Adding it for the arm that was played only (a known mistake) would bias the others' losses."""
    steps = Steps("versatile-db", 4, reduced=True)
    state = steps.state
    state.weight[0], state.shift[2] = 0.25, 0.1
    steps.learn(0, 1, 2)
    # b = 1/2: arm 0 gets (0 - b) 4 + b in one update and b in the other, arm 1 b and (1 - b) 4 + b; each halved
    assert state.loss[0].tolist() == [-0.5, 1.5, 0.5, 0.5]


def test_small_weights_have_no_baseline() -> None:
    steps = Steps("versatile-db", 4, reduced=True)
    state = steps.state
    state.weight[0], state.shift[2] = [0.7, 0.1, 0.1, 0.1], 0.5
    steps.learn(0, 1, 2)
    assert state.loss[0] == pytest.approx([(-0.5 / 0.7 + 1) / 2, 5, 0, 0])


def test_arms_are_drawn_by_their_weights() -> None:
    w = np.array([0.5, 0.0, 0.2, 0.3])
    rng = Stream(3).state
    sample = [int(draw(w, rng)) for _ in range(3000)]
    assert not departs(sample, {0: 0.5, 2: 0.2, 3: 0.3})
    assert departs(sample, {0: 0.4, 2: 0.3, 3: 0.3})


@pytest.mark.parametrize("shared", [True, False])
def test_positions_are_drawn_independently(shared: bool) -> None:
    steps = Steps("versatile-db", 3, shared=shared)
    sample = []
    for _ in range(3000):
        steps.state.loss[:] = [0, 0.5, 1]
        sample.append(steps.choose(1))
    w = literal_weights(np.array([0, 0.5, 1]), 2.0)
    assert not departs(sample, {(i, j): w[i] * w[j] for i in range(3) for j in range(3)})
    assert departs(sample, {(i, j): w[i] * w[i] if i == j else 0.1 for i in range(3) for j in range(3)})
