"""Successive elimination for the Borda winner.

K. Jamieson, S. Katariya, A. Deshpande, R. Nowak, Sparse Dueling Bandits, AISTATS 2015. In round tau one reference
arm is drawn, and every active arm duels it (the arm itself gets 0). K/(K-1) times an arm's mean reward estimates its
Borda score without bias. An arm goes when the best is ahead by more than (K/(K-1)) sqrt(2 ln(4 K tau^2/delta)/tau).
When one is left, it is the Borda winner with probability 1 - delta, and plays itself.

`sparsity` k > 0 adds the paper's SECS rule: from round `gate` + 1 on, an arm j also goes if for some active i the
difference 2 (phat[i][j] - 1/2) + sum over the k arms w with the largest |phat[i][w] - phat[j][w]| of that (signed)
exceeds `factor` (k + 1) C, where phat[j][w] = (K/tau) * wins of j over w, and C = sqrt(2 K l / tau) + 2 K l / (3 tau)
with l = ln(4 K^2 tau^2 / delta). The proof needs factor 6; 0.5 is what works in practice. It costs O(k K) for each
pair of active arms and round.
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundel._jit import kernel
from roundel.errors import PolicyError
from roundel.policies.sequential._family import Floats, Ints, sequential
from roundel.rng import State as Random
from roundel.rng import below

ROUND, REFERENCE, NEXT, LEFT = 0, 1, 2, 3  # the places in `memory`


class State(NamedTuple):
    """What the elimination knows."""

    delta: float
    sparsity: int
    gate: int
    factor: float
    reward: Ints  # reward[j]: half-wins of j over reference arms
    points: Ints  # points[j, w]: the same by reference arm
    stays: Ints  # stays[j] = 1: j is active
    leaves: Ints  # leaves[j] = 1: j goes when this round is judged
    difference: Floats  # room for |phat[i][w] - phat[j][w]|
    memory: Ints  # the round; its reference arm; the arm whose turn it is; active arms


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return the next active arm and the reference arm of the round."""
    memory, stays = state.memory, state.stays
    K = len(stays)
    while memory[LEFT] > 1:
        j = memory[NEXT]
        while j < K and (stays[j] == 0 or j == memory[REFERENCE]):
            j += 1
        if j < K:
            memory[NEXT] = j + 1
            return j, memory[REFERENCE]
        if memory[ROUND] > 0:
            _eliminate(state)
        memory[ROUND] += 1
        memory[REFERENCE] = below(rng, K)
        memory[NEXT] = 0
    b = 0
    while stays[b] == 0:
        b += 1
    return b, b


@kernel
def _eliminate(state: State) -> None:
    reward, stays, leaves, memory = state.reward, state.stays, state.leaves, state.memory
    K, rounds = len(stays), memory[ROUND]
    best = 0
    for j in range(K):
        if stays[j]:
            best = max(best, reward[j])
    # Both sides of the rule without their common factor K / (K - 1).
    limit = 2.0 * rounds * sqrt(2.0 * log(4.0 * K * float(rounds) * rounds / state.delta) / rounds)
    for j in range(K):
        leaves[j] = int(stays[j] and best - reward[j] > limit)
    if state.sparsity > 0 and rounds > state.gate:
        _mark_sparse(state)
    for j in range(K):
        if leaves[j] and memory[LEFT] > 1:
            stays[j] = 0
            memory[LEFT] -= 1


@kernel
def _mark_sparse(state: State) -> None:
    K, rounds = len(state.stays), state.memory[ROUND]
    level = log(4.0 * K * K * float(rounds) * rounds / state.delta)
    radius = sqrt(2.0 * K * level / rounds) + 2.0 * K * level / (3.0 * rounds)
    limit = state.factor * (state.sparsity + 1) * radius
    for j in range(K):
        for i in range(K):
            if i != j and state.stays[i] and state.stays[j] and not state.leaves[j]:
                state.leaves[j] = int(_sparse_lead(state, i, j) > limit)


@kernel
def _sparse_lead(state: State, i: int, j: int) -> float:
    """Return how far i is ahead of j, seen through the `sparsity` arms that tell them apart most."""
    points, difference = state.points, state.difference
    K, rounds = len(difference), state.memory[ROUND]
    unit = 0.5 * K / rounds
    for w in range(K):
        difference[w] = unit * (points[i, w] - points[j, w]) if w not in (i, j) else 0.0
    lead = 2.0 * (unit * points[i, j] - 0.5)
    for _ in range(min(state.sparsity, K - 2)):
        most = 0
        for w in range(1, K):
            if abs(difference[w]) > abs(difference[most]):
                most = w
        lead += difference[most]
        difference[most] = 0.0
    return float(lead)


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Count the duel for the first arm: the second is the reference."""
    state.reward[i] += points
    if state.sparsity > 0:
        state.points[i, j] += points


@kernel
def remaining(state: State) -> int:
    """Return how many arms are active."""
    return int(state.memory[LEFT])


def active(state: State) -> NDArray[np.bool_]:
    """Return which arms are active."""
    return state.stays.astype(bool)


@sequential(
    "borda-se",
    paper="Jamieson, Katariya, Deshpande & Nowak, Sparse Dueling Bandits, AISTATS 2015",
    assumption="Borda",
    choose=choose,
    learn=learn,
    remaining=remaining,
    active=active,
)
def borda_elimination(
    arms: int,
    horizon: int,
    rng: Random,
    *,
    delta: float = 0.1,
    sparsity: int = 0,
    gate: int = 0,
    factor: float = 6.0,
) -> State:
    """Find the Borda winner with confidence 1 - delta by duels with random reference arms, then stay with it."""
    if not 0.0 < delta < 1.0:
        raise PolicyError(f"borda-se: delta is {delta}: it must lie between 0 and 1")
    if sparsity < 0 or gate < 0:
        raise PolicyError(f"borda-se: sparsity is {sparsity} and gate {gate}: they must be at least 0")
    if not factor > 0.0:
        raise PolicyError(f"borda-se: factor is {factor}: it must be above 0")
    return State(
        delta=delta,
        sparsity=sparsity,
        gate=gate,
        factor=factor,
        reward=np.zeros(arms, np.int64),
        points=np.zeros((arms, arms) if sparsity else (0, 0), np.int64),
        stays=np.ones(arms, np.int64),
        leaves=np.zeros(arms, np.int64),
        difference=np.zeros(arms),
        memory=np.array([0, -1, arms, arms]),
    )
