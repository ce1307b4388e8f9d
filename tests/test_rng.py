from __future__ import annotations

from hashlib import sha256
from itertools import pairwise
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundel._jit import wrapping
from roundel.rng import Stream, below, beta, open_uniform, seeded, uniform, word

MASK = 2**64 - 1


def reference(state: list[int], n: int) -> list[int]:
    """xoshiro256++ in unbounded integers, as its authors' C code reads."""

    def rotl(x: int, k: int) -> int:
        return ((x << k) | (x >> (64 - k))) & MASK

    s, out = list(state), []
    for _ in range(n):
        out.append((rotl((s[0] + s[3]) & MASK, 23) + s[0]) & MASK)
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)
    return out


@wrapping
def words(state: list[int], n: int) -> list[int]:
    array = np.array(state, np.uint64)
    return [int(word(array)) for _ in range(n)]


def test_the_published_vector() -> None:
    published = [
        41943041,
        58720359,
        3588806011781223,
        3591011842654386,
        9228616714210784205,
        9973669472204895162,
        14011001112246962877,
        12406186145184390807,
        15849039046786891736,
        10450023813501588000,
    ]
    assert words([1, 2, 3, 4], 10) == published == reference([1, 2, 3, 4], 10)


@given(st.lists(st.integers(0, MASK), min_size=4, max_size=4))
def test_words_are_those_of_unbounded_integers(state: list[int]) -> None:
    assert words(state, 20) == reference(state, 20)


def test_seeds_never_change() -> None:
    digest = sha256(b"roundel 7/policy/3").digest()
    assert seeded(7, "policy", 3).tolist() == [int.from_bytes(digest[k : k + 8], "little") for k in (0, 8, 16, 24)]
    pinned = [587837458404185627, 14308448863208284468, 14970266999366568107, 11103501630733064864]
    assert seeded(0).tolist() == pinned


def test_paths_give_unrelated_streams() -> None:
    streams = [seeded(0), seeded(1), seeded(0, "a"), seeded(0, 1), seeded(0, 1, 1)]
    assert len({tuple(s.tolist()) for s in streams}) == 5


def test_a_uniform_number_is_53_bits_of_a_word() -> None:
    state = seeded(7)
    wanted = [w >> 11 for w in reference(state.tolist(), 50)]
    assert [x * 2**53 for x in Stream(7).uniforms(50)] == wanted


def test_the_extremes() -> None:

    low = np.zeros(4, np.uint64)
    assert uniform(low) == 0.0
    assert open_uniform(low) == 2.0**-53
    # rotl(s0 + s3, 23) + s0 is all ones for s0 = 0, s3 = 2**64 - 1.
    high = np.array([0, 0, 0, MASK], np.uint64)
    assert uniform(high.copy()) == 1 - 2.0**-53
    assert open_uniform(high.copy()) == 1 - 2.0**-53
    assert below(high.copy(), 10**9) == 10**9 - 1


def chi_square(counts: np.ndarray) -> float:
    return float(((counts - counts.mean()) ** 2 / counts.mean()).sum())


def test_numbers_are_uniform(statistics_seed: int) -> None:
    numbers = Stream(statistics_seed, "uniform").uniforms(60_000)
    # Chi-square with 255 degrees of freedom is above 377 with chance 1e-6.
    assert chi_square(np.bincount((numbers * 256).astype(int), minlength=256)) < 377
    pairs = (numbers[::2] * 16).astype(int) * 16 + (numbers[1::2] * 16).astype(int)
    assert chi_square(np.bincount(pairs, minlength=256)) < 377
    assert chi_square(np.bincount((numbers**1.1 * 256).astype(int), minlength=256)) > 377  # the control


def test_below_is_uniform(statistics_seed: int) -> None:
    stream = Stream(statistics_seed, "below")
    counts = np.bincount([stream.below(10) for _ in range(20_000)], minlength=10)
    assert len(counts) == 10
    assert chi_square(counts) < 46  # 9 degrees of freedom: chance 6e-7
    counts[3] += 200
    assert chi_square(counts) > 15


def beta_cdf(a: float, b: float, x: np.ndarray) -> np.ndarray:
    """The distribution function, by the trapezoid rule in theta, x = sin(theta)^2 (a, b >= 1/2)."""
    theta = np.linspace(0, np.pi / 2, 400_001)
    s, c = np.sin(theta), np.abs(np.cos(theta))
    with np.errstate(divide="ignore"):
        logs = np.zeros(s.shape)
        logs += (2 * a - 1) * np.log(s) if a > 0.5 else 0.0
        logs += (2 * b - 1) * np.log(c) if b > 0.5 else 0.0
    density = np.exp(logs - logs.max())
    sums = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return np.interp(np.arcsin(np.sqrt(x)), theta, sums / sums[-1])


def distance(sample: np.ndarray, a: float, b: float) -> float:
    """Kolmogorov's distance between a sample and Beta(a, b)."""
    x = np.sort(sample)
    cdf, n = beta_cdf(a, b, x), len(x)
    return float(max((np.arange(1, n + 1) / n - cdf).max(), (cdf - np.arange(n) / n).max()))


@wrapping
def sample(a: float, b: float, n: int, seed: int) -> np.ndarray:
    state = seeded(seed, "beta", str(a), str(b))
    return np.array([beta(state, a, b) for _ in range(n)])


@pytest.mark.parametrize(
    ("a", "b"),
    [(1, 1), (1, 5), (5, 1), (2, 3), (1.5, 1.5), (1, 1000), (300.5, 2), (40, 60), (0.5, 0.5), (0.75, 4), (3000, 1.5)],
)
def test_beta_numbers(a: float, b: float, statistics_seed: int) -> None:
    n = 8000
    numbers = sample(a, b, n, statistics_seed)
    assert ((numbers >= 0) & (numbers <= 1)).all()
    # Dvoretzky, Kiefer and Wolfowitz: the distance is above this with chance 1e-7 at most.
    limit = sqrt(log(2 / 1e-7) / (2 * n))
    assert distance(numbers, a, b) < limit
    assert distance(numbers, 1.3 * a, b) > limit  # the control
    mean, variance = a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1))
    assert abs(numbers.mean() - mean) < 6 * sqrt(variance / n)  # chance 2e-9


@given(st.floats(1e-3, 1e9), st.floats(1e-3, 1e9), st.integers(0, 2**32))
def test_beta_numbers_exist_for_all_parameters(a: float, b: float, seed: int) -> None:
    for x in sample(a, b, 3, seed):
        assert 0 <= x <= 1


def test_the_two_orders_of_parameters_mirror_each_other() -> None:
    for a, b in pairwise((0.7, 1.0, 2.5, 8.0)):
        left, right = wrapping(beta)(seeded(5), a, b), wrapping(beta)(seeded(5), b, a)
        assert left == pytest.approx(1 - right)
