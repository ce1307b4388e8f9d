"""Doubler: epochs of doubling length, in which a bandit duels with what it chose in the epoch before.

N. Ailon, Z. Karnin, T. Joachims, Reducing Dueling Bandits to Cardinal Bandits, ICML 2014. Epoch e has 2^e duels.
The first arm is drawn from all second arms of the epoch before (at first: from one arm, drawn at random), the
second is chosen by a UCB1 that starts anew with each epoch and is rewarded if the second arm wins. A self-duel is
decided by a coin of the policy's own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from roundel._jit import kernel
from roundel.policies.sequential._family import Ints, sequential
from roundel.policies.sequential._singleton import Machines, advance, feedback, forget, machines
from roundel.rng import State as Random
from roundel.rng import below

END, LENGTH = 0, 1  # the places in `memory`


class State(NamedTuple):
    """What Doubler knows."""

    machine: Machines
    former: Ints  # former[k]: how often k was the second arm in the epoch before
    current: Ints  # the same in this epoch
    memory: Ints  # the last duel of this epoch; how long the epoch before was


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return an arm of the former epoch, and whom the machine chooses now."""
    memory, former, current = state.memory, state.former, state.current
    if t > memory[END]:
        if t > 1:
            for k in range(len(current)):
                former[k] = current[k]
                current[k] = 0
            memory[LENGTH] = memory[END] // 2 + 1
            forget(state.machine, 0, rng)
        memory[END] = 2 * memory[END] + 2
    n = below(rng, memory[LENGTH])
    i = 0
    while n >= former[i]:
        n -= former[i]
        i += 1
    j = advance(state.machine, 0)
    current[j] += 1
    if i == j:
        feedback(state.machine, 0, j, 2 * below(rng, 2))
    return i, j


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Reward the machine if the second arm won."""
    feedback(state.machine, 0, j, 2 - points)


@sequential(
    "doubler",
    paper="Ailon, Karnin & Joachims, Reducing Dueling Bandits to Cardinal Bandits, ICML 2014",
    assumption="linear utilities",
    choose=choose,
    learn=learn,
)
def doubler(arms: int, horizon: int, rng: Random, *, alpha: float = 2.5) -> State:
    """Let a UCB1 bandit duel with its own choices of the epoch before; epochs double."""
    former = np.zeros(arms, np.int64)
    former[below(rng, arms)] = 1
    return State(
        machine=machines("doubler", 1, arms, alpha, rng),
        former=former,
        current=np.zeros(arms, np.int64),
        memory=np.array([0, 1]),
    )
