from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances import ARITH8, DET2, DET4, SIX, order
from roundel.errors import InputError
from roundel.policies import registry
from roundel.rng import Stream, uniform
from roundel.simulation.drive import Drive, drive
from stepping import published, random_matrix

PUBLISHED = ("rucb", "rmed1", "rmed2", "rmed2fh", "btm", "if", "savage")


def strong(matrix: np.ndarray) -> np.ndarray:
    """The strong regret of each pair, arm 0 being the winner."""
    gaps = matrix[0] - 0.5
    return np.asarray((gaps[:, None] + gaps[None, :]) / 2)


def weak(matrix: np.ndarray) -> np.ndarray:
    return np.minimum.outer(matrix[0] - 0.5, matrix[0] - 0.5)


def run(name: str, matrix: np.ndarray, cost: np.ndarray, horizon: int, seed: int, marks: Any = (), **how: Any) -> Drive:
    policy, compiled, skip = registry.find(name), how.pop("compiled", True), how.pop("skip", True)
    own, world = Stream(seed, "policy").state, Stream(seed, "world").state
    complete = policy.complete(how)
    return drive(policy.kernels, matrix, cost, horizon, marks, own, world, complete, skip=skip, compiled=compiled)


@pytest.mark.parametrize("name", ["rucb", "rmed1", "btm", "if", "savage", "ws-s"])
@pytest.mark.parametrize("skip", [True, False])
def test_the_curve_adds_up_duel_by_duel(name: str, skip: bool) -> None:
    """A loop of our own, over the plain kernels, knows the regret after each duel."""
    policy, horizon = registry.find(name), 400
    for seed in range(4):
        matrix = order(4, 0.9) if seed % 2 else random_matrix(seed, 4)
        cost = np.random.default_rng(seed).random((4, 4))
        end = run(name, matrix, cost, horizon, seed, np.arange(1, horizon + 1), skip=skip, compiled=False)
        own, world = Stream(seed, "policy").state, Stream(seed, "world").state
        with np.errstate(over="ignore"):
            state, paid, curve, alone = policy.kernels.init(4, horizon, own, **policy.complete({})), 0.0, [], -1
            for t in range(1, horizon + 1):
                i, j = policy.kernels.choose(state, t, own)
                if i != j:
                    policy.kernels.learn(state, i, j, 2 * int(uniform(world) < matrix[i, j]))
                paid += cost[i, j]
                curve.append(paid)
                if alone < 0 and policy.kernels.remaining(state) == 1:
                    alone = t
        assert end.curve == pytest.approx(curve, rel=1e-12)
        assert end.regret == end.curve[-1]
        assert end.alone == alone


