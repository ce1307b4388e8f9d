"""The batch schedule: q_r = floor(T^(r/B)), exact."""

from __future__ import annotations

import warnings
from functools import lru_cache
from math import exp, floor, log

from roundel.errors import ScheduleWarning


@lru_cache(maxsize=4096)
def batch_size(horizon: int, rounds: int, r: int) -> int:
    """Return q_r, the largest whole m with m^B <= T^r; q_r = T for r >= B.

    Floats decide where they can: they are exact enough unless T^(r/B) lies next to a whole number, and only
    then the powers are compared as integers (1000^(1/3) is 9.999999999999998 in floats, and 10 in truth).
    """
    if r >= rounds:
        return horizon
    root = exp(r / rounds * log(horizon))
    slack = 1e-12 * root * max(1.0, log(horizon))
    low, high = floor(root - slack), floor(root + slack)
    while low < high:
        middle = (low + high + 1) // 2
        if middle**rounds <= horizon**r:
            low = middle
        else:
            high = middle - 1
    return low


def default_rounds(horizon: int) -> int:
    """Return max(1, floor(ln T)), the number of rounds that the literature uses."""
    return max(1, floor(log(horizon)))


def warn_of_slow_growth(horizon: int, rounds: int, stacklevel: int = 3) -> None:
    """Warn where rounds grow by less than 2, which is where there are more than log2 T of them."""
    if rounds > 1 and rounds >= horizon.bit_length():
        warnings.warn(
            f"rounds is {rounds}: above log2 of the horizon ({horizon}) rounds grow by less than 2, "
            "which the guarantees do not cover; it runs all the same",
            ScheduleWarning,
            stacklevel=stacklevel,
        )
