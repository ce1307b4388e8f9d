"""RMED1, RMED2 and RMED2FH, relative minimum empirical divergence.

J. Komiyama, J. Honda, H. Kashima, H. Nakagawa, Regret Lower Bound and Optimal Algorithm in Dueling Bandit Problem,
COLT 2015. I_i = sum of N[i][j] kl(phat[i][j], 1/2) over the j that i does not beat so far: exp(-I_i) is how likely
arm i is to be the best. A list of candidates is gone through again and again; the next list holds those with
I_i - min I <= ln t + f(K). RMED1 duels a candidate with the best arm i*; RMED2 with the rival that costs least for
what it tells, estimated all the time; RMED2FH estimates that once, after a longer start.

Departures: as in the authors' own code, the estimated cost of a rival is at least 0.01.

How it is fast: a duel changes two rows of the table of losses, so at most two of the I_i; once i* is alone on the list
and beats every arm so far, it duels itself until ln t lets the next candidate in, a time that is known. No random
number is drawn.
"""

from __future__ import annotations

from math import ceil, exp, log
from typing import NamedTuple

import numpy as np

from roundel._jit import kernel
from roundel.errors import PolicyError
from roundel.policies.sequential._evidence import first_time, half_kl
from roundel.policies.sequential._family import FOREVER, Floats, Ints, sequential
from roundel.policies.sequential._scan import bits, lowest, nth_place
from roundel.rng import State as Random

RMED1, RMED2, RMED2FH = 0, 1, 2
LEAST_COST = 0.01
NO_PRICE = 1e200

# The places in `memory`.
BEST = 0  # i*, the arm with the least evidence against it
QUIET = 1  # until when i* duels itself
LENGTH, TURN, NEXT_LENGTH = 2, 3, 4  # of the list, of what is gone through of it, of the next list
PASSES, ROW, COLUMN = 5, 6, 7  # passes through all pairs that are left of the start; the pair whose turn it is
NEED, RAISE = 8, 9  # RMED2: every pair is to have NEED duels; from when on it is one more
NOW, ON_LIST = 10, 11  # the time of the last choice, and whether its first arm came from the list
KNOWS = 12  # RMED2FH: whether the rivals are chosen


