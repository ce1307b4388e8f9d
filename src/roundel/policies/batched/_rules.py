"""What the batched policies share: the Hoeffding elimination and the rounds of all pairs."""

from __future__ import annotations

from typing import Literal

import numpy as np

from roundel.plan import Ints, Plan
from roundel.policies.arms import Arms
from roundel.policies.registry import Play
from roundel.policies.schedule import batch_size
from roundel.tally import Bools, Floats, Tally, radius

Estimates = Literal["cumulative", "round"]


def surely_beats(tally: Tally, level: float, rows: Ints, columns: Ints, times: float = 1) -> Bools:
    """Tell which of `rows` surely beat which of `columns`: phat > 1/2 + times * g, g = sqrt(L / 2N)."""
    return tally.leads(times**2 * level / 2, rows, columns)


def share_and_limit(tally: Tally, level: float, rows: Ints, columns: Ints, times: float = 1) -> tuple[Floats, Floats]:
    """Return the two sides of phat > 1/2 + times * g, for the log."""
    phat, counts = tally.between(rows, columns)
    return phat, 0.5 + times * radius(level / 2, counts)


def eliminate_beaten(arms: Arms, tally: Tally, level: float, by: Ints | None = None) -> None:
    """Remove at once every active j with phat[i, j] > 1/2 + g for some i in `by` (default: the active arms).

    If nobody of `by` would remain, the pass is undone: on the event that the guarantees assume it cannot happen. It is
    evidence against a Condorcet winner only if every arm there was is surely beaten by some other: seeds that beat each
    other in a circle say nothing about the other arms, and who left by a switch was not beaten.
    """
    active = arms.active
    rows = active if by is None else by
    lost = np.asarray(surely_beats(tally, level, rows, active).any(axis=0))
    if lost.all() or (by is not None and lost[arms.are(rows)].all()):
        if lost.all() and all(gone.rule == "hoeffding" for gone in arms.eliminations):
            arms.no_condorcet_evidence = True
        return
    log_eliminations(arms, tally, level, rows, active[lost])


def log_eliminations(arms: Arms, tally: Tally, level: float, rows: Ints, out: Ints) -> None:
    """Take `out` out of play, each by that one of `rows` which beats it by most."""
    if out.size:
        share, limit = share_and_limit(tally, level, rows, out)
        worst = (share - limit).argmax(axis=0)
        at = (worst, np.arange(out.size))
        arms.eliminate(out, rows[worst], share[at], limit[at], "hoeffding")


def all_pairs_rounds(
    arms: Arms,
    horizon: int,
    rounds: int,
    level: float,
    start: int = 1,
    estimates: Estimates = "cumulative",
    anew: bool = False,
) -> Play:
    """Compare all active pairs q_r times in each round r = start, start + 1, ...; eliminate the beaten.

    `anew`: the statistics of what ran before these rounds are not carried over.
    """
    before: Tally | None = None
    for r in range(start, rounds + 1):
        result = yield Plan.all_pairs(arms.active, batch_size(horizon, rounds, r))
        tally = result.fresh if estimates == "round" else result.total
        if anew and estimates == "cumulative":
            if before is None:
                before = result.total.minus(result.fresh)
            tally = tally.minus(before)
        eliminate_beaten(arms, tally, level)
    return None
