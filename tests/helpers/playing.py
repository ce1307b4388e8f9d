"""Runs played to their end: by a matrix of chances, or by a rule for verdicts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import exp, lgamma, log, log1p
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundel.errors import ScheduleWarning
from roundel.plan import Plan
from roundel.policies.batched.scomp import draw_seeds
from roundel.rng import Stream
from roundel.run import Run

Floats = NDArray[np.float64]
Verdicts = Callable[[Plan, int], tuple[Any, Any, Any]]  # (plan, round) -> wins, ties, played


@contextmanager
def any_schedule() -> Iterator[None]:
    """Let runs have more rounds than the theory covers, without the warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScheduleWarning)
        yield


def start(policy: Any, arms: int, horizon: int, rounds: int | None = None, seed: int = 0, **parameters: Any) -> Run:
    """Start a run; more rounds than the theory covers are fine here."""
    with any_schedule():
        return Run(policy, arms, horizon, rounds, seed, **parameters)


class Played(NamedTuple):
    """What the tables of the specification report about a run that was played out."""

    run: Run
    regret: float
    batches: int  # the final commitment counts as one
    alone: int  # t_alone: duels made before the commitment; the horizon if there was none
    plans: list[dict[tuple[int, int], int]]


def batches(run: Run) -> int:
    """The rounds played, and one more for the self-duels that a committed run has left."""
    return run.rounds + (run.winner is not None and run.left > 0)


def as_dict(plan: Plan) -> dict[tuple[int, int], int]:
    return {(i, j): n for i, j, n in plan}


def play(run: Run, matrix: Floats, rng: np.random.Generator | None = None, cost: Floats | None = None) -> Played:
    """Answer every plan by binomial draws (sure pairs need no `rng`); `cost` of an arm is its gap by default."""
    rng = rng or np.random.default_rng(0)
    if cost is None:
        winner = int(np.argmax((matrix >= 0.5).sum(axis=1)))
        cost = matrix[winner] - 0.5
    regret, plans = 0.0, []
    while (plan := run.ask()) is not None:
        plans.append(as_dict(plan))
        run.tell(rng.binomial(plan.times, matrix[plan.first, plan.second]))
        regret += float((plan.times * (cost[plan.first] + cost[plan.second])).sum()) / 2
    alone = run.spent if run.winner is not None and run.left else run.horizon
    if run.winner is not None:
        regret += run.left * float(cost[run.winner])
    return Played(run, regret, batches(run), alone, plans)


def play_by(run: Run, verdicts: Verdicts, most: int = 10**9) -> Run:
    """Answer up to `most` plans by a rule."""
    while most and (plan := run.ask()) is not None:
        run.tell(*verdicts(plan, run.rounds + 1))
        most -= 1
    return run


def snapshot(run: Run) -> dict[str, Any]:
    """Everything that can be seen of a run, as plain data."""
    open_plan = run.ask()
    return {
        "rounds": run.rounds,
        "spent": run.spent,
        "left": run.left,
        "finished": run.finished,
        "winner": run.winner,
        "leader": run.leader,
        "active": run.active.tolist(),
        "points": run.tally.points.tolist(),
        "eliminations": run.eliminations,
        "no_condorcet_evidence": run.no_condorcet_evidence,
        "plan": None if open_plan is None else list(open_plan),
        "history": [
            (list(past.plan), past.wins.tolist(), past.ties.tolist(), past.played.tolist()) for past in run.history
        ],
    }


def seed_that_draws(arms: int, chance: float, wanted: set[int]) -> int:
    """The first seed of a run with which its policy draws exactly this seed set first."""
    everyone = np.arange(arms, dtype=np.int64)
    return next(s for s in range(100_000) if set(draw_seeds(everyone, chance, Stream(s, "policy")).tolist()) == wanted)


def binomial_limit(trials: int, chance: float, alarm: float) -> int:
    """The least k with Pr(Binomial(trials, chance) >= k) <= alarm."""
    total, k = 0.0, trials + 1
    while k > 0:
        log_choose = lgamma(trials + 1) - lgamma(k) - lgamma(trials - k + 2)
        total += exp(log_choose + (k - 1) * log(chance) + (trials - k + 1) * log1p(-chance))
        if total > alarm:
            return k
        k -= 1
    return 0
