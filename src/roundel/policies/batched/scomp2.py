"""SCOMP2: seeded comparisons with a candidate.

Agarwal, Ghuge & Nagarajan, "Batched Dueling Bandits", ICML 2022: an undefeated candidate from a random seed set
eliminates the active arms. The constants (1, 5, 3) are derived (docs/derivations.md).
"""

from __future__ import annotations

from math import log

import numpy as np

from roundel.errors import PolicyError
from roundel.plan import Ints, Plan
from roundel.policies.arms import Arms
from roundel.policies.batched._rules import all_pairs_rounds, log_eliminations, share_and_limit, surely_beats
from roundel.policies.batched.scomp import PAPER, draw_seeds
from roundel.policies.registry import Play, batched
from roundel.policies.schedule import batch_size
from roundel.rng import Stream
from roundel.tally import Tally


@batched(
    "scomp2",
    paper=f"{PAPER}, Alg. 3",
    assumption="SST+STI",
    bound="2B + 1",
    most_rounds=lambda rounds, horizon, parameters: 2 * rounds + 1,
)
def scomp2(arms: Arms, horizon: int, rounds: int, rng: Stream, *, conf_scale: float = 1.0) -> Play:
    """Let an undefeated candidate from a random seed set eliminate the others, finish with all pairs.

    `conf_scale` multiplies the level of the radii; 0.25 does well in practice, without a guarantee.
    """
    if conf_scale <= 0:
        raise PolicyError(f"scomp2: conf_scale is {conf_scale}: it must be above 0")
    level = log(3 * arms.count**2 * rounds * horizon) * conf_scale
    seeds = draw_seeds(arms.active, arms.count**-0.5, rng)
    r = 1
    while seeds.size and r <= rounds:
        q = batch_size(horizon, rounds, r)
        # Estimates are from the round's own duels only, because the candidate changes with the data.
        tally = Tally.zero(arms.count)
        # (a) the seeds among themselves; the best of those that no seed beats is the candidate
        candidate = int(seeds[0])
        if seeds.size > 1:
            result = yield Plan.all_pairs(seeds, q)
            if not result.left:
                return None
            tally = result.fresh
            seeds, candidate = _best_seed(arms, tally, level, seeds)
        # (b) the candidate against the rest
        rest = arms.others(seeds)
        if rest.size:
            everyone = np.sort(np.append(rest, candidate))
            result = yield Plan.touching(everyone, everyone == candidate, q)
            if not result.left:
                return None
            tally = tally.plus(result.plan, result.points, result.played)
        me = np.array([candidate])
        log_eliminations(arms, tally, level, me, arms.active[surely_beats(tally, level, me, arms.active)[0]])
        seeds = arms.among(seeds)
        # switch when some arm surely (by 5g) beats the candidate: keep who beats it by 3g
        if surely_beats(tally, level, arms.active, me, times=5).any():
            kept = arms.active[surely_beats(tally, level, arms.active, me, times=3)[:, 0]]
            log_eliminations(arms, tally, level, kept, me)
            out = arms.others(kept)
            share, limit = share_and_limit(tally, level, out, me, times=3)
            arms.eliminate(out, np.full(out.shape, candidate), share[:, 0], limit[:, 0], "switch")
            break
        r += 1
    return (yield from all_pairs_rounds(arms, horizon, rounds, level, start=r, anew=True))


def _best_seed(arms: Arms, tally: Tally, level: float, seeds: Ints) -> tuple[Ints, int]:
    """Eliminate the seeds that a seed beats; return the others and, of them, the one with the best mean share."""
    lost = np.asarray(surely_beats(tally, level, seeds, seeds).any(axis=0))
    if lost.all():
        lost[:] = False
    share, _ = tally.between(seeds, seeds)
    mean = np.round((share.sum(axis=1) - 0.5) / (seeds.size - 1), 12)  # equal means differ in the last digits
    mean[lost] = -np.inf
    log_eliminations(arms, tally, level, seeds, seeds[lost])
    return seeds[~lost], int(seeds[mean.argmax()])
