from __future__ import annotations

from math import inf, log, sqrt

import numpy as np
import pytest

from instances import DET2
from roundel.errors import PolicyError
from roundel.policies.sequential.rucb import NOW, _challenger
from roundel.rng import Stream
from stepping import Pair, Steps, agree, duels, random_matrix

FIRST = [[0, 3, 2], [1, 0, 4], [0, 2, 0]]
SECOND = [[0, 60, 55], [40, 0, 70], [45, 30, 0]]


class Literal:
    """Section 7 of the specification, line by line."""

    def __init__(self, arms: int, rng: Stream, alpha: float = 0.51, unseen: float = 1.0) -> None:
        self.W = np.zeros((arms, arms))
        self.B: int | None = None
        self.rng, self.alpha, self.unseen, self.K = rng, alpha, unseen, arms

    def U(self, t: int) -> np.ndarray:
        U = np.full((self.K, self.K), self.unseen)
        for i in range(self.K):
            for j in range(self.K):
                N = self.W[i, j] + self.W[j, i]
                if i == j:
                    U[i, j] = 0.5
                elif N > 0:
                    U[i, j] = self.W[i, j] / N + sqrt(self.alpha * log(t)) * (1 / sqrt(N))
        return U

    def C(self, t: int) -> list[int]:
        return np.flatnonzero((self.U(t) >= 0.5).all(axis=1)).tolist()

    def choose(self, t: int) -> Pair:
        U, C = self.U(t), self.C(t)
        if not C:
            c, self.B = self.rng.below(self.K), None
        else:
            self.B = self.B if self.B in C else None
            if len(C) == 1:
                c = self.B = C[0]
            elif self.B is None:
                c = C[self.rng.below(len(C))]
            elif self.rng.uniform() < 0.5:
                c = self.B
            else:
                c = [i for i in C if i != self.B][self.rng.below(len(C) - 1)]
        top = [j for j in range(self.K) if U[j, c] == U[:, c].max()]
        if len(top) > 1 and c in top:
            top.remove(c)
        return c, top[self.rng.below(len(top))] if len(top) > 1 else top[0]

    def learn(self, i: int, j: int, points: int) -> None:
        self.W[i, j] += points / 2
        self.W[j, i] += 1 - points / 2


@pytest.mark.parametrize("seed", range(40))
def test_chooses_what_the_pseudo_code_chooses(seed: int) -> None:
    arms = 1 + seed % 7
    chosen = agree(
        "rucb", Literal(arms, Stream(seed, "steps")), random_matrix(seed, arms), 700, seed, ties=0.3 * (seed % 2)
    )
    assert len(chosen) == 700


def test_chooses_what_the_pseudo_code_chooses_with_other_parameters() -> None:
    literal = Literal(5, Stream(3, "steps"), alpha=2.5, unseen=2.0)
    agree("rucb", literal, random_matrix(1, 5), 700, 3, alpha=2.5, unseen=2.0)


def test_the_comparison_catches_another_alpha() -> None:
    with pytest.raises(AssertionError, match="the pseudo-code"):
        agree("rucb", Literal(5, Stream(3, "steps"), alpha=0.6), random_matrix(1, 5), 700, 3)


def challenger(steps: Steps, t: int, c: int) -> int:
    steps.state.clock[NOW] = log(t)
    return _challenger(steps.state, c, Stream(0).state)


def upper(wins: list[list[int]], t: int) -> tuple[Steps, np.ndarray]:
    steps = Steps("rucb", len(wins))
    steps.tell(wins)
    state = steps.state
    U = (state.share + sqrt(state.alpha * log(t)) * state.spread).T
    np.fill_diagonal(U, 0.5)
    return steps, U


def test_upper_bounds_of_the_first_example() -> None:
    steps, U = upper(FIRST, 12)
    assert pytest.approx(U, abs=5e-5) == np.array([[0.5, 1.3129, 1.7960], [0.8129, 0.5, 1.1263], [0.7960, 0.7929, 0.5]])
    assert (steps.state.entry <= log(12)).all()


def test_candidates_and_challenger_of_the_second_example() -> None:
    steps, U = upper(SECOND, 300)
    assert U[2] == pytest.approx([0.6206, 0.4706, 0.5], abs=5e-5)
    assert U[:, 0] == pytest.approx([0.5, 0.5706, 0.6206], abs=5e-5)
    assert np.flatnonzero(steps.state.entry <= log(300)).tolist() == [0, 1]
    assert challenger(steps, 300, 0) == 2


@pytest.mark.parametrize("seed", range(3))
def test_a_sure_pair_is_dueled_when_its_bound_reaches_one_half(seed: int) -> None:
    _, times = duels("rucb", DET2, 1000, seed)
    assert (len(times), times[-1]) == (15, 956)
    assert times[1:] == [next(t for t in range(1, 1001) if 0.51 * log(t) >= k / 4) for k in range(1, 15)]


def test_a_tie_with_the_champion_goes_to_the_other() -> None:
    steps = Steps("rucb", 2)
    steps.tell([[0, 1], [1, 0]])
    for c in (0, 1):  # at t = 1 all bounds are 1/2, the champion's own too
        assert challenger(steps, 1, c) == 1 - c


def test_unseen_pairs_come_first_only_above_the_seen_ones() -> None:
    def first(unseen: float) -> int:
        steps = Steps("rucb", 3, unseen=unseen)
        steps.learn(1, 0, 2)  # U[1][0] = 1 + sqrt(.51 ln 5) = 1.906; U[2][0] is unseen
        return challenger(steps, 5, 0)

    assert (first(1.0), first(2.0)) == (1, 2)


def test_each_duel_is_counted_once() -> None:
    steps, times = duels("rucb", random_matrix(4, 6), 500)
    assert steps.state.points.sum() == 2 * len(times)


@pytest.mark.parametrize(("name", "value"), [("alpha", 0.5), ("alpha", -1), ("unseen", 0.4), ("alpha", inf)])
def test_refuses_parameters_without_meaning(name: str, value: float) -> None:
    with pytest.raises(PolicyError, match=name):
        Steps("rucb", 3, **{name: value})
