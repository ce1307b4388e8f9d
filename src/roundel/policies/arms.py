"""Arms: the field that a policy narrows down, with a log of who was eliminated and on what evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roundel.plan import Ints, Plan, frozen
from roundel.tally import Floats, Tally


class Elimination(NamedTuple):
    """Why an arm is out since `round`.

    By rule "hoeffding", "evidence" or "copeland" its `statistic` exceeded the `threshold`, and `by` is the arm that
    did most of it; by rule "switch" (SCOMP and its kin) its statistic against `by` fell short of the threshold.
    """

    round: int
    arm: int
    by: int
    statistic: float
    threshold: float
    rule: str


@dataclass(frozen=True, slots=True)
class Result:
    """What a policy gets for a plan: the duels that were really played, which may be fewer than planned."""

    round: int
    plan: Plan
    points: Ints  # half-wins of the first arm, pair by pair
    played: Ints  # duels played, pair by pair
    total: Tally  # everything so far, this round included
    left: int  # duels that may still be spent

    @property
    def fresh(self) -> Tally:
        """The tally of this round alone."""
        return Tally.zero(self.total.arms).plus(self.plan, self.points, self.played)


class Arms:
    """The arms of a run: how many there were, which are still in play, and why the others are not."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.active: Ints = frozen(np.arange(count, dtype=np.int64))
        self.eliminations: list[Elimination] = []
        self.round = 0  # the last round whose verdicts are in
        self.idle = 0  # self-duels passed over: they count against the horizon, nobody judges them
        self.no_condorcet_evidence = False

    def eliminate(self, arms: Ints, by: Ints, statistics: Floats, thresholds: ArrayLike, rule: str) -> None:
        """Take `arms` out of play at once; `rule` names the test that each failed."""
        if not arms.size:
            return
        limits: Floats = np.full(arms.shape, thresholds, np.float64)
        rows = zip(arms.tolist(), by.tolist(), statistics.tolist(), limits.tolist(), strict=True)
        self.eliminations += [Elimination(self.round, *row, rule) for row in rows]
        self.active = frozen(self.others(arms))

    def keep(self, arms: ArrayLike) -> None:
        """Leave only `arms` in play, by a rule of the policy's own that has no statistic to log."""
        self.active = frozen(self.among(np.asarray(arms, np.int64)))

    def among(self, arms: Ints) -> Ints:
        """Return those of `arms` that are in play, ascending."""
        return self.active[self.are(arms)]

    def others(self, arms: Ints) -> Ints:
        """Return the arms in play that are not among `arms`, ascending."""
        return self.active[~self.are(arms)]

    def are(self, arms: Ints) -> NDArray[np.bool_]:
        """Tell which of the arms in play are among `arms`."""
        table = np.zeros(self.count, bool)  # faster than numpy's sets
        table[arms] = True
        return table[self.active]

    def reinstate(self) -> None:
        """Bring everybody back: the assumption under which the eliminations were right is refuted."""
        self.active = frozen(np.arange(self.count, dtype=np.int64))
        self.eliminations.clear()
        self.no_condorcet_evidence = True

    def __len__(self) -> int:
        return self.active.size
