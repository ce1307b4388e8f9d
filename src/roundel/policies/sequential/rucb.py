"""RUCB, relative upper confidence bound.

M. Zoghi, S. Whiteson, R. Munos, M. de Rijke, Relative Upper Confidence Bound for the K-Armed Dueling Bandit
Problem, ICML 2014. With U[i][j] = phat[i][j] + sqrt(alpha ln t / N[i][j]), the champion c is one of
C = {i : U[i][j] >= 1/2 for all j}, and its challenger is the arm with the highest U[j][c].

Departures: U of an unseen pair is 1 (parameter `unseen`; the paper's x/0 := 1 makes it 2).

How it is fast: U[i][j] >= 1/2 holds from a time on that only a duel of i and j changes (`level` holds its logarithm),
so that C is a list that changes when one of the two arms of the last duel leaves or enters it, or when ln t reaches
the lowest `entry` of the others. A champion that nobody can beat yet plays itself until the first level of its column.
Random numbers: one or two for the champion if C has not exactly one arm, then one for the challenger if several have
the highest U. So self-duels of a lonely champion draw none.
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np

from roundel._jit import kernel
from roundel.errors import PolicyError
from roundel.policies.sequential._evidence import first_time
from roundel.policies.sequential._family import Floats, Ints, sequential
from roundel.policies.sequential._field import enlist, place_of, strike
from roundel.policies.sequential._scan import bits, highest, nth_place, places
from roundel.rng import State as Random
from roundel.rng import below, uniform

FAVOURITE, CHAMPION, QUIET, SIZE = 0, 1, 2, 3  # the places in `memory`
NOW, DUE = 0, 1  # the places in `clock`
NEVER = 1e300
HALF = int(bits(np.array([0.5]))[0])


class State(NamedTuple):
    """What RUCB knows. The bounds are stored by column: row c holds what makes up U[0][c], U[1][c], ..."""

    alpha: float
    points: Ints  # points[i, j]: half-wins of i over j
    share: Floats  # share[c, j] = phat[j][c]
    spread: Floats  # spread[c, j] = 1 / sqrt(N[j][c])
    level: Floats  # level[i, j]: the ln t from which on U[i][j] >= 1/2
    level_bits: Ints  # a view of it
    entry: Floats  # entry[i]: the ln t from which on U[i][j] >= 1/2 for all j, the highest of its levels
    entry_bits: Ints  # a view of it
    candidates: Ints  # C, ascending
    listed: Ints  # listed[i]: 1 if i is in C
    bound: Floats  # U[0][c], U[1][c], ... of the last champion c
    bound_bits: Ints  # a view of it
    clock: Floats  # ln t of the last choice; the lowest entry of an arm outside C
    memory: Ints  # the favourite (the paper's B; -1 if it is empty), the champion, until when it plays itself, |C|


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return the champion and its challenger at time t."""
    memory, clock = state.memory, state.clock
    if t <= memory[QUIET]:
        return int(memory[CHAMPION]), int(memory[CHAMPION])
    clock[NOW] = log(t)
    if clock[NOW] >= clock[DUE]:
        _find_candidates(state)
    c = _champion(state, rng)
    d = _challenger(state, c, rng)
    if d == c:
        memory[CHAMPION], memory[QUIET] = c, _first_rival(state, c) - 1
    return c, d


@kernel
def _find_candidates(state: State) -> None:
    entry, clock, size = state.entry, state.clock, 0
    clock[DUE] = NEVER
    for i in range(len(entry)):
        state.listed[i] = int(entry[i] <= clock[NOW])
        if state.listed[i] == 1:
            state.candidates[size] = i
            size += 1
        else:
            clock[DUE] = min(clock[DUE], entry[i])
    state.memory[SIZE] = size


@kernel
def _champion(state: State, rng: Random) -> int:
    candidates, memory = state.candidates, state.memory
    size, b = int(memory[SIZE]), int(memory[FAVOURITE])
    if b >= 0 and state.listed[b] == 0:
        b = memory[FAVOURITE] = -1
    if size == 0:
        return below(rng, len(candidates))
    if size == 1:
        memory[FAVOURITE] = candidates[0]
        return int(candidates[0])
    if b < 0:
        return int(candidates[below(rng, size)])
    if uniform(rng) < 0.5:
        return b
    n = below(rng, size - 1)
    return int(candidates[n + int(candidates[n] >= b)])  # b itself is passed over


