"""The loop that plays a sequential policy against a matrix of preferences, compiled once for each policy."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roundel import _jit
from roundel._jit import kernel
from roundel.errors import InputError, UncompiledWarning
from roundel.policies.sequential._family import Floats, Ints, Kernels, all_remain, never_idle
from roundel.rng import State as Random
from roundel.rng import uniform

_NOT_NEGATIVE = 2**63 - 1
LONG = 200_000  # duels that take seconds as plain Python


class Drive(NamedTuple):
    """What one run came to."""

    curve: Floats  # the regret of the first `checkpoints[c]` duels, self-duels included
    regret: float  # the regret of all
    duels: int  # duels of two different arms: the others were self-duels
    points: Ints  # points[i, j]: half-wins of i over j
    selfduels: Ints  # self-duels of each arm
    active: NDArray[np.bool_]  # which arms were in play at the end
    alone: int  # after how many duels (self-duels included) one arm was left in play; -1: not within the horizon


def choose(state: Any, t: int, rng: Random) -> tuple[int, int]:
    """Stand for the policy's kernel of that name, which is put in its place."""
    raise NotImplementedError


def learn(state: Any, i: int, j: int, points: int) -> None:
    """Stand for the policy's kernel of that name, which is put in its place."""
    raise NotImplementedError


idle, remaining = never_idle, all_remain


@kernel
def _drive(
    state: Any,
    rng: Random,
    world: Random,
    chance: Floats,
    cost: Floats,
    horizon: int,
    skip: bool,
    checkpoints: Ints,
    curve: Floats,
    points: Ints,
    selfduels: Ints,
) -> tuple[float, int, int]:
    marks = len(checkpoints)
    mark, duels, alone, t = 0, 0, -1, 0
    regret = 0.0  # of duels; self-duels are counted in whole numbers, so that jumps and steps come to the same
    while t < horizon:
        t += 1
        i, j = choose(state, t, rng)
        if alone < 0 and remaining(state) == 1:
            alone = t - 1
        # Arms are not negative: saying so spares every index below the check for counting from the end.
        i, j = i & _NOT_NEGATIVE, j & _NOT_NEGATIVE
        if i != j:
            won = 2 * int(uniform(world) < chance[i, j])
            points[i, j] += won
            points[j, i] += 2 - won
            learn(state, i, j, won)
            regret += cost[i, j]
            duels += 1
        else:
            last = t
            if skip:
                last = min(idle(state, t), horizon) if alone < 0 else horizon  # an arm that is left alone stays
            while mark < marks and checkpoints[mark] < last:
                part = checkpoints[mark] - t + 1
                curve[mark] = regret + _selfduel_regret(selfduels, cost, i, part)
                mark += 1
            selfduels[i] += last - t + 1
            t = last
        if mark < marks and checkpoints[mark] == t:
            curve[mark] = regret + _selfduel_regret(selfduels, cost, 0, 0)
            mark += 1
    if alone < 0 and remaining(state) == 1:
        alone = horizon
    return regret + _selfduel_regret(selfduels, cost, 0, 0), duels, alone


@kernel
def _selfduel_regret(selfduels: Ints, cost: Floats, arm: int, more: int) -> float:
    """Return the regret of all self-duels so far and `more` of `arm`."""
    total = 0.0
    for i in range(len(selfduels)):
        total += (selfduels[i] + (more if i == arm else 0)) * cost[i, i]
    return total


def _loop(kernels: Kernels, compiled: bool) -> Any:
    """Return the loop for these kernels; policies that differ in their init only share it."""
    return _specialised(tuple(kernels.parts.items()), kernels.family, kernels.layout, compiled)


@cache
def _specialised(parts: tuple[tuple[str, Any], ...], family: str, layout: str, compiled: bool) -> Any:
    if not compiled:
        return _jit.plain(_drive, dict(parts))
    return _jit.specialise(_drive, dict(parts), f"_drive_{family}", layout)


def drive(
    kernels: Kernels,
    chance: ArrayLike,
    cost: ArrayLike,
    horizon: int,
    checkpoints: ArrayLike,
    rng: Random,
    world: Random,
    parameters: Mapping[str, Any],
    *,
    skip: bool = True,
    compiled: bool = True,
) -> Drive:
    """Play `horizon` duels: i beats j with `chance[i, j]`, which costs `cost[i, j]`, self-duels included.

    `rng` is the policy's stream and `world` the verdicts'; both are used up. `parameters` are complete, as
    `Policy.complete` gives them. `checkpoints` ascend strictly within 1..horizon. `skip=False` goes through idle
    stretches step by step, `compiled=False` runs plain Python; the result is the same, to the last bit.
    """
    P, R = np.ascontiguousarray(chance, np.float64), np.ascontiguousarray(cost, np.float64)
    marks = np.ascontiguousarray(checkpoints, np.int64)
    K = len(P)
    if P.shape != (K, K) or R.shape != (K, K) or K == 0:
        raise InputError(f"chance has shape {P.shape}, cost {R.shape}: give two square tables of one size")
    if marks.size and (marks[0] < 1 or marks[-1] > horizon or (np.diff(marks) <= 0).any()):
        raise InputError(
            f"checkpoints go from {marks[0]} to {marks[-1]}: they must ascend strictly within 1..{horizon}"
        )
    if compiled and horizon > LONG and _jit.compiler() is None:
        _warn_once()
    state = _jit.wrapping(kernels.init)(K, horizon, rng, **parameters)
    curve, points, selfduels = np.zeros(marks.size), np.zeros((K, K), np.int64), np.zeros(K, np.int64)
    regret, duels, alone = _loop(kernels, compiled)(
        state, rng, world, P, R, horizon, skip, marks, curve, points, selfduels
    )
    active = np.ones(K, bool) if kernels.active is None else kernels.active(state)
    alone = 0 if K == 1 else int(alone)  # an arm without rivals has won, also where the policy never eliminates
    return Drive(curve, float(regret), int(duels), points, selfduels, active, alone)


@cache
def _warn_once() -> None:
    warnings.warn(
        "numba is not installed: sequential policies run as plain Python, some hundred times slower; "
        "pip install 'roundel[fast]'",
        UncompiledWarning,
        stacklevel=4,
    )
