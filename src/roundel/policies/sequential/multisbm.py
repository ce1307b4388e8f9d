"""MultiSBM: one bandit for each arm, which looks for who beats that arm.

N. Ailon, Z. Karnin, T. Joachims, Reducing Dueling Bandits to Cardinal Bandits, ICML 2014. The first arm is the
second arm of the duel before; its own UCB1 chooses the second, and is rewarded if the second wins. A self-duel is
decided by a coin of the policy's own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from roundel._jit import kernel
from roundel.policies.sequential._family import Ints, sequential
from roundel.policies.sequential._singleton import Machines, advance, feedback, machines
from roundel.rng import State as Random
from roundel.rng import below


class State(NamedTuple):
    """What MultiSBM knows."""

    machines: Machines
    last: Ints  # the second arm of the duel before


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return the former second arm, and whom its machine chooses."""
    y = state.last[0]
    j = advance(state.machines, y)
    state.last[0] = j
    if y == j:
        feedback(state.machines, y, j, 2 * below(rng, 2))
    return y, j


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Reward the machine of the first arm if the second won."""
    feedback(state.machines, i, j, 2 - points)


@sequential(
    "multisbm",
    paper="Ailon, Karnin & Joachims, Reducing Dueling Bandits to Cardinal Bandits, ICML 2014",
    assumption="linear utilities",
    choose=choose,
    learn=learn,
)
def multisbm(arms: int, horizon: int, rng: Random, *, alpha: float = 2.5) -> State:
    """Let each arm's own UCB1 bandit look for who beats it; go on with whom it found."""
    return State(machines=machines("multisbm", arms, arms, alpha, rng), last=np.array([below(rng, arms)]))
