"""SCB, scalable Copeland bandits.

M. Zoghi, Z. Karnin, S. Whiteson, M. de Rijke, Copeland Dueling Bandits, NIPS 2015. Epoch e has 2^(2^e) duels and
forgets all that came before. In it, a bandit looks for the arm with the highest Copeland score: the reward of an
arm is 1 if it is better than an opponent drawn at random, which is found out by dueling the two until that is sure
(once: the answer is kept for the epoch). All arms in play are rewarded in turn, and those whose KL confidence
interval lies below somebody's go. The arm that is left plays itself to the end of the epoch.

The radius by which a pair is decided, sqrt(ln(4 K^2 n^2 / delta) / 2n), holds at all n at once; it is derived, not
the published one.

As all arms in play have equally many rewards, the highest lower end belongs to the highest mean: one bisection for
a turn, and then the question, for each arm, whether that point lies inside its interval.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from roundel._jit import kernel
from roundel.policies.sequential._family import FOREVER, Ints, sequential
from roundel.rng import State as Random
from roundel.rng import below

EPOCH, END, BEGIN, TURN, OPPONENT, REWARDS, ROUNDS, LEFT, BEST = 0, 1, 2, 3, 4, 5, 6, 7, 8  # the places in `memory`
_BISECTIONS = 50


class State(NamedTuple):
    """What SCB knows; all but the epoch is of this epoch."""

    points: Ints  # points[i, j]: half-wins of i over j
    better: Ints  # better[i, j]: 1 if i is better than j, -1 if worse, 0 if that is not decided
    open: Ints  # open[i]: opponents against whom i is not decided
    reward: Ints  # reward[i]: the virtual rewards of i
    stays: Ints  # stays[i] = 1: i is in play
    memory: Ints  # the epoch; its last and first duel; whose turn it is, against whom (-1: not drawn); virtual
    # rewards given; full turns; arms in play; the arm found, or -1


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return the pair that must be decided next, or the arm found."""
    memory, stays, better = state.memory, state.stays, state.better
    K = len(stays)
    if t > memory[END]:
        _start_epoch(state, t)
    while memory[BEST] < 0:
        i = memory[TURN]
        while i < K and stays[i] == 0:
            i += 1
        memory[TURN] = i
        if i == K:
            _close_turn(state)
        else:
            if memory[OPPONENT] < 0:
                j = below(rng, K - 1)
                memory[OPPONENT] = j + int(j >= i)
            j = memory[OPPONENT]
            if better[i, j] == 0:
                return i, j
            state.reward[i] += int(better[i, j] > 0)
            memory[REWARDS] += 1
            memory[TURN] = i + 1
            memory[OPPONENT] = -1
    return memory[BEST], memory[BEST]


@kernel
def _start_epoch(state: State, t: int) -> None:
    memory = state.memory
    K = len(state.stays)
    memory[EPOCH] += 1
    memory[BEGIN] = t
    memory[END] = t - 1 + epoch_length(memory[EPOCH])
    memory[TURN] = memory[REWARDS] = memory[ROUNDS] = 0
    memory[OPPONENT] = -1
    memory[LEFT] = K
    memory[BEST] = 0 if K == 1 else -1
    for i in range(K):
        state.open[i] = K - 1
        state.reward[i] = 0
        state.stays[i] = 1
        for j in range(K):
            state.points[i, j] = state.better[i, j] = 0


@kernel
def epoch_length(epoch: int) -> int:
    """Return 2^(2^epoch), or a time that no horizon reaches."""
    return 2 ** (2**epoch) if epoch < 6 else FOREVER // 2


@kernel
def _error_rate(epoch: int) -> float:
    """Return ln(T_e) / T_e."""
    length: float = 2.0 ** (2.0**epoch)  # also where `epoch_length` has to stop short of it
    return log(length) / length


@kernel
def _close_turn(state: State) -> None:
    """Drop the arms that fall behind, now that all have been rewarded equally often."""
    memory, stays, reward = state.memory, state.stays, state.reward
    K = len(stays)
    memory[TURN] = 0
    memory[ROUNDS] += 1
    n, best = memory[ROUNDS], 0
    for i in range(K):
        if stays[i]:
            best = max(best, reward[i])
    count = max(3, memory[REWARDS])
    level = log(4.0 * count * K / _error_rate(memory[EPOCH])) + 2.0 * log(log(count))
    lowest = _lower_end(best / n, level / n)
    for i in range(K):
        if stays[i] and reward[i] / n < lowest and n * _kl(reward[i] / n, lowest) > level:
            stays[i] = 0
            memory[LEFT] -= 1
    _finish(state)


@kernel
def _lower_end(mean: float, level: float) -> float:
    """Return the smallest x with kl(mean, x) <= level."""
    low, high = 0.0, mean
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if _kl(mean, middle) > level:
            low = middle
        else:
            high = middle
    return high


@kernel
def _kl(p: float, q: float) -> float:
    total = 0.0
    if p > 0.0:
        total += p * log(p / q) if q > 0.0 else 1e300
    if p < 1.0:
        total += (1.0 - p) * log((1.0 - p) / (1.0 - q)) if q < 1.0 else 1e300
    return total


@kernel
def _finish(state: State) -> None:
    """See whether the arm is found: one is left, or nothing is open about those that are."""
    memory, stays, open_ = state.memory, state.stays, state.open
    K = len(stays)
    questions = 0
    for i in range(K):
        questions += open_[i] * stays[i]
    if memory[LEFT] > 1 and questions > 0:
        return
    most = -1
    for i in range(K):
        if stays[i]:
            wins = 0
            for j in range(K):
                wins += int(state.better[i, j] > 0)
            if wins > most:
                most = wins
                memory[BEST] = i


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Count the duel, and decide the pair if it is sure now."""
    table, memory = state.points, state.memory
    table[i, j] += points
    table[j, i] += 2 - points
    gap = table[i, j] - table[j, i]
    K, n = len(state.stays), 0.5 * (table[i, j] + table[j, i])
    # |phat - 1/2| = |gap| / 4n > sqrt(ln(4 K^2 n^2 / delta) / 2n)
    if float(gap * gap) > 8.0 * n * log(4.0 * K * K * n * n / _error_rate(memory[EPOCH])):
        state.better[i, j] = 1 if gap > 0 else -1
        state.better[j, i] = -state.better[i, j]
        state.open[i] -= 1
        state.open[j] -= 1
        _finish(state)


@kernel
def idle(state: State, t: int) -> int:
    """Return the end of the epoch, once the arm is found."""
    return max(t, int(state.memory[END])) if state.memory[BEST] >= 0 else t


@sequential(
    "scb",
    paper="Zoghi, Karnin, Whiteson & de Rijke, Copeland Dueling Bandits, NIPS 2015, Alg. 2",
    assumption="Copeland",
    choose=choose,
    learn=learn,
    idle=idle,
)
def scb(arms: int, horizon: int, rng: Random) -> State:
    """Estimate Copeland scores from decided pairs, in epochs that square; for hundreds of arms, no pair a tie."""
    return State(
        points=np.zeros((arms, arms), np.int64),
        better=np.zeros((arms, arms), np.int64),
        open=np.zeros(arms, np.int64),
        reward=np.zeros(arms, np.int64),
        stays=np.ones(arms, np.int64),
        memory=np.zeros(9, np.int64),
    )
