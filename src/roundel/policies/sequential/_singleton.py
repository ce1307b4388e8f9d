"""UCB1, the bandit for single arms ("singleton bandit machine") that the reductions are built on.

P. Auer, N. Cesa-Bianchi, P. Fischer, Finite-time Analysis of the Multiarmed Bandit Problem, Machine Learning 47
(2002). Each arm once, in random order, then argmax mean_k + sqrt(alpha ln n / n_k), ties by the lowest index, with
n the plays of this machine.
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np

from roundel._jit import kernel
from roundel.errors import PolicyError
from roundel.policies.sequential._family import Floats, Ints
from roundel.rng import State as Random
from roundel.rng import below


class Machines(NamedTuple):
    """Several UCB1 machines over the same arms: one a row."""

    alpha: float
    order: Ints  # order[m]: in which order machine m plays the arms first
    total: Ints  # total[m]: plays of machine m
    plays: Ints  # plays[m, k]
    points: Ints  # points[m, k]: half-wins, the sum of rewards
    mean: Floats  # mean[m, k]
    spread: Floats  # spread[m, k] = 1 / sqrt(plays[m, k])


def machines(name: str, count: int, arms: int, alpha: float, rng: Random) -> Machines:
    """Return `count` machines that have not played yet."""
    if not alpha > 0.0:
        raise PolicyError(f"{name}: alpha is {alpha}: it must be above 0")
    shape = (count, arms)
    fresh = Machines(
        alpha=alpha,
        order=np.zeros(shape, np.int64),
        total=np.zeros(count, np.int64),
        plays=np.zeros(shape, np.int64),
        points=np.zeros(shape, np.int64),
        mean=np.zeros(shape),
        spread=np.zeros(shape),
    )
    for m in range(count):
        forget(fresh, m, rng)
    return fresh


@kernel
def forget(machines: Machines, m: int, rng: Random) -> None:
    """Let machine m start anew."""
    order = machines.order[m]
    machines.total[m] = 0
    for k in range(len(order)):
        machines.plays[m, k] = machines.points[m, k] = 0
        other = below(rng, k + 1)
        order[k] = order[other]
        order[other] = k


@kernel
def advance(machines: Machines, m: int) -> int:
    """Return the arm that machine m plays next."""
    mean, spread, n = machines.mean[m], machines.spread[m], machines.total[m]
    if n < len(mean):
        return int(machines.order[m, n])
    scale = sqrt(machines.alpha * log(n))
    best, top = 0, mean[0] + scale * spread[0]
    for k in range(1, len(mean)):
        score = mean[k] + scale * spread[k]
        if score > top:
            best, top = k, score
    return best


@kernel
def feedback(machines: Machines, m: int, k: int, points: int) -> None:
    """Reward machine m for arm k with `points` half-wins."""
    machines.total[m] += 1
    machines.plays[m, k] += 1
    machines.points[m, k] += points
    plays = machines.plays[m, k]
    machines.mean[m, k] = 0.5 * machines.points[m, k] / plays
    machines.spread[m, k] = 1.0 / sqrt(plays)
