"""What every sequential policy promises, whichever it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from instances import CYC4, NOCW5, SIX, order
from roundel.errors import PolicyError
from roundel.policies import registry
from roundel.rng import Stream
from roundel.run import Run
from roundel.simulation.drive import Drive, drive
from stepping import Steps, random_matrix, verdict

NAMES = [name for name, policy in registry.policies().items() if policy.kind == "sequential"]


def played(name: str, matrix: np.ndarray, horizon: int, seed: int, parameters: Any = None, **how: bool) -> Drive:
    policy = registry.find(name)
    cost = np.abs(np.random.default_rng(seed).normal(size=matrix.shape))  # any table is a cost
    marks = np.unique(np.geomspace(1, horizon, 40).astype(int))
    own, world = Stream(seed, "policy").state, Stream(seed, "world").state
    return drive(policy.kernels, matrix, cost, horizon, marks, own, world, policy.complete(parameters or {}), **how)


def same(one: Drive, other: Drive) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_compiled_and_plain_come_to_the_same(name: str) -> None:
    pytest.importorskip("numba")
    for seed in range(6):
        matrix = random_matrix(seed, (1, 2, 3, 5, 6, 9)[seed])
        compiled = played(name, matrix, 600, seed, compiled=True)
        assert same(compiled, played(name, matrix, 600, seed, compiled=False))
    assert not same(compiled, played(name, matrix, 600, seed + 1, compiled=False))


@pytest.mark.parametrize("name", NAMES)
def test_parameters_as_large_as_the_registry_takes_are_played_or_refused(name: str) -> None:
    policy = registry.find(name)
    for p in policy.parameters:
        for value in (10**18, 10**6) if p.type is int else (1e100, 1e9, 1e-100) if p.type is float else ():
            given = {"sparsity": 2, p.name: value} if name == "borda-se" else {p.name: value}
            try:
                ends = [
                    played(name, matrix, 80, 1, given, compiled=compiled)
                    for matrix in (SIX, order(1))
                    for compiled in (True, False)
                ]
            except PolicyError:
                continue
            assert same(ends[0], ends[1])
            assert same(ends[2], ends[3])


VARIANTS = [
    *("btm:include_self=true,gamma=1", "btm:variant=original,gamma=1", "if:prune=false", "ucb-ts:solution=uncovered"),
    *("versatile-db:shared=false", "versatile-db:reduced=true", "versatile-db:shared=false,reduced=true"),
    *("borda-se:sparsity=2,factor=0.05", "merge-rucb:batch=2", "merge-dts:batch=3", "rucb:unseen=2", "rmed2:alpha=0.3"),
    *("d-ts:alpha=20", "d-ts+:alpha=20", "rcs:alpha=9", "savage:delta=0.4", "ws-s:beta=3", "rmed2fh:c=0"),
]


@pytest.mark.parametrize("text", VARIANTS)
def test_compiled_and_plain_come_to_the_same_with_other_parameters(text: str) -> None:
    pytest.importorskip("numba")
    policy, parameters = registry.parse(text)
    for seed, matrix in enumerate((NOCW5, order(4, 0.9), random_matrix(2, 2), random_matrix(3, 9))):
        ends = [played(policy.name, matrix, 600, seed, parameters, compiled=compiled) for compiled in (True, False)]
        assert same(*ends)


@pytest.mark.parametrize("name", NAMES)
def test_jumps_and_steps_come_to_the_same(name: str) -> None:
    for seed, matrix in enumerate((SIX, CYC4, NOCW5, order(3), order(2), order(1), order(8, 0.8))):
        jumped = played(name, matrix, 30_000, seed, skip=True)
        assert same(jumped, played(name, matrix, 30_000, seed, skip=False))
        assert jumped.duels + jumped.selfduels.sum() == 30_000
        assert jumped.points.sum() == 2 * jumped.duels


@pytest.mark.parametrize("name", NAMES)
def test_idle_keeps_its_promise(name: str) -> None:
    for seed, matrix in enumerate((order(2), order(4), order(3, 0.8), order(1))):
        steps, world, until = Steps(name, len(matrix), 1500, seed), np.random.default_rng(seed), 0
        promised: Any = None
        for t in range(1, 1501):
            i, j = steps.choose(t)
            if t <= until:
                assert ((i, j), steps.frozen()) == promised
            elif i == j:
                until = steps.idle(t)
                assert until >= t
                promised = ((i, j), steps.frozen())
            if i != j:
                assert steps.idle(t) >= t
                steps.learn(i, j, verdict(world, matrix[i, j], 0.2))


@pytest.mark.parametrize("name", NAMES)
def test_run_asks_for_the_duels_that_drive_plays(name: str) -> None:
    policy, horizon = registry.find(name), 400
    for seed, matrix in enumerate((SIX, NOCW5, order(4), order(3, 0.7), order(2))):
        told: list[tuple[int, int, int]] = []

        def learn(state: Any, i: int, j: int, points: int, told: Any = told) -> None:
            told.append((i, j, points))
            policy.kernels.learn(state, i, j, points)

        listening = replace(policy.kernels, learn=learn)
        own, world = Stream(seed, "policy").state, Stream(seed, "world").state
        free = np.zeros(matrix.shape)
        end = drive(listening, matrix, free, horizon, [], own, world, policy.complete({}), compiled=False)
        run = Run(name, len(matrix), horizon, seed=seed)
        for i, j, points in told:
            plan = run.ask()
            assert plan is not None
            assert list(plan) == [(min(i, j), max(i, j), 1)]
            run.tell([points // 2 if i < j else 1 - points // 2])
        assert run.ask() is None
        assert run.tally.points.tolist() == end.points.tolist()
        assert run.active.tolist() == np.flatnonzero(end.active).tolist()
        if run.winner is None:
            assert run.spent == horizon
        else:
            assert (run.spent, run.winner) == (end.alone, np.argmax(end.active))


@pytest.mark.parametrize("name", NAMES)
def test_run_asks_again_for_a_duel_that_was_not_played(name: str) -> None:
    sure, patient = Run(name, 3, 200, seed=1), Run(name, 3, 200, seed=1)
    while (plan := sure.ask()) is not None and sure.rounds < 60:
        again = patient.ask()
        assert again == plan
        patient.tell([0], played=[0])
        assert patient.ask() == plan
        verdicts = [int(plan.first[0] == 0)]
        sure.tell(verdicts)
        patient.tell(verdicts)
    assert patient.spent == sure.spent


@pytest.mark.parametrize("name", NAMES)
def test_is_described(name: str) -> None:
    policy = registry.find(name)
    assert policy.paper
    assert policy.bound == "T"
    assert policy.summary
    assert policy.most_rounds(5, 100, {}) == 100
