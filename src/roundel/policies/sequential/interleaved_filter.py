"""IF, interleaved filter, with pruning (IF2).

Y. Yue, J. Broder, R. Kleinberg, T. Joachims, The K-armed Dueling Bandits Problem, J. of Computer and System Sciences
78 (2012). An incumbent duels all others in passes. Those that it clearly beats are out; one that clearly beats it
takes its place, and with pruning also throws out all that the old incumbent was ahead of.

No departures. A random number is drawn once, for the first incumbent.
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundel._jit import kernel
from roundel.policies.sequential._family import Ints, sequential
from roundel.policies.sequential._field import mask, strike
from roundel.rng import State as Random
from roundel.rng import below

INCUMBENT, SIZE, TURN, PASSES = 0, 1, 2, 3  # the places in `memory`


class State(NamedTuple):
    """What IF knows."""

    level: float  # 4 ln(1 / delta)
    prune: bool
    taken: Ints  # taken[j]: the half-wins of the incumbent over j
    field: Ints  # the paper's W: the other arms in play, ascending
    memory: Ints  # the incumbent; how many others are in play; whose turn; complete passes of this incumbent


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return the incumbent and the next of the others."""
    memory = state.memory
    b = int(memory[INCUMBENT])
    if memory[SIZE] == 0:
        return b, b
    return b, int(state.field[memory[TURN]])


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Count the duel; filter at the end of a pass."""
    memory = state.memory
    state.taken[j] += points
    memory[TURN] += 1
    if memory[TURN] == memory[SIZE]:
        memory[TURN] = 0
        memory[PASSES] += 1
        _filter(state, sqrt(state.level / memory[PASSES]))


@kernel
def _filter(state: State, radius: float) -> None:
    taken, field, memory = state.taken, state.field, state.memory
    duels = 2 * memory[PASSES]  # in half-wins
    rival, lowest, n = -1, 0.5 - radius, 0
    while n < memory[SIZE]:
        share = taken[field[n]] / duels
        if share - radius > 0.5:
            memory[SIZE] = strike(field, memory[SIZE], n)
            continue
        if share + radius < 0.5 and (rival < 0 or share < lowest):
            rival, lowest = int(field[n]), share
        n += 1
    if rival < 0:
        return
    memory[INCUMBENT], memory[PASSES] = rival, 0
    n = 0
    while n < memory[SIZE]:
        j = field[n]
        if j == rival or (state.prune and 2 * taken[j] > duels):
            memory[SIZE] = strike(field, memory[SIZE], n)
        else:
            n += 1
    for k in range(len(taken)):
        taken[k] = 0


@kernel
def remaining(state: State) -> int:
    """Return how many arms are in play."""
    return int(state.memory[SIZE]) + 1


def active(state: State) -> NDArray[np.bool_]:
    """Return which arms are in play."""
    arms = mask(len(state.taken), state.field[: state.memory[SIZE]])
    arms[state.memory[INCUMBENT]] = True
    return arms


@sequential(
    "if",
    paper="Yue, Broder, Kleinberg & Joachims, The K-armed Dueling Bandits Problem, JCSS 2012",
    assumption="SST+STI",
    choose=choose,
    learn=learn,
    remaining=remaining,
    active=active,
)
def interleaved_filter(arms: int, horizon: int, rng: Random, *, prune: bool = True) -> State:
    """Let an incumbent duel all others until it has beaten them or one has beaten it."""
    first = below(rng, arms) if arms > 1 else 0
    others = np.arange(arms)
    others = np.append(others[others != first], 0)
    return State(
        level=4 * log(horizon * arms**2),
        prune=prune,
        taken=np.zeros(arms, np.int64),
        field=others,
        memory=np.array([first, arms - 1, 0, 0]),
    )
