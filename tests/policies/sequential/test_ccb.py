from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np
import pytest

from instances import DET2, NOCW5, order
from roundel._jit import wrapping
from roundel.errors import PolicyError
from roundel.policies.sequential import ccb
from sampling import departs
from stepping import Pair, Steps, duels, random_matrix, verdict

Floats = np.ndarray[Any, np.dtype[np.float64]]


class Literal:
    """Section 12.4 of the specification, line by line; where the text draws, it takes over what was drawn."""

    def __init__(self, arms: int, alpha: float = 0.51) -> None:
        self.K, self.alpha = arms, alpha
        self.W = np.zeros((arms, arms))
        self.resets = 0
        self.reset()

    def reset(self) -> None:
        self.Bt, self.Bi, self.LC = set(range(self.K)), {i: set[int]() for i in range(self.K)}, self.K
        self.resets += 1

    def bounds(self, t: int) -> None:
        N = self.W + self.W.T
        self.U, self.L = np.ones(N.shape), np.zeros(N.shape)
        for i, j in zip(*np.nonzero(N), strict=True):
            radius = sqrt(self.alpha * log(t)) * (1 / sqrt(N[i, j]))
            self.U[i, j], self.L[i, j] = self.W[i, j] / N[i, j] + radius, self.W[i, j] / N[i, j] - radius
        np.fill_diagonal(self.U, 0.5)
        np.fill_diagonal(self.L, 0.5)
        off = ~np.eye(self.K, dtype=bool)
        self.up, self.lo = ((self.U >= 0.5) & off).sum(axis=1), ((self.L >= 0.5) & off).sum(axis=1)
        self.C = set(np.flatnonzero(self.up == self.up.max()).tolist())

    def revise(self, t: int, theirs: dict[int, set[int]]) -> None:
        self.bounds(t)
        if any(self.L[i, j] > 0.5 for i in range(self.K) for j in self.Bi[i]):
            self.reset()
        for i in sorted(self.Bt):
            if self.up[i] < self.lo.max():
                self.Bt.remove(i)
                if len(self.Bi[i]) != self.LC + 1:
                    self.Bi[i] = set(np.flatnonzero(self.U[i] < 0.5).tolist())
        if not self.Bt:
            self.reset()
        for i in sorted(self.C):
            if self.up[i] == self.lo[i]:
                self.Bt.add(i)
                self.Bi[i] = set()
                self.LC = self.K - 1 - int(self.up[i])
                for j in range(self.K):
                    if j != i and len(self.Bi[j]) < self.LC + 1:
                        self.Bi[j] = set()
                    elif j != i and len(self.Bi[j]) > self.LC + 1:  # drawn
                        assert theirs[j] < self.Bi[j]
                        assert len(theirs[j]) == self.LC + 1
                        self.Bi[j] = theirs[j]

    def best(self, c: int, S: list[int]) -> list[int]:
        allowed = [j for j in S if self.L[j, c] <= 0.5]
        if not allowed:
            return []
        top = max(self.U[j, c] for j in allowed)
        best = [j for j in allowed if self.U[j, c] == top]
        return [j for j in best if j != c] or best

    def chances(self) -> dict[Pair, float]:
        """The chance of each pair."""
        doubtful = [(i, j) for i in range(self.K) for j in self.Bi[i] if self.L[i, j] <= 0.5 <= self.U[i, j]]
        found: dict[Pair, float] = {}

        def add(pair: Pair, chance: float) -> None:
            found[pair] = found.get(pair, 0.0) + chance

        for pair in doubtful:
            add(pair, 0.25 / len(doubtful))
        rest = 0.75 if doubtful else 1.0
        both = sorted(self.Bt & self.C)
        for group, share in ((both, 2 / 3), (sorted(self.C), 1 / 3)) if both else ((sorted(self.C), 1.0),):
            for c in group:
                everybody = self.best(c, list(range(self.K)))
                for S in (self.best(c, sorted(self.Bi[c])) or everybody, everybody):
                    for d in S:
                        add((c, d), rest * share / len(group) / 2 / len(S))
        return found


def witnesses(state: ccb.State) -> dict[int, set[int]]:
    return {i: set(state.witness[i, : state.witnesses[i]].tolist()) for i in range(len(state.witnesses))}


