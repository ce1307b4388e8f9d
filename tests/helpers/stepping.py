"""Sequential policies, stepped by hand beside a literal reading of their pseudo-code."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from roundel._jit import wrapping
from roundel.policies import registry
from roundel.policies.sequential._family import FOREVER
from roundel.rng import Stream

Floats = NDArray[np.float64]
Pair = tuple[int, int]


class Steps:
    """The plain kernels of a policy over their state."""

    def __init__(self, name: str, arms: int, horizon: int = 1000, seed: int = 0, **parameters: Any) -> None:
        policy = registry.find(name)
        self.kernels = policy.kernels
        self.rng = Stream(seed, "steps")
        self.state = wrapping(self.kernels.init)(arms, horizon, self.rng.state, **policy.complete(parameters))
        self._choose, self._learn = wrapping(self.kernels.choose), wrapping(self.kernels.learn)

    def choose(self, t: int) -> Pair:
        i, j = self._choose(self.state, t, self.rng.state)
        return int(i), int(j)

    def learn(self, i: int, j: int, points: int) -> None:
        self._learn(self.state, i, j, points)

    def idle(self, t: int) -> int:
        return FOREVER if self.remaining() == 1 else int(self.kernels.idle(self.state, t))

    def remaining(self) -> int:
        return int(self.kernels.remaining(self.state))

    def active(self) -> list[int]:
        assert self.kernels.active is not None
        return [int(arm) for arm in np.flatnonzero(self.kernels.active(self.state))]

    def tell(self, wins: Any) -> None:
        """Let `wins[i][j]` duels be won by i against j."""
        for i, row in enumerate(wins):
            for j, times in enumerate(row):
                for _ in range(times):
                    self.learn(i, j, 2)

    def frozen(self) -> list[Any]:
        """The state as plain data, and the random stream."""
        return [_plain_data(self.state), self.rng.state.tolist()]


def _plain_data(part: Any) -> Any:
    return [_plain_data(inner) for inner in part] if isinstance(part, tuple) else np.copy(part).tolist()


class Literal(Protocol):
    """A policy as its pseudo-code reads: everything is computed anew at each step."""

    def choose(self, t: int) -> Pair | Collection[Pair]: ...
    def learn(self, i: int, j: int, points: int) -> None: ...


def verdict(world: np.random.Generator, chance: float, ties: float) -> int:
    """The half-wins of the first arm: a tie with chance `ties`, else a win with `chance`."""
    return 1 if world.random() < ties else 2 * int(world.random() < chance)


def agree(
    name: str, literal: Literal, matrix: Floats, horizon: int, seed: int = 0, ties: float = 0.0, **parameters: Any
) -> list[Pair]:
    """Play both; every choice must be the literal one (or one of its equals). Return the choices."""
    steps = Steps(name, len(matrix), horizon, seed, **parameters)
    world = np.random.default_rng(seed)
    chosen = []
    for t in range(1, horizon + 1):
        pair, wanted = steps.choose(t), literal.choose(t)
        fits = pair == wanted if isinstance(wanted, tuple) else pair in wanted
        assert fits, f"{name} chose {pair} at t={t}, the pseudo-code {wanted}"
        chosen.append(pair)
        i, j = pair
        if i != j:
            points = verdict(world, matrix[i, j], ties)
            steps.learn(i, j, points)
            literal.learn(i, j, points)
    return chosen


def duels(name: str, matrix: Floats, horizon: int, seed: int = 0, **parameters: Any) -> tuple[Steps, list[int]]:
    """Play sure or random verdicts; return the policy and the times of its duels of two different arms."""
    steps, world, times = Steps(name, len(matrix), horizon, seed, **parameters), np.random.default_rng(seed), []
    for t in range(1, horizon + 1):
        i, j = steps.choose(t)
        if i != j:
            times.append(t)
            steps.learn(i, j, verdict(world, matrix[i, j], 0.0))
    return steps, times


def random_matrix(seed: int, arms: int) -> Floats:
    """Any matrix of preferences, with a Condorcet winner or without; some pairs are even, some are sure."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.choice([0.0, 0.5, 1.0, *rng.random(9)], size=(arms, arms)), 1)
    return np.asarray(upper + np.tril(1 - upper.T, -1) + np.eye(arms) / 2)


def published(name: str, instance: str) -> tuple[float, float]:
    """Mean and standard deviation of the strong regret at T = 10^5 over 20 runs, as ALGORITHMS.md lists them."""
    return {
        ("rucb", "six"): (556, 125),
        ("rucb", "arith8"): (339, 60),
        ("rmed1", "six"): (255, 43),
        ("rmed1", "arith8"): (183, 41),
        ("rmed2", "six"): (290, 48),
        ("rmed2", "arith8"): (206, 39),
        ("rmed2fh", "six"): (293, 71),
        ("rmed2fh", "arith8"): (220, 53),
        ("btm", "six"): (5133, 133),
        ("btm", "arith8"): (5005, 322),
        ("if", "six"): (4031, 1291),
        ("if", "arith8"): (3123, 784),
        ("savage", "six"): (1606, 194),
        ("savage", "arith8"): (1238, 105),
    }[name, instance]
