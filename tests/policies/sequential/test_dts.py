from __future__ import annotations

from fractions import Fraction
from math import comb, erf, exp, log, sqrt
from typing import Any

import numpy as np
import pytest

from instances import DET2
from roundel._jit import wrapping
from roundel.errors import PolicyError
from roundel.policies.sequential import dts
from roundel.policies.sequential._outlook import DUE, go_on, outlook, review
from roundel.policies.sequential._posterior import _above_half, _log_height, observe, posterior, streak, upper_half
from roundel.rng import Stream
from sampling import departs, differ
from stepping import Pair, Steps, duels, random_matrix, verdict

Floats = np.ndarray[Any, np.dtype[np.float64]]
draw_upper, draw_streak = map(wrapping, (upper_half, streak))


class Literal:
    """Section 12.2 of the specification, line by line."""

    def __init__(self, W: Floats, t: int, alpha: float = 0.51) -> None:
        self.W, self.K = W, len(W)
        N = W + W.T
        seen = N > 0
        share = np.divide(W, N, where=seen, out=np.full(W.shape, 0.5))
        radius = np.sqrt(alpha * log(t) / np.where(seen, N, 1))
        self.U, self.L = np.where(seen, share + radius, 1.0), np.where(seen, share - radius, 0.0)
        np.fill_diagonal(self.U, 0.5)
        np.fill_diagonal(self.L, 0.5)
        self.z = (self.U > 0.5).sum(axis=1)
        self.C = np.flatnonzero(self.z == self.z.max())

    def theta(self, rng: np.random.Generator) -> Floats:
        upper = np.triu(rng.beta(self.W + 1, self.W.T + 1), 1)
        return upper + np.tril(1 - upper.T, -1) + np.eye(self.K) / 2

    def regret(self, theta: Floats, i: int) -> float:
        wins = (theta > 0.5).sum(axis=1) / (self.K - 1)
        others = np.arange(self.K) != i
        p = theta[i, others]
        kl = p * np.log(2 * p) + (1 - p) * np.log(2 * (1 - p))
        return float(((wins.max() - (wins[i] + wins[others]) / 2) / kl).sum())

    def choose(self, rng: np.random.Generator, plus: bool = False, row: bool = False) -> Pair:
        theta = self.theta(rng)
        wins = (theta > 0.5).sum(axis=1)
        best = self.C[wins[self.C] == wins[self.C].max()]
        a = int(min(best, key=lambda i: self.regret(theta, i)) if plus and len(best) > 1 else rng.choice(best))
        W = self.W.T if row else self.W  # the mistake of duelpy: "a against i"
        theta2 = rng.beta(W[:, a] + 1, W[a] + 1)
        theta2[a] = 0.5
        allowed = np.flatnonzero((self.L[a] if row else self.L[:, a]) <= 0.5)
        return a, int(allowed[np.argmax(theta2[allowed])])


# two games of each pair are ties where it says 1
STATES = [
    (np.array([[0, 9, 6, 7], [5, 0, 8, 3], [4, 6, 0, 5], [5, 7, 4, 0]]), 60),
    (np.array([[0, 3, 1], [1, 0, 2], [2, 0, 0]]), 9),
    (np.array([[0, 30, 3, 0, 8], [12, 0, 5, 2, 9], [6, 4, 0, 1, 3], [0, 1, 2, 0, 0], [2, 11, 4, 0, 0]]), 200),
    (np.zeros((4, 4), int), 5),
    (np.array([[0, 50, 10, 60], [10, 0, 50, 40], [50, 10, 0, 40], [0, 20, 20, 0]]), 10**6),  # a cycle above one arm
]


def prepared(name: str, wins: Floats, ties: int = 0) -> Steps:
    steps = Steps(name, len(wins), 10**6)
    steps.tell(wins)
    for _ in range(ties):
        steps.learn(0, 1, 1)
    return steps


def sampled(steps: Steps, t: int, count: int) -> list[Pair]:
    found = []
    for _ in range(count):
        steps.state.memory[:] = 0  # forget rows of self-duels
        found.append(steps.choose(t))
    return found


@pytest.mark.parametrize("plus", [False, True])
@pytest.mark.parametrize("case", range(len(STATES)))
@pytest.mark.parametrize("ties", [0, 3])
def test_choices_are_distributed_as_in_the_pseudo_code(case: int, ties: int, plus: bool) -> None:
    wins, t = STATES[case]
    W = wins.astype(float)
    W[0, 1] += ties / 2
    W[1, 0] += ties / 2
    literal, rng = Literal(W, t), np.random.default_rng(case)
    ours = sampled(prepared("d-ts+" if plus else "d-ts", wins, ties), t, 1500)
    assert not differ(ours, [literal.choose(rng, plus) for _ in range(3000)])
    assert {a for a, _ in ours} <= set(literal.C.tolist())
    assert all(literal.L[b, a] <= 0.5 for a, b in ours)


