"""How fast simulations are: batched policies against bare draws, the paper's experiments, memory at K = 1,000."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from core import play, utilities
from table import best_of, report

from roundel.errors import ScheduleWarning
from roundel.policies import policies
from roundel.preferences import Preferences
from roundel.simulation import simulate

MEMORY = """
import resource, sys, warnings
import numpy as np, numba
warnings.simplefilter("ignore")
from roundel import Preferences, simulate
u = np.linspace(0.4, 0, 1000)
problem = Preferences(0.5 + (u[:, None] - u[None, :]) / 2)
simulate(sys.argv[1], Preferences([[0.5, 0.6], [0.4, 0.5]]), 100)  # load or compile before the baseline is read
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
simulate(sys.argv[1], problem, int(sys.argv[2]))
print(peak() - before)
"""


def batched(policy: str, arms: int, horizon: int, rounds: int) -> dict[str, Any]:
    """Time whole simulations, curve included, against the bare draws of the same shapes."""
    chance = utilities(arms)
    problem, world = Preferences(chance), np.random.default_rng(0)
    shapes = play(policy, chance, horizon, rounds, 0)
    loops = 20 if arms <= 100 else 1
    whole = best_of(3, lambda: [simulate(policy, problem, horizon, rounds) for _ in range(loops)]) / loops
    floor = best_of(3, lambda: [world.binomial(n, p) for _ in range(loops) for n, p in shapes]) / loops
    draws = sum(len(n) for n, _ in shapes)
    return {
        "policy": policy,
        "K": arms,
        "draws": draws,
        "simulate, million draws/s": draws / whole / 1e6,
        "bare, million draws/s": draws / floor / 1e6,
        "share of the bare rate": floor / whole,
    }


def paper(environment: str) -> dict[str, Any]:
    """Time the paper's experiments in a process of their own."""
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        command = [sys.executable, "-m", "roundel", "paper", "--out", str(Path(folder) / "paper")]
        subprocess.run(command, check=True, capture_output=True)
        return {"the paper's experiments": environment, "seconds": perf_counter() - start}


def memory(policy: str, horizon: int) -> dict[str, Any]:
    """Measure the peak of one run at K = 1,000 above the interpreter with numba loaded."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, policy, str(horizon)], check=True, capture_output=True, text=True
    )
    return {"policy": policy, "K": 1000, "T": horizon, "MB above the interpreter": float(done.stdout)}


def main() -> None:
    warnings.simplefilter("ignore", ScheduleWarning)
    sizes = ((30, 10**6, 13), (100, 10**7, 14), (1000, 10**9, 20))
    report(
        "simulation-batched",
        "batched simulations against the bare binomial draws",
        [batched(policy, *size) for size in sizes for policy in ("c2b-kl", "c2b-kl:defeat=majority", "pcomp", "bcope")],
    )
    report("simulation-paper", "the paper's experiments", [paper("once"), paper("again")])
    report(
        "simulation-memory",
        "peak memory of one run at K = 1,000",
        [memory(name, 10**8 if policy.kind == "batched" else 5_000) for name, policy in policies().items()],
    )


if __name__ == "__main__":
    main()
