"""MergeDTS: double Thompson sampling inside small groups of arms, which are merged as they are thinned out.

C. Li, I. Markov, M. de Rijke, M. Zoghi, MergeDTS: A Method for Effective Large-Scale Online Ranker Evaluation,
ACM TOIS 2020. As MergeRUCB, but inside a group the first arm is the one with the most wins in a tournament drawn
from the posterior, and the second the one with the smallest chance to beat it in a second draw: it is the most
probable to be removed. A group of one arm is taken in by the next group at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundel._jit import kernel
from roundel.policies.sequential._family import Ints, sequential
from roundel.policies.sequential._merging import (
    ALIVE,
    COUNT,
    STEPS,
    Groups,
    absorb,
    groups,
    in_play,
    merge_when_few,
    next_group,
    record,
    remove_beaten,
)
from roundel.policies.sequential._posterior import Posterior, observe, posterior
from roundel.rng import State as Random
from roundel.rng import below, beta, uniform


class State(NamedTuple):
    """What MergeDTS knows."""

    groups: Groups
    posterior: Posterior
    wins: Ints  # wins[k]: of the k-th arm of the group, in the tournament drawn last


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return the champion of the next group, in a drawn tournament, and the weakest opponent in a second draw."""
    parts = state.groups
    while parts.memory[ALIVE] > 1:
        parts.memory[STEPS] += 1
        g = next_group(parts, False)
        if remove_beaten(parts, g, rng):
            merge_when_few(parts, rng)
        elif parts.size[g] > 1:
            c = _champion(state, g, rng)
            return c, _weakest(state, g, c, rng)
        _absorb_single(parts)
    return parts.member[0, 0], parts.member[0, 0]


@kernel
def _absorb_single(parts: Groups) -> None:
    g = 0
    while g < parts.memory[COUNT]:
        if parts.size[g] == 1 and parts.memory[COUNT] > 1:
            absorb(parts, g)
            g = 0
        else:
            g += 1


@kernel
def _champion(state: State, g: int, rng: Random) -> int:
    member, above, wins = state.groups.member[g], state.posterior.above, state.wins
    size = state.groups.size[g]
    for a in range(size):
        wins[a] = 0
    for a in range(size):
        for b in range(a + 1, size):
            won = int(uniform(rng) < above[member[a], member[b]])
            wins[a] += won
            wins[b] += 1 - won
    top, ties = -1, 0
    for a in range(size):
        if wins[a] > top:
            top, ties = wins[a], 0
        ties += int(wins[a] == top)
    n = below(rng, ties) if ties > 1 else 0
    a = -1
    while n >= 0:
        a += 1
        n -= int(wins[a] == top)
    return int(member[a])


@kernel
def _weakest(state: State, g: int, c: int, rng: Random) -> int:
    points, member = state.posterior.points, state.groups.member[g]
    d, least = c, 2.0
    for a in range(state.groups.size[g]):
        i = member[a]
        if i != c:
            chance = beta(rng, 0.5 * points[i, c] + 1.0, 0.5 * points[c, i] + 1.0)
            if chance < least:
                d, least = i, chance
    return d


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Count the duel."""
    record(state.groups, i, j, points)
    observe(state.posterior, i, j, points)


@kernel
def remaining(state: State) -> int:
    """Return how many arms are in play."""
    return int(state.groups.memory[ALIVE])


def active(state: State) -> NDArray[np.bool_]:
    """Return which arms are in play."""
    return in_play(state.groups)


@sequential(
    "merge-dts",
    paper="Li, Markov, de Rijke & Zoghi, MergeDTS: A Method for Effective Large-Scale Online Ranker Evaluation, "
    "ACM TOIS 2020",
    assumption="Condorcet",
    choose=choose,
    learn=learn,
    remaining=remaining,
    active=active,
)
def merge_dts(
    arms: int, horizon: int, rng: Random, *, alpha: float = 1.01, batch: int = 4, delta: float = 0.01
) -> State:
    """Run double Thompson sampling inside small groups and merge them as arms go; for hundreds of arms."""
    return State(
        groups=groups("merge-dts", arms, rng, alpha, batch, delta),
        posterior=posterior(arms),
        wins=np.zeros(arms, np.int64),
    )
