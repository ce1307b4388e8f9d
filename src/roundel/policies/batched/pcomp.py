"""PCOMP: all-pairs batched elimination.

Agarwal, Ghuge & Nagarajan, "Batched Dueling Bandits", ICML 2022. The scheme is the paper's; the constants are
derived (docs/derivations.md), and coincide with the elimination radius of C2B.
"""

from __future__ import annotations

from roundel.policies.arms import Arms
from roundel.policies.batched._rules import Estimates, all_pairs_rounds
from roundel.policies.batched.bcope import or_copeland
from roundel.policies.registry import Play, batched
from roundel.rng import Stream
from roundel.tally import hoeffding_level


@batched(
    "pcomp",
    paper="Agarwal, Ghuge & Nagarajan, Batched Dueling Bandits, ICML 2022, Alg. 1",
    assumption="Condorcet",
)
def pcomp(
    arms: Arms,
    horizon: int,
    rounds: int,
    rng: Stream,
    *,
    estimates: Estimates = "cumulative",
    fallback: bool = False,
) -> Play:
    """Compare all active pairs in every round and drop whoever is confidently beaten.

    `estimates`: from all duels, or from those of the round only. `fallback`: should the verdicts show that no
    Condorcet winner exists, go on as BCOPE.
    """
    level = hoeffding_level(arms.count, rounds, horizon)
    play = all_pairs_rounds(arms, horizon, rounds, level, estimates=estimates)
    if fallback:
        return (yield from or_copeland(play, arms, horizon, rounds, level))
    return (yield from play)
