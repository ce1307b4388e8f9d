"""At practical horizons C2B is PCOMP, duel for duel (ALGORITHMS.md, section 1): where 16 K^6 q_1^4 >= B T."""

from __future__ import annotations

from math import log2

import numpy as np

from instances import Floats, condorcet
from playing import play, start
from roundel.policies.schedule import batch_size


def instances(rng: np.random.Generator, count: int) -> list[tuple[Floats, int, int]]:
    """Random Condorcet matrices, horizons and rounds that meet the condition."""
    found: list[tuple[Floats, int, int]] = []
    while len(found) < count:
        arms, horizon = int(rng.integers(2, 11)), int(10 ** rng.uniform(0.5, 6))
        rounds = int(rng.integers(1, max(2, int(log2(horizon)) + 1)))
        if 16 * arms**6 * batch_size(horizon, rounds, 1) ** 4 >= rounds * horizon:
            found.append((condorcet(rng, arms), horizon, rounds))
    return found


def differences(policy: str, seed: int, count: int) -> int:
    """In how many instances `policy` and PCOMP do not plan the same, given the same random numbers."""
    different = 0
    for number, (matrix, horizon, rounds) in enumerate(instances(np.random.default_rng(seed), count)):
        one, other = (
            play(start(name, len(matrix), horizon, rounds), matrix, np.random.default_rng([seed, number]))
            for name in (policy, "pcomp")
        )
        different += one.plans != other.plans or one.run.eliminations != other.run.eliminations
    return different


def test_c2b_with_the_rule_of_the_paper_is_pcomp(statistics_seed: int) -> None:
    assert differences("c2b", statistics_seed, 300) == 0


def test_c2b_with_majorities_is_not(statistics_seed: int) -> None:
    """The negative control: most of these instances have rounds in which a candidate defeats somebody."""
    assert differences("c2b:defeat=majority", statistics_seed, 60) > 20
