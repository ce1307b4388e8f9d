"""The batch schedule: q_r = floor(T^(r/B)), exact."""

from __future__ import annotations

from functools import lru_cache
from math import exp, floor, log


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
    if floor(root - slack) == floor(root + slack):
        return floor(root)
    m = floor(root + slack)
    while m**rounds > horizon**r:
        m -= 1
    return m


def default_rounds(horizon: int) -> int:
    """Return max(1, floor(ln T)), the number of rounds that the literature uses."""
    return max(1, floor(log(horizon)))
