"""RCS, relative confidence sampling.

M. Zoghi, S. Whiteson, M. de Rijke, R. Munos, Relative Confidence Sampling for Efficient On-Line Ranker Evaluation,
WSDM 2014. The champion c is the arm that beats all others in a tournament drawn from the posterior, or, where
nobody does, the arm that was champion least often. Its challenger is the arm with the highest
U[j][c] = phat[j][c] + sqrt(alpha ln t / N[j][c]), where U[c][c] = 1/2.

How it is fast, with the distribution unchanged (see `_posterior`): the games of the tournament are drawn as a
knock-out. The arm that is left, and no other, may have won them all, and only its missing games are drawn: less
than two for each arm. A champion whom nobody can challenge yet plays itself; how often in a row it is drawn
champion again is drawn at once, up to the time at which somebody can. Where such a row ends sooner, the next
tournament is drawn given that this arm loses a game.
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np

from roundel._jit import kernel
from roundel.errors import PolicyError
from roundel.policies.sequential._evidence import first_time
from roundel.policies.sequential._family import FOREVER, Floats, Ints, sequential
from roundel.policies.sequential._posterior import Posterior, break_point, observe, posterior, streak
from roundel.rng import State as Random
from roundel.rng import below, uniform

QUIET, BROKEN, CHAMPION, SINCE = 0, 1, 2, 3  # the places in `memory`


class State(NamedTuple):
    """What RCS knows. Tables of pairs with U are stored by column: row c holds U[0][c], U[1][c], ..."""

    alpha: float
    posterior: Posterior
    share: Floats  # share[c, j] = phat[j][c]
    spread: Floats  # spread[c, j] = 1 / sqrt(N[j][c])
    enter: Ints  # enter[c, j]: the first t at which U[j][c] >= 1/2
    crowned: Ints  # crowned[i]: how often i was champion, before `memory[SINCE]`
    memory: Ints  # until when the champion plays itself, when such a row broke off, the champion, since when


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return the champion and its challenger at time t."""
    memory = state.memory
    if t <= memory[QUIET]:
        return memory[CHAMPION], memory[CHAMPION]
    if t > 1:
        state.crowned[memory[CHAMPION]] += t - memory[SINCE]
    c = _champion(state, t, rng)
    memory[CHAMPION], memory[SINCE], memory[BROKEN] = c, t, 0
    d = _challenger(state, t, c, rng)
    if d == c:
        _stay(state, t, c, rng)
    return c, d


@kernel
def _champion(state: State, t: int, rng: Random) -> int:
    above, memory = state.posterior.above, state.memory
    K = len(state.crowned)
    point = -1.0
    x = memory[CHAMPION]  # whoever starts: the games are independent
    if memory[BROKEN] == t:
        point = break_point(rng, _reign(state, x))
    start, beaten, won_all = x, x, 1.0
    for j in range(K):
        if j == start:
            continue
        if point >= 0.0:  # the former champion loses a game, and this is the first
            won_all *= above[x, j]
            wins = 1.0 - won_all <= point
            point = point if wins else -1.0
        else:
            wins = uniform(rng) < above[x, j]
        if not wins:
            beaten, x = x, j
    if x == start:
        return int(x)
    for j in range(K):  # the games that x has not played yet
        if j != beaten and (j < x or j == start) and uniform(rng) >= above[x, j]:
            return _least_crowned(state.crowned, rng)
    return int(x)


@kernel
def _reign(state: State, c: int) -> float:
    """Return the chance that `c` wins all its games."""
    above = state.posterior.above
    chance = 1.0
    for j in range(len(state.crowned)):
        if j != c:
            chance *= above[c, j]
    return chance


@kernel
def _least_crowned(crowned: Ints, rng: Random) -> int:
    least, ties = crowned[0], 0
    for i in range(len(crowned)):
        if crowned[i] < least:
            least, ties = crowned[i], 0
        ties += int(crowned[i] == least)
    n = below(rng, ties) if ties > 1 else 0
    i = -1
    while n >= 0:
        i += 1
        n -= int(crowned[i] == least)
    return i


@kernel
def _challenger(state: State, t: int, c: int, rng: Random) -> int:
    share, spread = state.share[c], state.spread[c]
    K = len(share)
    scale = sqrt(state.alpha * log(t))
    top = 0.5
    for j in range(K):
        top = max(top, share[j] + scale * spread[j])
    ties = 0
    for j in range(K):
        ties += int(share[j] + scale * spread[j] == top)
    if ties == 0:
        return c
    n = below(rng, ties) if ties > 1 else 0
    d = -1
    while n >= 0:
        d += 1
        n -= int(share[d] + scale * spread[d] == top)
    return d


@kernel
def _stay(state: State, t: int, c: int, rng: Random) -> None:
    """Work out until when `c` plays itself."""
    memory, enter = state.memory, state.enter[c]
    until = FOREVER
    for j in range(len(enter)):
        until = min(until, enter[j] - 1)
    row = streak(rng, _reign(state, c))
    if row < until - t:
        until = t + row
        memory[BROKEN] = until + 1
    memory[QUIET] = until


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Count the duel and refresh what depends on this pair."""
    observe(state.posterior, i, j, points)
    mine, theirs = state.posterior.points[i, j], state.posterior.points[j, i]
    total = mine + theirs
    state.share[j, i], state.share[i, j] = mine / total, theirs / total
    state.spread[j, i] = state.spread[i, j] = 1.0 / sqrt(0.5 * total)
    gap = mine - theirs
    late = first_time(float(gap * gap) / (8.0 * total * state.alpha))
    state.enter[j, i] = late if gap < 0 else 1
    state.enter[i, j] = late if gap > 0 else 1


@kernel
def idle(state: State, t: int) -> int:
    """Return until when the champion plays itself."""
    return max(t, int(state.memory[QUIET]))


@sequential(
    "rcs",
    paper="Zoghi, Whiteson, de Rijke & Munos, Relative Confidence Sampling for Efficient On-Line Ranker Evaluation, "
    "WSDM 2014",
    assumption="Condorcet",
    choose=choose,
    learn=learn,
    idle=idle,
)
def rcs(arms: int, horizon: int, rng: Random, *, alpha: float = 0.501) -> State:
    """Duel the champion of a drawn tournament with its most optimistic rival."""
    if not alpha > 0.5:
        raise PolicyError(f"rcs: alpha is {alpha}: it must be above 1/2")
    share = np.ones((arms, arms))
    enter = np.ones((arms, arms), np.int64)
    np.fill_diagonal(share, -1.0)  # nobody is its own challenger
    np.fill_diagonal(enter, FOREVER)
    return State(
        alpha=alpha,
        posterior=posterior(arms),
        share=share,
        spread=np.zeros((arms, arms)),
        enter=enter,
        crowned=np.zeros(arms, np.int64),
        memory=np.zeros(4, np.int64),
    )
