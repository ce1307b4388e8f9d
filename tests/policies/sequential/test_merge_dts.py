from __future__ import annotations

from itertools import chain

import numpy as np
import pytest

from instances import DET4, order
from roundel._jit import wrapping
from roundel.errors import PolicyError
from roundel.policies.sequential import _merging, merge_dts
from roundel.policies.sequential._merging import ALIVE, COUNT, POINTER, STAGE, STEPS, Groups
from sampling import differ
from stepping import Steps, duels, random_matrix, verdict

champion, weakest = map(wrapping, (merge_dts._champion, merge_dts._weakest))
WINS = np.array([[0, 9, 6, 7], [5, 0, 8, 3], [4, 6, 0, 5], [5, 7, 4, 0]])


def listed(parts: Groups) -> list[list[int]]:
    return [parts.member[g, : parts.size[g]].tolist() for g in range(parts.memory[COUNT])]


def sampled(count: int, ties: int) -> list[tuple[int, int]]:
    steps = Steps("merge-dts", 4)
    steps.tell(WINS)
    for _ in range(ties):
        steps.learn(2, 3, 1)
    found = []
    for _ in range(count):
        c = champion(steps.state, 0, steps.rng.state)
        found.append((int(c), int(weakest(steps.state, 0, c, steps.rng.state))))
    return found


def literal(count: int, ties: int, strongest: bool = False) -> list[tuple[int, int]]:
    """Champion of a drawn tournament, and the one with the smallest drawn chance to beat it."""
    rng, W, found = np.random.default_rng(1), WINS.astype(float), []
    W[2, 3] += ties / 2
    W[3, 2] += ties / 2
    for _ in range(count):
        upper = np.triu(rng.beta(W + 1, W.T + 1), 1)
        wins = ((upper + np.tril(1 - upper.T, -1)) > 0.5).sum(axis=1)
        c = int(rng.choice(np.flatnonzero(wins == wins.max())))
        chance = rng.beta(W[:, c] + 1, W[c] + 1)
        chance = -chance if strongest else chance
        chance[c] = 2.0
        found.append((c, int(np.argmin(chance))))
    return found


@pytest.mark.parametrize("ties", [0, 3])
def test_choices_inside_a_group_are_distributed_as_specified(ties: int) -> None:
    assert not differ(sampled(2500, ties), literal(5000, ties))


def test_the_comparison_catches_the_strongest_opponent() -> None:
    assert differ(sampled(2500, 0), literal(5000, 0, strongest=True))


@pytest.mark.parametrize("seed", range(6))
def test_groups_partition_the_arms_in_play_and_take_turns(seed: int) -> None:
    arms = (1, 3, 7, 9, 14, 30)[seed]
    matrix = random_matrix(seed, arms) if seed % 2 else order(arms)
    steps, world, before = Steps("merge-dts", arms, 10**4, seed), np.random.default_rng(seed), arms
    parts: Groups = steps.state.groups
    turns: list[int] = []
    for t in range(1, 2501):
        i, j = steps.choose(t)
        now = listed(parts)
        assert sorted(chain(*now)) == steps.active()
        assert len(steps.active()) == parts.memory[ALIVE] == steps.remaining()
        if steps.remaining() < before or len(now) == 1:
            turns, before = [], steps.remaining()
        if i == j:
            assert now == [[i]]
            break
        assert min(map(len, now)) > 1  # a group of one is taken in at once
        # merged as MergeRUCB merges, and every step is counted, also one without a duel
        assert len(now) == 1 or len(steps.active()) > arms / 2 ** parts.memory[STAGE] + 1
        assert t <= parts.memory[STEPS] <= t + 2 * arms
        turns.append(int(parts.memory[POINTER]))
        if len(turns) > 1 and len(now) > 1:
            assert turns[-1] == (turns[-2] + 1) % len(now)
        assert {i, j} <= set(now[turns[-1]])
        steps.learn(i, j, verdict(world, matrix[i, j], 0.1))
    if not seed % 2:
        assert steps.active() == [0]


@pytest.mark.parametrize(
    ("alone", "after", "next_one"),
    [(0, [[1, 2, 3, 0], [4, 5, 6]], [1, 2, 3, 0]), (2, [[0, 1, 2, 6], [3, 4, 5]], [0, 1, 2, 6])],
)
def test_the_next_group_takes_in_a_single_arm(alone: int, after: list[list[int]], next_one: list[int]) -> None:
    parts: Groups = Steps("merge-dts", 7).state.groups
    rows = [[0], [1, 2, 3], [4, 5, 6]] if alone == 0 else [[0, 1, 2], [3, 4, 5], [6]]
    for g, row in enumerate(rows):
        parts.member[g, : len(row)], parts.size[g] = row, len(row)
    parts.memory[[COUNT, POINTER]] = 3, alone
    _merging.absorb(parts, alone)
    assert listed(parts) == after
    assert listed(parts)[_merging.next_group(parts, False)] == next_one


@pytest.mark.parametrize("seed", range(10))
def test_the_sure_winner_survives(seed: int) -> None:
    steps, _ = duels("merge-dts", DET4, 3000, seed)
    assert steps.active() == [0]


def test_refuses_parameters_without_meaning() -> None:
    with pytest.raises(PolicyError, match="batch is 1"):
        Steps("merge-dts", 6, batch=1)
