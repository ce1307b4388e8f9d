"""How fast sequential policies are simulated, as ratios to the floor, and what a long horizon costs.

The floor is a compiled loop that draws one number, looks up P, bumps a counter and adds the regret. Run it as
`python benchmarks/sequential.py [policy ...]`; all policies are measured if none is named.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from table import best_of, report

from roundel import _jit, load_problem
from roundel.policies import registry
from roundel.rng import Stream, uniform
from roundel.simulation.drive import drive

Floats = NDArray[np.float64]

SIZES = ((6, 10**5), (30, 10**6), (136, 10**5))
# What a peer needs, ns per duel at these sizes: the C++ libraries of the literature.
PEERS = {
    "rucb": (411, 7_054, 57_217),
    "rmed1": (735, 10_578, 204_988),
    "rmed2": (874, 15_821, 166_970),
    "btm": (279, 987, 6_681),
    "if": (100, 94, 95),
    "savage": (178, 6_076, 214_088),
    "sparring": (149, 516, 2_245),
    "multisbm": (93, 274, 1_032),
    "d-ts+": (3_455, 74_626, 1_515_264),
    "ccb": (2_221, 24_409, 477_034),
}
# The goal, step by step: 5 floors at K = 6 and 12 at K = 30.
GOALS = dict.fromkeys(("rucb", "rmed1", "rmed2", "btm", "if", "savage", "ws-w"), (5, 12))


@cache
def instance(arms: int) -> Floats:
    """Six real rankers, or linear utilities of random steps with a clear winner."""
    if arms == 6:
        return np.array(load_problem("six_rankers").matrix)
    u = np.sort(np.random.default_rng(arms).random(arms))[::-1] * 0.35
    u[0] += 0.03
    return np.asarray(0.5 + (u[:, None] - u[None, :]) / 2)


def strong(chance: Floats) -> Floats:
    gaps = chance[0] - 0.5
    return np.asarray((gaps[:, None] + gaps[None, :]) / 2)


def floor_loop(state: Any, chance: Floats, cost: Floats, counts: Any, duels: int) -> float:
    regret, i, j, arms = 0.0, 0, 1, len(chance)
    for _ in range(duels):
        counts[i, j] += int(uniform(state) < chance[i, j])
        regret += cost[i, j]
        i = i + 1 if i + 1 < arms else 0
        j = j + 1 if j + 1 < arms else 0
    return regret


def measure_floor(arms: int) -> float:
    """Return ns per duel of the loop that does the least."""
    loop = _jit.specialise(floor_loop, {"uniform": uniform}, "floor")
    chance, state, duels = instance(arms), Stream(0).state, 2 * 10**6
    cost, counts = strong(chance), np.zeros((arms, arms), np.int64)
    loop(state, chance, cost, counts, 1)
    return best_of(7, lambda: loop(state, chance, cost, counts, duels)) / duels * 1e9


def play(name: str, arms: int, horizon: int, seed: int, skip: bool) -> Any:
    policy, chance = registry.find(name), instance(arms)
    own, world = Stream(seed, "policy").state, Stream(seed, "world").state
    return drive(policy.kernels, chance, strong(chance), horizon, [], own, world, policy.complete({}), skip=skip)


def speed(name: str, arms: int, horizon: int, skip: bool) -> float:
    """Return ns per duel, self-duels included: the mean over seeds of the best of some runs."""
    seeds, repeats = (8, 5) if horizon <= 10**5 else (2, 3)
    times = [best_of(repeats, lambda s=seed: play(name, arms, horizon, s, skip)) for seed in range(seeds)]  # type: ignore[misc]
    return float(np.mean(times)) / horizon * 1e9


def step_by_step(names: list[str]) -> list[dict[str, Any]]:
    rows = []
    for name in names:
        compiling = best_of(1, lambda n=name: play(n, 6, 10, 0, True))  # type: ignore[misc]
        for at, (arms, horizon) in enumerate(SIZES):
            least = measure_floor(arms)  # again each time: the machine is not always the same
            steps, jumps = speed(name, arms, horizon, False), speed(name, arms, horizon, True)
            goal = GOALS.get(name, ())
            peer = PEERS.get(name)
            rows.append(
                {
                    "policy": name,
                    "K": arms,
                    "T": horizon,
                    "floor ns": round(least, 2),
                    "step by step ns": round(steps, 1),
                    "floors": round(steps / least, 1),
                    "goal": goal[at] if at < len(goal) else "",
                    "skip-ahead ns": round(jumps, 2),
                    "peer / ours": round(peer[at] / steps) if peer else "",
                    "first call s": round(compiling, 2) if at == 0 else "",
                }
            )
    return rows


def long_horizons() -> list[dict[str, Any]]:
    rows = []
    for name in ("rucb", "rmed1", "rmed2fh"):
        play(name, 30, 10, 0, True)
        for power in range(4, 10):
            end = play(name, 30, 10**power, 0, True)
            seconds = best_of(3, lambda n=name, p=power: play(n, 30, 10**p, 0, True))  # type: ignore[misc]
            rows.append(
                {"policy": name, "K": 30, "T": 10**power, "seconds": round(seconds, 5), "duels": end.duels}
                | {"regret": round(end.regret)}
            )
    return rows


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Plot seconds against the horizon, in logarithms: cost grows with ln T."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    axes = (figure := Figure(figsize=(5, 3.2), layout="constrained")).subplots()
    for name in dict.fromkeys(row["policy"] for row in rows):
        mine = [row for row in rows if row["policy"] == name]
        axes.semilogx([row["T"] for row in mine], [row["seconds"] for row in mine], marker="o", label=name)
    axes.set(xlabel="horizon T", ylabel="seconds", title="A run with skip-ahead, K = 30", ylim=(0, None))
    axes.legend(frameon=False)
    figure.savefig(path)


def main() -> None:
    known = [name for name, policy in registry.policies().items() if policy.kind == "sequential"]
    report("sequential", "Sequential policies: ns per duel", step_by_step(sys.argv[1:] or known))
    rows = long_horizons()
    report("skip-ahead", "Skip-ahead: one run, K = 30", rows)
    draw(rows, Path("out/bench/skip-ahead.png"))


if __name__ == "__main__":
    main()
