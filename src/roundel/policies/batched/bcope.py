"""BCOPE: batched Copeland winner, with no assumption on the preferences; and the fallback to it.

Ours (docs/derivations.md): PCOMP generalised. Pairs are decided by batched confidence intervals, the next
pairs are chosen by optimistic Copeland scores, and a certificate ends the run.
"""

from __future__ import annotations

import numpy as np

from roundel.errors import PolicyError
from roundel.plan import Ints, Plan
from roundel.policies.arms import Arms
from roundel.policies.batched._rules import share_and_limit, surely_beats
from roundel.policies.registry import Play, batched
from roundel.policies.schedule import batch_size
from roundel.rng import Stream
from roundel.tally import Bools, Tally, hoeffding_level


@batched("bcope", paper="roundel (ours): batched Copeland, after PCOMP", assumption="none")
def bcope(arms: Arms, horizon: int, rounds: int, rng: Stream, *, eps: float = 0.0) -> Play:
    """Find a Copeland winner, which exists for all preferences, by deciding the pairs that matter.

    `eps`: pairs whose gap is surely below it may be declared ties (0: never).
    """
    if not 0 <= eps <= 1:
        raise PolicyError(f"bcope: eps is {eps}: it must be from 0 to 1")
    level = hoeffding_level(arms.count, rounds, horizon)
    return (yield from copeland_rounds(arms, horizon, rounds, level, Tally.zero(arms.count), 1, eps))


def copeland_rounds(
    arms: Arms, horizon: int, rounds: int, level: float, tally: Tally, start: int, eps: float = 0.0
) -> Play:
    """Play rounds start, start + 1, ... of BCOPE on top of what `tally` holds; return the arm it commits to."""
    for r in range(start, rounds + 2):
        # A decided pair is never played again, so its estimate is frozen: deciding anew changes no decision.
        win, tie = decide(tally, level, eps)
        arms.no_condorcet_evidence = bool(win.any(axis=0).all())
        low, high = copeland_bounds(win, tie)
        best = int(np.lexsort((-high, -low))[0])  # ties: the lowest index, as the sort is stable
        _retire(arms, low, high, best)
        if low[best] >= np.delete(high, best).max(initial=0):
            return best
        if r > rounds:
            break
        optimistic = high == high.max()
        wanted = ~(win | win.T | tie) & (optimistic[:, None] | optimistic[None, :])
        result = yield Plan.where(np.arange(arms.count), wanted, batch_size(horizon, rounds, r))
        tally = result.total
    return None


def decide(tally: Tally, level: float, eps: float = 0.0) -> tuple[Bools, Bools]:
    """Return which arm confidently beats which, and which pairs are declared ties."""
    everyone = np.arange(tally.arms)
    win = surely_beats(tally, level, everyone, everyone)
    if not eps:
        return win, np.zeros_like(win)
    _, limit = share_and_limit(tally, level, everyone, everyone)
    return win, (2 * (limit - 0.5) <= eps) & ~win & ~win.T


def copeland_bounds(win: Bools, tie: Bools) -> tuple[Ints, Ints]:
    """Return the least and the largest Copeland score that each arm can have, in halves."""
    ties = tie.sum(axis=1)
    low = 2 * win.sum(axis=1) + ties
    high = 2 * (len(win) - 1) - 2 * win.sum(axis=0) - ties
    return low, high


def _retire(arms: Arms, low: Ints, high: Ints, best: int) -> None:
    """Take out of play the arms whose largest possible score is below the least score of `best`."""
    active = arms.active
    out = active[high[active] < low[best]]
    arms.eliminate(out, np.full(out.shape, best), np.full(out.shape, low[best] / 2), high[out] / 2, "copeland")


def or_copeland(play: Play, arms: Arms, horizon: int, rounds: int, level: float) -> Play:
    """Run `play` until every arm in play is confidently beaten by some other; go on as BCOPE from there.

    Then the winner that `play` looks for is not among the arms in play, but for an error of the probability that BCOPE
    allows. Arms that `play` took out come back: they may have gone by a bound of its own that decides no pair. The
    statistics so far are kept, and the next round index is used, so no round is lost.
    """
    plan = next(play, None)
    r = 0
    while plan is not None:
        result = yield plan
        r += 1
        win, _ = decide(result.total, level)
        if np.asarray(win.any(axis=0))[arms.active].all():
            play.close()
            arms.reinstate()
            return (yield from copeland_rounds(arms, horizon, rounds, level, result.total, r + 1))
        try:
            plan = play.send(result)
        except StopIteration:
            return None  # neither C2B nor PCOMP commits by itself: `Run` sees when one arm is left
    return None
