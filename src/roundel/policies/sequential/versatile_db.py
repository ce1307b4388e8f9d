"""Versatile-DB: two Tsallis-INF learners, good both for fixed preferences and for those an adversary chooses.

A. Saha and P. Gaillard, Versatile Dueling Bandits: Best-of-both World Analyses for Learning from Relative
Preferences, ICML 2022. Each learner draws its arm from w_k = 4 / (eta (L_k - x))^2, with eta = 2 / sqrt(t), L the
importance-weighted losses so far and x such that the weights sum to 1.

`shared`: one learner stands for both, as they are symmetric; each of its two updates counts half.
`reduced`: eta = 4 / sqrt(t), and a loss enters as its difference from a baseline b, 1/2 for arms with w >= eta^2 and
0 for the others, which is added back for every arm (Zimmert & Seldin, Tsallis-INF, JMLR 2021).
The constant of eta is the one of Tsallis-INF; the paper's is not confirmed. A self-duel with two learners is decided
by a coin of the policy's own.

x is found by Newton's method from where it was. The sum of weights is convex and increasing in x: from a point
where it is above 1 the method falls to the root without crossing it, and the first step from a point below leads
above, where it is cut off at min L - 2/eta, at which the smallest L alone has weight 1.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from roundel._jit import kernel
from roundel.policies.sequential._family import Floats, sequential
from roundel.rng import State as Random
from roundel.rng import below, uniform

LEFT, RIGHT = 0, 1
_ENOUGH = 1e-12
_MOST_STEPS = 100


class State(NamedTuple):
    """What Versatile-DB knows: one learner a row."""

    shared: bool
    reduced: bool
    loss: Floats  # loss[s, k]: the estimated losses so far
    weight: Floats  # weight[s, k]: the chances of the last draw
    shift: Floats  # shift[s]: x


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return the draws of both learners."""
    eta = (4.0 if state.reduced else 2.0) / sqrt(t)
    weigh(state, LEFT, eta)
    i = _draw(state.weight[LEFT], rng)
    other = LEFT
    if not state.shared:
        weigh(state, RIGHT, eta)
        other = RIGHT
    j = _draw(state.weight[other], rng)
    if state.reduced:
        state.shift[2] = eta
    if i == j:
        learn(state, i, j, 2 * below(rng, 2))
    return i, j


@kernel
def weigh(state: State, side: int, eta: float) -> None:
    """Work out the weights of one learner."""
    loss, weight = state.loss[side], state.weight[side]
    K = len(loss)
    least = loss[0]
    for k in range(K):
        least = min(least, loss[k])
    highest = least - 2.0 / eta
    x = min(state.shift[side], highest)
    for _ in range(_MOST_STEPS):
        total, slope = 0.0, 0.0
        for k in range(K):
            root = 2.0 / (eta * (loss[k] - x))
            weight[k] = root * root
            total += weight[k]
            slope += weight[k] * root
        if abs(total - 1.0) < _ENOUGH:
            break
        after = min(highest, x - (total - 1.0) / (eta * slope))
        if after == x:
            break
        x = after
    state.shift[side] = x
    for k in range(K):
        weight[k] /= total


@kernel
def _draw(weight: Floats, rng: Random) -> int:
    u = uniform(rng)
    k, last = 0, len(weight) - 1
    while k < last and u >= weight[k]:
        u -= weight[k]
        k += 1
    return k


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Charge the loser."""
    part = 0.5 if state.shared else 1.0
    _charge(state, LEFT, i, 1.0 - 0.5 * points, part)
    _charge(state, LEFT if state.shared else RIGHT, j, 0.5 * points, part)


@kernel
def _charge(state: State, side: int, arm: int, loss: float, part: float) -> None:
    """Add to the losses of one learner what `arm` lost, weighted by its importance."""
    weight, losses = state.weight[side], state.loss[side]
    if not state.reduced:
        losses[arm] += part * loss / weight[arm]
        return
    limit = state.shift[2] * state.shift[2]
    for k in range(len(losses)):
        baseline = 0.5 if weight[k] >= limit else 0.0
        estimate = baseline
        if k == arm:
            estimate += (loss - baseline) / weight[k]
        losses[k] += part * estimate


@sequential(
    "versatile-db",
    paper="Saha & Gaillard, Versatile Dueling Bandits: Best-of-both World Analyses for Learning from Relative "
    "Preferences, ICML 2022",
    assumption="adversarial",
    choose=choose,
    learn=learn,
)
def versatile_db(arms: int, horizon: int, rng: Random, *, shared: bool = True, reduced: bool = False) -> State:
    """Let Tsallis-INF learners duel each other; preferences may be fixed or change adversarially."""
    return State(
        shared=shared,
        reduced=reduced,
        loss=np.zeros((2, arms)),
        weight=np.full((2, arms), 1.0 / arms),
        shift=np.array([-1.0, -1.0, 0.0]),
    )