@settings(max_examples=40)
@given(
    name=st.sampled_from((*PUBLISHED, "ws-w", "ws-s")),
    arms=st.integers(1, 7),
    horizon=st.integers(1, 400),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_every_way_of_playing_comes_to_the_same(
    name: str, arms: int, horizon: int, seed: int, data: st.DataObject
) -> None:
    matrix = random_matrix(seed, arms)
    marks = sorted(data.draw(st.sets(st.integers(1, horizon), max_size=8)))
    cost = np.random.default_rng(seed).random((arms, arms))
    ends = [
        run(name, matrix, cost, horizon, seed, marks, compiled=compiled, skip=skip)
        for compiled in (True, False)
        for skip in (True, False)
    ]
    for other in ends[1:]:
        for one, two in zip(ends[0], other, strict=True):
            assert np.array_equal(one, two)
    assert ends[0].duels + ends[0].selfduels.sum() == horizon
    assert (np.diff(ends[0].curve) >= 0).all()


def test_checkpoints_lie_exactly_within_a_jump() -> None:
    cost = np.array([[3.0, 1.0], [1.0, 0.0]])
    marks = [10**3, 10**6, 5 * 10**8, 10**9]
    end = run("rmed1", DET2, cost, 10**9, 0, marks)
    duels = [run("rmed1", DET2, cost, mark, 0).duels for mark in marks]
    assert end.curve.tolist() == [3 * (mark - n) + n for mark, n in zip(marks, duels, strict=True)]
    assert duels[0] == 11


@pytest.mark.parametrize("name", ["rucb", "rmed1"])
def test_a_horizon_of_a_billion_costs_what_its_duels_cost(name: str) -> None:
    utilities = np.linspace(0.4, 0, 30)
    matrix = 0.5 + (utilities[:, None] - utilities[None, :]) / 2
    marks = [10**3, 10**5, 10**7, 10**9]
    end = run(name, matrix, strong(matrix), 10**9, 0, marks)
    assert end.duels < 5 * 10**6
    longer = np.diff(end.curve)  # ln T grows by the same amount three times; regret does not grow faster
    assert longer[2] < 1.5 * longer[1]


@pytest.mark.parametrize(("name", "duels"), [("savage", 30), ("if", 133), ("btm", 190)])
def test_when_one_arm_is_left(name: str, duels: int) -> None:
    end = run(name, DET2, np.zeros((2, 2)), 1000, 4)
    assert (end.duels, end.alone) == (duels, duels)
    assert end.active.tolist() == [True, False]
    assert end.selfduels.tolist() == [1000 - duels, 0]
    assert end.points.tolist()[1] == [0, 0]


def test_alone_at_the_last_duel_and_one_too_late() -> None:
    def alone(horizon: int) -> int:
        return run("savage", DET2, np.zeros((2, 2)), horizon, 0, delta=0.01).alone

    first = alone(1000)
    assert 10 < first < 30
    # With delta given, the radius grows with ln T a little: look for the horizon that is met exactly.
    exact = next(T for T in range(1, 40) if alone(T) == T)
    assert alone(exact - 1) == -1


def test_policies_that_never_eliminate_are_never_alone() -> None:
    end = run("rucb", DET4, np.zeros((4, 4)), 10**5, 0)
    assert (end.alone, end.active.tolist()) == (-1, [True] * 4)


@pytest.mark.parametrize("name", [*PUBLISHED, "ws-w", "ws-s"])
def test_a_single_arm_duels_itself(name: str) -> None:
    end = run(name, [[0.5]], [[2.0]], 10**9, 0, [5, 10**9])  # type: ignore[arg-type]
    assert end.curve.tolist() == [10, 2 * 10**9]
    assert (end.duels, end.selfduels.tolist()) == (0, [10**9])


@pytest.mark.parametrize("instance", ["six", "arith8"])
@pytest.mark.parametrize("name", PUBLISHED)
def test_regret_is_the_published_one(name: str, instance: str, statistics_seed: int) -> None:
    # Four standard errors of both sides: a normal mean is further away with chance 6e-5.
    matrix = {"six": SIX, "arith8": ARITH8}[instance]
    mean, deviation = published(name, instance)

    def distance(chance: np.ndarray, runs: int) -> float:
        seeds = range(1000 * statistics_seed, 1000 * statistics_seed + runs)
        regret = np.array([run(name, chance, strong(matrix), 10**5, seed).regret for seed in seeds])
        return float(abs(regret.mean() - mean) / np.sqrt(deviation**2 / 20 + regret.var(ddof=1) / runs))

    assert distance(matrix, 60) < 4
    assert distance(1 - matrix, 10) > 4  # the control: flipped verdicts


@pytest.mark.parametrize(("name", "least"), [("rucb", 0.9), ("savage", 0.999)])
def test_most_of_the_regret_comes_early(name: str, least: float) -> None:
    early = [run(name, SIX, strong(SIX), 10**5, seed, [5 * 10**4, 10**5]).curve for seed in range(40)]
    first, whole = np.mean(early, axis=0)
    assert least < first / whole <= 1
    if name == "rucb":
        assert first / whole == pytest.approx(0.95, abs=0.03)


def test_weak_regret_of_winner_stays_does_not_grow_with_the_horizon() -> None:
    runs = [run("ws-w", SIX, weak(SIX), 10**5, seed, [10**4, 10**5]).curve for seed in range(100)]
    early, whole = np.mean(runs, axis=0)
    # Published: 4.8 over 3 or 4 runs; a run has a deviation of about 13.
    assert abs(whole - 4.8) < 4 * 13 * np.sqrt(1 / 3 + 1 / 100)
    assert whole < 1.2 * early
    flipped = run("ws-w", 1 - SIX, weak(SIX), 10**5, 0).regret
    assert flipped > 1000


def test_strong_regret_of_winner_stays_in_rounds() -> None:
    regret = np.array([run("ws-s", SIX, strong(SIX), 10**5, seed).regret for seed in range(100)])
    assert abs(regret.mean() - 122) < 4 * regret.std() * np.sqrt(1 / 3 + 1 / 100)
    assert run("ws-w", SIX, strong(SIX), 10**5, 0).regret > 2000  # the control: it never exploits


@pytest.mark.parametrize("marks", [[0, 5], [5, 5], [7, 6], [101]])
def test_refuses_checkpoints_outside_or_out_of_order(marks: list[int]) -> None:
    with pytest.raises(InputError, match=r"ascend strictly within 1\.\.100"):
        run("rucb", DET2, np.zeros((2, 2)), 100, 0, marks)


@pytest.mark.parametrize("cost", [np.zeros((3, 3)), np.zeros(2)])
def test_refuses_tables_that_do_not_fit(cost: np.ndarray) -> None:
    with pytest.raises(InputError, match="square"):
        run("rucb", DET2, cost, 100, 0)
