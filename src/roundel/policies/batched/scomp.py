"""SCOMP and R-SCOMP: seeded comparisons, once or on several levels.

Agarwal, Ghuge & Nagarajan, "Batched Dueling Bandits", ICML 2022. The idea is the paper's (compare a random seed
set with everybody until some arm is surely better than all seeds, keep only such arms, finish with all pairs); the
constants, and the recursion of R-SCOMP, are derived (docs/derivations.md).
"""

from __future__ import annotations

from collections.abc import Generator
from math import log

import numpy as np

from roundel.errors import PolicyError
from roundel.plan import Ints, Plan
from roundel.policies.arms import Arms, Result
from roundel.policies.batched._rules import (
    all_pairs_rounds,
    eliminate_beaten,
    log_eliminations,
    share_and_limit,
    surely_beats,
)
from roundel.policies.registry import Play, batched
from roundel.policies.schedule import batch_size
from roundel.rng import Stream
from roundel.tally import Tally

PAPER = "Agarwal, Ghuge & Nagarajan, Batched Dueling Bandits, ICML 2022"


@batched(
    "scomp",
    paper=f"{PAPER}, Alg. 2",
    assumption="SST+STI",
    bound="B + 1",
    most_rounds=lambda rounds, horizon, parameters: rounds + 1,
)
def scomp(arms: Arms, horizon: int, rounds: int, rng: Stream) -> Play:
    """Compare a random seed set with everybody, keep who beats all seeds, finish with all pairs."""
    return (yield from _levels(arms, horizon, rounds, rng, 1))


@batched(
    "r-scomp",
    paper=f"{PAPER} (recursive variant, derived)",
    assumption="SST+STI",
    bound="B + levels",
    most_rounds=lambda rounds, horizon, parameters: rounds + parameters["levels"],
)
def r_scomp(arms: Arms, horizon: int, rounds: int, rng: Stream, *, levels: int = 2) -> Play:
    """Narrow the arms down by seed sets on several levels, finish with all pairs.

    `levels`: how many times a seed set is drawn (1 is SCOMP).
    """
    if levels < 1:
        raise PolicyError(f"r-scomp: levels is {levels}: it must be at least 1")
    return (yield from _levels(arms, horizon, rounds, rng, levels))


def _levels(arms: Arms, horizon: int, rounds: int, rng: Stream, levels: int) -> Play:
    level = log(arms.count**2 * (rounds + levels) * horizon)
    seeds_wanted = arms.count ** (1 / (levels + 1))
    r = 1
    for _ in range(levels):
        seeds = draw_seeds(arms.active, seeds_wanted / len(arms), rng)
        if seeds.size:
            r = yield from _seeded_rounds(arms, seeds, horizon, rounds, level, r)
        if r > rounds:
            return None
    return (yield from all_pairs_rounds(arms, horizon, rounds, level, start=r, anew=True))


def draw_seeds(active: Ints, chance: float, rng: Stream) -> Ints:
    """Draw each active arm into the seed set with probability `chance`, independently."""
    return active[rng.uniforms(active.size) < chance]


def _seeded_rounds(
    arms: Arms, seeds: Ints, horizon: int, rounds: int, level: float, start: int
) -> Generator[Plan, Result, int]:
    """Compare `seeds` with all active arms until the switch; return the round index that goes on from there."""
    before: Tally | None = None
    for r in range(start, rounds + 1):
        in_seeds = arms.are(seeds)
        result = yield Plan.touching(arms.active, in_seeds, batch_size(horizon, rounds, r))
        if before is None:
            before = result.total.minus(result.fresh)
        tally = result.total.minus(before)
        # 1. eliminate whom a seed beats; seeds may go too
        eliminate_beaten(arms, tally, level, by=seeds)
        seeds = arms.among(seeds)
        # 2. switch when some arm is surely (by 3g) better than all seeds: keep who is better than all seeds by g
        rest = arms.others(seeds)
        if surely_beats(tally, level, rest, seeds, times=3).all(axis=1).any():
            kept = rest[surely_beats(tally, level, rest, seeds).all(axis=1)]
            _switch(arms, kept, tally, level, seeds)
            return r
    return rounds + 1


def _switch(arms: Arms, kept: Ints, tally: Tally, level: float, seeds: Ints) -> None:
    """Keep `kept`, which surely beat all seeds; log for each other arm its share against a seed it fails to beat."""
    log_eliminations(arms, tally, level, kept, seeds)
    out = arms.others(kept)
    share, limit = share_and_limit(tally, level, out, seeds)
    hardest = (share - limit).argmin(axis=1)
    at = (np.arange(out.size), hardest)
    arms.eliminate(out, seeds[hardest], share[at], limit[at], "switch")
