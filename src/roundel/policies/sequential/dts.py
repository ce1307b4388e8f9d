"""D-TS and D-TS+, double Thompson sampling.

H. Wu and X. Liu, Double Thompson Sampling for Dueling Bandits, NIPS 2016. The first arm a is, among those that may
have the most wins (by U), the one with the most wins in a tournament drawn from the posterior. The second is, among
those that a does not surely lose to, the one that beats a with the highest chance in a second draw; a itself stands
with 1/2. D-TS+ breaks ties of the first step by the regret that an arm is estimated to cost.

How it is fast, with the distribution unchanged (see `_posterior`): the tournament needs only who wins, and only in
the games of the candidates; D-TS+ draws the other games and the chances themselves where there is a tie to break.
In the second step only arms drawn above 1/2 count, and only for them a number is drawn. An arm that has played
itself does so again whenever it wins all its games and nobody is above 1/2 against it. How often in a row that
happens is drawn at once, until a time at which somebody's U changes sides; where such a row ends sooner, the next
draw is made given that one of these bits is otherwise.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from roundel._jit import kernel
from roundel.errors import PolicyError
from roundel.policies.sequential._family import Floats, Ints, sequential
from roundel.policies.sequential._outlook import DUE, Outlook, go_on, outlook, review
from roundel.policies.sequential._posterior import (
    Posterior,
    break_point,
    observe,
    posterior,
    streak,
    upper_half,
)
from roundel.rng import State as Random
from roundel.rng import below, uniform

QUIET, BROKEN, CHAMPION = 0, 1, 2  # the places in `memory`
PAPER = "Wu & Liu, Double Thompson Sampling for Dueling Bandits, NIPS 2016"


class State(NamedTuple):
    """What double Thompson sampling knows."""

    tie_break: bool  # D-TS+
    posterior: Posterior
    outlook: Outlook
    wins: Ints  # wins[i]: in the tournament drawn last; known for candidates
    fixed: Ints  # fixed[j]: 1 or 0 if the game of the last champion against j is known to be won or lost, else -1
    drawn: Floats  # drawn[i, j]: th[i][j], or 1 or 0 for above or below 1/2 (D-TS+ only)
    memory: Ints  # until when the champion plays itself, when such a row broke off, the champion


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return the champion of a drawn tournament, and its strongest rival in a second draw."""
    memory = state.memory
    if t <= memory[QUIET]:
        return memory[CHAMPION], memory[CHAMPION]
    go_on(state.outlook, t)
    most, size, a = _candidates(state.outlook.may)
    point, won_all = -1.0, 1.0
    if memory[BROKEN] == t:
        point = break_point(rng, _peace(state, t, memory[CHAMPION], size))
    if size > 1:
        if point >= 0.0:
            point, won_all = _fix_games(state, point)
        a = _cheapest_champion(state, most, rng) if state.tie_break else _champion(state, most, rng)
        if memory[BROKEN] == t:
            for j in range(len(state.fixed)):
                state.fixed[j] = -1
    b = _rival(state, t, a, point, won_all, rng)
    memory[BROKEN] = 0
    if b == a:
        _stay(state, t, a, size, rng)
    return a, b


@kernel
def _fix_games(state: State, point: float) -> tuple[float, float]:
    """Let the former champion lose the game at which its row broke off, and win those before.

    If that was no game, return the point again, and the chance of winning all games.
    """
    above, fixed, x = state.posterior.above, state.fixed, state.memory[CHAMPION]
    won_all = 1.0
    for j in range(len(fixed)):
        if j != x:
            won_all *= above[x, j]
            fixed[j] = int(1.0 - won_all <= point)
            if fixed[j] == 0:
                return -1.0, 1.0
    return point, won_all


@kernel
def _game(state: State, i: int, j: int, rng: Random) -> int:
    """Draw whether i wins its game against j."""
    fixed, x = state.fixed, state.memory[CHAMPION]
    if i == x and fixed[j] >= 0:
        return int(fixed[j])
    if j == x and fixed[i] >= 0:
        return 1 - int(fixed[i])
    return int(uniform(rng) < state.posterior.above[i, j])


@kernel
def _candidates(may: Ints) -> tuple[int, int, int]:
    """Return the most wins that anybody may have, how many may have that, and the first of them."""
    most, size, first = -1, 0, 0
    for i in range(len(may)):
        if may[i] > most:
            most, size, first = may[i], 1, i
        elif may[i] == most:
            size += 1
    return most, size, first


@kernel
def _champion(state: State, most: int, rng: Random) -> int:
    may, wins = state.outlook.may, state.wins
    K = len(wins)
    for i in range(K):
        wins[i] = 0
    for i in range(K):
        if may[i] == most:
            for j in range(K):
                if j > i or (may[j] != most and j != i):
                    won = _game(state, i, j, rng)
                    wins[i] += won
                    wins[j] += 1 - won
    top, ties = _top(may, most, wins)
    n = below(rng, ties) if ties > 1 else 0
    a = -1
    while n >= 0:
        a += 1
        n -= int(may[a] == most and wins[a] == top)
    return a


@kernel
def _top(may: Ints, most: int, wins: Ints) -> tuple[int, int]:
    """Return the most wins of a candidate, and how many candidates have them."""
    top, ties = -1, 0
    for i in range(len(wins)):
        if may[i] == most:
            if wins[i] > top:
                top, ties = wins[i], 1
            elif wins[i] == top:
                ties += 1
    return top, ties


