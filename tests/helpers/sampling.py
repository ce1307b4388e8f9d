"""Do two samples come from one distribution? The chi-square test, with the alarm rate it is called with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import sqrt
from statistics import NormalDist
from typing import Any

ALARM = 1e-5  # of one comparison, unless told
FEW = 10  # cells expected to hold fewer are pooled


def chi_square_limit(freedom: int, alarm: float = ALARM) -> float:
    """What chi-square with this many degrees of freedom exceeds with chance `alarm` (Wilson & Hilferty 1931)."""
    part = 2 / (9 * freedom)
    return float(freedom * (1 - part + NormalDist().inv_cdf(1 - alarm) * sqrt(part)) ** 3)


def differ(one: Iterable[Any], other: Iterable[Any], alarm: float = ALARM) -> bool:
    """Whether two samples of anything hashable are too far apart for one distribution."""
    first, second = Counter(one), Counter(other)
    n, m = first.total(), second.total()
    cells = []
    pooled = [0, 0]
    for key in first | second:
        cell = [first[key], second[key]]
        if sum(cell) * min(n, m) / (n + m) < FEW:
            pooled = [a + b for a, b in zip(pooled, cell, strict=True)]
        else:
            cells.append(cell)
    if sum(pooled):
        cells.append(pooled)
    if len(cells) < 2:
        return False
    statistic = sum((a * sqrt(m / n) - b * sqrt(n / m)) ** 2 / (a + b) for a, b in cells)
    return statistic > chi_square_limit(len(cells) - 1, alarm)


def departs(sample: Iterable[Any], chances: Mapping[Any, float], alarm: float = ALARM) -> bool:
    """Whether a sample is too far from known chances; whatever they do not name must not occur."""
    seen = Counter(sample)
    n = seen.total()
    if any(chances.get(key, 0.0) <= 0.0 for key in seen):
        return True
    cells = [(seen[key], n * chance) for key, chance in chances.items() if n * chance >= FEW]
    rest = n - sum(expected for _, expected in cells)
    if rest > 0.5:
        cells.append((n - sum(count for count, _ in cells), rest))
    if len(cells) < 2:
        return False
    statistic = sum((count - expected) ** 2 / expected for count, expected in cells)
    return statistic > chi_square_limit(len(cells) - 1, alarm)