@kernel
def _challenger(state: State, c: int, rng: Random) -> int:
    share, spread, bound = state.share[c], state.spread[c], state.bound
    scale = sqrt(state.alpha * state.clock[NOW])
    for j in range(len(bound)):
        bound[j] = share[j] + scale * spread[j]
    top = highest(state.bound_bits)
    if top < HALF:
        return c
    ties, d = places(state.bound_bits, top)
    return d if ties == 1 else nth_place(state.bound_bits, top, below(rng, ties))


@kernel
def _first_rival(state: State, c: int) -> int:
    """Return the first time at which somebody's bound against c reaches 1/2."""
    level = NEVER
    for j in range(len(state.level)):
        if j != c:
            level = min(level, state.level[j, c])
    return first_time(level)


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Count the duel and refresh what depends on this pair."""
    state.points[i, j] += points
    state.points[j, i] += 2 - points
    mine, theirs = state.points[i, j], state.points[j, i]
    total = mine + theirs
    state.share[j, i], state.share[i, j] = mine / total, theirs / total
    state.spread[j, i] = state.spread[i, j] = 1.0 / sqrt(0.5 * total)
    # U >= 1/2 for the arm that is behind, once alpha ln t >= N (1/2 - phat)^2.
    late = (mine - theirs) ** 2 / (8.0 * total * state.alpha)
    _enter(state, i, j, late if mine < theirs else 0.0)
    _enter(state, j, i, late if theirs < mine else 0.0)
    state.memory[QUIET] = 0


@kernel
def _enter(state: State, i: int, j: int, level: float) -> None:
    """Set the ln t from which on U[i][j] >= 1/2, and let i into C or out of it."""
    entry, clock, memory = state.entry, state.clock, state.memory
    old = state.level[i, j]
    state.level[i, j] = level
    if level >= entry[i]:
        entry[i] = level
    elif old == entry[i]:
        state.entry_bits[i] = highest(state.level_bits[i])
    if entry[i] <= clock[NOW]:
        if state.listed[i] == 0:
            memory[SIZE] = enlist(state.candidates, memory[SIZE], i)
            state.listed[i] = 1
    else:
        clock[DUE] = min(clock[DUE], entry[i])
        if state.listed[i] == 1:
            memory[SIZE] = strike(state.candidates, memory[SIZE], place_of(state.candidates, memory[SIZE], i))
            state.listed[i] = 0


@kernel
def idle(state: State, t: int) -> int:
    """Return until when the champion plays itself."""
    return max(t, int(state.memory[QUIET]))


@sequential(
    "rucb",
    paper="Zoghi, Whiteson, Munos & de Rijke, Relative Upper Confidence Bound for the K-Armed Dueling Bandit Problem, "
    "ICML 2014",
    assumption="Condorcet",
    choose=choose,
    learn=learn,
    idle=idle,
)
def rucb(arms: int, horizon: int, rng: Random, *, alpha: float = 0.51, unseen: float = 1.0) -> State:
    """Duel an arm that may be the best with its most optimistic rival."""
    if not alpha > 0.5:
        raise PolicyError(f"rucb: alpha is {alpha}: it must be above 1/2")
    if not unseen >= 0.5:
        raise PolicyError(f"rucb: unseen is {unseen}: it must be at least 1/2, or unseen pairs would never be dueled")
    share = np.full((arms, arms), unseen)
    np.fill_diagonal(share, 0.0)  # nobody is its own challenger
    level, entry, bound = np.zeros((arms, arms)), np.zeros(arms), np.zeros(arms)
    return State(
        alpha=alpha,
        points=np.zeros((arms, arms), np.int64),
        share=share,
        spread=np.zeros((arms, arms)),
        level=level,
        level_bits=bits(level),
        entry=entry,
        entry_bits=bits(entry),
        candidates=np.arange(arms),
        listed=np.ones(arms, np.int64),
        bound=bound,
        bound_bits=bits(bound),
        clock=np.array([0.0, NEVER]),
        memory=np.array([-1, 0, 0, arms]),
    )
