"""Sparring: two bandits play against each other.

N. Ailon, Z. Karnin, T. Joachims, Reducing Dueling Bandits to Cardinal Bandits, ICML 2014. Each side is a UCB1; the
winner of a duel is rewarded with 1, the loser with 0. A self-duel is decided by a coin of the policy's own.
"""

from __future__ import annotations

from typing import NamedTuple

from roundel._jit import kernel
from roundel.policies.sequential._family import sequential
from roundel.policies.sequential._singleton import Machines, advance, feedback, machines
from roundel.rng import State as Random
from roundel.rng import below

LEFT, RIGHT = 0, 1


class State(NamedTuple):
    """What Sparring knows."""

    sides: Machines


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return the choice of each side."""
    i, j = advance(state.sides, LEFT), advance(state.sides, RIGHT)
    if i == j:
        learn(state, i, j, 2 * below(rng, 2))
    return i, j


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Reward both sides."""
    feedback(state.sides, LEFT, i, points)
    feedback(state.sides, RIGHT, j, 2 - points)


@sequential(
    "sparring",
    paper="Ailon, Karnin & Joachims, Reducing Dueling Bandits to Cardinal Bandits, ICML 2014",
    assumption="linear utilities",
    choose=choose,
    learn=learn,
)
def sparring(arms: int, horizon: int, rng: Random, *, alpha: float = 2.5) -> State:
    """Let two UCB1 bandits duel each other."""
    return State(machines("sparring", 2, arms, alpha, rng))
