from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

from instances import DET2, DET4, SIX, order
from roundel.errors import PolicyError
from roundel.policies import registry
from roundel.policies.sequential import btm
from stepping import Pair, Steps, agree, duels, random_matrix


class Literal:
    """Section 9 of the specification, line by line; it lists all choices that are equal."""

    def __init__(
        self, arms: int, horizon: int, gamma: float = 1.3, variant: str = "tight", include_self: bool = False
    ) -> None:
        self.weight = (3 if variant == "original" else 1) * gamma**2 * sqrt(log(2 * horizon * arms))
        self.n, self.w = np.zeros((arms, arms)), np.zeros((arms, arms))
        self.A, self.include_self = list(range(arms)), include_self

    def n_b(self, b: int) -> float:
        return float(self.n[b, self.A].sum())

    def P(self, b: int) -> float:
        return float(self.w[b, self.A].sum() / self.n_b(b)) if self.n_b(b) else 0.5

    def choose(self, t: int) -> list[Pair]:
        if len(self.A) == 1:
            return [(self.A[0], self.A[0])]
        least = min(map(self.n_b, self.A))
        return [(b, o) for b in self.A if self.n_b(b) == least for o in self.A if self.include_self or o != b]

    def learn(self, i: int, j: int, points: int) -> None:
        self.n[i, j] += 1
        self.w[i, j] += points / 2
        least = min(map(self.n_b, self.A))
        c = self.weight / sqrt(least) if least else 1.0
        shares = [self.P(b) for b in self.A]
        if min(shares) + c <= max(shares) - c:
            del self.A[int(np.argmin(shares))]


@pytest.mark.parametrize("seed", range(16))
def test_chooses_what_the_pseudo_code_chooses(seed: int) -> None:
    arms = 1 + seed % 7
    variant = ("tight", "original")[seed // 7 % 2]
    literal = Literal(arms, 1500, 1.0, variant)
    agree("btm", literal, random_matrix(seed, arms), 1500, seed, 0.3 * (seed % 2), gamma=1.0, variant=variant)


def test_chooses_what_the_pseudo_code_chooses_down_to_the_last_arm() -> None:
    literal = Literal(5, 2500, 1.0)
    agree("btm", literal, order(5, 0.9), 2500, gamma=1.0)
    assert literal.A == [0]


def test_the_comparison_catches_another_radius() -> None:
    with pytest.raises(AssertionError, match="the pseudo-code"):
        agree("btm", Literal(5, 2500, 1.05), order(5, 0.9), 2500, gamma=1.0)


def test_the_lowest_of_equally_bad_arms_goes() -> None:
    steps = Steps("btm", 4, 1000)
    steps.state.tries[:] = 400
    steps.state.score[:] = 800, 300, 100, 100
    btm._compare(steps.state)
    assert steps.active() == [0, 1, 3]


@pytest.mark.parametrize("seed", range(3))
def test_an_arm_may_meet_itself_if_asked_for(seed: int) -> None:
    steps, literal = Steps("btm", 4, 400, seed, include_self=True, gamma=1.0), Literal(4, 400, 1.0, include_self=True)
    world, alone = np.random.default_rng(seed), 0
    for t in range(1, 401):
        before = steps.state.score.copy()
        pair = i, j = steps.choose(t)
        assert pair in literal.choose(t)
        if i == j:
            alone += len(literal.A) > 1
            literal.learn(i, i, int(steps.state.score[i] - before[i]) if steps.remaining() == len(literal.A) else 0)
        else:
            points = 2 * int(world.random() < SIX[i, j])
            steps.learn(i, j, points)
            literal.learn(i, j, points)
        if steps.remaining() == 1:
            break
    assert alone > 40


def test_no_arm_meets_itself_by_default() -> None:
    _, times = duels("btm", DET4, 300)
    assert times == list(range(1, len(times) + 1))


@pytest.mark.parametrize(
    ("gamma", "variant", "n", "c"),
    [(1.3, "tight", 100, 0.632291), (1.3, "tight", 16000, 0.049987), (1.0, "original", 100, 1.122410)],
)
def test_radius(gamma: float, variant: str, n: int, c: float) -> None:
    steps = Steps("btm", 6, 10**5, gamma=gamma, variant=variant)
    assert steps.state.weight / sqrt(n) == pytest.approx(c, abs=1e-6)


def test_the_default_is_what_the_experiments_ran() -> None:
    assert registry.find("btm").complete({}) == {"gamma": 1.3, "variant": "tight", "include_self": False}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("parameters", "last"), [({}, 190), ({"gamma": 1.0, "variant": "original"}, 598)])
def test_a_sure_pair(parameters: dict[str, float], last: int, seed: int) -> None:
    steps, times = duels("btm", DET2, 1000, seed, **parameters)
    assert times == list(range(1, last + 1))
    assert steps.active() == [0]


def test_arms_duel_equally_often_and_removed_ones_leave_the_record() -> None:
    steps, world = Steps("btm", 6, 10**4, gamma=1.0), np.random.default_rng(3)
    record = np.zeros((6, 6), int)
    matrix = order(6, 0.8)
    sizes = set()
    for t in range(1, 10**4 + 1):
        i, j = steps.choose(t)
        if i == j:
            break
        record[i, j] += 1
        steps.learn(i, j, 2 * int(world.random() < matrix[i, j]))
        active = steps.active()
        sizes.add(len(active))
        made = steps.state.tries[active]
        assert made.tolist() == record[np.ix_(active, active)].sum(axis=1).tolist()
        if len(active) == 6:
            assert made.max() - made.min() <= 1
    assert sizes == {1, 2, 3, 4, 5, 6}


def test_equals_are_chosen_equally_often() -> None:
    # 6000 first choices among 5 x 4 pairs: chi-square with 19 degrees of freedom is above 56 with chance 2e-5.
    counts = np.zeros((5, 5))
    steps = Steps("btm", 5, 10**6)
    for t in range(1, 6001):
        i, j = steps.choose(t)
        counts[i, j] += t % 5 == 1
        steps.learn(i, j, 1)
    seen = counts[~np.eye(5, dtype=bool)]
    assert ((seen - 60) ** 2 / 60).sum() < 56
    seen[0] += 60  # the control: one pair twice as often
    assert ((seen - 63) ** 2 / 63).sum() > 50


def test_refuses_a_gamma_without_meaning() -> None:
    with pytest.raises(PolicyError, match="gamma"):
        Steps("btm", 3, gamma=0.9)
