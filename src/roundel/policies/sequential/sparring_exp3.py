"""Sparring-Exp3: two Exp3 learners play against each other.

M. Dudik, K. Hofmann, R. Schapire, A. Slivkins, M. Zoghi, Contextual Dueling Bandits, COLT 2015. The winner's learner
multiplies the weight of its arm by exp((gamma / K) / p); a tie is half a win for each. What the two sides play on
average is an approximate von Neumann winner. A self-duel is decided by a coin of the policy's own.
"""

from __future__ import annotations

from math import e, log, sqrt
from typing import NamedTuple

from roundel._jit import kernel
from roundel.errors import PolicyError
from roundel.policies.sequential._exponential import Weights, chance, draw, grow, weights
from roundel.policies.sequential._family import sequential
from roundel.rng import State as Random
from roundel.rng import below

LEFT, RIGHT = 0, 1


class State(NamedTuple):
    """What Sparring-Exp3 knows."""

    weights: Weights


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return the draw of each side."""
    i, j = draw(state.weights, LEFT, rng), draw(state.weights, RIGHT, rng)
    if i == j:
        learn(state, i, j, 2 * below(rng, 2))
    return i, j


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Reward the winner's side."""
    step = state.weights.gamma / state.weights.weight.shape[1] * 0.5
    if points > 0:
        grow(state.weights, LEFT, i, step * points / chance(state.weights, LEFT, i))
    if points < 2:
        grow(state.weights, RIGHT, j, step * (2 - points) / chance(state.weights, RIGHT, j))


@sequential(
    "sparring-exp3",
    paper="Dudik, Hofmann, Schapire, Slivkins & Zoghi, Contextual Dueling Bandits, COLT 2015",
    assumption="adversarial",
    choose=choose,
    learn=learn,
)
def sparring_exp3(arms: int, horizon: int, rng: Random, *, gamma: float | None = None) -> State:
    """Let two Exp3 learners duel; `gamma` by default min(1, sqrt(K ln K / ((e - 1) T)))."""
    if gamma is None:
        gamma = min(1.0, sqrt(arms * log(arms) / ((e - 1.0) * horizon)))
    elif not 0.0 < gamma <= 1.0:
        raise PolicyError(f"sparring-exp3: gamma is {gamma}: it must be above 0 and at most 1")
    return State(weights(2, arms, gamma))
