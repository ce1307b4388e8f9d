"""Plan: the duels of one round, frozen and in canonical order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roundel._check import whole_array
from roundel.errors import PlanError

Ints = NDArray[np.int64]


def frozen(array: Ints) -> Ints:
    """Return a read-only view of `array`."""
    view = array.view()
    view.flags.writeable = False
    return view


class Plan:
    """The duels of one round: pair p is `first[p]` against `second[p]`, dueled `times[p]` times.

    Canonical: the smaller arm comes first in each pair, pairs stand in lexicographic order, no pair twice,
    no arm against itself, every pair at least once.
    """

    __slots__ = ("first", "second", "times", "total")

    first: Ints
    second: Ints
    times: Ints
    total: int

    def __init__(self, first: ArrayLike, second: ArrayLike, times: ArrayLike) -> None:
        a, b = (
            np.atleast_1d(whole_array("first", first, PlanError)),
            np.atleast_1d(whole_array("second", second, PlanError)),
        )
        n = whole_array("times", times, PlanError)
        if a.ndim != 1 or a.shape != b.shape or n.shape not in ((), a.shape):
            raise PlanError(
                f"first has shape {a.shape}, second {b.shape}, times {n.shape}: "
                "give three lists of one length (times may be one number)"
            )
        n = np.broadcast_to(n, a.shape)
        if a.size and min(a.min(), b.min()) < 0:
            raise PlanError(f"arm {min(a.min(), b.min())} does not exist: arms count from 0")
        if (a == b).any():
            raise PlanError(f"arm {a[a == b][0]} is set against itself: a duel needs two different arms")
        if (n < 0).any():
            raise PlanError(f"times holds {n.min()}: a pair is dueled 0 times or more")
        low, high = np.minimum(a, b), np.maximum(a, b)
        order = np.lexsort((high, low))
        low, high, n = low[order], high[order], n[order]
        twice = (low[1:] == low[:-1]) & (high[1:] == high[:-1])
        if twice.any():
            at = int(twice.argmax())
            raise PlanError(f"pair ({low[at]}, {high[at]}) stands twice: add its times up")
        keep = n > 0
        self._set(low[keep], high[keep], n[keep])

    def _set(self, first: Ints, second: Ints, times: Ints) -> None:
        self.first, self.second, self.times = frozen(first), frozen(second), frozen(times)
        # A sum past 2**63 would wrap; plans that large are cut to the horizon before anyone plays them.
        exact = times.size == 0 or int(times.max()) <= (2**63 - 1) // times.size
        self.total = int(times.sum()) if exact else sum(map(int, times))

    @classmethod
    def _canonical(cls, first: Ints, second: Ints, times: Ints) -> Self:
        """Wrap arrays that are canonical by construction, without sorting or checking them again."""
        plan = cls.__new__(cls)
        plan._set(first, second, times)
        return plan

    @classmethod
    def empty(cls) -> Self:
        """No duel at all."""
        none = np.zeros(0, np.int64)
        return cls._canonical(none, none, none)

    @classmethod
    def all_pairs(cls, arms: ArrayLike, times: int) -> Self:
        """Every pair of `arms`, `times` times each."""
        active, n = whole_array("arms", arms, PlanError), whole_array("times", times, PlanError)
        if active.ndim != 1 or n.ndim:
            raise PlanError(f"arms has shape {active.shape}, times {n.shape}: give one list of arms and one number")
        if n < 1 or (active[1:] <= active[:-1]).any() or (active[:1] < 0).any():
            low, high = np.triu_indices(active.size, 1)  # not canonical by construction: sort, and refuse what is wrong
            return cls(active[low], active[high], n)
        return cls.touching(active, np.ones(active.size, bool), int(n))

    @classmethod
    def touching(cls, arms: ArrayLike, hub: NDArray[np.bool_], times: int) -> Self:
        """Every pair of `arms` (ascending, distinct) with at least one arm in `hub` (a mask over `arms`)."""
        active = np.asarray(arms, np.int64)
        return cls.where(active, hub[:, None] | hub[None, :], times)

    @classmethod
    def where(cls, arms: ArrayLike, wanted: NDArray[np.bool_], times: int) -> Self:
        """Every pair of `arms` (ascending, distinct) whose entry above the diagonal of `wanted` is true."""
        active = np.asarray(arms, np.int64)
        place = np.arange(active.size)
        low, high = np.divmod(np.flatnonzero(wanted & (place[:, None] < place)), active.size)  # faster than nonzero
        return cls._canonical(active[low], active[high], np.broadcast_to(np.int64(times), low.shape))

    def truncate(self, limit: int) -> Plan:
        """Return the first `limit` duels in round-robin order: repeat k of every pair before repeat k+1 of any."""
        if self.total <= limit:
            return self
        times = self.times
        # The largest full number of passes that fits, by bisection; then one more duel for the first pairs.
        low, high = 0, int(times.max())
        while low < high:
            middle = (low + high + 1) // 2
            if int(np.minimum(times, middle).sum(dtype=object if middle > 2**62 // times.size else None)) <= limit:
                low = middle
            else:
                high = middle - 1
        cut = np.minimum(times, low)
        more = np.flatnonzero(times > low)[: limit - int(cut.sum())]
        cut[more] += 1
        keep = cut > 0
        return Plan._canonical(self.first[keep], self.second[keep], cut[keep])

    def digest(self) -> str:
        """SHA-256 of the plan, the same on every machine."""
        sha = hashlib.sha256()
        for column in (self.first, self.second, self.times):
            sha.update(np.ascontiguousarray(column, dtype="<i8").tobytes())
        return sha.hexdigest()

    def difference(self, other: Plan) -> str | None:
        """Say which pair is the first that `self` and `other` do not share, or None if they are equal."""
        if self == other:
            return None
        mine, theirs = dict(self._rows()), dict(other._rows())
        pair = min(p for p in mine.keys() | theirs.keys() if mine.get(p) != theirs.get(p))
        return f"pair {pair}: {mine.get(pair, 0)} times against {theirs.get(pair, 0)}"

    def _rows(self) -> Iterator[tuple[tuple[int, int], int]]:
        pairs = zip(self.first.tolist(), self.second.tolist(), strict=True)
        return zip(pairs, self.times.tolist(), strict=True)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        return zip(self.first.tolist(), self.second.tolist(), self.times.tolist(), strict=True)

    def __len__(self) -> int:
        """The number of pairs (`total` is the number of duels)."""
        return self.first.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        return (
            np.array_equal(self.first, other.first)
            and np.array_equal(self.second, other.second)
            and np.array_equal(self.times, other.times)
        )

    def __hash__(self) -> int:
        return hash(self.digest())

    def __repr__(self) -> str:
        return f"<Plan: {self.total} duels over {len(self)} pairs>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Plan, (np.array(self.first), np.array(self.second), np.array(self.times))
