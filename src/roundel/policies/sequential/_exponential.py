"""Exponential weights: what REX3 and the Exp3 learners share.

Weights are kept with their logarithms and moved down together when the highest has grown far: only their ratios
count. An arm is drawn with chance p_k = (1 - gamma) w_k / sum w + gamma / K.
"""

from __future__ import annotations

from math import exp
from typing import NamedTuple

import numpy as np

from roundel._jit import kernel
from roundel.policies.sequential._family import Floats
from roundel.rng import State as Random
from roundel.rng import uniform

_HIGH = 300.0


class Weights(NamedTuple):
    """Several learners over the same arms: one a row."""

    gamma: float
    log_weight: Floats  # log_weight[s, k]
    weight: Floats  # weight[s, k] = exp(log_weight[s, k])
    total: Floats  # total[s]: the sum of the weights at the last draw


def weights(count: int, arms: int, gamma: float) -> Weights:
    """Return `count` learners that know nothing."""
    return Weights(
        gamma=gamma,
        log_weight=np.zeros((count, arms)),
        weight=np.ones((count, arms)),
        total=np.full(count, float(arms)),
    )


@kernel
def draw(weights: Weights, s: int, rng: Random) -> int:
    """Draw an arm for learner s."""
    weight = weights.weight[s]
    K = len(weight)
    total = 0.0
    for k in range(K):
        total += weight[k]
    weights.total[s] = total
    u = uniform(rng)
    if u < weights.gamma:
        return int(u / weights.gamma * K)
    left = uniform(rng) * total
    k = 0
    while k < K - 1 and left >= weight[k]:
        left -= weight[k]
        k += 1
    return k


@kernel
def chance(weights: Weights, s: int, k: int) -> float:
    """Return the chance with which learner s drew arm k, at its last draw."""
    share = weights.weight[s, k] / weights.total[s]
    return float((1.0 - weights.gamma) * share + weights.gamma / weights.weight.shape[1])


@kernel
def grow(weights: Weights, s: int, k: int, exponent: float) -> None:
    """Multiply the weight of arm k by exp(exponent)."""
    logs, weight = weights.log_weight[s], weights.weight[s]
    logs[k] += exponent
    if logs[k] <= _HIGH:
        weight[k] = exp(logs[k])
        return
    top = logs[k]
    for m in range(len(logs)):
        logs[m] -= top
        weight[m] = exp(logs[m])
