from __future__ import annotations

from math import inf, log, sqrt
from typing import Any

import numpy as np
import pytest

from instances import CYC4, DET2, NOCW5
from roundel.errors import PolicyError
from roundel.policies.sequential.ecw_rmed import State, cheapest_winner, pick, proof_cost, proved_level
from stepping import Pair, Steps, agree, duels, random_matrix

Floats = np.ndarray[Any, np.dtype[np.float64]]


def kl(p: float) -> float:
    return sum(q * log(2 * q) for q in (p, 1 - p) if q > 0)


class Literal:
    """Section 12.6 of the specification, line by line."""

    def __init__(self, arms: int, alpha: float = 3.0, beta: float = 0.01) -> None:
        self.K, self.alpha, self.beta = arms, alpha, beta
        self.W = np.zeros((arms, arms))
        self.LC = [(i, j) for i in range(arms) for j in range(i + 1, arms)]
        self.LR, self.LN = set(self.LC), list[Pair]()
        self.place, self.played, self.self_duels = 0, False, 0

    def look(self) -> None:
        self.N = self.W + self.W.T
        self.share = np.divide(self.W, self.N, where=self.N > 0, out=np.full(self.W.shape, 0.5))
        self.L = (self.share > 0.5).sum(axis=0)

    def q(self, i1: int) -> dict[Pair, float]:
        """The optimal allocation by pair (winner, loser)."""
        found = {(i1, j): 1 / kl(self.share[i1, j]) for j in range(self.K) if self.share[i1, j] > 0.5}
        for i2 in range(self.K):
            S = [j for j in range(self.K) if self.share[j, i2] > 0.5 and j != i1]
            k = len(S) - int(self.L[i2] - self.L.min() + 1)
            if i2 == i1 or k < 0:
                continue
            cost = {j: self.r(j, i2) / kl(self.share[j, i2]) for j in S}
            S.sort(key=cost.__getitem__)
            h = min(range(k + 1, len(S) + 1), key=lambda h: sum(cost[j] for j in S[:h]) / (h - k))
            for j in S[:h]:
                found[j, i2] = max(found.get((j, i2), 0.0), 1 / ((h - k) * kl(self.share[j, i2])))
        return found

    def r(self, i: int, j: int) -> float:
        return float(self.L[i] + self.L[j] - 2 * self.L.min()) / (2 * (self.K - 1))

    def cost(self, i1: int) -> float:
        return sum(self.r(*pair) * q for pair, q in self.q(i1).items())

    def winner(self) -> int:
        ties = np.flatnonzero(self.L.min() == self.L).tolist()
        return int(min(ties, key=self.cost))

    def sufficient(self, i1: int, level: float) -> bool:
        evidence = np.array([[self.N[i, j] * kl(self.share[i, j]) for j in range(self.K)] for i in range(self.K)])
        if any(evidence[i1, j] < level for j in range(self.K) if self.share[i1, j] > 0.5):
            return False
        for i2 in range(self.K):
            S = [j for j in range(self.K) if self.share[j, i2] > 0.5 and j != i1]
            need = int(self.L[i2] - self.L.min() + 1)
            if i2 != i1 and len(S) >= need and sum(sorted(evidence[S, i2])[:need]) < level:
                return False
        return True

    def follow_up(self, t: int) -> None:
        self.look()
        i1 = self.winner()
        if not self.sufficient(i1, log(t)):
            q = self.q(i1)
            for i, j in [p for p in q if p[0] == i1] + [
                (j, i) for i in range(self.K) for j in range(self.K) if j != i1 and (j, i) in q
            ]:
                if q[i, j] > self.N[i, j] / log(t):
                    self.add(i, j)
        self.add(i1, i1)

    def add(self, i: int, j: int) -> None:
        pair = min(i, j), max(i, j)
        if pair not in self.LR and pair not in self.LN:
            self.LN.append(pair)

    def choose(self, t: int) -> Pair:
        if self.K == 1:
            return 0, 0
        if self.played:
            self.follow_up(t - 1)
            self.played = False
        self.look()
        loglog = log(log(t)) if t > 2 else -inf
        for i in range(self.K):
            for j in range(i + 1, self.K):
                few = self.N[i, j] < max(1, self.alpha * sqrt(log(t)))
                if few or abs(self.share[i, j] - 0.5) < self.beta / max(1, loglog):
                    return i, j
        if self.place == len(self.LC):
            self.LC, self.LR, self.LN, self.place = self.LN, set(self.LN), [], 0
        pair = self.LC[self.place]
        self.place += 1
        self.LR.discard(pair)
        self.played = True
        self.self_duels += pair[0] == pair[1]
        return pair

    def learn(self, i: int, j: int, points: int) -> None:
        self.W[i, j] += points / 2
        self.W[j, i] += 1 - points / 2


