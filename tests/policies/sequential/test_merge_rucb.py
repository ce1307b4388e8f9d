from __future__ import annotations

from itertools import chain
from math import log, sqrt
from typing import Any

import numpy as np
import pytest

from instances import DET4, order
from roundel._jit import wrapping
from roundel.errors import PolicyError
from roundel.policies.sequential import _merging
from roundel.policies.sequential._merging import ALIVE, COUNT, POINTER, STAGE, STEPS, Groups, first_constant
from roundel.rng import Stream
from sampling import departs
from stepping import Steps, duels, random_matrix, verdict

Floats = np.ndarray[Any, np.dtype[np.float64]]
merge = wrapping(_merging._merge)


def listed(parts: Groups) -> list[list[int]]:
    return [parts.member[g, : parts.size[g]].tolist() for g in range(parts.memory[COUNT])]


def merged_sizes(sizes: list[int], p: int) -> list[int]:
    """The merge check of the specification, once, seen by sizes."""
    sizes, out = sorted(sizes), []
    i, j = 0, len(sizes) - 1
    while i <= j:
        if i == j or sizes[i] + sizes[j] > 1.5 * p:
            out.append(sizes[j])
        else:
            out.append(sizes[i] + sizes[j])
            i += 1
        j -= 1
    return out


class Literal:
    """Section 12.1 of the specification, line by line; of what is drawn, it takes over who is in which group."""

    def __init__(self, parts: Groups, alpha: float = 1.01, p: int = 4, delta: float = 0.01) -> None:
        self.K, self.alpha, self.p = len(parts.size), alpha, p
        self.groups, self.pointer, self.S, self.n = listed(parts), -1, 1, 0
        self.W = np.zeros((self.K, self.K))
        self.C0 = ((4 * alpha - 1) * self.K**2 / ((2 * alpha - 1) * delta)) ** (1 / (2 * alpha - 1))

    def U(self, i: int, j: int) -> float:
        N = self.W[i, j] + self.W[j, i]
        return self.W[i, j] / N + sqrt(self.alpha * log(self.n + self.C0) / N) if N else 1.0

    def merge_check(self, parts: Groups) -> None:
        merges = 0
        sizes = [len(g) for g in self.groups]
        while len(sizes) > 1 and (sum(sizes) <= self.K / 2**self.S + 1 or max(sizes) == 1):
            few = sum(sizes) <= self.K / 2**self.S + 1
            sizes = merged_sizes(sizes, self.p)
            if len(sizes) > 1 and min(sizes) <= self.p / 2:
                sizes = merged_sizes(sizes, self.p)
            self.S += few
            merges += 1
        if merges:
            assert sorted(chain(*listed(parts))) == sorted(chain(*self.groups))
            assert [len(g) for g in listed(parts)] == sizes
            self.groups = listed(parts)

    def step(self, parts: Groups) -> list[int]:
        """Go on to the next duel; return the group in which it must be."""
        while True:
            self.n += 1
            if len(self.groups) == 1 and len(self.groups[0]) == 1:
                return self.groups[0]
            self.pointer = (self.pointer + 1) % len(self.groups)
            while len(self.groups[self.pointer]) == 1:
                self.pointer = (self.pointer + 1) % len(self.groups)
            group = self.groups[self.pointer]
            stays = [i for i in group if all(self.U(i, j) >= 0.5 for j in group if j != i)]
            if len(stays) == len(group):
                return group
            if not stays:
                stays = [i for i in group if any(i in other for other in listed(parts))]
                assert len(stays) == 1
            self.groups[self.pointer] = stays
            self.merge_check(parts)

    def learn(self, i: int, j: int, points: int) -> None:
        self.W[i, j] += points / 2
        self.W[j, i] += 1 - points / 2


def follow(matrix: Floats, seed: int, horizon: int, ties: float = 0.0) -> tuple[list[int], list[int], int]:
    """Play beside the pseudo-code; return sizes of the groups seen, arms in play at the end, the last stage."""
    steps, world = Steps("merge-rucb", len(matrix), horizon, seed), np.random.default_rng(seed)
    parts: Groups = steps.state.groups
    literal, sizes = Literal(parts), [len(g) for g in listed(parts)]
    for t in range(1, horizon + 1):
        c, d = steps.choose(t)
        group = literal.step(parts)
        assert listed(parts) == literal.groups
        if len(group) > 1:
            assert parts.memory[[POINTER, STAGE, STEPS]].tolist() == [literal.pointer, literal.S, literal.n]
            assert c in group
            best = max(literal.U(j, c) for j in group if j != c)
            assert literal.U(d, c) == pytest.approx(best, abs=1e-12)
            assert d in group
        assert parts.memory[ALIVE] == sum(map(len, literal.groups)) == steps.remaining() == len(steps.active())
        if c == d:
            assert group == [c]
            break
        points = verdict(world, matrix[c, d], ties)
        steps.learn(c, d, points)
        literal.learn(c, d, points)
        sizes += [len(g) for g in literal.groups]
    return sizes, steps.active(), literal.S


@pytest.mark.parametrize("seed", range(5))
def test_follows_the_pseudo_code(seed: int) -> None:
    follow(random_matrix(seed, (1, 2, 5, 9, 14)[seed]), seed, 1500, 0.2 * (seed % 2))