class State(NamedTuple):
    """What RMED knows."""

    variant: int
    slack: float  # f(K)
    alpha: float
    patience: float  # RMED2FH: ln ln T
    points: Ints  # points[i, j]: half-wins of i over j
    share: Floats  # share[i, j] = phat[i][j]
    share_bits: Ints  # a view of it
    worth: Floats  # worth[i, j] = 1 / kl(phat[i][j], 1/2), where j is ahead; NO_PRICE elsewhere
    price: Floats  # what duels of the last arm with each other would cost for what they tell
    price_bits: Ints  # a view of it
    loss: Floats  # loss[i, j] = N[i][j] kl(phat[i][j], 1/2), where j is ahead; 0 elsewhere
    evidence: Floats  # I_i, the sum of row i of `loss`
    evidence_bits: Ints  # a view of it
    behind: Ints  # behind[i]: the size of O_i, the arms that i does not beat so far
    current: Ints  # L_C: the list, of which TURN arms are done
    following: Ints  # L_N: the next list
    free: Ints  # free[i]: 1 if arm i is neither in L_R, those of the list whose turn is still to come, nor in L_N
    rival: Ints  # RMED2FH: b(i)
    memory: Ints


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return the next arm of the list and its opponent; before that, what the start and the explorations need."""
    memory = state.memory
    if t <= memory[QUIET]:
        return int(memory[BEST]), int(memory[BEST])
    memory[NOW], memory[ON_LIST] = t, 0
    if memory[PASSES] > 0:
        return _start(state)
    if state.variant == RMED2 and _explores(state, t):
        return int(memory[ROW]), int(memory[COLUMN])
    if state.variant == RMED2FH and memory[KNOWS] == 0:
        for i in range(len(state.rival)):
            state.rival[i] = _cheapest_rival(state, i)
        memory[KNOWS] = 1
    i = int(state.current[memory[TURN]])
    j = _opponent(state, t, i)
    memory[ON_LIST] = 1
    if i == j:
        _next_turn(state)
    return i, j


@kernel
def _start(state: State) -> tuple[int, int]:
    """Return the next pair of the passes through all pairs."""
    memory, K = state.memory, len(state.evidence)
    i, j = int(memory[ROW]), int(memory[COLUMN])
    _next_pair(memory, K)
    if memory[ROW] == K - 1:
        memory[PASSES] -= 1
        memory[ROW], memory[COLUMN] = 0, 1
    return i, j


@kernel
def _next_pair(memory: Ints, K: int) -> None:
    memory[COLUMN] += 1
    if memory[COLUMN] == K:
        memory[ROW] += 1
        memory[COLUMN] = memory[ROW] + 1


@kernel
def _explores(state: State, t: int) -> bool:
    """Find the first pair with N < alpha ln ln t. Pairs that have enough stay so until NEED rises."""
    memory, points, K = state.memory, state.points, len(state.evidence)
    while t >= memory[RAISE] and memory[NEED] < t:  # nobody has t duels yet: more than that asks for nothing new
        memory[NEED] += 1
        memory[RAISE] = _time_above(memory[NEED], state.alpha)
        memory[ROW], memory[COLUMN] = 0, 1
    while memory[ROW] < K - 1:
        if points[memory[ROW], memory[COLUMN]] + points[memory[COLUMN], memory[ROW]] < 2 * memory[NEED]:
            return True
        _next_pair(memory, K)
    return False


@kernel
def _time_above(need: int, alpha: float) -> int:
    """Return the first t with alpha ln ln t above `need`."""
    return first_time(exp(min(need / alpha, 50.0)))


@kernel
def _opponent(state: State, t: int, i: int) -> int:
    points, best = state.points, int(state.memory[BEST])
    if state.variant != RMED1:
        if state.variant == RMED2:
            b, patience = _cheapest_rival(state, i), log(log(max(t, 3)))
        else:
            b, patience = int(state.rival[i]), state.patience
        mine, known = points[i, b] + points[b, i], points[i, best] + points[best, i]
        if b != i and points[i, b] <= points[b, i] and known >= mine / patience:
            return b
    if state.behind[i] == 0 or (best != i and points[i, best] <= points[best, i]):
        return best
    # The lowest share is one of O_i, which is not empty; i itself has 1/2.
    low = lowest(state.share_bits[i])
    j = nth_place(state.share_bits[i], low, 0)
    return j if j != i else nth_place(state.share_bits[i], low, 1)


@kernel
def _cheapest_rival(state: State, i: int) -> int:
    """Return b(i): among the arms ahead of i, the one whose duel with i costs least for what it tells."""
    best, price = int(state.memory[BEST]), state.price
    share, worth, gap = state.share[best], state.worth[i], state.share[best, i] - 1.0
    for j in range(len(price)):
        price[j] = max(gap + share[j], LEAST_COST) * worth[j]
    j = nth_place(state.price_bits, lowest(state.price_bits), 0)
    return j if worth[j] < NO_PRICE else best


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Count the duel, refresh the evidence against its two arms, and end the turn."""
    table = state.points
    before = table[i, j] - table[j, i]
    table[i, j] += points
    table[j, i] += 2 - points
    after = table[i, j] - table[j, i]
    state.behind[i] += int(after <= 0) - int(before <= 0)
    state.behind[j] += int(after >= 0) - int(before >= 0)
    if before < 0 or after < 0:
        _weigh(state, i, j)
    if before > 0 or after > 0:
        _weigh(state, j, i)
    total = table[i, j] + table[j, i]
    state.share[i, j], state.share[j, i] = table[i, j] / total, table[j, i] / total
    state.memory[BEST] = nth_place(state.evidence_bits, lowest(state.evidence_bits), 0)
    if state.memory[ON_LIST] == 1:
        _next_turn(state)


@kernel
def _weigh(state: State, i: int, j: int) -> None:
    """Refresh the loss of i to j, and I_i."""
    mine, theirs, row = state.points[i, j], state.points[j, i], state.loss[i]
    row[j], state.worth[i, j] = 0.0, NO_PRICE
    if mine < theirs:
        divergence = half_kl(mine / (mine + theirs))
        row[j], state.worth[i, j] = 0.5 * (mine + theirs) * divergence, 1.0 / divergence
    # Summed afresh: differences would leave roundings where there should be ties. Four sums run side by side.
    a = b = c = d = 0.0
    whole = len(row) // 4 * 4
    for k in range(0, whole, 4):
        a, b, c, d = a + row[k], b + row[k + 1], c + row[k + 2], d + row[k + 3]
    total = (a + b) + (c + d)
    for k in range(whole, len(row)):
        total += row[k]
    state.evidence[i] = total


