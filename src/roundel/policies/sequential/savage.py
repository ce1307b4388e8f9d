"""SAVAGE, sensitivity analysis of variables for generic exploration, in its Condorcet form.

T. Urvoy, F. Clerot, R. Feraud, S. Naamane, Generic Exploration and K-armed Voting Bandits, ICML 2013. All pairs of
arms in play are dueled in turn; an arm that loses one pair for sure is out.

If there is no Condorcet winner, one arm remains all the same, and means nothing.

How it is fast: the pairs are dueled pass by pass in lexicographic order, which is the least dueled pair each time, and
only the pair just dueled can decide anything. No random number is drawn.
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundel._jit import kernel
from roundel.errors import PolicyError
from roundel.policies.sequential._family import Floats, Ints, sequential
from roundel.policies.sequential._field import mask, strike
from roundel.rng import State as Random

SIZE, FIRST, SECOND, PASS = 0, 1, 2, 3  # the places in `memory`


class State(NamedTuple):
    """What SAVAGE knows."""

    level: float  # ln(K (K-1) T / delta) / 2
    taken: Ints  # taken[i, j], i < j: the half-wins of i over j
    radius: Floats  # c(n) of this pass: a single number
    field: Ints  # the arms in play, ascending
    memory: Ints  # how many are in play; the places of the pair to duel; the number of the pass, from 1


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return the pair with the fewest duels."""
    field, memory = state.field, state.memory
    if memory[SIZE] == 1:
        return int(field[0]), int(field[0])
    return int(field[memory[FIRST]]), int(field[memory[SECOND]])


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Count the duel; take the loser out of play if it lost this pair for sure."""
    field, memory, n = state.field, state.memory, state.memory[PASS]
    state.taken[i, j] += points
    mine = state.taken[i, j]
    if mine / (2 * n) + state.radius[0] < 0.5:
        memory[SIZE] = strike(field, memory[SIZE], memory[FIRST])
        memory[SECOND] = memory[FIRST] + 1  # the next arm moved up to where i was
    elif (2 * n - mine) / (2 * n) + state.radius[0] < 0.5:
        memory[SIZE] = strike(field, memory[SIZE], memory[SECOND])
    else:
        memory[SECOND] += 1
    if memory[SECOND] >= memory[SIZE]:
        memory[FIRST] += 1
        memory[SECOND] = memory[FIRST] + 1
        if memory[SECOND] >= memory[SIZE]:
            memory[FIRST], memory[SECOND] = 0, 1
            memory[PASS] += 1
            state.radius[0] = sqrt(state.level / memory[PASS])


@kernel
def remaining(state: State) -> int:
    """Return how many arms are in play."""
    return int(state.memory[SIZE])


def active(state: State) -> NDArray[np.bool_]:
    """Return which arms are in play."""
    return mask(len(state.field), state.field[: state.memory[SIZE]])


@sequential(
    "savage",
    paper="Urvoy, Clerot, Feraud & Naamane, Generic Exploration and K-armed Voting Bandits, ICML 2013",
    assumption="Condorcet",
    choose=choose,
    learn=learn,
    remaining=remaining,
    active=active,
)
def savage(arms: int, horizon: int, rng: Random, *, delta: float | None = None) -> State:
    """Duel all pairs in turn; an arm that surely loses one of them is out."""
    if delta is not None and not 0 < delta < 1:
        raise PolicyError(f"savage: delta is {delta}: it must lie between 0 and 1; none means 1 / T")
    trials = max(1, arms * (arms - 1)) * horizon
    level = 0.5 * (log(trials) + (log(horizon) if delta is None else -log(delta)))
    return State(
        level=level,
        taken=np.zeros((arms, arms), np.int64),
        radius=np.array([sqrt(level)]),
        field=np.arange(arms),
        memory=np.array([arms, 0, 1, 1]),
    )