def follow(matrix: Floats, seed: int, horizon: int, ties: float = 0.0, turn: int = 10**9) -> tuple[Literal, Steps]:
    """Play; the lists must be the literal ones at each step, and the pair one that has a chance.

    After `turn` duels all verdicts are turned round.
    """
    arms = len(matrix)
    steps, literal, world = Steps("ccb", arms, horizon, seed), Literal(arms), np.random.default_rng(seed)
    for t in range(1, horizon + 1):
        i, j = steps.choose(t)
        state = steps.state
        literal.revise(t, witnesses(state))
        assert set(np.flatnonzero(state.hopeful).tolist()) == literal.Bt
        assert witnesses(state) == literal.Bi
        assert state.memory[ccb.LOSSES] == literal.LC
        assert literal.lo.max() <= literal.up.max()
        assert (state.outlook.may.tolist(), state.outlook.sure.tolist()) == (literal.up.tolist(), literal.lo.tolist())
        assert (i, j) in literal.chances()
        if i != j:
            points = verdict(world, matrix[i, j] if t <= turn else matrix[j, i], ties)
            steps.learn(i, j, points)
            literal.W[i, j] += points / 2
            literal.W[j, i] += 1 - points / 2
    return literal, steps


@pytest.mark.parametrize("seed", range(8))
def test_keeps_the_lists_of_the_pseudo_code(seed: int) -> None:
    follow(random_matrix(seed, 1 + seed), seed, 800, 0.2 * (seed % 2))


def test_keeps_the_lists_of_the_pseudo_code_through_resets() -> None:
    resets, losses = 0, set()
    for seed in range(4):
        losses.add(follow(0.5 + 2.5 * (NOCW5 - 0.5), seed, 900)[0].LC)
        resets += follow(order(4, 0.9), seed, 1200, turn=40)[0].resets - 1
    assert losses == {1}  # both Copeland winners of NOCW5 lose once
    assert resets > 0


def test_pairs_come_with_the_chances_of_the_pseudo_code() -> None:
    literal, steps = follow(NOCW5, 3, 100)
    followed, checked = 100, 0
    world = np.random.default_rng(8)
    for t in range(followed + 1, followed + 400):
        i, j = steps.choose(t)
        literal.revise(t, witnesses(steps.state))
        if t % 80 == 0 and len(chances := literal.chances()) > 1:
            # choosing again at the same t changes no list, but for what is drawn
            again = [steps.choose(t) for _ in range(1500)]
            assert not departs(again, chances)
            assert departs([(j, i) for i, j in again], chances)
            checked += 1
        if i != j:
            points = verdict(world, NOCW5[i, j], 0.0)
            steps.learn(i, j, points)
            literal.W[i, j] += points / 2
            literal.W[j, i] += 1 - points / 2
            steps.state.memory[[ccb.FIRST, ccb.SECOND]] = i, j  # the last duel, which choosing again made forget
    assert checked >= 2


def test_a_doubtful_witness_comes_with_its_chance() -> None:
    literal, steps = follow(order(5, 0.75), 3, 1)
    world, checked = np.random.default_rng(8), 0
    for t in range(2, 900):
        i, j = steps.choose(t)
        literal.revise(t, witnesses(steps.state))
        if any(literal.L[a, b] <= 0.5 <= literal.U[a, b] for a in range(5) for b in literal.Bi[a]):
            again = [steps.choose(t) for _ in range(1500)]
            assert not departs(again, literal.chances())
            checked += 1
            literal.Bi, kept = {a: set() for a in range(5)}, literal.Bi
            assert departs(again, literal.chances())  # the control: nobody is doubted
            literal.Bi = kept
        if checked == 3:
            break
        if i != j:
            points = verdict(world, order(5, 0.75)[i, j], 0.0)
            steps.learn(i, j, points)
            literal.W[i, j] += points / 2
            literal.W[j, i] += 1 - points / 2
        steps.state.memory[[ccb.FIRST, ccb.SECOND]] = i, j
    assert checked == 3


def test_a_sure_winner_is_known_to_lose_to_nobody() -> None:
    steps, times = duels("ccb", DET2, 2000)
    assert steps.state.memory[ccb.LOSSES] == 0
    assert sum(t > 1000 for t in times) <= 3


def test_random_witnesses_differ() -> None:
    """A generator made anew at each step would always keep the same ones."""
    kept = set()
    for seed in range(30):
        steps = Steps("ccb", 5, seed=seed)
        steps.state.witness[4, :4] = [0, 1, 2, 3]
        steps.state.witnesses[4] = 4
        wrapping(ccb._keep_few)(steps.state, 4, 2, steps.rng.state)
        kept.add(frozenset(steps.state.witness[4, :2].tolist()))
    assert len(kept) == 6


def test_refuses_an_alpha_without_meaning() -> None:
    with pytest.raises(PolicyError, match=r"alpha is 0\.4"):
        Steps("ccb", 3, alpha=0.4)
