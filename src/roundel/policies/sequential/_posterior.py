"""Which of two arms is better, drawn from the posterior: what Thompson-type policies share.

With W wins against L losses the chance th that an arm beats its opponent is drawn from Beta(W + 1, L + 1). These
policies use th mostly through one bit, th > 1/2. So the chance of that bit is kept for each pair (a duel changes
it by one term), and a draw of the bit costs one uniform number instead of a Beta number. Where th itself counts,
it is drawn given the bit. Bit and number have the same joint distribution as a number drawn directly.

Let h(a, b) = 2**-(a + b) / B(a, b). Then P(Beta(a + 1, b) > 1/2) = P(Beta(a, b) > 1/2) + h(a, b) / a and
h(a + 1, b) = h(a, b) (a + b) / 2a. After a tie, which has no such step, both are computed anew.
"""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

import numpy as np

from roundel._jit import kernel
from roundel.policies.sequential._family import FOREVER, Floats, Ints
from roundel.rng import State as Random
from roundel.rng import beta, open_uniform, uniform

_HALF_LOG_2_PI = 0.9189385332046727
_LOG_2 = 0.6931471805599453
_PRECISION = 1e-16
_LEAST = 1e-300
_MOST_TERMS = 100_000


class Posterior(NamedTuple):
    """What is known of each pair."""

    points: Ints  # points[i, j]: half-wins of i over j
    above: Floats  # above[i, j]: the chance that th[i][j] > 1/2
    height: Floats  # height[i, j] = ln h(W + 1, L + 1)


def posterior(arms: int) -> Posterior:
    """Return what is known at the start: th is uniform for each pair."""
    return Posterior(
        points=np.zeros((arms, arms), np.int64),
        above=np.full((arms, arms), 0.5),
        height=np.full((arms, arms), log(0.25)),
    )


@kernel
def observe(posterior: Posterior, i: int, j: int, points: int) -> None:
    """Take in a duel from which `i` got `points` half-wins."""
    table, above, height = posterior.points, posterior.above, posterior.height
    a, b = 0.5 * table[i, j] + 1.0, 0.5 * table[j, i] + 1.0
    table[i, j] += points
    table[j, i] += 2 - points
    if points == 1:
        level = _log_height(a + 0.5, b + 0.5)
        chance = _above_half(a + 0.5, b + 0.5, exp(level))
    else:
        gain = a if points == 2 else b
        step = exp(height[i, j]) / gain
        chance = above[i, j] + (step if points == 2 else -step)
        level = height[i, j] + log((a + b) / (2.0 * gain))
    chance = min(1.0, max(0.0, chance))
    above[i, j], above[j, i] = chance, 1.0 - chance
    height[i, j] = height[j, i] = level


@kernel
def _log_height(a: float, b: float) -> float:
    return _log_gamma(a + b) - _log_gamma(a) - _log_gamma(b) - (a + b) * _LOG_2


@kernel(inline=False)
def _log_gamma(x: float) -> float:
    """Return ln Gamma(x), x >= 1, by Stirling's series."""
    product = 1.0
    while x < 12.0:
        product *= x
        x += 1.0
    y = 1.0 / (x * x)
    series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / x
    return (x - 0.5) * log(x) - x + _HALF_LOG_2_PI + series - log(product)


@kernel(inline=False)
def _above_half(a: float, b: float, height: float) -> float:
    """Return P(Beta(a, b) > 1/2): the continued fraction of the incomplete beta function, after Lentz."""
    small, large = min(a, b), max(a, b)
    if small == large:
        return 0.5
    # The lower tail of Beta(large, small), which the fraction gives in few steps.
    c, d = 1.0, 1.0 - (large + small) * 0.5 / (large + 1.0)
    d = 1.0 / (d if abs(d) > _LEAST else _LEAST)
    value = d
    for m in range(1, _MOST_TERMS):
        even = m * (small - m) * 0.5 / ((large + 2.0 * m - 1.0) * (large + 2.0 * m))
        odd = -(large + m) * (large + small + m) * 0.5 / ((large + 2.0 * m) * (large + 2.0 * m + 1.0))
        d = 1.0 + even * d
        d = 1.0 / (d if abs(d) > _LEAST else _LEAST)
        c = 1.0 + even / c
        c = c if abs(c) > _LEAST else _LEAST
        value *= c * d
        d = 1.0 + odd * d
        d = 1.0 / (d if abs(d) > _LEAST else _LEAST)
        c = 1.0 + odd / c
        c = c if abs(c) > _LEAST else _LEAST
        value *= c * d
        if abs(c * d - 1.0) < 3.0 * _PRECISION:
            break
    tail = height / large * value
    return 1.0 - tail if a > b else tail


@kernel(inline=False)
def upper_half(rng: Random, a: float, b: float) -> float:
    """Return a Beta(a, b) number, given that it is above 1/2; a and b at least 1.

    Where that is rare, an exponential number that falls as fast as the density does at 1/2 is accepted or not:
    the logarithm of the density is concave, so it lies below its tangent.
    """
    fall = 2.0 * (b - a)
    if fall <= 0.0 or fall * fall < 0.4 * (a + b):
        x = 0.0
        while x <= 0.5:
            x = beta(rng, a, b)
        return x
    while True:
        drop = -log(open_uniform(rng))
        x = 0.5 + drop / fall
        if x < 1.0:
            excess = (a - 1.0) * log(2.0 * x) + (b - 1.0) * log(2.0 * (1.0 - x)) + drop
            if log(open_uniform(rng)) <= excess:
                return x


@kernel
def streak(rng: Random, chance: float) -> int:
    """Return how often in a row something happens that has this chance each time."""
    if chance >= 1.0:
        return FOREVER
    u = open_uniform(rng)
    if chance <= 0.0:
        return 0
    times = log(u) / log(chance)
    return FOREVER if times >= FOREVER else int(times)


@kernel
def break_point(rng: Random, chance: float) -> float:
    """Return a uniform number in [0, 1 - chance), by which to find out where a row of `chance` broke off."""
    return uniform(rng) * (1.0 - chance)