@kernel
def _next_turn(state: State) -> None:
    """Take the arm off the list, let candidates onto the next list, and change lists at the end of this one."""
    memory, evidence, free, following = state.memory, state.evidence, state.free, state.following
    K, t, least = len(evidence), int(memory[NOW]), evidence[memory[BEST]]
    free[state.current[memory[TURN]]] = 1
    memory[TURN] += 1
    limit = log(t) + state.slack
    candidates = 0
    for j in range(K):
        candidates += free[j] * int(evidence[j] - least <= limit)
    j = 0
    while candidates > 0:
        if free[j] == 1 and evidence[j] - least <= limit:
            following[memory[NEXT_LENGTH]] = j
            memory[NEXT_LENGTH] += 1
            free[j] = 0
            candidates -= 1
        j += 1
    if memory[TURN] < memory[LENGTH]:
        return
    memory[LENGTH], memory[TURN], memory[NEXT_LENGTH] = memory[NEXT_LENGTH], 0, 0
    for n in range(memory[LENGTH]):
        state.current[n] = following[n]  # these stay taken: from L_N into L_R
    if memory[LENGTH] == 1 and state.current[0] == memory[BEST] and state.behind[memory[BEST]] == 0:
        memory[QUIET] = _quiet_until(state)


@kernel
def _quiet_until(state: State) -> int:
    """Return the last time at which no other arm is a candidate and no exploration is due."""
    memory, least = state.memory, 1e300
    for j in range(len(state.evidence)):
        if j != memory[BEST]:
            least = min(least, state.evidence[j])
    last = first_time(least - state.evidence[memory[BEST]] - state.slack) - 1
    return min(last, int(memory[RAISE]) - 1)


@kernel
def idle(state: State, t: int) -> int:
    """Return until when i* duels itself."""
    return max(t, int(state.memory[QUIET]))


def _state(variant: int, arms: int, horizon: int, c: float, alpha: float) -> State:
    names = ("rmed1", "rmed2", "rmed2fh")
    if not c >= 0:
        raise PolicyError(f"{names[variant]}: c is {c}: it must be 0 or more, or the best arm may leave the list")
    if not alpha > 0:
        raise PolicyError(f"{names[variant]}: alpha is {alpha}: it must be above 0")
    patience = log(log(max(horizon, 3)))
    memory = np.zeros(13, np.int64)
    memory[COLUMN] = 1
    memory[LENGTH] = arms
    memory[RAISE] = _time_above(0, alpha) if variant == RMED2 and arms > 1 else FOREVER
    if arms > 1:
        memory[PASSES] = max(1, ceil(min(alpha * patience, horizon))) if variant == RMED2FH else 1
    share, price, evidence = np.full((arms, arms), 0.5), np.zeros(arms), np.zeros(arms)
    return State(
        variant=variant,
        slack=c * arms**1.01,
        alpha=alpha,
        patience=patience,
        points=np.zeros((arms, arms), np.int64),
        share=share,
        share_bits=bits(share),
        worth=np.full((arms, arms), NO_PRICE),
        price=price,
        price_bits=bits(price),
        loss=np.zeros((arms, arms)),
        evidence=evidence,
        evidence_bits=bits(evidence),
        behind=np.full(arms, arms - 1),
        current=np.arange(arms),
        following=np.zeros(arms, np.int64),
        free=np.zeros(arms, np.int64),
        rival=np.zeros(arms, np.int64),
        memory=memory,
    )


PAPER = (
    "Komiyama, Honda, Kashima & Nakagawa, Regret Lower Bound and Optimal Algorithm in Dueling Bandit Problem, COLT 2015"
)


@sequential("rmed1", paper=PAPER, assumption="Condorcet", choose=choose, learn=learn, idle=idle)
def rmed1(arms: int, horizon: int, rng: Random, *, c: float = 0.3) -> State:
    """Duel each likely winner with the likeliest; the first that reaches the lower bound in the hardest cases."""
    return _state(RMED1, arms, horizon, c, alpha=3.0)


@sequential("rmed2", paper=PAPER, assumption="Condorcet", choose=choose, learn=learn, idle=idle)
def rmed2(arms: int, horizon: int, rng: Random, *, c: float = 0.3, alpha: float = 3.0) -> State:
    """RMED1 with the opponent that tells most for its cost, estimated at every step: optimal."""
    return _state(RMED2, arms, horizon, c, alpha)


@sequential("rmed2fh", paper=PAPER, assumption="Condorcet", choose=choose, learn=learn, idle=idle)
def rmed2fh(arms: int, horizon: int, rng: Random, *, c: float = 0.3, alpha: float = 3.0) -> State:
    """RMED2 for a known horizon, with opponents estimated once: optimal, and quicker."""
    return _state(RMED2FH, arms, horizon, c, alpha)