def test_the_comparison_catches_row_and_column_interchanged() -> None:
    wins, t = STATES[2]
    literal, rng = Literal(wins.astype(float), t), np.random.default_rng(5)
    ours = sampled(prepared("d-ts", wins), t, 1500)
    assert differ(ours, [literal.choose(rng, row=True) for _ in range(3000)])


def test_the_tie_break_makes_a_difference() -> None:
    wins, t = STATES[4]
    literal, rng = Literal(wins.astype(float), t), np.random.default_rng(6)
    assert differ(sampled(prepared("d-ts+", wins), t, 1500), [literal.choose(rng) for _ in range(3000)])


@pytest.mark.parametrize("seed", range(6))
def test_candidates_are_those_of_the_pseudo_code_at_every_step(seed: int) -> None:
    arms = 2 + seed
    matrix, world = random_matrix(seed, arms), np.random.default_rng(seed)
    steps = Steps("d-ts", arms, 10**6, seed)
    for t in range(1, 1201):
        i, j = steps.choose(t)
        literal = Literal(steps.state.posterior.points / 2, t)
        if t > steps.state.memory[dts.QUIET]:
            assert steps.state.outlook.may.tolist() == literal.z.tolist()
            sure = (literal.L > 0.5).sum(axis=1)
            assert steps.state.outlook.sure.tolist() == sure.tolist()
        assert i in literal.C
        assert literal.L[j, i] <= 0.5
        if i != j:
            steps.learn(i, j, verdict(world, matrix[i, j], 0.2))


def test_without_data_everybody_may_win_all() -> None:
    steps = Steps("d-ts", 5)
    steps.choose(1)
    assert steps.state.outlook.may.tolist() == [4] * 5


@pytest.mark.parametrize("name", ["d-ts", "d-ts+"])
def test_a_sure_winner_ends_up_playing_itself(name: str) -> None:
    _, times = duels(name, DET2, 4000)
    assert sum(t > 2000 for t in times) < 0.01 * 2000
    assert sum(t > 2000 for t in times) < sum(t <= 2000 for t in times)


# rows of self-duels -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plus", [False, True])
@pytest.mark.parametrize("alone", [True, False])
def test_rows_of_self_duels_are_as_long_as_single_draws_make_them(alone: bool, plus: bool) -> None:
    """Each self-duel of arm 0 may go on with a row; when the first other pair comes, and which, must look the same."""
    wins, start, end = np.array([[0, 4, 5, 7], [1, 0, 3, 3], [1, 2, 0, 3], [2, 3, 3, 0]]), 5, 15
    steps = Steps("d-ts+" if plus else "d-ts", 4, alpha=50.0)  # nobody surely beats anybody
    steps.tell(wins)
    state, rng = steps.state, np.random.default_rng(3)
    literal = Literal(wins.astype(float), start, alpha=50.0)
    go_on(state.outlook, start)
    assert state.outlook.may.tolist() == [3, 3, 3, 3]
    if alone:
        state.outlook.may[1:] = 2
        literal.C = np.array([0])
    state.outlook.clock[DUE] = end  # so that some rows end by the clock
    ours, wanted = [], []
    for _ in range(3000):
        state.memory[:] = 0
        t = start
        while (pair := steps.choose(t)) == (0, 0):
            t = max(t, int(state.memory[dts.QUIET])) + 1
            if t >= end:
                break
        ours.append((t, pair) if t < end else None)
        assert (state.fixed == -1).all()
        t = start
        while t < end and (pair := literal.choose(rng, plus)) == (0, 0):
            t += 1
        wanted.append((t, pair) if t < end else None)
    assert not differ(ours, wanted)
    assert None in ours
    late = [key and (key[0] + (key[0] > start), key[1]) for key in ours]
    assert differ(late, wanted)  # a row that is one too long shows


# the posterior --------------------------------------------------------------------------------------------------------


def above_half(a: int, b: int) -> float:
    """P(Beta(a, b) > 1/2) = P(Binomial(a + b - 1, 1/2) < a)."""
    n = a + b - 1
    return float(Fraction(sum(comb(n, k) for k in range(a)), 2**n))


def test_chances_are_exact_after_wins_and_losses() -> None:
    table, world = posterior(2), np.random.default_rng(0)
    a = b = 1
    for n in range(600):
        points = 2 * int(world.random() < (0.55 if n < 400 else 0.2))
        observe(table, 0, 1, points)
        a, b = a + points // 2, b + 1 - points // 2
        assert table.above[0, 1] == pytest.approx(above_half(a, b), abs=1e-12)
        assert table.above[0, 1] + table.above[1, 0] == 1.0