@kernel
def _cheapest_champion(state: State, most: int, rng: Random) -> int:
    may, wins, drawn = state.outlook.may, state.wins, state.drawn
    K = len(wins)
    for i in range(K):
        wins[i] = 0
    _play_games(state, most, True, rng)
    top, ties = _top(may, most, wins)
    if ties > 1:
        _play_games(state, most, False, rng)
    highest, best = 0, 0.0
    for i in range(K):
        highest = max(highest, wins[i])
    a = -1
    for i in range(K):
        if may[i] == most and wins[i] == top:
            if ties == 1:
                return i
            regret = 0.0
            for j in range(K):
                if j != i:
                    _draw_chance(state, i, j, rng)
                    regret += (highest - 0.5 * (wins[i] + wins[j])) / (K - 1) * _per_kl(drawn[i, j])
            if a < 0 or regret < best:
                a, best = i, regret
    return a


@kernel
def _play_games(state: State, most: int, candidates: bool, rng: Random) -> None:
    """Draw who wins, in the games with a candidate or in the games without."""
    may, wins, drawn = state.outlook.may, state.wins, state.drawn
    K = len(wins)
    for i in range(K):
        for j in range(i + 1, K):
            if (may[i] == most or may[j] == most) == candidates:
                won = _game(state, i, j, rng)
                wins[i] += won
                wins[j] += 1 - won
                drawn[i, j], drawn[j, i] = won, 1 - won


@kernel
def _draw_chance(state: State, i: int, j: int, rng: Random) -> None:
    """Draw th[i][j], given who won, unless that was done."""
    points, drawn = state.posterior.points, state.drawn
    if 0.0 < drawn[i, j] < 1.0:
        return
    if drawn[i, j] == 0.0:
        i, j = j, i
    drawn[i, j] = upper_half(rng, 0.5 * points[i, j] + 1.0, 0.5 * points[j, i] + 1.0)
    drawn[j, i] = 1.0 - drawn[i, j]


@kernel
def _per_kl(p: float) -> float:
    """Return 1 / kl(p, 1/2), and 0 at p = 1/2, where the paper leaves the term out."""
    if p <= 0.0 or p >= 1.0:
        return 1.0 / log(2.0)
    divergence = p * log(2.0 * p) + (1.0 - p) * log(2.0 * (1.0 - p))
    return 1.0 / divergence if divergence > 0.0 else 0.0


@kernel
def _rival(state: State, t: int, a: int, point: float, peace: float, rng: Random) -> int:
    """Return the rival of the champion `a`: an arm drawn to beat it, or itself.

    With a `point` somebody is above 1/2: the first arm by which `peace` has fallen below 1 - point.
    """
    above, points, rise = state.posterior.above, state.posterior.points, state.outlook.rise
    b, best = a, 0.5
    for i in range(len(state.wins)):
        if i == a or rise[a, i] > t:  # i surely beats a
            continue
        if point >= 0.0:
            peace *= above[a, i]
            beats = 1.0 - peace > point
            point = -1.0 if beats else point
        else:
            beats = uniform(rng) < above[i, a]
        if beats:
            chance = upper_half(rng, 0.5 * points[i, a] + 1.0, 0.5 * points[a, i] + 1.0)
            if chance > best:
                b, best = i, chance
    return b


@kernel
def _peace(state: State, t: int, a: int, size: int) -> float:
    """Return the chance that `a`, one of `size` candidates, wins all its games and nobody is above 1/2 against it."""
    above, rise = state.posterior.above, state.outlook.rise
    K = len(state.wins)
    peace = 1.0
    if size > 1:  # a single candidate plays no games
        for j in range(K):
            if j != a:
                peace *= above[a, j]
    for i in range(K):
        if i != a and rise[a, i] <= t:
            peace *= above[a, i]
    return peace


@kernel
def _stay(state: State, t: int, a: int, size: int, rng: Random) -> None:
    """Draw until when `a` plays itself."""
    memory = state.memory
    until = state.outlook.clock[DUE] - 1
    row = streak(rng, _peace(state, t, a, size))
    memory[CHAMPION] = a
    if row < until - t:
        until = t + row
        memory[BROKEN] = until + 1
    memory[QUIET] = until


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Count the duel and refresh what depends on this pair."""
    table = state.posterior.points
    observe(state.posterior, i, j, points)
    review(state.outlook, i, j, table[i, j], table[j, i])


@kernel
def idle(state: State, t: int) -> int:
    """Return until when the champion plays itself."""
    return max(t, int(state.memory[QUIET]))


def _start(name: str, arms: int, alpha: float, tie_break: bool) -> State:
    if not alpha > 0.5:
        raise PolicyError(f"{name}: alpha is {alpha}: it must be above 1/2")
    return State(
        tie_break=tie_break,
        posterior=posterior(arms),
        outlook=outlook(arms, alpha),
        wins=np.zeros(arms, np.int64),
        fixed=np.full(arms, -1),
        drawn=np.zeros((arms, arms) if tie_break else (0, 0)),
        memory=np.zeros(3, np.int64),
    )


@sequential("d-ts", paper=PAPER, assumption="Copeland", choose=choose, learn=learn, idle=idle)
def dts(arms: int, horizon: int, rng: Random, *, alpha: float = 0.51) -> State:
    """Draw a champion from the posterior, then its strongest rival from a second draw."""
    return _start("d-ts", arms, alpha, tie_break=False)


@sequential("d-ts+", paper=PAPER, assumption="Copeland", choose=choose, learn=learn, idle=idle)
def dts_plus(arms: int, horizon: int, rng: Random, *, alpha: float = 0.51) -> State:
    """Do as d-ts, and among champions that tie prefer the one that costs the least."""
    return _start("d-ts+", arms, alpha, tie_break=True)
