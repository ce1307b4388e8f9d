"""How fast batched policies plan and digest, as ratios to the bare binomial draws that answer them."""

from __future__ import annotations

import tracemalloc
import warnings
from typing import Any

import numpy as np
from table import best_of, report

from roundel import Run
from roundel.errors import ScheduleWarning

SIZES = ((10, 10**6, 13), (30, 10**6, 13), (100, 10**7, 14), (1000, 10**9, 20), (3000, 10**10, 20))
POLICIES = ("c2b-kl", "c2b-kl:defeat=majority", "pcomp", "bcope")


def utilities(arms: int) -> np.ndarray:
    """Linear utilities from 0 to 0.4: the hardest pairs have tiny gaps, so that many rounds are needed."""
    u = np.linspace(0.4, 0, arms)
    return 0.5 + (u[:, None] - u[None, :]) / 2


def play(policy: str, chance: np.ndarray, horizon: int, rounds: int, seed: int) -> list[tuple[Any, Any]]:
    """Play a run through the public door and return the shapes of its binomial draws."""
    world = np.random.default_rng(seed)
    run = Run(policy, len(chance), horizon, rounds, seed, keep_history=False)
    shapes = []
    while (plan := run.ask()) is not None:
        p = chance[plan.first, plan.second]
        run.tell(world.binomial(plan.times, p))
        shapes.append((plan.times, p))
    return shapes


def measure(policy: str, arms: int, horizon: int, rounds: int) -> dict[str, Any]:
    """Time whole runs, and the bare draws of the same shapes; count memory in tables of K^2 integers."""
    chance = utilities(arms)
    world = np.random.default_rng(0)
    shapes = play(policy, chance, horizon, rounds, 0)
    times = 5 if arms <= 100 else 2
    loops = 50 if arms <= 30 else 1

    def runs() -> None:
        for _ in range(loops):
            play(policy, chance, horizon, rounds, 0)

    def draws() -> None:
        for _ in range(loops):
            for n, p in shapes:
                world.binomial(n, p)

    whole, floor = best_of(times, runs) / loops, best_of(times, draws) / loops
    tracemalloc.start()
    world = np.random.default_rng(0)
    run = Run(policy, arms, horizon, rounds, 0, keep_history=False)
    peak = 0
    while (plan := run.ask()) is not None:
        run.tell(world.binomial(plan.times, chance[plan.first, plan.second]))
        peak = max(peak, tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
    return {
        "policy": policy,
        "K": arms,
        "T": float(horizon),
        "rounds": len(shapes),
        "draws": sum(len(n) for n, _ in shapes),
        "run ms": whole * 1e3,
        "bare draws ms": floor * 1e3,
        "ratio": whole / floor,
        "memory / K^2 integers": peak / (8 * arms**2),
    }


def main() -> None:
    warnings.simplefilter("ignore", ScheduleWarning)
    report(
        "core",
        "a whole run (plan, answer, digest) against the bare draws of the same shapes",
        [measure(policy, *size) for size in SIZES for policy in POLICIES],
    )
    report(
        "core-horizon",
        "cost does not grow with T (c2b-kl, K = 30, B = 13)",
        [measure("c2b-kl", 30, 10**exponent, 13) for exponent in (4, 6, 8, 10, 12, 15)],
    )


if __name__ == "__main__":
    main()
