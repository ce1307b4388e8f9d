"""MergeRUCB: RUCB inside small groups of arms, which are merged as they are thinned out.

M. Zoghi, S. Whiteson, M. de Rijke, MergeRUCB: A Method for Large-Scale Online Ranker Evaluation, WSDM 2015. Groups
of about `batch` arms take turns. An arm with U[i][j] < 1/2 against a member of its group is out; when few enough
arms are left, small groups are joined with large ones.

Departure: where all arms of a group would go at once, which a cycle can cause, one of them stays, drawn at random.

A step without a removal costs O(batch^2): it looks at nothing but its group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundel._jit import kernel
from roundel.policies.sequential._family import sequential
from roundel.policies.sequential._merging import (
    ALIVE,
    STEPS,
    Groups,
    choose_random,
    groups,
    in_play,
    merge_when_few,
    most_optimistic,
    next_group,
    record,
    remove_beaten,
)
from roundel.rng import State as Random


class State(NamedTuple):
    """What MergeRUCB knows."""

    groups: Groups


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return an arm of the next group, and its most optimistic rival there."""
    parts = state.groups
    while parts.memory[ALIVE] > 1:
        parts.memory[STEPS] += 1
        g = next_group(parts, True)
        if remove_beaten(parts, g, rng):
            merge_when_few(parts, rng)
        else:
            c = choose_random(parts, g, rng)
            return c, most_optimistic(parts, g, c, rng)
    return parts.member[0, 0], parts.member[0, 0]


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Count the duel."""
    record(state.groups, i, j, points)


@kernel
def remaining(state: State) -> int:
    """Return how many arms are in play."""
    return int(state.groups.memory[ALIVE])


def active(state: State) -> NDArray[np.bool_]:
    """Return which arms are in play."""
    return in_play(state.groups)


@sequential(
    "merge-rucb",
    paper="Zoghi, Whiteson & de Rijke, MergeRUCB: A Method for Large-Scale Online Ranker Evaluation, WSDM 2015",
    assumption="Condorcet",
    choose=choose,
    learn=learn,
    remaining=remaining,
    active=active,
)
def merge_rucb(
    arms: int, horizon: int, rng: Random, *, alpha: float = 1.01, batch: int = 4, delta: float = 0.01
) -> State:
    """Run RUCB inside small groups and merge them as arms go; for hundreds of arms, few pairs of them equal."""
    return State(groups("merge-rucb", arms, rng, alpha, batch, delta))