@pytest.mark.parametrize("seed", range(12))
def test_chooses_what_the_pseudo_code_chooses(seed: int) -> None:
    arms = 1 + seed % 7
    agree("ecw-rmed", Literal(arms), random_matrix(seed, arms), 700, seed, 0.2 * (seed % 2))


@pytest.mark.parametrize("seed", range(3))
def test_chooses_what_the_pseudo_code_chooses_when_all_is_proved(seed: int) -> None:
    for matrix in (NOCW5, CYC4):
        literal = Literal(len(matrix))
        agree("ecw-rmed", literal, 0.5 + 0.99 / 0.8 * (matrix - 0.5), 2000, seed)
        assert literal.self_duels > 300


def test_chooses_what_the_pseudo_code_chooses_close_to_ties() -> None:
    """A wide `beta` makes the exploration of pairs close to a tie come and go with ln ln t."""
    literal = Literal(3, 0.5, 0.12)
    agree("ecw-rmed", literal, 0.5 + 0.2 * (CYC4[:3, :3] - 0.5), 3000, 2, alpha=0.5, beta=0.12)


def test_the_comparison_catches_another_alpha() -> None:
    with pytest.raises(AssertionError, match="the pseudo-code"):
        agree("ecw-rmed", Literal(5, 2.9), NOCW5, 700, 3)


def exact(matrix: Floats) -> State:
    """A state whose shares are those of the matrix."""
    steps = Steps("ecw-rmed", len(matrix))
    steps.state.points[:] = np.rint(2000 * matrix)
    np.fill_diagonal(steps.state.points, 0)
    steps.state.divergence[:] = [[kl(p) for p in row] for row in matrix]
    steps.state.losses[:] = (matrix > 0.5).sum(axis=0)
    return steps.state


def allocation(state: State, i1: int) -> dict[Pair, float]:
    K = len(state.losses)
    found = {(i1, j): 1 / state.divergence[i1, j] for j in range(K) if state.points[i1, j] > state.points[j, i1]}
    for i2 in range(K):
        if share := pick(state, i1, i2):
            found |= {(j, i2): 1 / (share * state.divergence[j, i2]) for j in range(K) if state.picked[j]}
    return found


def test_allocation_over_a_cycle() -> None:
    state = exact(CYC4)
    assert cheapest_winner(state) == 0
    assert allocation(state, 0) == pytest.approx({(0, j): 49.663496 for j in (1, 2, 3)}, rel=1e-7)
    assert proof_cost(state, 0) / (2 * 3) == pytest.approx(49.663496, rel=1e-7)


def test_allocation_without_a_condorcet_winner() -> None:
    state = exact(NOCW5)
    assert state.losses.tolist() == [1, 1, 2, 3, 3]
    assert cheapest_winner(state) == 0
    wanted = {(0, 1): 49.663496, (0, 2): 21.881579, (0, 3): 12.153197, (2, 4): 21.881579}
    assert allocation(state, 0) == pytest.approx(wanted, rel=1e-7)
    assert proof_cost(state, 0) / (2 * 4) == pytest.approx(13.979089, rel=1e-7)


@pytest.mark.parametrize("seed", range(40))
def test_allocation_of_any_matrix_is_the_literal_one(seed: int) -> None:
    arms, rng = 4 + seed % 6, np.random.default_rng(seed)
    upper = np.triu(rng.integers(1, 1000, (arms, arms)) / 1000 + 0.0003, 1)  # no pair is even
    matrix = upper + np.tril(1 - upper.T, -1) + np.eye(arms) / 2
    state, literal = exact(matrix), Literal(arms)
    state.points[:] = np.rint(20000 * matrix)
    np.fill_diagonal(state.points, 0)
    literal.W = state.points / 2
    literal.look()
    i1 = cheapest_winner(state)
    assert i1 == literal.winner()
    for i in np.flatnonzero(literal.L.min() == literal.L):
        assert allocation(state, i) == pytest.approx(literal.q(i), rel=1e-9)
        assert proof_cost(state, i) / (2 * (arms - 1)) == pytest.approx(literal.cost(i), rel=1e-9)
        level = proved_level(state, i)
        assert literal.sufficient(i, level * (1 - 1e-9))
        assert not literal.sufficient(i, level * (1 + 1e-9))


def test_a_sure_pair_is_dueled_less_and_less() -> None:
    _, times = duels("ecw-rmed", DET2, 3000)
    assert len(times) < 15


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_refuses_parameters_without_meaning(name: str) -> None:
    with pytest.raises(PolicyError, match=f"{name} is 0"):
        Steps("ecw-rmed", 3, **{name: 0.0})
