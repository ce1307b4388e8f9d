"""WS-W and WS-S, winner stays, for weak and for strong regret.

B. Chen, P. I. Frazier, Dueling Bandits with Weak Regret, ICML 2017. C_i counts the wins of arm i less its losses. The
two arms with the highest C duel, and those that just dueled come first among equals. Round l ends when one arm has
C = (K-1) l and all others -l; WS-S then plays that arm against itself floor(beta^l) times.

Departures: the paper's choice of beta is not known to us; 1.1 is ours.

How it is fast: while the champion leads, the same pair goes on or the challenger is replaced by one of those with the
highest C, who wait in a pool; all arms are looked at only when the champion falls or the pool is empty. Random
numbers: one wherever several arms are equal and none of them just dueled.
"""

from __future__ import annotations

from math import floor, log, pow
from typing import NamedTuple

import numpy as np

from roundel._jit import kernel
from roundel.errors import PolicyError
from roundel.policies.sequential._family import FOREVER, Floats, Ints, sequential
from roundel.rng import State as Random
from roundel.rng import below

FIRST, SECOND = 0, 1  # the last pair; -1 before the first duel
LEVEL, POOL = 2, 3  # the highest C of the others, and how many of these have it and did not duel at it
ROUND, AT_END, NOW, QUIET = 4, 5, 6, 7  # l; how many have C = -l; the time; until when the champion plays itself


class State(NamedTuple):
    """What WS knows."""

    growth: Floats  # beta: a single number; 0 for WS-W
    lead: Ints  # C
    pool: Ints
    memory: Ints


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return the two arms with the highest C."""
    lead, memory = state.lead, state.memory
    w, o = memory[FIRST], memory[SECOND]
    if t <= memory[QUIET]:
        return int(w), int(w)
    memory[NOW] = t
    leads = w >= 0 and lead[w] >= lead[o] and lead[w] >= memory[LEVEL]
    if leads and lead[o] >= memory[LEVEL]:
        return int(w), int(o)
    if leads and memory[POOL] > 0:
        memory[POOL] -= 1
        n = below(rng, memory[POOL] + 1) if memory[POOL] > 0 else 0
        memory[SECOND] = state.pool[n]
        state.pool[n] = state.pool[memory[POOL]]
        return int(w), int(memory[SECOND])
    return _look_at_all(state, rng)


@kernel
def _look_at_all(state: State, rng: Random) -> tuple[int, int]:
    lead, memory = state.lead, state.memory
    first = _highest(lead, memory, -1, rng)
    second = _highest(lead, memory, first, rng)
    level = -FOREVER
    for k in range(len(lead)):
        if k != first and k != second:
            level = max(level, lead[k])
    memory[POOL] = 0
    for k in range(len(lead)):
        if lead[k] == level and k != first and k != second:
            state.pool[memory[POOL]] = k
            memory[POOL] += 1
    memory[FIRST], memory[SECOND], memory[LEVEL] = first, second, level
    return first, second


@kernel
def _highest(lead: Ints, memory: Ints, without: int, rng: Random) -> int:
    """Return an arm with the highest C, `without` left out: one of the last pair if it can be, else a random one."""
    top, ties = -FOREVER, 0
    for k in range(len(lead)):
        if k != without:
            top = max(top, lead[k])
    for k in range(len(lead)):
        ties += int(lead[k] == top and k != without)
    for last in (FIRST, SECOND):
        k = memory[last]
        if k >= 0 and k != without and lead[k] == top:
            return int(k)
    n = below(rng, ties) if ties > 1 else 0
    k = -1
    while n >= 0:
        k += 1
        n -= int(lead[k] == top and k != without)
    return int(k)


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Count the duel; for WS-S, see whether the round has ended."""
    lead, memory = state.lead, state.memory
    end = -memory[ROUND]
    memory[AT_END] -= int(lead[i] == end) + int(lead[j] == end)
    lead[i] += points - 1
    lead[j] -= points - 1
    memory[AT_END] += int(lead[i] == end) + int(lead[j] == end)
    if memory[AT_END] == len(lead) - 1:
        _end_round(state)


@kernel
def _end_round(state: State) -> None:
    """Let WS-S play the arm that won the round for floor(beta^l) times."""
    lead, memory, growth = state.lead, state.memory, state.growth[0]
    if growth > 0.0:
        times = FOREVER
        if memory[ROUND] * log(growth) < 40.0:
            times = floor(pow(growth, memory[ROUND]))
        memory[QUIET] = memory[NOW] + times
        if lead[memory[SECOND]] > lead[memory[FIRST]]:
            memory[FIRST], memory[SECOND] = memory[SECOND], memory[FIRST]
    memory[ROUND] += 1
    memory[AT_END] = 0  # nobody is a step below the end of the round just played


@kernel
def idle(state: State, t: int) -> int:
    """Return until when the winner of the round plays itself."""
    return max(t, int(state.memory[QUIET]))


def _state(arms: int, growth: float) -> State:
    memory = np.zeros(8, np.int64)
    memory[FIRST] = memory[SECOND] = -1
    memory[ROUND] = 1
    if arms == 1:
        memory[FIRST], memory[QUIET] = 0, FOREVER
    return State(np.array([growth]), np.zeros(arms, np.int64), np.zeros(arms, np.int64), memory)


PAPER = "Chen & Frazier, Dueling Bandits with Weak Regret, ICML 2017"


@sequential("ws-w", paper=PAPER, assumption="Condorcet", choose=choose, learn=learn, idle=idle)
def ws_w(arms: int, horizon: int, rng: Random) -> State:
    """Duel the two arms that lead in wins less losses; weak regret does not grow with the horizon."""
    return _state(arms, 0.0)


@sequential("ws-s", paper=PAPER, assumption="Condorcet", choose=choose, learn=learn, idle=idle)
def ws_s(arms: int, horizon: int, rng: Random, *, beta: float = 1.1) -> State:
    """Winner stays in rounds, each followed by a longer and longer time in which its winner plays itself."""
    if not beta > 1:
        raise PolicyError(f"ws-s: beta is {beta}: it must be above 1, or the self-duels would not grow")
    return _state(arms, beta)
