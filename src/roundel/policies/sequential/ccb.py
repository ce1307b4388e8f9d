"""CCB, Copeland confidence bound.

M. Zoghi, Z. Karnin, S. Whiteson, M. de Rijke, Copeland Dueling Bandits, NIPS 2015. With U and L the ends of the
confidence intervals, arms that may have the highest Copeland score (C) are dueled with the arms that most probably
beat them. Arms that are surely worse leave the list Bt, and for each a few arms that beat it, Bi, are kept: as long
as these stand, it need not be looked at again.

How it is fast: the counts of optimistic and of sure wins come from `_outlook`, which touches only the pair of the
last duel. A witness in Bi is refuted only by a duel of that very pair. The rest is O(K) for each duel; looking for
doubtful witnesses, done with chance 1/4, takes the number of all witnesses, at most (LC + 1) K once LC is known.
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np

from roundel._jit import kernel
from roundel.errors import PolicyError
from roundel.policies.sequential._family import Floats, Ints, sequential
from roundel.policies.sequential._outlook import Outlook, go_on, outlook, review
from roundel.rng import State as Random
from roundel.rng import below, uniform

LOSSES, FIRST, SECOND = 0, 1, 2  # the places in `memory`


class State(NamedTuple):
    """What CCB knows. Tables of pairs with U are stored by column: row c holds U[0][c], U[1][c], ..."""

    points: Ints  # points[i, j]: half-wins of i over j
    outlook: Outlook
    share: Floats  # share[c, j] = phat[j][c]
    spread: Floats  # spread[c, j] = 1 / sqrt(N[j][c])
    hopeful: Ints  # the paper's Bt: hopeful[i] = 1 if i may be a Copeland winner
    witness: Ints  # the paper's Bi: witness[i, :witnesses[i]] surely beat i, or did when they were noted
    witnesses: Ints
    memory: Ints  # the paper's LC: how many losses a Copeland winner has, at most; the arms of the last duel


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return a doubtful pair of an arm and its witness, or an arm that may be the best and its best rival."""
    go_on(state.outlook, t)
    _revise(state, rng)
    if uniform(rng) < 0.25:
        doubtful = _doubtful(state, -1)
        if doubtful > 0:
            k = _doubtful(state, below(rng, doubtful))
            i, place = k // len(state.hopeful), k % len(state.hopeful)
            state.memory[FIRST], state.memory[SECOND] = i, state.witness[i, place]
            return i, state.witness[i, place]
    c = _candidate(state, rng)
    d = _rival(state, t, c, uniform(rng) < 0.5, rng)
    state.memory[FIRST], state.memory[SECOND] = c, d
    return c, d


@kernel
def _revise(state: State, rng: Random) -> None:
    """Bring the lists up to date (the paper's steps A, B and C)."""
    hopeful, may, sure = state.hopeful, state.outlook.may, state.outlook.sure
    witnesses, memory = state.witnesses, state.memory
    K = len(hopeful)
    i, j = memory[FIRST], memory[SECOND]
    if _refuted(state, i, j) or _refuted(state, j, i):
        _reset(state)
    top, bottom = 0, 0
    for i in range(K):
        top, bottom = max(top, may[i]), max(bottom, sure[i])
    left = 0
    for i in range(K):
        if hopeful[i] and may[i] < bottom:
            hopeful[i] = 0
            if witnesses[i] != memory[LOSSES] + 1:
                _take_witnesses(state, i)
        left += hopeful[i]
    if left == 0:
        _reset(state)
    settled = False
    for i in range(K):
        if may[i] == top and sure[i] == top:
            settled = True
            hopeful[i] = 1
            witnesses[i] = 0
            memory[LOSSES] = K - 1 - top
    if settled:
        for i in range(K):
            _keep_few(state, i, memory[LOSSES] + 1, rng)


@kernel
def _refuted(state: State, i: int, j: int) -> bool:
    """Whether i surely beats its witness j."""
    if state.outlook.rise[j, i] <= state.outlook.clock[0] or i == j:
        return False
    found = False
    for k in range(state.witnesses[i]):
        found = found or state.witness[i, k] == j
    return found


@kernel
def _reset(state: State) -> None:
    for i in range(len(state.hopeful)):
        state.hopeful[i] = 1
        state.witnesses[i] = 0
    state.memory[LOSSES] = len(state.hopeful)


@kernel
def _take_witnesses(state: State, i: int) -> None:
    """Let the witnesses of i be all that surely beat it."""
    now, size = state.outlook.clock[0], 0
    for k in range(len(state.hopeful)):
        if k != i and state.outlook.rise[i, k] > now:
            state.witness[i, size] = k
            size += 1
    state.witnesses[i] = size


