"""The standard instances that the tests share: true matrices, and verdicts that are certain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def sure(arms: int, beats: list[tuple[int, int]]) -> Floats:
    """A matrix in which the first of each pair always beats the second, and all other pairs are even."""
    matrix = np.full((arms, arms), 0.5)
    for i, j in beats:
        matrix[i, j], matrix[j, i] = 1.0, 0.0
    return matrix


def order(arms: int, chance: float = 1.0) -> Floats:
    """A matrix in which each arm beats every later one with this chance."""
    upper = np.triu(np.full((arms, arms), chance), 1)
    return np.asarray(upper + np.tril(np.full((arms, arms), 1 - chance), -1) + np.eye(arms) / 2)


DET2, DET3, DET4 = order(2), order(3), order(4)
RPS3 = sure(3, [(0, 1), (1, 2), (2, 0)])
SIX = np.array(
    [
        [0.50, 0.55, 0.55, 0.54, 0.61, 0.61],
        [0.45, 0.50, 0.55, 0.55, 0.58, 0.60],
        [0.45, 0.45, 0.50, 0.54, 0.51, 0.56],
        [0.46, 0.45, 0.46, 0.50, 0.54, 0.50],
        [0.39, 0.42, 0.49, 0.46, 0.50, 0.51],
        [0.39, 0.40, 0.44, 0.50, 0.49, 0.50],
    ]
)
ARITH8 = 0.5 + 0.05 * (np.arange(8)[None, :] - np.arange(8)[:, None])
CYC4 = np.array([[0.5, 0.6, 0.6, 0.6], [0.4, 0.5, 0.9, 0.1], [0.4, 0.1, 0.5, 0.9], [0.4, 0.9, 0.1, 0.5]])
NOCW5 = np.array(
    [
        [0.50, 0.60, 0.65, 0.70, 0.40],
        [0.40, 0.50, 0.60, 0.55, 0.60],
        [0.35, 0.40, 0.50, 0.60, 0.65],
        [0.30, 0.45, 0.40, 0.50, 0.60],
        [0.60, 0.40, 0.35, 0.40, 0.50],
    ]
)


def linear(rng: np.random.Generator, arms: int, spread: float = 0.9) -> Floats:
    """Random linear utilities, the best first: SST and STI hold."""
    utilities = np.sort(rng.random(arms))[::-1] * spread
    return np.asarray(0.5 + (utilities[:, None] - utilities[None, :]) / 2)


def condorcet(rng: np.random.Generator, arms: int) -> Floats:
    """A random matrix in which arm 0 beats every other and the rest may cycle."""
    upper = np.triu(0.05 + 0.9 * rng.random((arms, arms)), 1)
    upper[0, 1:] = 0.5 + 0.45 * rng.random(arms - 1) + 0.01
    return np.asarray(upper + np.tril(1 - upper.T, -1) + np.eye(arms) / 2)
