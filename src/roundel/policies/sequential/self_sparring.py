"""SelfSparring: two arms drawn independently by Thompson sampling, one score for both.

Y. Sui, V. Zhuang, J. Burdick, Y. Yue, Multi-dueling Bandits with Dependent Arms, UAI 2017: the version with
independent arms, two at a time. Each position takes the arm with the highest number drawn from
Beta(wins + 1, losses + 1), wins and losses over all opponents; a self-duel teaches nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from roundel._jit import kernel
from roundel.policies.sequential._family import Ints, sequential
from roundel.rng import State as Random
from roundel.rng import beta


class State(NamedTuple):
    """What SelfSparring knows."""

    won: Ints  # won[i]: half-wins of i
    lost: Ints  # lost[i]: half-wins of others over i


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return two arms, each drawn by the chance that it is the best."""
    won, lost = state.won, state.lost
    K = len(won)
    i = j = 0
    top = -1.0
    for n in range(2 * K):
        if n == K:
            i, top = j, -1.0
        k = n % K
        theta = beta(rng, 0.5 * won[k] + 1.0, 0.5 * lost[k] + 1.0)
        if theta > top:
            j, top = k, theta
    return i, j


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Count the duel for both arms."""
    state.won[i] += points
    state.lost[i] += 2 - points
    state.won[j] += 2 - points
    state.lost[j] += points


@sequential(
    "self-sparring",
    paper="Sui, Zhuang, Burdick & Yue, Multi-dueling Bandits with Dependent Arms, UAI 2017",
    assumption="linear utilities",
    choose=choose,
    learn=learn,
)
def self_sparring(arms: int, horizon: int, rng: Random) -> State:
    """Draw both arms by Thompson sampling from their wins and losses over everybody."""
    return State(won=np.zeros(arms, np.int64), lost=np.zeros(arms, np.int64))