@kernel
def _keep_few(state: State, i: int, few: int, rng: Random) -> None:
    """Keep `few` witnesses of i, chosen at random; none if there are less."""
    if state.witnesses[i] < few:
        state.witnesses[i] = 0
    elif state.witnesses[i] > few:
        for k in range(few):
            other = k + below(rng, state.witnesses[i] - k)
            kept = state.witness[i, other]
            state.witness[i, other] = state.witness[i, k]
            state.witness[i, k] = kept
        state.witnesses[i] = few


@kernel
def _doubtful(state: State, n: int) -> int:
    """Return how many (arm, witness) are not sure either way, or for n >= 0 where the n-th is: K * arm + place."""
    rise, now = state.outlook.rise, state.outlook.clock[0]
    K = len(state.hopeful)
    count = 0
    for i in range(K):
        for place in range(state.witnesses[i]):
            j = state.witness[i, place]
            if rise[i, j] <= now and rise[j, i] <= now:
                if count == n:
                    return K * i + place
                count += 1
    return count


@kernel
def _candidate(state: State, rng: Random) -> int:
    """Return an arm of C; with chance 2/3 one that is hopeful too."""
    may, hopeful = state.outlook.may, state.hopeful
    top, size, both = -1, 0, 0
    for i in range(len(may)):
        if may[i] > top:
            top, size, both = may[i], 0, 0
        size += int(may[i] == top)
        both += int(may[i] == top and hopeful[i] == 1)
    need = both > 0 and uniform(rng) < 2.0 / 3.0
    size = both if need else size
    n = below(rng, size) if size > 1 else 0
    c = -1
    while n >= 0:
        c += 1
        n -= int(may[c] == top and (hopeful[c] == 1 or not need))
    return c


@kernel
def _rival(state: State, t: int, c: int, use_witnesses: bool, rng: Random) -> int:
    """Return the arm with the highest U[j][c] among those that do not surely beat c; first among its witnesses."""
    share, spread, rise, witness = state.share[c], state.spread[c], state.outlook.rise[c], state.witness[c]
    scale = sqrt(state.outlook.alpha * log(t))
    if use_witnesses:
        top, ties = -1.0, 0
        for place in range(state.witnesses[c]):
            j = witness[place]
            if rise[j] <= t:
                score = share[j] + scale * spread[j]
                if score > top:
                    top, ties = score, 0
                ties += int(score == top)
        if ties > 0:
            n = below(rng, ties) if ties > 1 else 0
            place = -1
            while n >= 0:
                place += 1
                j = witness[place]
                n -= int(rise[j] <= t and share[j] + scale * spread[j] == top)
            return int(witness[place])
    top, ties = 0.5, 0
    for j in range(len(share)):
        if rise[j] <= t:
            top = max(top, share[j] + scale * spread[j])
    for j in range(len(share)):
        ties += int(rise[j] <= t and share[j] + scale * spread[j] == top)
    if ties == 0:
        return c
    n = below(rng, ties) if ties > 1 else 0
    d = -1
    while n >= 0:
        d += 1
        n -= int(rise[d] <= t and share[d] + scale * spread[d] == top)
    return d


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Count the duel and refresh what depends on this pair."""
    state.points[i, j] += points
    state.points[j, i] += 2 - points
    mine, theirs = state.points[i, j], state.points[j, i]
    total = mine + theirs
    state.share[j, i], state.share[i, j] = mine / total, theirs / total
    state.spread[j, i] = state.spread[i, j] = 1.0 / sqrt(0.5 * total)
    review(state.outlook, i, j, mine, theirs)


@sequential(
    "ccb",
    paper="Zoghi, Karnin, Whiteson & de Rijke, Copeland Dueling Bandits, NIPS 2015, Alg. 1",
    assumption="Copeland",
    choose=choose,
    learn=learn,
)
def ccb(arms: int, horizon: int, rng: Random, *, alpha: float = 0.51) -> State:
    """Duel an arm that may have the most wins with the arm most likely to beat it; no pair may be a tie."""
    if not alpha > 0.5:
        raise PolicyError(f"ccb: alpha is {alpha}: it must be above 1/2")
    share = np.ones((arms, arms))
    np.fill_diagonal(share, -1.0)  # nobody is its own rival
    return State(
        points=np.zeros((arms, arms), np.int64),
        outlook=outlook(arms, alpha),
        share=share,
        spread=np.zeros((arms, arms)),
        hopeful=np.ones(arms, np.int64),
        witness=np.zeros((arms, arms), np.int64),
        witnesses=np.zeros(arms, np.int64),
        memory=np.array([arms, 0, 0]),
    )
