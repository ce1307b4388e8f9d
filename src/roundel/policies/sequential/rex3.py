"""REX3, relative exponential-weight algorithm for exploration and exploitation.

P. Gajane, T. Urvoy, F. Clerot, A Relative Exponential Weighing Algorithm for Adversarial Utility-based Dueling
Bandits, ICML 2015. Both arms are drawn from one mixed strategy. The winner's weight is multiplied by
exp((gamma / K) / (2 p)), the loser's divided by the like; a tie and a self-duel leave all weights as they are.
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

from roundel._jit import kernel
from roundel.errors import PolicyError
from roundel.policies.sequential._exponential import Weights, chance, draw, grow, weights
from roundel.policies.sequential._family import sequential
from roundel.rng import State as Random


class State(NamedTuple):
    """What REX3 knows."""

    weights: Weights


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return two draws."""
    return draw(state.weights, 0, rng), draw(state.weights, 0, rng)


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Raise the winner, lower the loser."""
    step = state.weights.gamma / state.weights.weight.shape[1] * 0.5 * (points - 1)
    up, down = step / chance(state.weights, 0, i), step / chance(state.weights, 0, j)
    grow(state.weights, 0, i, up)
    grow(state.weights, 0, j, -down)


@sequential(
    "rex3",
    paper="Gajane, Urvoy & Clerot, A Relative Exponential Weighing Algorithm for Adversarial Utility-based Dueling "
    "Bandits, ICML 2015",
    assumption="adversarial",
    choose=choose,
    learn=learn,
)
def rex3(arms: int, horizon: int, rng: Random, *, gamma: float | None = None) -> State:
    """Draw both arms by exponential weights; `gamma` by default min(1/2, sqrt(K ln K / T))."""
    if gamma is None:
        gamma = min(0.5, sqrt(arms * log(arms) / horizon))
    elif not 0.0 < gamma <= 0.5:
        raise PolicyError(f"rex3: gamma is {gamma}: it must be above 0 and at most 1/2")
    return State(weights(1, arms, gamma))
