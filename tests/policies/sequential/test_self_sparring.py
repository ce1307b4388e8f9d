from __future__ import annotations

import numpy as np
import pytest

from instances import SIX
from sampling import differ
from stepping import Pair, Steps, duels, verdict


def sampled(won: list[int], lost: list[int], count: int) -> list[Pair]:
    steps = Steps("self-sparring", len(won))
    steps.state.won[:], steps.state.lost[:] = won, lost
    return [steps.choose(9) for _ in range(count)]


def literal(won: list[int], lost: list[int], count: int, fresh: bool = True) -> list[Pair]:
    """Section 12.11 of the specification: fresh numbers for each position. Half-wins count half."""
    rng, s, f = np.random.default_rng(0), np.array(won) / 2, np.array(lost) / 2
    found = []
    for _ in range(count):
        i = int(np.argmax(rng.beta(s + 1, f + 1)))
        found.append((i, int(np.argmax(rng.beta(s + 1, f + 1))) if fresh else i))
    return found


@pytest.mark.parametrize(
    ("won", "lost"),
    [([0, 0, 0], [0, 0, 0]), ([9, 6, 4, 1], [5, 6, 7, 2]), ([40, 31, 3], [30, 33, 1]), ([3], [3])],
)
def test_choices_are_distributed_as_in_the_pseudo_code(won: list[int], lost: list[int]) -> None:
    assert not differ(sampled(won, lost, 2500), literal(won, lost, 5000))


def test_the_comparison_catches_one_draw_for_both() -> None:
    won, lost = [9, 6, 4, 1], [5, 6, 7, 2]
    assert differ(sampled(won, lost, 2500), literal(won, lost, 5000, fresh=False))


def test_wins_and_losses_both_sum_to_the_duels() -> None:
    steps, times = duels("self-sparring", SIX, 1500)
    assert steps.state.won.sum() == steps.state.lost.sum() == 2 * len(times)
    assert 0 < len(times) < 1500


def test_each_arm_has_the_record_of_its_duels() -> None:
    steps, world, record = Steps("self-sparring", 6), np.random.default_rng(1), np.zeros((2, 6), int)
    for t in range(1, 500):
        i, j = steps.choose(t)
        if i != j:
            points = verdict(world, SIX[i, j], 0.3)
            steps.learn(i, j, points)
            record[:, i] += points, 2 - points
            record[:, j] += 2 - points, points
    assert [steps.state.won.tolist(), steps.state.lost.tolist()] == record.tolist()
