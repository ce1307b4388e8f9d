"""Groups of arms that are thinned out one after the other, and merged as they shrink: MergeRUCB and MergeDTS."""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundel._jit import kernel
from roundel.errors import PolicyError
from roundel.policies.sequential._family import Floats, Ints
from roundel.rng import State as Random
from roundel.rng import below, uniform

COUNT, POINTER, STAGE, STEPS, ALIVE = 0, 1, 2, 3, 4  # the places in `memory`


class Groups(NamedTuple):
    """A partition of the arms in play, and what is known of the pairs inside."""

    alpha: float
    offset: float  # the paper's C0: added to the step number in the logarithm
    batch: int  # the paper's p: the usual size of a group
    points: Ints  # points[i, j]: half-wins of i over j
    level: Floats  # U[i][j] < 1/2 if and only if level[i, j] > ln(steps + offset)
    member: Ints  # member[g, :size[g]]: the arms of group g
    size: Ints
    memory: Ints  # how many groups; the current one; the paper's S; steps; arms in play
    spare_member: Ints  # room to write the merged groups to
    spare_size: Ints
    order: Ints  # the groups by size


def first_constant(arms: int, alpha: float, delta: float) -> float:
    """Return the paper's C0."""
    return float(((4 * alpha - 1) * arms**2 / ((2 * alpha - 1) * delta)) ** (1 / (2 * alpha - 1)))


def groups(name: str, arms: int, rng: Random, alpha: float, batch: int, delta: float) -> Groups:
    """Return a random partition into groups of `batch` arms; half a group or less joins the one before."""
    if not alpha > 0.5:
        raise PolicyError(f"{name}: alpha is {alpha}: it must be above 1/2")
    if batch < 2:
        raise PolicyError(f"{name}: batch is {batch}: a group must have at least 2 arms")
    if not 0.0 < delta < 1.0:
        raise PolicyError(f"{name}: delta is {delta}: it must lie between 0 and 1")
    try:
        offset = first_constant(arms, alpha, delta)
    except OverflowError:
        raise PolicyError(
            f"{name}: alpha is {alpha}: so close to 1/2 the constant C0 is too large for a number; try 0.6 or more"
        ) from None
    shuffled = np.arange(arms)
    for k in range(arms - 1, 0, -1):
        other = below(rng, k + 1)
        shuffled[[k, other]] = shuffled[[other, k]]
    starts = list(range(0, arms, batch))
    if len(starts) > 1 and 2 * (arms - starts[-1]) <= batch:
        starts.pop()
    member, size = np.zeros((arms, arms), np.int64), np.zeros(arms, np.int64)
    for g, (start, end) in enumerate(zip(starts, [*starts[1:], arms], strict=True)):
        member[g, : end - start], size[g] = shuffled[start:end], end - start
    return Groups(
        alpha=alpha,
        offset=offset,
        batch=batch,
        points=np.zeros((arms, arms), np.int64),
        level=np.zeros((arms, arms)),
        member=member,
        size=size,
        memory=np.array([len(starts), -1, 1, 0, arms]),
        spare_member=np.zeros((arms, arms), np.int64),
        spare_size=np.zeros(arms, np.int64),
        order=np.zeros(arms, np.int64),
    )


def in_play(groups: Groups) -> NDArray[np.bool_]:
    """Return which arms are in play."""
    active = np.zeros(len(groups.size), bool)
    for g in range(groups.memory[COUNT]):
        active[groups.member[g, : groups.size[g]]] = True
    return active


@kernel
def record(groups: Groups, i: int, j: int, points: int) -> None:
    """Count a duel."""
    groups.points[i, j] += points
    groups.points[j, i] += 2 - points
    mine, theirs = groups.points[i, j], groups.points[j, i]
    level = float((mine - theirs) ** 2) / (8.0 * (mine + theirs) * groups.alpha)
    groups.level[i, j] = level if mine < theirs else 0.0
    groups.level[j, i] = level if theirs < mine else 0.0


@kernel
def next_group(groups: Groups, skip_single: bool) -> int:
    """Move on to the next group, in a circle."""
    memory, size = groups.memory, groups.size
    while True:
        memory[POINTER] = (memory[POINTER] + 1) % memory[COUNT]
        if size[memory[POINTER]] > 1 or not skip_single:
            return int(memory[POINTER])


@kernel
def optimism(groups: Groups, j: int, i: int, logarithm: float) -> float:
    """Return U[j][i]."""
    total = groups.points[i, j] + groups.points[j, i]
    if total == 0:
        return 1.0
    return float(groups.points[j, i] / total + sqrt(2.0 * groups.alpha * logarithm / total))


