from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np
import pytest

from instances import DET4, SIX, order, sure
from roundel.policies.sequential import scb
from roundel.rng import Stream
from stepping import Pair, Steps, agree, random_matrix, verdict

Floats = np.ndarray[Any, np.dtype[np.float64]]
ENDS = [4, 20, 276, 65812]


def kl(p: float, q: float) -> float:
    total = 0.0
    for a, b in ((p, q), (1 - p, 1 - q)):
        if a > 0:
            total += a * log(a / b) if b > 0 else float("inf")
    return total


def ends(mean: float, n: int, b: float) -> tuple[float, float]:
    """The interval {x : n kl(mean, x) <= b}."""
    found = []
    for outside in (0.0, 1.0):
        inside = mean
        for _ in range(60):
            middle = (inside + outside) / 2
            if n * kl(mean, middle) <= b:
                inside = middle
            else:
                outside = middle
        found.append(inside)
    return found[0], found[1]


class Literal:
    """Section 12.5 of the specification, line by line; `rng` is a copy of the policy's stream."""

    def __init__(self, arms: int, rng: Stream) -> None:
        self.K, self.rng, self.e, self.end = arms, rng, 0, 0
        self.dropped = 0

    def start(self, t: int) -> None:
        self.e += 1
        T = 2 ** (2**self.e)
        self.end, self.delta = t - 1 + T, log(T) / T
        self.W = np.zeros((self.K, self.K))
        self.better: dict[Pair, bool] = {}
        self.A, self.sum, self.n = list(range(self.K)), np.zeros(self.K), np.zeros(self.K, int)
        self.best = 0 if self.K == 1 else None
        self.turn, self.opponent = 0, -1

    def finished(self) -> None:
        decided = all((i, j) in self.better for i in self.A for j in range(self.K) if i != j)
        if len(self.A) == 1 or decided:
            self.best = max(self.A, key=lambda i: (sum(self.better.get((i, j), False) for j in range(self.K)), -i))

    def choose(self, t: int) -> Pair:
        if t > self.end:
            self.start(t)
        while self.best is None:
            if self.turn == len(self.A):
                self.turn = 0
                count = max(3, int(self.n.sum()))
                b = log(4 * count * self.K / self.delta) + 2 * log(log(count))
                intervals = {i: ends(self.sum[i] / self.n[i], self.n[i], b) for i in self.A}
                low = max(interval[0] for interval in intervals.values())
                before = len(self.A)
                self.A = [i for i in self.A if intervals[i][1] >= low]
                self.dropped += before - len(self.A)
                self.finished()
                continue
            i = self.A[self.turn]
            if self.opponent < 0:
                j = self.rng.below(self.K - 1)
                self.opponent = j + (j >= i)
            if (i, self.opponent) not in self.better:
                return i, self.opponent
            self.sum[i] += self.better[i, self.opponent]
            self.n[i] += 1
            self.turn, self.opponent = self.turn + 1, -1
        return self.best, self.best

    def learn(self, i: int, j: int, points: int) -> None:
        assert (i, j) not in self.better  # a decided pair is never dueled again
        self.W[i, j] += points / 2
        self.W[j, i] += 1 - points / 2
        n = self.W[i, j] + self.W[j, i]
        if abs(self.W[i, j] / n - 0.5) > sqrt(log(4 * self.K**2 * n**2 / self.delta) / (2 * n)):
            self.better[i, j] = bool(self.W[i, j] > n / 2)
            self.better[j, i] = not self.better[i, j]
            self.finished()


@pytest.mark.parametrize("seed", range(8))
def test_chooses_what_the_pseudo_code_chooses(seed: int) -> None:
    arms = 1 + seed % 6
    agree("scb", Literal(arms, Stream(seed, "steps")), random_matrix(seed, arms), 1500, seed, 0.2 * (seed % 2))


def test_chooses_what_the_pseudo_code_chooses_when_arms_fall_behind() -> None:
    literal = Literal(25, Stream(1, "steps"))
    agree("scb", literal, order(25), 16_000, 1)
    assert literal.best == 0
    assert literal.dropped > 0


def test_the_comparison_catches_another_level() -> None:
    with pytest.raises(AssertionError, match="the pseudo-code"):
        agree("scb", Crippled(5, Stream(1, "steps")), order(5), 1500, 1)


@pytest.mark.parametrize("seed", range(3))
def test_the_lowest_of_equals_is_found(seed: int) -> None:
    literal = Literal(3, Stream(seed, "steps"))
    assert agree("scb", literal, sure(3, [(0, 1), (1, 2), (2, 0)]), 276, seed)[-1] == (0, 0)


class Crippled(Literal):
    def start(self, t: int) -> None:
        super().start(t)
        self.delta /= 30


def test_epochs_end_where_they_should() -> None:
    steps, world, seen = Steps("scb", 6), np.random.default_rng(0), []
    for t in range(1, 400):
        i, j = steps.choose(t)
        if not seen or seen[-1] != steps.state.memory[scb.END]:
            seen.append(int(steps.state.memory[scb.END]))
            assert t == steps.state.memory[scb.BEGIN]
            assert steps.state.points.sum() == 0
        if i != j:
            steps.learn(i, j, verdict(world, SIX[i, j], 0.0))
    steps.choose(65812)
    assert seen == [*ENDS[:3], 65812]
    steps.choose(65813)
    assert steps.state.memory[scb.END] == 65812 + 2**32


@pytest.mark.parametrize("epoch", range(1, 9))
def test_no_epoch_is_too_long_for_a_number(epoch: int) -> None:
    assert scb.epoch_length(epoch) == min(2 ** (2**epoch), 2**61)


@pytest.mark.parametrize("epoch", range(1, 7))
def test_an_epoch_too_long_to_be_played_out_has_the_error_rate_of_its_whole_length(epoch: int) -> None:
    assert scb._error_rate(epoch) == log(2 ** (2**epoch)) / 2 ** (2**epoch)


@pytest.mark.parametrize("seed", range(3))
def test_late_epochs_end_on_the_winner(seed: int) -> None:
    steps, world, last = Steps("scb", 4, seed=seed), np.random.default_rng(seed), {}
    t = 1
    while t <= 65812:
        i, j = steps.choose(t)
        last[int(steps.state.memory[scb.EPOCH])] = (i, j)
        if i != j:
            steps.learn(i, j, verdict(world, DET4[i, j], 0.0))
            t += 1
        else:
            assert steps.idle(t) == ENDS[steps.state.memory[scb.EPOCH] - 1]
            t = steps.idle(t) + 1
    assert last[4] == (0, 0)