def test_chances_are_exact_after_an_even_number_of_ties() -> None:
    table, world, mine, theirs = posterior(2), np.random.default_rng(1), 0, 0
    for _ in range(300):
        points = int(world.integers(3))
        observe(table, 1, 0, points)
        mine, theirs = mine + points, theirs + 2 - points
        if mine % 2 == 0:
            assert table.above[1, 0] == pytest.approx(above_half(mine // 2 + 1, theirs // 2 + 1), abs=1e-12)


def test_chances_of_half_whole_parameters() -> None:
    # P(Beta(3/2, 5/2) > 1/2) = 1/2 - 2 / (3 pi), by the density sqrt(x) (1 - x)^(3/2) / (pi / 16).
    table = posterior(2)
    observe(table, 0, 1, 1)
    observe(table, 0, 1, 0)
    assert table.above[0, 1] == pytest.approx(0.5 - 2 / (3 * np.pi), abs=1e-12)


def test_chances_do_not_drift() -> None:
    """A tie has the chance computed anew: what a hundred thousand small steps came to must be the same."""
    table, world = posterior(2), np.random.default_rng(2)
    for points in 2 * (world.random(100_000) < 0.499):
        observe(table, 0, 1, int(points))
    mine, theirs = int(table.points[0, 1]) // 2, int(table.points[1, 0]) // 2
    fresh = _above_half(mine + 1.0, theirs + 1.0, exp(_log_height(mine + 1.0, theirs + 1.0)))
    assert table.above[0, 1] == pytest.approx(fresh, abs=1e-9)
    z = (mine - theirs) / sqrt(mine + theirs)
    assert fresh == pytest.approx(0.5 * (1 + erf(z / sqrt(2))), abs=2e-3)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 2), (3, 7), (7, 3), (1, 12), (20, 40), (2.5, 4.5), (30, 31)])
def test_numbers_above_one_half_are_distributed_as_beta_numbers_are(a: float, b: float) -> None:
    rng, world = Stream(7).state, np.random.default_rng(7)
    ours = np.array([draw_upper(rng, a, b) for _ in range(2500)])
    wanted = np.empty(0)
    while len(wanted) < 5000:
        block = world.beta(a, b, 200_000)
        wanted = np.concatenate([wanted, block[block > 0.5]])[:5000]
        if b > 11 * a:
            wanted = 1 - (world.random(5000) * 0.5**b) ** (1 / b)  # Beta(1, b), upside down
    edges = np.quantile(wanted, np.linspace(0, 1, 21)[1:-1])
    assert (ours > 0.5).all()
    assert not differ(np.searchsorted(edges, ours).tolist(), np.searchsorted(edges, wanted).tolist())
    assert differ(np.searchsorted(edges, 0.5 + 0.8 * (ours - 0.5)).tolist(), np.searchsorted(edges, wanted).tolist())


def test_streaks_are_geometric() -> None:
    rng = Stream(9).state
    sample = [draw_streak(rng, 0.8) for _ in range(4000)]
    assert not departs(sample, {k: 0.2 * 0.8**k for k in range(200)})
    assert departs(sample, {k: 0.25 * 0.75**k for k in range(200)})
    assert draw_streak(rng, 0.0) == 0
    assert draw_streak(rng, 1.0) > 10**18


def test_the_outlook_follows_time() -> None:
    look = outlook(2, 0.51)
    for n in range(1, 9):
        review(look, 0, 1, 2 * n, 0)
    # 1 may beat 0 again once .51 ln t >= 8/4
    due = next(t for t in range(1, 1000) if 0.51 * log(t) >= 2)
    go_on(look, due - 1)
    assert (look.may.tolist(), look.sure.tolist()) == ([1, 0], [1, 0])
    assert look.clock[DUE] <= due
    go_on(look, due)
    assert (look.may.tolist(), look.sure.tolist()) == ([1, 1], [0, 0])


@pytest.mark.parametrize("name", ["d-ts", "d-ts+"])
def test_refuses_an_alpha_without_meaning(name: str) -> None:
    with pytest.raises(PolicyError, match=r"alpha is 0\.5"):
        Steps(name, 3, alpha=0.5)


def test_a_thousand_arms_fit_in_memory() -> None:
    steps = Steps("d-ts+", 1000)
    arrays = [np.asarray(a) for part in steps.state for a in (part if isinstance(part, tuple) else (part,))]
    assert sum(a.nbytes for a in arrays) < 90 * 2**20