@kernel
def remove_beaten(groups: Groups, g: int, rng: Random) -> bool:
    """Remove the arms of group g that some other one surely beats; return whether there were any."""
    member, level, memory = groups.member[g], groups.level, groups.memory
    size = groups.size[g]
    limit = log(memory[STEPS] + groups.offset)
    beaten = 0
    for a in range(size):
        beaten += int(_is_beaten(member, size, level, a, limit))
    if beaten == 0:
        return False
    if beaten == size:  # a cycle: somebody must stay
        member[0] = member[below(rng, size)]
        kept = 1
    else:
        # Arms before `a` may have been overwritten: mark first (-1 - arm), then close the gaps.
        for a in range(size):
            if _is_beaten(member, size, level, a, limit):
                member[a] = -1 - member[a]
        kept = 0
        for a in range(size):
            if member[a] >= 0:
                member[kept] = member[a]
                kept += 1
    groups.size[g] = kept
    memory[ALIVE] -= size - kept
    return True


@kernel
def _is_beaten(member: Ints, size: int, level: Floats, a: int, limit: float) -> bool:
    i = member[a]
    for b in range(size):
        j = member[b] if member[b] >= 0 else -1 - member[b]
        if level[i, j] > limit:
            return True
    return False


@kernel
def merge_when_few(groups: Groups, rng: Random) -> None:
    """Merge groups as long as few enough arms are left for the stage, or no group has two."""
    memory = groups.memory
    while memory[COUNT] > 1:
        few = memory[ALIVE] <= len(groups.size) / 2.0 ** memory[STAGE] + 1.0
        if not few and memory[ALIVE] > memory[COUNT]:
            return
        _merge(groups, rng)
        smallest = groups.size[0]
        for g in range(memory[COUNT]):
            smallest = min(smallest, groups.size[g])
        if memory[COUNT] > 1 and 2 * smallest <= groups.batch:
            _merge(groups, rng)
        memory[STAGE] += int(few)


@kernel(inline=False)
def _merge(groups: Groups, rng: Random) -> None:
    """Join the smallest group with the largest, the second smallest with the second largest, and so on."""
    size, spare = groups.size, groups.spare_size
    _sort_by_size(groups, rng)
    i, j, count = 0, groups.memory[COUNT] - 1, 0
    while i <= j:
        small, large = groups.order[i], groups.order[j]
        spare[count] = 0
        _append(groups, count, large)
        if i < j and 2 * (size[small] + size[large]) <= 3 * groups.batch:
            _append(groups, count, small)
            i += 1
        j -= 1
        count += 1
    for g in range(count):
        size[g] = spare[g]
        for k in range(size[g]):
            groups.member[g, k] = groups.spare_member[g, k]
    groups.memory[COUNT] = count


@kernel
def _append(groups: Groups, to: int, g: int) -> None:
    for k in range(groups.size[g]):
        groups.spare_member[to, groups.spare_size[to]] = groups.member[g, k]
        groups.spare_size[to] += 1


@kernel
def _sort_by_size(groups: Groups, rng: Random) -> None:
    """Order the groups by size, equal ones at random: a shuffle, then a stable sort by insertion."""
    order, size, count = groups.order, groups.size, groups.memory[COUNT]
    for g in range(count):
        other = below(rng, g + 1)
        order[g] = order[other]
        order[other] = g
    for k in range(1, count):
        g, place = order[k], k
        while place > 0 and size[order[place - 1]] > size[g]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = g


@kernel
def absorb(groups: Groups, g: int) -> None:
    """Let the next group take in group g."""
    member, size, memory = groups.member, groups.size, groups.memory
    into = (g + 1) % memory[COUNT]
    for k in range(size[g]):
        member[into, size[into]] = member[g, k]
        size[into] += 1
    for k in range(g, memory[COUNT] - 1):
        size[k] = size[k + 1]
        for m in range(size[k]):
            member[k, m] = member[k + 1, m]
    memory[COUNT] -= 1
    memory[POINTER] = g - 1  # what was next is next


@kernel
def choose_random(groups: Groups, g: int, rng: Random) -> int:
    """Return an arm of group g."""
    return int(groups.member[g, below(rng, groups.size[g])])


@kernel
def most_optimistic(groups: Groups, g: int, c: int, rng: Random) -> int:
    """Return the arm of group g, other than c, with the highest U against c; ties at random."""
    logarithm = log(groups.memory[STEPS] + groups.offset)
    top, ties, d = -1.0, 0, c
    for k in range(groups.size[g]):
        j = groups.member[g, k]
        if j != c:
            score = optimism(groups, j, c, logarithm)
            if score > top:
                top, ties, d = score, 1, j
            elif score == top:
                ties += 1
                if uniform(rng) * ties < 1.0:
                    d = j
    return d
