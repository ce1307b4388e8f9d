"""BTM, beat the mean, in the form that is run for regret.

Y. Yue, T. Joachims, Beat the Mean Bandit, ICML 2011. Every arm in play duels random others; the arm whose share of
wins lies clearly below that of the best is removed, and with it all its duels.

Departures: the opponent is not the arm itself (parameter `include_self` gives the paper's choice); the default radius
is the one that experiments in the literature use, a third of the proven one (`variant`).

How it is fast: the arms with the fewest duels wait in a pool, which is filled when it is empty, so that each arm duels
at most once between two fillings. After n duels of each, one more moves a share by less than 1/n; so the distance
between the extreme shares tells for how many fillings nobody can be removed, and until then nobody looks. Random
numbers: one for the arm and its opponent, another for a duel with itself.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundel._jit import kernel
from roundel.errors import PolicyError
from roundel.policies.sequential._family import FOREVER, Ints, sequential
from roundel.policies.sequential._field import mask, strike
from roundel.rng import State as Random
from roundel.rng import uniform

SIZE, POOL, PICK, CALM, EVEN = 0, 1, 2, 3, 4  # the places in `memory`


class State(NamedTuple):
    """What BTM knows. A duel is on the record of its first arm only."""

    weight: float  # c(n) = weight / sqrt(n)
    include_self: bool
    duels: Ints  # duels[b, o]: how often b was first against o
    taken: Ints  # taken[b, o]: the half-wins of b in these
    tries: Ints  # n_b: the sum of row b of `duels` over the arms in play
    score: Ints  # w_b, likewise
    field: Ints  # the arms in play, ascending
    pool: Ints  # those with the least n_b whose turn is still to come
    memory: Ints  # how many are in play, in the pool; which of the pool plays; for how many fillings nobody can go;
    # whether all arms in play have the same n_b when the pool is full


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return an arm with the fewest duels and a random opponent."""
    field, memory = state.field, state.memory
    size = memory[SIZE]
    if size == 1:
        return int(field[0]), int(field[0])
    # One number chooses both: what is left of it after the first choice is as good as new.
    number = uniform(rng) * memory[POOL]
    memory[PICK] = int(number)
    number -= memory[PICK]
    b = int(state.pool[memory[PICK]])
    if state.include_self:
        o = int(field[int(number * size)])
        if o == b:
            _record(state, b, b, 2 * int(uniform(rng) < 0.5))
    else:
        n = int(number * (size - 1))
        o = int(field[n + int(field[n] >= b)])  # b itself is passed over
    return b, o


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Put the duel on the record of its first arm; remove the worst arm if it is clearly worse than the best."""
    _record(state, i, j, points)


@kernel
def _record(state: State, b: int, o: int, points: int) -> None:
    memory = state.memory
    state.duels[b, o] += 1
    state.taken[b, o] += points
    state.tries[b] += 1
    state.score[b] += points
    memory[POOL] -= 1
    state.pool[memory[PICK]], state.pool[memory[POOL]] = state.pool[memory[POOL]], b
    if memory[POOL] == 0:
        _fill_pool(state)
    if memory[CALM] == 0:
        _compare(state)


@kernel
def _fill_pool(state: State) -> None:
    """Put the arms with the fewest duels into the pool."""
    field, tries, memory = state.field, state.tries, state.memory
    memory[CALM] = max(0, memory[CALM] - 1)
    if memory[EVEN] == 1:  # all were in the pool, and each has one duel more: they still stand there
        memory[POOL] = memory[SIZE]
        return
    least = _least_tries(state)
    memory[POOL] = 0
    for n in range(memory[SIZE]):
        if tries[field[n]] == least:
            state.pool[memory[POOL]] = field[n]
            memory[POOL] += 1
    memory[EVEN] = int(memory[POOL] == memory[SIZE])


@kernel
def _least_tries(state: State) -> int:
    least = FOREVER
    for n in range(state.memory[SIZE]):
        least = min(least, state.tries[state.field[n]])
    return least


@kernel
def _compare(state: State) -> None:
    """Remove the worst arm if it is clearly worse than the best; else see for how long nobody can be."""
    field, tries, least = state.field, state.tries, _least_tries(state)
    radius = state.weight / sqrt(least) if least > 0 else 1.0
    place, low, high = 0, 2.0, -1.0
    for n in range(state.memory[SIZE]):
        b = field[n]
        share = state.score[b] / (2 * tries[b]) if tries[b] > 0 else 0.5
        high = max(high, share)
        if share < low:
            place, low = n, share
    if low + radius <= high - radius:
        _remove(state, place)
        return
    # k fillings on, the shares are at most 2k/n further apart, and 2 c(n+k) is at least 2 c(n) (1 - k/2n).
    calm = least * (2.0 * radius - (high - low)) / (2.0 + radius)
    state.memory[CALM] = max(0, int(calm) - 1)


@kernel
def _remove(state: State, place: int) -> None:
    """Take an arm out of play and its duels off every record."""
    field, tries, score, memory = state.field, state.tries, state.score, state.memory
    worst = field[place]
    memory[SIZE] = strike(field, memory[SIZE], place)
    for n in range(memory[SIZE]):
        b = field[n]
        tries[b] -= state.duels[b, worst]
        score[b] -= state.taken[b, worst]
    memory[EVEN] = 0
    _fill_pool(state)


@kernel
def remaining(state: State) -> int:
    """Return how many arms are in play."""
    return int(state.memory[SIZE])


def active(state: State) -> NDArray[np.bool_]:
    """Return which arms are in play."""
    return mask(len(state.tries), state.field[: state.memory[SIZE]])


@sequential(
    "btm",
    paper="Yue & Joachims, Beat the Mean Bandit, ICML 2011",
    assumption="SST+STI",
    choose=choose,
    learn=learn,
    remaining=remaining,
    active=active,
)
def btm(
    arms: int,
    horizon: int,
    rng: Random,
    *,
    gamma: float = 1.3,
    variant: Literal["tight", "original"] = "tight",
    include_self: bool = False,
) -> State:
    """Duel each arm with random others; drop the one whose share of wins is clearly the lowest."""
    if not gamma >= 1:
        raise PolicyError(f"btm: gamma is {gamma}: it must be at least 1 (1 is strong transitivity)")
    memory = np.zeros(5, np.int64)
    memory[SIZE] = memory[POOL] = arms
    memory[EVEN] = 1
    return State(
        weight=(3 if variant == "original" else 1) * gamma**2 * sqrt(log(2 * horizon * arms)),
        include_self=include_self,
        duels=np.zeros((arms, arms), np.int64),
        taken=np.zeros((arms, arms), np.int64),
        tries=np.zeros(arms, np.int64),
        score=np.zeros(arms, np.int64),
        field=np.arange(arms),
        pool=np.arange(arms),
        memory=memory,
    )
