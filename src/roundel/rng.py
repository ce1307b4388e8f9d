"""Our own small stream of random numbers: the same compiled, plain, and in every version, so that replay lasts.

The generator is xoshiro256++ (Blackman & Vigna 2019): 256 bits of state, adds, shifts and rotations only, so
that it compiles to a handful of instructions and needs no wide multiplication as plain Python. A stream is
seeded with the SHA-256 of its seed and path, so that any two seeds, however alike, give unrelated streams.

Beta numbers are exact (no approximation, no table): rejection after R. C. H. Cheng, Generating beta variates
with nonintegral shape parameters, CACM 21 (1978), algorithms BB (both parameters above 1) and BC (the others).
"""

from __future__ import annotations

import hashlib
from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from roundel._jit import kernel

State = NDArray[np.uint64]

_11, _12, _17, _19, _23, _41, _45 = (np.uint64(n) for n in (11, 12, 17, 19, 23, 41, 45))
_TO_UNIT = 2.0**-53
_TO_OPEN_UNIT = 2.0**-52
_LOG_4 = log(4.0)
_1_PLUS_LOG_5 = 1.0 + log(5.0)
_LARGEST_EXPONENT = 600.0  # the power, times any parameter, stays a float


def seeded(seed: int, *path: int | str) -> State:
    """Return the state of the stream with this seed and path."""
    text = "/".join(str(part) for part in (seed, *path))
    return np.frombuffer(hashlib.sha256(f"roundel {text}".encode()).digest(), dtype="<u8").astype(np.uint64)


@kernel
def word(state: State) -> np.uint64:
    """Return 64 random bits and step the state."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    total = s0 + s3
    out = ((total << _23) | (total >> _41)) + s0
    shifted = s1 << _17
    s2 ^= s0
    s3 ^= s1
    state[1] = s1 ^ s2
    state[0] = s0 ^ s3
    state[2] = s2 ^ shifted
    state[3] = (s3 << _45) | (s3 >> _19)
    return out  # type: ignore[no-any-return]


@kernel
def uniform(state: State) -> float:
    """Return a number in [0, 1), a multiple of 2**-53."""
    return float(word(state) >> _11) * _TO_UNIT


@kernel
def open_uniform(state: State) -> float:
    """Return a number in (0, 1), an odd multiple of 2**-53: its logarithm exists."""
    return (float(word(state) >> _12) + 0.5) * _TO_OPEN_UNIT


@kernel
def below(state: State, n: int) -> int:
    """Return a whole number in 0..n-1 (the bias is below n / 2**53)."""
    return int(uniform(state) * n)


@kernel
def beta(state: State, a: float, b: float) -> float:
    """Return a number with the Beta(a, b) distribution, for a and b above 0."""
    if min(a, b) > 1.0:
        return _beta_bb(state, a, b)
    return _beta_bc(state, a, b)


@kernel(inline=False)
def _beta_bb(state: State, a: float, b: float) -> float:
    small, large = min(a, b), max(a, b)
    both = small + large
    scale = sqrt((both - 2.0) / (2.0 * small * large - both))
    slope = small + 1.0 / scale
    while True:
        u = open_uniform(state)
        z = u * u * open_uniform(state)
        v = scale * log(u / (1.0 - u))
        w = small * exp(min(v, _LARGEST_EXPONENT))
        r = slope * v - _LOG_4
        s = small + r - w
        if s + _1_PLUS_LOG_5 >= 5.0 * z:
            break
        t = log(z)
        if s >= t or r + both * log(both / (large + w)) >= t:
            break
    return w / (large + w) if a == small else large / (large + w)


@kernel(inline=False)
def _beta_bc(state: State, a: float, b: float) -> float:
    large, small = max(a, b), min(a, b)
    both = large + small
    scale = 1.0 / small
    delta = 1.0 + large - small
    inner = delta * (0.0138889 + 0.0416667 * small) / (large * scale - 0.777778)
    outer = 0.25 + (0.5 + 0.25 / delta) * small
    while True:
        u = open_uniform(state)
        u2 = open_uniform(state)
        y = u * u2
        z = u * y
        v = scale * log(u / (1.0 - u))
        w = large * exp(min(v, _LARGEST_EXPONENT))
        if u < 0.5:
            if 0.25 * u2 + z - y >= inner:
                continue
        elif z <= 0.25:
            break
        elif z >= outer:
            continue
        if both * (log(both / (small + w)) + v) - _LOG_4 >= log(z):
            break
    return w / (small + w) if a == large else small / (small + w)


class Stream:
    """One stream, for code that is not compiled."""

    __slots__ = ("state",)

    def __init__(self, seed: int, *path: int | str) -> None:
        self.state = seeded(seed, *path)

    def uniform(self) -> float:
        """Return a number in [0, 1)."""
        with np.errstate(over="ignore"):  # 64-bit sums are meant to wrap
            return uniform(self.state)

    def uniforms(self, n: int) -> NDArray[np.float64]:
        """Return `n` numbers in [0, 1), in stream order."""
        with np.errstate(over="ignore"):
            return np.array([uniform(self.state) for _ in range(n)], np.float64)

    def below(self, n: int) -> int:
        """Return a whole number in 0..n-1."""
        with np.errstate(over="ignore"):
            return below(self.state, n)
