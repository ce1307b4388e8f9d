from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np
import pytest

from instances import DET2
from roundel._jit import wrapping
from roundel.errors import PolicyError
from roundel.policies.sequential import rcs
from sampling import differ
from stepping import Pair, Steps, duels, random_matrix, verdict

Floats = np.ndarray[Any, np.dtype[np.float64]]
champion, stay = map(wrapping, (rcs._champion, rcs._stay))


class Literal:
    """Section 12.3 of the specification, line by line."""

    def __init__(self, W: Floats, t: int, crowned: list[int], alpha: float = 0.501) -> None:
        self.W, self.K, self.crowned = W, len(W), np.array(crowned)
        N = W + W.T
        self.U = np.ones(W.shape)
        for i, j in zip(*np.nonzero(N), strict=True):
            self.U[i, j] = W[i, j] / N[i, j] + sqrt(alpha * log(t)) * (1 / sqrt(N[i, j]))
        np.fill_diagonal(self.U, 0.5)

    def champion(self, rng: np.random.Generator) -> int:
        upper = np.triu(rng.beta(self.W + 1, self.W.T + 1), 1)
        theta = upper + np.tril(1 - upper.T, -1) + np.eye(self.K)
        best = np.flatnonzero((theta > 0.5).all(axis=1))
        if not best.size:
            best = np.flatnonzero(self.crowned == self.crowned.min())
        return int(rng.choice(best))

    def challengers(self, c: int) -> list[int]:
        return np.flatnonzero(self.U[:, c] == self.U[:, c].max()).tolist()

    def choose(self, rng: np.random.Generator) -> Pair:
        c = self.champion(rng)
        return c, int(rng.choice(self.challengers(c)))


STATES = [
    (np.array([[0, 9, 6, 7], [5, 0, 8, 3], [4, 6, 0, 5], [5, 7, 4, 0]]), 60, [3, 1, 4, 1]),
    (np.array([[0, 3, 0], [1, 0, 2], [0, 2, 0]]), 9, [2, 2, 2]),
    (np.array([[0, 40, 10], [10, 0, 40], [40, 10, 0]]), 10**5, [5, 0, 7]),  # a cycle: mostly nobody wins all
    (np.zeros((4, 4), int), 1, [0, 0, 0, 0]),
]


def prepared(case: int, ties: int = 0) -> tuple[Steps, Literal]:
    wins, t, crowned = STATES[case]
    steps = Steps("rcs", len(wins), 10**6)
    steps.tell(wins)
    W = wins.astype(float)
    for _ in range(ties):
        steps.learn(0, 1, 1)
        W[0, 1] += 0.5
        W[1, 0] += 0.5
    return steps, Literal(W, t, crowned)


def sampled(steps: Steps, case: int, count: int) -> list[Pair]:
    _, t, crowned = STATES[case]
    found = []
    for n in range(count):
        steps.state.memory[:] = 0
        steps.state.memory[[rcs.CHAMPION, rcs.SINCE]] = n % len(crowned), t  # whoever it was
        steps.state.crowned[:] = crowned
        found.append(steps.choose(t))
    return found


@pytest.mark.parametrize("ties", [0, 3])
@pytest.mark.parametrize("case", range(3))
def test_choices_are_distributed_as_in_the_pseudo_code(case: int, ties: int) -> None:
    (steps, literal), rng = prepared(case, ties), np.random.default_rng(case)
    assert not differ(sampled(steps, case, 2500), [literal.choose(rng) for _ in range(5000)])


def test_the_first_choice_is_of_any_pair() -> None:
    (steps, literal), rng = prepared(3), np.random.default_rng(3)
    assert not differ(sampled(steps, 3, 2500), [literal.choose(rng) for _ in range(5000)])


def test_the_comparison_catches_a_champion_who_need_not_win_all() -> None:
    (steps, literal), rng = prepared(0), np.random.default_rng(4)
    literal.crowned = np.zeros(4)
    assert differ(sampled(steps, 0, 2500), [literal.choose(rng) for _ in range(5000)])


@pytest.mark.parametrize("start", range(4))
def test_whoever_starts_the_knock_out_the_champion_is_the_same(start: int) -> None:
    (steps, literal), rng = prepared(0), np.random.default_rng(start)
    state, ours = steps.state, []
    for _ in range(4000):
        state.memory[:] = 0
        state.memory[rcs.CHAMPION] = start
        state.crowned[:] = literal.crowned
        ours.append(int(champion(state, 60, steps.rng.state)))
    assert not differ(ours, [literal.champion(rng) for _ in range(8000)])


@pytest.mark.parametrize("case", [0, 2])
def test_rows_of_self_duels_are_as_long_as_single_draws_make_them(case: int) -> None:
    """After a self-duel of arm 0: how often in a row it is champion again, and who is next.

    In these states it is never the one crowned least often: it is champion by its wins only.
    """
    (steps, literal), rng = prepared(case), np.random.default_rng(case)
    state, start, end = steps.state, 100, 106
    state.crowned[:] = literal.crowned
    state.enter[0, 1:] = end  # so that some rows end by the clock
    ours, wanted = [], []
    for _ in range(3000):
        state.memory[:] = 0
        stay(state, start, 0, steps.rng.state)
        t = int(state.memory[rcs.QUIET]) + 1
        ours.append((t, int(champion(state, t, steps.rng.state)) if t < end else 0))
        t, c = start + 1, 0
        while t < end and (c := literal.champion(rng)) == 0:
            t += 1
        wanted.append((t, c))
    assert not differ(ours, wanted)
    assert differ([(min(t + 1, end), c) for t, c in ours], wanted)


@pytest.mark.parametrize("seed", range(6))
def test_challengers_are_those_of_the_pseudo_code_and_champions_are_counted(seed: int) -> None:
    arms = 1 + seed
    matrix, world = random_matrix(seed, arms), np.random.default_rng(seed)
    steps = Steps("rcs", arms, 10**6, seed)
    champions: list[int] = []
    for t in range(1, 801):
        before = steps.state.memory[rcs.QUIET]
        c, d = steps.choose(t)
        state = steps.state
        literal = Literal(state.posterior.points / 2, t, [0] * arms)
        assert d in literal.challengers(c)
        if t > before:
            assert state.crowned.tolist() == np.bincount(champions, minlength=arms).tolist()
        champions.append(c)
        if c != d:
            steps.learn(c, d, verdict(world, matrix[c, d], 0.2))
        elif arms > 1:
            assert literal.U[:, c].max() == 0.5  # nobody else reaches 1/2


def test_a_sure_pair_is_dueled_less_and_less() -> None:
    _, times = duels("rcs", DET2, 3000, 1)
    assert 10 < len(times) < 40
    assert sum(t > 1500 for t in times) <= 2


def test_refuses_an_alpha_without_meaning() -> None:
    with pytest.raises(PolicyError, match=r"alpha is 0\.5"):
        Steps("rcs", 3, alpha=0.5)