@pytest.mark.parametrize(("arms", "stages"), [(4, 1), (8, 2), (21, 3)])
def test_follows_the_pseudo_code_to_the_last_arm(arms: int, stages: int) -> None:
    sizes, active, stage = follow(order(arms), arms, 6000)
    assert active == [0]
    assert max(sizes) <= max(6, min(arms, 4))
    assert stage >= stages


@pytest.mark.parametrize("seed", range(10))
def test_the_sure_winner_survives(seed: int) -> None:
    steps, times = duels("merge-rucb", DET4, 3000, seed)
    assert steps.active() == [0]
    assert times == list(range(1, len(times) + 1))


@pytest.mark.parametrize(
    ("arms", "sizes"), [(8, [4, 4]), (30, [4] * 6 + [6]), (6, [6]), (7, [4, 3]), (4, [4]), (2, [2]), (1, [1])]
)
def test_sizes_of_the_first_groups(arms: int, sizes: list[int]) -> None:
    parts = Steps("merge-rucb", arms).state.groups
    assert [len(g) for g in listed(parts)] == sizes
    assert sorted(chain(*listed(parts))) == list(range(arms))


def test_the_first_partition_is_random() -> None:
    seen = [listed(Steps("merge-rucb", 4, seed=seed).state.groups)[0] for seed in range(2400)]
    assert not departs([arms[0] for arms in seen], dict.fromkeys(range(4), 0.25))
    assert not departs(
        [(arms[1], arms[3]) for arms in seen], {(a, b): 1 / 12 for a in range(4) for b in range(4) if a != b}
    )


@pytest.mark.parametrize(("arms", "constant"), [(6, 8944.27), (30, 209930), (136, 4066005)])
def test_the_first_constant(arms: int, constant: float) -> None:
    assert first_constant(arms, 1.01, 0.01) == pytest.approx(constant, rel=2e-6)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([1, 1, 4, 4], [5, 5]),
        ([2, 3, 4, 5], [5, 6, 3]),  # 5 + 2 is above 6: alone; 4 + 2; 3 is left over
        ([1, 1, 1], [2, 1]),
        ([3, 3], [6]),
        ([4, 4], [4, 4]),
    ],
)
def test_merging_by_hand(before: list[int], after: list[int]) -> None:
    parts = of_sizes(before)
    merge(parts, Stream(1).state)
    assert [len(g) for g in listed(parts)] == after
    assert sorted(chain(*listed(parts))) == list(range(sum(before)))


def of_sizes(sizes: list[int]) -> Groups:
    parts = Steps("merge-rucb", max(4, sum(sizes))).state.groups
    arms = iter(range(sum(sizes)))
    for g, size in enumerate(sizes):
        parts.member[g, :size] = [next(arms) for _ in range(size)]
        parts.size[g] = size
    parts.memory[COUNT] = len(sizes)
    return parts


def test_equally_small_groups_are_merged_at_random() -> None:
    partners = set()
    for seed in range(20):
        parts = of_sizes([3, 3, 3, 3])
        merge(parts, Stream(seed).state)
        partners.add(frozenset(frozenset(g) for g in listed(parts)))
    assert len(partners) == 3


def test_equally_optimistic_rivals_are_chosen_at_random() -> None:
    steps = Steps("merge-rucb", 4)
    sample = [steps.choose(t) for t in range(1, 2401)]  # nobody has dueled anybody: all bounds are equal
    assert not departs(sample, {(a, b): 1 / 12 for a in range(4) for b in range(4) if a != b})


def test_of_a_cycle_of_beaten_arms_any_may_stay() -> None:
    stays = set()
    for seed in range(40):
        steps = Steps("merge-rucb", 3, seed=seed)
        steps.state.groups.member[0, :3] = 0, 1, 2
        steps.state.groups.level[[0, 1, 2], [1, 2, 0]] = 1e6
        stays.add(steps.choose(1)[0])
        assert steps.remaining() == 1
    assert stays == {0, 1, 2}


@pytest.mark.parametrize(
    ("sizes", "stage", "after", "next_stage"),
    [
        ([1, 1, 1, 1], 9, [4], 9),  # nobody has a rival, though the stage goes on: 2 and 2, half a group each, then 4
        ([4, 4], 9, [4, 4], 9),
        ([2, 5], 0, [5, 2], 1),  # too large together
    ],
)
def test_when_groups_are_merged(sizes: list[int], stage: int, after: list[int], next_stage: int) -> None:
    parts = of_sizes(sizes)
    parts.memory[[STAGE, ALIVE]] = stage, sum(sizes)
    wrapping(_merging.merge_when_few)(parts, Stream(2).state)
    assert (sorted(len(g) for g in listed(parts)), parts.memory[STAGE]) == (sorted(after), next_stage)


@pytest.mark.parametrize(
    ("name", "value"), [("alpha", 0.5), ("batch", 1), ("delta", 0.0), ("delta", 1.0), ("alpha", 0.5001)]
)
def test_refuses_parameters_without_meaning(name: str, value: float) -> None:
    with pytest.raises(PolicyError, match=name):
        Steps("merge-rucb", 6, **{name: value})
