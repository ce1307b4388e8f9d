from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest

from instances import CYC4, DET4, NOCW5, RPS3, SIX, order, sure
from roundel.errors import PolicyError
from roundel.policies.sequential.ucb_ts import _solve_top_cycle, _solve_uncovered
from stepping import Pair, Steps, agree, duels, random_matrix

Floats = np.ndarray[Any, np.dtype[np.float64]]
Edges = np.ndarray[Any, np.dtype[np.int64]]


def top_cycle(edge: Edges) -> list[int]:
    """Arms that reach all others."""
    K = len(edge)
    reach = (edge > 0) | np.eye(K, dtype=bool)
    for k in range(K):
        reach |= reach[:, [k]] & reach[[k]]
    return np.flatnonzero(reach.all(axis=1)).tolist()


def uncovered(edge: Edges) -> list[int]:
    """Arms that reach all others in at most two steps."""
    reach = (edge > 0) | (edge @ edge > 0) | np.eye(len(edge), dtype=bool)
    return np.flatnonzero(reach.all(axis=1)).tolist()


def ours(edge: Edges) -> tuple[list[int], list[int]]:
    """Both solutions, by the kernels."""
    members, queue = np.zeros((2, len(edge)), np.int64), np.zeros(len(edge), np.int64)
    _solve_top_cycle(edge, members[0], queue)
    _solve_uncovered(edge, edge @ edge, members[1])
    return np.flatnonzero(members[0]).tolist(), np.flatnonzero(members[1]).tolist()


class Literal:
    """Section 12.16 of the specification, line by line."""

    def __init__(self, arms: int, solution: str, alpha: float = 0.51) -> None:
        self.K, self.alpha = arms, alpha
        self.solve = uncovered if solution == "uncovered" else top_cycle
        self.W = np.zeros((arms, arms))
        self.answers = 0

    def choose(self, t: int) -> Pair:
        N = self.W + self.W.T
        share = np.divide(self.W, N, where=N > 0, out=np.full(N.shape, 0.5))
        radius = np.sqrt(self.alpha * log(t) / np.where(N > 0, N, 1))
        U, L = np.where(N > 0, share + radius, 1.0), np.where(N > 0, share - radius, 0.0)
        off = ~np.eye(self.K, dtype=bool)
        certain = self.solve(((L > 0.5) & off).astype(int))
        if certain:
            self.answers += 1
            return certain[0], certain[0]
        possible = self.solve(((U > 0.5) & off).astype(int))
        pairs = [
            (i, j)
            for i in range(self.K)
            for j in range(i + 1, self.K)
            if L[i, j] <= 0.5 <= U[i, j] and (i in possible or j in possible)
        ]
        return min(pairs, key=lambda pair: (N[pair], pair))

    def learn(self, i: int, j: int, points: int) -> None:
        self.W[i, j] += points / 2
        self.W[j, i] += 1 - points / 2


@pytest.mark.parametrize("solution", ["top-cycle", "uncovered"])
@pytest.mark.parametrize("seed", range(10))
def test_chooses_what_the_pseudo_code_chooses(seed: int, solution: str) -> None:
    arms = 1 + seed % 7
    agree("ucb-ts", Literal(arms, solution), random_matrix(seed, arms), 800, seed, 0.2 * (seed % 2), solution=solution)


@pytest.mark.parametrize("solution", ["top-cycle", "uncovered"])
@pytest.mark.parametrize("matrix", [order(4, 0.9), CYC4, sure(3, [(0, 1), (1, 2), (2, 0)]), NOCW5], ids=len)
def test_chooses_what_the_pseudo_code_chooses_once_it_is_certain(matrix: Floats, solution: str) -> None:
    literal = Literal(len(matrix), solution)
    agree("ucb-ts", literal, 0.5 + 1.2 * (matrix - 0.5), 2500, 1, solution=solution)
    assert literal.answers > 300


def test_the_comparison_tells_the_solutions_apart() -> None:
    with pytest.raises(AssertionError, match="the pseudo-code"):
        agree("ucb-ts", Literal(7, "top-cycle"), random_matrix(13, 7), 800, 13, solution="uncovered")


def edges(arms: int, *beats: Pair) -> Edges:
    table = np.zeros((arms, arms), np.int64)
    for i, j in beats:
        table[i, j] = 1
    return table


def test_a_cycle_above_one_arm() -> None:
    graph = edges(4, (0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3))
    assert ours(graph) == ([0, 1, 2], [0, 1, 2])


def test_an_arm_of_the_top_cycle_may_be_covered() -> None:
    graph = edges(4, (0, 1), (1, 2), (0, 2), (3, 0), (1, 3), (2, 3))
    assert ours(graph) == ([0, 1, 2, 3], [0, 1, 3])


@pytest.mark.parametrize("matrix", [SIX, DET4, CYC4])
def test_a_condorcet_winner_is_the_whole_solution(matrix: Floats) -> None:
    assert ours((matrix > 0.5).astype(np.int64)) == ([0], [0])


@pytest.mark.parametrize("solution", ["top-cycle", "uncovered"])
def test_the_lowest_of_the_solution_is_the_answer(solution: str) -> None:
    steps = Steps("ucb-ts", 4, solution=solution)
    steps.tell([[0, 30, 0, 30], [0, 0, 30, 30], [30, 0, 0, 30], [0, 0, 0, 0]])  # a cycle of 0, 1, 2 above 3
    assert steps.choose(100) == (0, 0)


def test_nobody_need_reach_everybody() -> None:
    assert ours(edges(3, (0, 1))) == ([], [])
    assert ours(edges(4, (0, 1), (2, 3))) == ([], [])


@pytest.mark.parametrize("seed", range(60))
def test_solutions_of_any_graph(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arms = 2 + seed % 8
    graph = (rng.random((arms, arms)) < rng.uniform(0.2, 0.8)).astype(np.int64)
    np.fill_diagonal(graph, 0)
    assert ours(graph) == (top_cycle(graph), uncovered(graph))


def test_an_arm_of_a_cycle_is_a_good_answer() -> None:
    _, times = duels("ucb-ts", RPS3, 3000)
    assert sum(t > 1500 for t in times) < 10


def test_refuses_parameters_without_meaning() -> None:
    with pytest.raises(PolicyError, match="alpha is 0"):
        Steps("ucb-ts", 3, alpha=0.0)
    with pytest.raises(PolicyError, match="top-cycle, uncovered"):
        Steps("ucb-ts", 3, solution="banks")
