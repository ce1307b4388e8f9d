"""C2B and C2B-KL: catching the Condorcet winner in batches.

Agarwal, Ghuge & Nagarajan, "An Asymptotically Optimal Batched Algorithm for the Dueling Bandit Problem",
NeurIPS 2022 (arXiv 2209.12108): Algorithm 1, and its variant with KL elimination (appendix), which the paper's
experiments run.

Departures: a pair is compared once a round even where the pseudo-code meets it twice, and nobody duels itself;
all beaten arms go at once; A never becomes empty. The rule for "defeats with confidence" can be chosen, since the
published radius is so wide that at practical horizons nobody ever defeats anybody and C2B is PCOMP.
"""

from __future__ import annotations

from math import log
from typing import Literal

from roundel.errors import PolicyError
from roundel.plan import Plan
from roundel.policies.arms import Arms
from roundel.policies.batched._rules import eliminate_beaten
from roundel.policies.batched.bcope import or_copeland
from roundel.policies.registry import Play, batched
from roundel.policies.schedule import batch_size
from roundel.rng import Stream
from roundel.tally import Bools, Tally, hoeffding_level

Defeat = Literal["paper", "scaled", "majority"]
Elimination = Literal["hoeffding", "kl"]
PAPER = (
    "Agarwal, Ghuge & Nagarajan, An Asymptotically Optimal Batched Algorithm for the Dueling Bandit Problem, "
    "NeurIPS 2022"
)


@batched("c2b", paper=f"{PAPER}, Alg. 1", assumption="Condorcet")
def c2b(
    arms: Arms,
    horizon: int,
    rounds: int,
    rng: Stream,
    *,
    defeat: Defeat = "paper",
    kappa: float = 0.25,
    fallback: bool = False,
) -> Play:
    """Catch the Condorcet winner in batches, eliminating by Hoeffding radii.

    `defeat`: when the candidate counts an arm as defeated: by the paper's radius c, by kappa * c ("scaled"), or by
    the majority of its duels up to the round before. `fallback`: should the verdicts show that no Condorcet winner
    exists, go on as BCOPE.
    """
    return (yield from _catch("c2b", arms, horizon, rounds, "hoeffding", defeat, kappa, 0.0, fallback))


@batched("c2b-kl", paper=f"{PAPER}, appendix", assumption="Condorcet")
def c2b_kl(
    arms: Arms,
    horizon: int,
    rounds: int,
    rng: Stream,
    *,
    defeat: Defeat = "paper",
    kappa: float = 0.25,
    f: float | None = None,
    fallback: bool = False,
) -> Play:
    """Catch the Condorcet winner in batches, eliminating by the KL evidence against an arm.

    `defeat`, `kappa` and `fallback` as for c2b; `f` is added to the threshold ln T (default: 0.3 K^1.01).
    """
    slack = 0.3 * arms.count**1.01 if f is None else f
    if slack < 0:
        raise PolicyError(f"c2b-kl: f is {f}: it must be 0 or more")
    return (yield from _catch("c2b-kl", arms, horizon, rounds, "kl", defeat, kappa, slack, fallback))


def _catch(
    name: str,
    arms: Arms,
    horizon: int,
    rounds: int,
    elimination: Elimination,
    defeat: Defeat,
    kappa: float,
    slack: float,
    fallback: bool,
) -> Play:
    if not 0 <= kappa <= 1:
        raise PolicyError(f"{name}: kappa is {kappa}: it must be from 0 to 1")
    level = hoeffding_level(arms.count, rounds, horizon)
    play = _rounds(arms, horizon, rounds, elimination, defeat, kappa, slack)
    if fallback:
        return (yield from or_copeland(play, arms, horizon, rounds, level))
    return (yield from play)


def _rounds(
    arms: Arms,
    horizon: int,
    rounds: int,
    elimination: Elimination,
    defeat: Defeat,
    kappa: float,
    slack: float,
) -> Play:
    level = hoeffding_level(arms.count, rounds, horizon)
    tally = Tally.zero(arms.count)
    for r in range(1, rounds + 1):
        # defeated sets D(i), from the rounds before this one
        defeats = defeated(tally, arms, batch_size(horizon, rounds, r - 1), defeat, kappa)
        # candidate i_r: the arm that defeats most; U: the arms that it does not defeat
        candidate = int(defeats.sum(axis=1).argmax())
        undefeated = ~defeats[candidate]  # the candidate itself is among them: nobody defeats itself
        # compare i_r, and every arm of U, with all active arms
        result = yield Plan.touching(arms.active, undefeated, batch_size(horizon, rounds, r))
        tally = result.total
        if elimination == "kl":
            eliminate_by_evidence(arms, tally, log(horizon) + slack)
        else:
            eliminate_beaten(arms, tally, level)
    return None


def defeated(tally: Tally, arms: Arms, q: int, defeat: Defeat, kappa: float) -> Bools:
    """Return the table of "active i defeats active j", where `q` is the batch size of the round before."""
    active = arms.active
    if defeat == "majority":
        # N >= q means in effect "compared in the previous round": old majorities do not count
        return tally.majorities(q, active, active)
    scale = 1.0 if defeat == "paper" else kappa
    return tally.leads(scale**2 * 2 * log(2 * arms.count**2 * q), active, active)  # scale * c, c^2 = 2 ln(...) / N


def eliminate_by_evidence(arms: Arms, tally: Tally, threshold: float) -> None:
    """Remove at once every active j with I_j - I* > threshold, I* the least evidence against an active arm.

    I_j counts the duels with arms that are out already, too; the minimum is over the active arms, so the arm
    that attains it stays.
    """
    active = arms.active
    evidence = tally.evidence(active)
    excess = evidence - evidence.min()
    lost = excess > threshold
    if lost.any():
        by = tally.losses(active[lost]).argmax(axis=1)
        arms.eliminate(active[lost], by, excess[lost], threshold, "evidence")
