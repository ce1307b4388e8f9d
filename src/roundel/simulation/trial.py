"""One simulated run: the matrix gives the verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence

from roundel._check import whole
from roundel.errors import InputError
from roundel.plan import Ints, Plan, frozen
from roundel.policies.registry import Policy, resolve
from roundel.preferences import Preferences
from roundel.rng import Stream
from roundel.run import MOST_DUELS, Run
from roundel.simulation.drive import drive
from roundel.simulation.regret import best_arms, regret_table
from roundel.tally import Floats, Tally

POINTS = 100  # checkpoints of a curve, unless told


class Curve(NamedTuple):
    """Regret paid after `t` duels."""

    t: Ints
    regret: Floats


@dataclass(frozen=True, slots=True)
class Trial:
    """What came out of one simulated run."""

    policy: str
    problem: str
    horizon: int
    regret: float  # in all, over the whole horizon
    curve: Curve
    rounds: int  # rounds really played
    batches: int  # the same, with the final commitment counted as one
    duels: int  # duels judged; the rest of the horizon were self-duels
    duels_to_winner: int | None  # duels until one arm was left; None if that never came, or has no meaning
    winner: int | None
    leader: int  # the winner, or the best guess at the end
    right: bool  # whether the leader is a best arm under the kind of regret


@lru_cache(maxsize=64)
def checkpoints(horizon: int, points: int = POINTS) -> Ints:
    """Return about `points` log-spaced times from 1 to `horizon`, both included, ascending and distinct."""
    times = np.unique(np.rint(np.geomspace(1, horizon, points)).astype(np.int64))
    times[-1] = horizon
    return frozen(times)


def simulate(
    policy: str | Policy,
    problem: Preferences,
    horizon: int,
    rounds: int | None = None,
    seed: int | SeedSequence = 0,
    *,
    regret: str = "strong",
    points: int = POINTS,
    skip: bool = True,
    **parameters: Any,
) -> Trial:
    """Run `policy` on `problem` for `horizon` duels and return what it cost.

    `rounds` is the most rounds for a batched policy (default: floor(ln horizon)). `points` is the number of
    log-spaced checkpoints of the curve, which is exact there: duels inside a round stand in round-robin order.
    `skip=False` makes sequential policies step through every self-duel instead of jumping.
    """
    policy, parameters = resolve(policy, parameters)
    problem = preferences(problem)
    horizon = whole("horizon", horizon, least=1, most=MOST_DUELS)
    rounds = None if rounds is None else whole("rounds", rounds, least=1)
    times = checkpoints(horizon, whole("points", points, least=2))
    costs = regret_table(problem, regret)
    for_world, for_policy = _split(seed)
    play = _batched if policy.kind == "batched" else _sequential
    facts = play(policy, parameters, problem, horizon, rounds, times, costs, for_world, for_policy, skip)
    return Trial(
        policy=policy.text(parameters),
        problem=problem.name,
        horizon=horizon,
        regret=float(facts["curve"][-1]),
        curve=Curve(times, facts.pop("curve")),
        right=facts["leader"] in best_arms(problem, regret),
        **facts,
    )


def preferences(problem: Any) -> Preferences:
    """Return `problem` if it is what verdicts can be drawn from."""
    if not isinstance(problem, Preferences):
        raise InputError(f"problem is {problem!r}: it must be Preferences; see load_problem")
    return problem


def _split(seed: int | SeedSequence) -> tuple[SeedSequence, int]:
    """Return what seeds the world's verdicts, and the seed of the policy's own choices."""
    root = seed if isinstance(seed, SeedSequence) else SeedSequence(whole("seed", seed))
    # Children by key, not by spawn(): spawn counts its calls, and the same seed must give the same trial.
    world, own = (SeedSequence(root.entropy, spawn_key=(*root.spawn_key, key)) for key in (0, 1))
    return world, int(own.generate_state(1, np.uint64)[0])


def _batched(
    policy: Policy,
    parameters: dict[str, Any],
    problem: Preferences,
    horizon: int,
    rounds: int | None,
    times: Ints,
    costs: Floats,
    for_world: SeedSequence,
    for_policy: int,
    skip: bool,
) -> dict[str, Any]:
    world = Generator(np.random.SFC64(for_world))
    run = Run(policy, problem.arms, horizon, rounds, for_policy, keep_history=False, **parameters)
    curve = np.empty(times.size)
    paid, spent, at = 0.0, 0, 0
    while (plan := run.ask()) is not None:
        until = int(np.searchsorted(times, spent + plan.total, side="right"))
        pairs = plan.first * problem.arms + plan.second
        price = costs.take(pairs)
        if until > at:
            curve[at:until] = paid + _within(plan, price, times[at:until] - spent)
        at, spent = until, spent + plan.total
        paid += float(price @ plan.times)
        wins = world.binomial(plan.times, problem.matrix.take(pairs))
        run._digest(plan, 2 * wins, plan.times)  # by construction these are verdicts of this very plan
    alone = run.winner is not None
    # What is left of the horizon goes to the leader, also where the policy stopped before it had a winner.
    curve[at:] = paid + float(costs[run.leader, run.leader]) * (times[at:] - spent)
    return {
        "curve": curve,
        "rounds": run.rounds,
        "batches": run.rounds + (alone and run.left > 0),
        "duels": run.spent,
        "duels_to_winner": run.spent if alone else None,
        "winner": run.winner,
        "leader": run.leader,
    }


def _sequential(
    policy: Policy,
    parameters: dict[str, Any],
    problem: Preferences,
    horizon: int,
    rounds: int | None,
    times: Ints,
    costs: Floats,
    for_world: SeedSequence,
    for_policy: int,
    skip: bool,
) -> dict[str, Any]:
    own, world = Stream(for_policy, "policy"), Stream(int(for_world.generate_state(1, np.uint64)[0]), "world")
    end = drive(policy.kernels, problem.matrix, costs, horizon, times, own.state, world.state, parameters, skip=skip)
    active = np.flatnonzero(end.active)
    alone = end.alone >= 0
    return {
        "curve": end.curve,
        "rounds": end.duels,
        "batches": end.duels + (alone and end.alone < horizon),
        "duels": end.duels,
        "duels_to_winner": end.alone if alone else None,
        "winner": int(active[0]) if alone else None,
        "leader": Tally(end.points).leader(active),
    }


def _within(plan: Plan, price: Floats, done: Ints) -> Floats:
    """Return what the first `done` duels of a plan cost, in round-robin order, for each entry of `done`."""
    pairs, full = len(plan), int(plan.times[-1])
    if plan.times.strides == (0,) or (plan.times == full).all() or _last_pass_is_partial(plan, full):
        passes, rest = np.divmod(done, pairs)
        after = np.cumsum(price)
        value: Floats = passes * after[-1] + np.where(rest > 0, after[rest - 1], 0.0)
        return value
    at = plan.first * (plan.second.max() + 1) + plan.second
    costs = []
    for duels in done.tolist():  # a policy that repeats its pairs unevenly: rare, and none of ours
        cut = plan.truncate(duels)
        costs.append(price[np.isin(at, cut.first * (plan.second.max() + 1) + cut.second)] @ cut.times)
    return np.array(costs)


def _last_pass_is_partial(plan: Plan, full: int) -> bool:
    """Whether a plan was cut at the horizon: its first pairs are dueled once more than the others."""
    extra = plan.times - full
    return bool(((extra == 0) | (extra == 1)).all() and (np.diff(extra) <= 0).all())
