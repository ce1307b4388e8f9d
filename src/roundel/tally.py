"""Tally: for each ordered pair of arms, how many points the first took from the second."""

from __future__ import annotations

from math import inf, log
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roundel._check import whole_array
from roundel.errors import InputError
from roundel.plan import Ints, Plan, frozen

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MANY = 16  # arms: fewer are copied sooner than it is seen that they are neighbours
CACHED = 1 << 16  # entries of a block of a table that is worked on at once


def kl_half(p: ArrayLike) -> Floats:
    """Return kl(p, 1/2) = p ln 2p + (1-p) ln 2(1-p), with 0 ln 0 = 0."""
    x = np.asarray(p, np.float64)
    safe = np.where(x > 0, x, 1.0)
    mirror = np.where(x < 1, 1 - x, 1.0)
    value: Floats = x * np.log(2 * safe) + (1 - x) * np.log(2 * mirror)
    return value


def radius(level: float, duels: ArrayLike) -> Floats:
    """Return sqrt(level / duels): infinite where nothing was dueled."""
    n = np.asarray(duels, np.float64)
    value: Floats = np.sqrt(np.divide(level, n, out=np.full(n.shape, inf), where=n > 0))
    return value


class Tally:
    """Points in half-wins: `points[i, j]` is what arm i took from arm j; a win is 2, a tie 1 for each.

    Half-wins keep ties exact, and whole numbers add up to the same in any order. A tie may count as half a
    win each because what the policies use are bounds for means of outcomes in [0, 1]: Hoeffding's inequality
    and the Chernoff bound in KL form hold for those (a coin is the worst case), not only for wins and losses.

    A tally never changes; `plus` returns the next one.
    """

    __slots__ = ("points",)

    points: Ints

    def __init__(self, points: ArrayLike) -> None:
        array = whole_array("points", points, InputError)
        if array.ndim != 2 or array.shape[0] != array.shape[1]:
            raise InputError(f"points has shape {array.shape}: give a square table, one row an arm")
        if (array < 0).any():
            raise InputError(f"points holds {array.min()}: an arm takes 0 points or more")
        if (array >= 2**62).any():
            raise InputError(f"points holds {array.max()}: two arms share fewer than 2**63, so each has below 2**62")
        if np.diagonal(array).any():
            at = int(np.flatnonzero(np.diagonal(array))[0])
            raise InputError(f"points[{at}, {at}] is {array[at, at]}: nobody takes points from itself; put 0")
        odd = (array + array.T) % 2
        if odd.any():
            i, j = (int(x) for x in np.argwhere(odd)[0])
            total = array[i, j] + array[j, i]
            raise InputError(f"arms {i} and {j} share {total} points: a duel gives 2 in all, so the sum is even")
        self.points = frozen(array)

    @classmethod
    def _of(cls, points: Ints) -> Self:
        tally = cls.__new__(cls)
        tally.points = frozen(points)
        return tally

    @classmethod
    def zero(cls, arms: int) -> Self:
        """The tally before the first duel."""
        return cls._of(np.zeros((arms, arms), np.int64))

    def plus(self, plan: Plan, points: Ints, played: Ints) -> Tally:
        """Add a round: pair p was dueled `played[p]` times and its first arm took `points[p]` half-wins."""
        table = self.points.copy()
        flat = table.reshape(-1)
        arms = table.shape[0]
        flat[plan.first * arms + plan.second] += points  # the pairs of a plan are distinct
        flat[plan.second * arms + plan.first] += 2 * played - points
        return Tally._of(table)

    def minus(self, earlier: Tally) -> Tally:
        """What was tallied since `earlier`."""
        return Tally._of(self.points - earlier.points)

    @property
    def arms(self) -> int:
        """The number of arms."""
        return len(self.points)

    @property
    def duels(self) -> int:
        """How many duels were tallied in all."""
        return int(self.points.sum()) // 2

    @property
    def counts(self) -> Ints:
        """`counts[i, j]`: how many duels i and j had."""
        return (self.points + self.points.T) // 2

    @property
    def phat(self) -> Floats:
        """`phat[i, j]`: the share of the points between i and j that i took; 1/2 where they never met."""
        return self.between()[0]

    def between(self, rows: Ints | None = None, columns: Ints | None = None) -> tuple[Floats, Ints]:
        """Return (phat, counts) of `rows` against `columns` (default: all arms)."""
        mine, theirs = self._facing(self._all(rows), self._all(columns))
        both = mine + theirs
        share = np.divide(mine, both, out=np.full(mine.shape, 0.5), where=both > 0)
        return share, both // 2

    def leads(self, level: float, rows: Ints, columns: Ints) -> Bools:
        """Tell which of `rows` lead which of `columns` by a radius: phat > 1/2 + sqrt(level / N), strictly."""
        # phat - 1/2 = d / 2s and N = s / 2 with d the difference and s the sum of points, so that the radius is
        # exceeded where d |d| > 8 level s: no division, no root, and false by itself where nothing was dueled.
        table = np.empty((rows.size, columns.size), bool)
        for block in _blocks(rows.size, columns.size):
            mine, theirs = self._facing(rows[block], columns)
            ahead = (mine - theirs).astype(np.float64)
            ahead *= np.abs(ahead)
            np.greater(ahead, 8 * level * (mine + theirs), out=table[block])
        return table

    def majorities(self, least: int, rows: Ints, columns: Ints) -> Bools:
        """Tell which of `rows` have more than half the points against which of `columns`, in `least` duels or more."""
        table = np.empty((rows.size, columns.size), bool)
        for block in _blocks(rows.size, columns.size):
            mine, theirs = self._facing(rows[block], columns)
            np.logical_and(mine > theirs, mine + theirs >= 2 * least, out=table[block])
        return table

    def losses(self, arms: Ints | None = None) -> Floats:
        """`losses[i, j]`: the evidence that j beats `arms[i]`, N kl(phat, 1/2) if it is ahead and 0 if not."""
        mine, theirs = self._facing(self._all(arms), self._all(None))
        table = np.zeros(mine.shape)
        behind = np.flatnonzero(mine < theirs)
        won, lost = mine.reshape(-1)[behind], theirs.reshape(-1)[behind]
        d = (lost - won) / (won + lost)
        # N kl(w/2N, 1/2) = (w ln(1-d) + l ln(1+d)) / 2 for w and l half-wins and d = (l-w) / (l+w), which is exact for
        # near-even scores of any size, where w ln(w/N) would lose it all; the clipping makes 0 ln 0 = 0.
        table.reshape(-1)[behind] = 0.5 * (won * np.log1p(-np.minimum(d, 1 - 2**-53)) + lost * np.log1p(d))
        return table

    def evidence(self, arms: Ints | None = None) -> Floats:
        """Return I_j, the evidence against each of `arms`: its `losses`, summed over all opponents."""
        rows = self._all(arms)
        return np.concatenate([self.losses(rows[block]).sum(axis=1) for block in _blocks(rows.size, self.arms)])

    def leader(self, arms: Ints) -> int:
        """Return the one of `arms` with the least evidence against it; ties: more points, then the lower number."""
        points = self.points[arms].sum(axis=1)
        return int(arms[np.lexsort((arms, -points, self.evidence(arms)))[0]])

    def _all(self, arms: Ints | None) -> Ints:
        return np.arange(self.arms) if arms is None else arms

    def _facing(self, rows: Ints, columns: Ints) -> tuple[Ints, Ints]:
        """Return the points that `rows` took from `columns`, and those that they gave them."""
        if rows.size > MANY and (np.diff(rows) == 1).all():  # a band of a large table: seen, not copied
            band = slice(rows[0], rows[-1] + 1)
            mine, theirs = self.points[band], self.points[:, band]
        else:
            mine, theirs = self.points.take(rows, axis=0), self.points.take(rows, axis=1)
        if columns.size < self.arms or not np.array_equal(columns, np.arange(self.arms)):
            mine, theirs = mine.take(columns, axis=1), theirs.take(columns, axis=0)
        return mine, np.ascontiguousarray(theirs.T)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        return np.array_equal(self.points, other.points)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Tally: {self.duels} duels over {self.arms} arms>"


def _blocks(rows: int, columns: int) -> list[slice]:
    """Cut a table into bands of rows that fit a processor's cache, so that large fields need no large scratch."""
    size = max(1, CACHED // max(1, columns))
    return [slice(start, start + size) for start in range(0, rows, size)] or [slice(0, 0)]


def hoeffding_level(arms: int, rounds: int, horizon: int) -> float:
    """Return L = ln(K^2 B T), the level that the radii of the batched policies share."""
    return log(arms * arms * rounds * horizon)
