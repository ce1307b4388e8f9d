from __future__ import annotations

from math import ceil, log

import numpy as np
import pytest

from instances import DET2, SIX
from roundel.errors import PolicyError
from roundel.policies.sequential.rmed import BEST, LENGTH, _cheapest_rival, _opponent
from stepping import Pair, Steps, agree, duels, random_matrix

EXAMPLE = [[0, 12, 9], [8, 0, 15], [11, 5, 0]]
VARIANTS = ("rmed1", "rmed2", "rmed2fh")


def kl_half(p: float) -> float:
    return sum(x * log(2 * x) for x in (p, 1 - p) if x > 0)


class Literal:
    """Section 8 of the specification, line by line."""

    def __init__(self, variant: str, arms: int, horizon: int, c: float = 0.3, alpha: float = 3.0) -> None:
        self.W = np.zeros((arms, arms))
        self.variant, self.K, self.alpha, self.f = variant, arms, alpha, c * arms**1.01
        self.patience = log(log(max(horizon, 3)))
        L0 = max(1, ceil(alpha * self.patience)) if variant == "rmed2fh" else 1
        self.start = [(i, j) for i in range(arms) for j in range(i + 1, arms)] * L0
        self.LC, self.LR, self.LN = list(range(arms)), list(range(arms)), []
        self.b: list[int] | None = None
        self.turn: tuple[int, int] | None = None

    def N(self, i: int, j: int) -> float:
        return float(self.W[i, j] + self.W[j, i])

    def phat(self, i: int, j: int) -> float:
        return float(self.W[i, j] / self.N(i, j)) if self.N(i, j) else 0.5

    def I(self) -> list[float]:  # noqa: E743 - the paper's name
        return [self.evidence(i) for i in range(self.K)]

    def evidence(self, i: int) -> float:
        terms = [self.N(i, j) * kl_half(self.phat(i, j)) if self.phat(i, j) < 0.5 else 0.0 for j in range(self.K)]
        # The order of the sum decides the last bit, and that the ties: four sums side by side, then the rest.
        lanes = [sum(terms[k : self.K // 4 * 4 : 4]) for k in range(4)]
        return sum(terms[self.K // 4 * 4 :], (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]))

    def best(self) -> int:
        return int(np.argmin(self.I()))

    def O(self, i: int) -> list[int]:  # noqa: E743
        return [j for j in range(self.K) if j != i and self.phat(i, j) <= 0.5]

    def rival(self, i: int, sign: int = 1) -> int:
        best = self.best()
        price = {
            j: max(sign * (self.phat(best, i) + self.phat(best, j) - 1), 0.01) / kl_half(self.phat(i, j))
            for j in range(self.K)
            if j != i and self.phat(i, j) < 0.5
        }
        return min(price, key=lambda j: (price[j], j)) if price else best

    def opponent(self, t: int, i: int) -> int:
        best, ahead = self.best(), self.O(i)
        if self.variant != "rmed1":
            b = self.b[i] if self.b is not None else self.rival(i)
            patience = self.patience if self.variant == "rmed2fh" else log(log(max(t, 3)))
            if b in ahead and self.N(i, best) >= self.N(i, b) / patience:
                return b
        if best in ahead or not ahead:
            return best
        return min(ahead, key=lambda j: (self.phat(i, j), j))

    def choose(self, t: int) -> Pair:
        self.turn = None
        if self.start:
            return self.start.pop(0)
        if self.variant == "rmed2":
            for i in range(self.K):
                for j in range(i + 1, self.K):
                    if self.N(i, j) < (self.alpha * log(log(t)) if t > 2 else 0):
                        return i, j
        if self.variant == "rmed2fh" and self.b is None:
            self.b = [self.rival(i) for i in range(self.K)]
        i = self.LC[0]
        j = self.opponent(t, i)
        self.turn = (i, t)
        if i == j:
            self.finish()
        return i, j

    def finish(self) -> None:
        assert self.turn is not None
        i, t = self.turn
        self.LC.remove(i)
        self.LR.remove(i)
        evidence = self.I()
        for j in range(self.K):
            candidate = evidence[j] - min(evidence) <= log(t) + self.f
            if j not in self.LR and j not in self.LN and candidate:
                self.LN.append(j)
        assert self.LN or self.LC
        if not self.LC:
            self.LC, self.LR, self.LN = list(self.LN), list(self.LN), []

    def learn(self, i: int, j: int, points: int) -> None:
        self.W[i, j] += points / 2
        self.W[j, i] += 1 - points / 2
        if self.turn is not None:
            self.finish()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(20))
def test_chooses_what_the_pseudo_code_chooses(variant: str, seed: int) -> None:
    arms = 1 + seed % 7
    agree(variant, Literal(variant, arms, 600), random_matrix(seed, arms), 600, seed, ties=0.3 * (seed % 2))


@pytest.mark.parametrize("variant", VARIANTS)
def test_chooses_what_the_pseudo_code_chooses_with_other_parameters(variant: str) -> None:
    given = {"c": 0.05} if variant == "rmed1" else {"c": 0.05, "alpha": 1.3}
    agree(variant, Literal(variant, 6, 900, **given), SIX, 900, 5, **given)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_comparison_catches_another_slack(variant: str) -> None:
    with pytest.raises(AssertionError, match="the pseudo-code"):
        agree(variant, Literal(variant, 6, 900, c=0.4), SIX, 900, 5)


def example(variant: str) -> Steps:
    steps = Steps(variant, 3, 1000)
    steps.tell(EXAMPLE)
    return steps


def test_evidence_and_threshold_of_the_example() -> None:
    state = example("rmed1").state
    assert state.evidence == pytest.approx([0.100167, 0.402710, 2.616241], abs=1e-6)
    assert state.memory[BEST] == 0
    assert log(60) + state.slack == pytest.approx(5.004287, abs=1e-6)
    assert (state.evidence - state.evidence[0] <= 5.004287).all()


def test_opponents_of_the_example() -> None:
    steps = example("rmed1")
    assert [_opponent(steps.state, 60, i) for i in range(3)] == [2, 0, 1]


def test_cheapest_rivals_of_the_example() -> None:
    state = example("rmed2").state
    assert [_cheapest_rival(state, i) for i in range(3)] == [2, 0, 1]


def test_the_cheapest_rival_costs_the_sum_of_two_gaps() -> None:
    wins = [[0, 6, 9], [4, 0, 2], [1, 8, 0]]  # arm 1 loses to 0 (0.4) and to 2 (0.2)
    steps, literal = Steps("rmed2", 3), Literal("rmed2", 3, 1000)
    steps.tell(wins)
    literal.W[:] = wins
    # To 0: (.6 + .5 - 1) / kl(.4) = 4.97; to 2: (.6 + .9 - 1) / kl(.2) = 2.59.
    assert _cheapest_rival(steps.state, 1) == literal.rival(1) == 2
    wins = [[0, 9, 9], [1, 0, 4], [1, 6, 0]]  # to 0: .4 / kl(.1) = 1.09; to 2: .8 / kl(.4) = 39.7
    steps, literal = Steps("rmed2", 3), Literal("rmed2", 3, 1000)
    steps.tell(wins)
    literal.W[:] = wins
    assert _cheapest_rival(steps.state, 1) == literal.rival(1) == 0


def test_a_flipped_sign_would_choose_another_rival() -> None:
    wins = [[0, 6, 9], [4, 0, 7], [1, 13, 0]]  # to 0: .1 / kl(.4) = 4.97; to 2: .5 / kl(.35) = 10.9
    steps, literal = Steps("rmed2", 3), Literal("rmed2", 3, 1000)
    steps.tell(wins)
    literal.W[:] = wins
    assert _cheapest_rival(steps.state, 1) == literal.rival(1) == 0
    assert literal.rival(1, sign=-1) == 2


def test_an_arm_that_is_barely_ahead_is_no_opponent() -> None:
    steps = Steps("rmed1", 2)
    steps.state.points[0, 1], steps.state.points[1, 0] = 100_000, 100_000
    steps.learn(0, 1, 2)
    assert steps.state.behind.tolist() == [0, 1]  # phat[0][1] = .5000025 is above 1/2, though below .50001


def test_a_sure_pair() -> None:
    _, times = duels("rmed1", DET2, 1000)
    assert times[:8] == [1, 3, 5, 7, 11, 20, 37, 72]
    assert (sum(t <= 100 for t in times), len(times), times[-1]) == (8, 11, 562)


def test_rmed2fh_starts_with_every_pair_as_often_as_the_horizon_asks() -> None:
    steps = Steps("rmed2fh", 2, 1000)
    first = []
    for t in range(1, 12):
        first.append(steps.choose(t))
        if first[-1] == (0, 1):
            steps.learn(0, 1, 2)
    assert first[:6] == [(0, 1)] * 6
    assert first[6] == (0, 0)


@pytest.mark.parametrize(("horizon", "passes"), [(10**5, 8), (10**6, 8), (1000, 6), (1, 1)])
def test_passes_of_the_start(horizon: int, passes: int) -> None:
    steps = Steps("rmed2fh", 3, horizon)
    pairs = [(0, 1), (0, 2), (1, 2)]
    for t in range(1, 3 * passes + 1):
        pair = steps.choose(t)
        assert pair == pairs[(t - 1) % 3]
        steps.learn(*pair, 2)
    assert steps.choose(3 * passes + 1) not in pairs[1:]


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_list_is_never_empty_and_the_best_arm_returns(variant: str) -> None:
    steps, world, seen = Steps(variant, 6, 3000), np.random.default_rng(1), 0
    for t in range(1, 3001):
        i, j = steps.choose(t)
        if i != j:
            steps.learn(i, j, 2 * int(world.random() < SIX[i, j]))
        memory = steps.state.memory
        assert memory[LENGTH] > 0
        seen += int(memory[BEST] in steps.state.current[: memory[LENGTH]])
    assert seen > 1000


@pytest.mark.parametrize(("name", "parameters"), [("rmed1", {"c": -0.1}), ("rmed2", {"alpha": 0.0})])
def test_refuses_parameters_without_meaning(name: str, parameters: dict[str, float]) -> None:
    with pytest.raises(PolicyError, match=next(iter(parameters))):
        Steps(name, 3, **parameters)
