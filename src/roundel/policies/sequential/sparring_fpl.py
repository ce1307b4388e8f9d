"""SparringFPL: explore, let two followers of the perturbed leader play out what was seen, and commit to their mix.

M. Dudik, K. Hofmann, R. Schapire, A. Slivkins, M. Zoghi, Contextual Dueling Bandits, COLT 2015, without contexts.
The first m = ceil(T^(2/3)) duels are of pairs drawn uniformly. With M[i][j] = phat[i][j] - 1/2 (0 for an unseen
pair) two players then play m simulated steps, each choosing the arm with the highest payoff against all that the
other has played plus a fresh perturbation, uniform in [0, sqrt m]. How often each arm was played by either of them
is a mixed strategy v, an approximate von Neumann winner; both arms of all later duels are drawn from v.

The constants are derived, not the published ones. The simulation takes O(m K), once, between two duels.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from roundel._jit import kernel
from roundel.policies.sequential._family import Floats, Ints, sequential
from roundel.rng import State as Random
from roundel.rng import below, uniform


class State(NamedTuple):
    """What SparringFPL knows."""

    explore: int  # m
    points: Ints  # points[i, j]: half-wins of i over j, from exploration
    payoff: Floats  # payoff[s, k]: of arm k for player s, against all that the other has played
    mix: Floats  # mix[k]: how often k was played in the simulation, and before it below 0


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return a random pair, and after exploration two draws from the mixed strategy."""
    K = len(state.mix)
    if t <= state.explore and K > 1:
        i, j = below(rng, K), below(rng, K - 1)
        return i, j + int(j >= i)
    if state.mix[0] < 0.0:
        _simulate(state, rng)
    return _draw(state.mix, 2 * state.explore, rng), _draw(state.mix, 2 * state.explore, rng)


@kernel
def _simulate(state: State, rng: Random) -> None:
    points, payoff, mix = state.points, state.payoff, state.mix
    K, noise = len(mix), sqrt(state.explore)
    for k in range(K):
        mix[k] = 0.0
    for _ in range(state.explore):
        a, b = _leader(payoff[0], noise, rng), _leader(payoff[1], noise, rng)
        mix[a] += 1.0
        mix[b] += 1.0
        for k in range(K):
            payoff[0, k] += _margin(points, k, b)
            payoff[1, k] += _margin(points, k, a)


@kernel
def _leader(payoff: Floats, noise: float, rng: Random) -> int:
    best, top = 0, -1e300
    for k in range(len(payoff)):
        score = payoff[k] + noise * uniform(rng)
        if score > top:
            best, top = k, score
    return best


@kernel
def _margin(points: Ints, i: int, j: int) -> float:
    """Return phat[i][j] - 1/2."""
    total = points[i, j] + points[j, i]
    return points[i, j] / total - 0.5 if total > 0 else 0.0


@kernel
def _draw(mix: Floats, total: int, rng: Random) -> int:
    left = uniform(rng) * total
    k, last = 0, len(mix) - 1
    while k < last and left >= mix[k]:
        left -= mix[k]
        k += 1
    return k


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Count the duel, while exploring: `v` is frozen afterwards."""
    if state.mix[0] < 0.0:
        state.points[i, j] += points
        state.points[j, i] += 2 - points


@sequential(
    "sparring-fpl",
    paper="Dudik, Hofmann, Schapire, Slivkins & Zoghi, Contextual Dueling Bandits, COLT 2015",
    assumption="none",
    choose=choose,
    learn=learn,
)
def sparring_fpl(arms: int, horizon: int, rng: Random) -> State:
    """Explore random pairs, then commit to an approximate von Neumann winner, a mixed strategy."""
    return State(
        explore=_two_thirds_power(horizon),
        points=np.zeros((arms, arms), np.int64),
        payoff=np.zeros((2, arms)),
        mix=np.full(arms, -1.0),
    )


def _two_thirds_power(horizon: int) -> int:
    """Return ceil(horizon^(2/3)): the smallest m with m^3 >= horizon^2, in whole numbers."""
    m = max(1, round(horizon ** (2 / 3)))
    while m**3 >= horizon**2 and m > 1:
        m -= 1
    while m**3 < horizon**2:
        m += 1
    return int(m)
