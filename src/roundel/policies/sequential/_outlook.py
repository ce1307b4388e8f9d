"""Who may beat whom, at a confidence that grows with time: what policies with counts of optimistic wins share.

With U[i][j] = phat[i][j] + sqrt(alpha ln t / N[i][j]) (1 where N = 0) and L[i][j] = 1 - U[j][i], arm i may beat j
if U[i][j] >= 1/2, and surely beats it if L[i][j] > 1/2, that is if j may not beat i. May-beat holds from a time on
that only a duel of the two changes. So the counts by arm change with a duel or when such a time comes, and nothing
else is ever recomputed. (U >= 1/2 and U > 1/2 are the same here: a pair that was dueled is looked at from t = 2
on, where phat = 1/2 gives U > 1/2, and alpha ln t equals no fraction.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from roundel._jit import kernel
from roundel.policies.sequential._evidence import first_time
from roundel.policies.sequential._family import FOREVER, Ints

NOW, DUE, CHANGES = 0, 1, 2  # the places in `clock`


class Outlook(NamedTuple):
    """Who may beat whom at the time `clock[NOW]`."""

    alpha: float
    rise: Ints  # rise[i, j]: the first t at which i may beat j
    may: Ints  # may[i]: how many others i may beat
    sure: Ints  # sure[i]: how many others i surely beats
    due: Ints  # due[i]: when the next entry of row i of `rise` comes, or sooner
    clock: Ints  # the time; when the next entry of `rise` comes, or sooner; how often anything changed


def outlook(arms: int, alpha: float) -> Outlook:
    """Return the outlook at the start: everybody may beat everybody else."""
    return Outlook(
        alpha=alpha,
        rise=np.ones((arms, arms), np.int64),
        may=np.full(arms, arms - 1),
        sure=np.zeros(arms, np.int64),
        due=np.full(arms, FOREVER),
        clock=np.array([1, FOREVER, 0]),
    )


@kernel
def go_on(outlook: Outlook, t: int) -> None:
    """Let the time be `t`."""
    clock = outlook.clock
    if t >= clock[DUE]:
        _let_pass(outlook, t)
    clock[NOW] = t


@kernel
def _let_pass(outlook: Outlook, t: int) -> None:
    rise, due, clock = outlook.rise, outlook.due, outlook.clock
    K, before = len(due), clock[NOW]
    soonest = FOREVER
    for i in range(K):
        if due[i] <= t:
            due[i] = FOREVER
            for j in range(K):
                if rise[i, j] > t:
                    due[i] = min(due[i], rise[i, j])
                elif rise[i, j] > before:
                    outlook.may[i] += 1
                    outlook.sure[j] -= 1
                    clock[CHANGES] += 1
        soonest = min(soonest, due[i])
    clock[DUE] = soonest


@kernel
def review(outlook: Outlook, i: int, j: int, mine: int, theirs: int) -> None:
    """Take in that i and j now have `mine` and `theirs` half-wins over each other."""
    gap = mine - theirs
    # alpha ln t >= N (1/2 - phat)^2 for the one who is behind.
    late = first_time(float(gap * gap) / (8.0 * (mine + theirs) * outlook.alpha))
    _set(outlook, i, j, late if gap < 0 else 1)
    _set(outlook, j, i, late if gap > 0 else 1)


@kernel
def _set(outlook: Outlook, i: int, j: int, time: int) -> None:
    clock = outlook.clock
    now = clock[NOW]
    change = int(time <= now) - int(outlook.rise[i, j] <= now)
    outlook.rise[i, j] = time
    outlook.may[i] += change
    outlook.sure[j] -= change
    clock[CHANGES] += change * change
    if time > now:
        outlook.due[i] = min(outlook.due[i], time)
        clock[DUE] = min(clock[DUE], time)
