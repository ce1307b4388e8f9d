"""Preferences: the true matrix P, validated and labelled; only a simulation knows it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from math import log
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roundel._matrixfile import read_matrix
from roundel.errors import InputError, NoCondorcetWinnerError, PreferencesError
from roundel.tally import Floats, kl_half

TOLERANCE = 1e-9  # what rounding may leave of P[i, j] + P[j, i] = 1


class Preferences:
    """`matrix[i, j]` is the chance that arm i beats arm j. Every question has its answer computed when asked."""

    def __init__(self, matrix: ArrayLike, labels: Sequence[str] | None = None, name: str = "preferences") -> None:
        self.matrix: Floats = _validated(matrix)
        self.matrix.flags.writeable = False
        self.labels: tuple[str, ...] = _labels(labels, len(self.matrix))
        self.name = name

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str]) -> Preferences:
        """Read a matrix from a file: CSV, text or NPZ, with or without labels."""
        matrix, labels = read_matrix(path)
        try:
            return cls(matrix, labels, Path(path).name)
        except PreferencesError as error:
            raise PreferencesError(f"{path}: {error}") from None

    @property
    def arms(self) -> int:
        """The number of arms K."""
        return len(self.matrix)

    @cached_property
    def beats(self) -> NDArray[np.bool_]:
        """`beats[i, j]`: whether P[i, j] > 1/2."""
        return self.matrix > 0.5

    @cached_property
    def winner(self) -> int | None:
        """The Condorcet winner, which beats every other arm, or None."""
        full = np.flatnonzero(self.beats.sum(axis=1) == self.arms - 1)
        return int(full[0]) if full.size else None

    def _need_winner(self, what: str) -> int:
        if self.winner is None:
            raise NoCondorcetWinnerError(
                f"{self.name!r} has no Condorcet winner, which {what} needs: "
                "no arm beats every other; ask for copeland or borda, which exist for every matrix"
            )
        return self.winner

    @cached_property
    def gaps(self) -> Floats:
        """D_j = P[winner, j] - 1/2 for every arm; 0 for the winner."""
        gaps: Floats = self.matrix[self._need_winner("a gap")] - 0.5
        return gaps

    @cached_property
    def copeland(self) -> NDArray[np.int64]:
        """How many arms each arm beats."""
        return np.asarray(self.beats.sum(axis=1), np.int64)

    @cached_property
    def copeland_winners(self) -> tuple[int, ...]:
        """The arms that beat most others."""
        return tuple(np.flatnonzero(self.copeland == self.copeland.max()).tolist())

    @cached_property
    def borda(self) -> Floats:
        """The mean chance of each arm against the others (1/2 when it is alone)."""
        if self.arms == 1:
            return np.array([0.5])
        return np.asarray((self.matrix.sum(axis=1) - 0.5) / (self.arms - 1))

    @cached_property
    def borda_winners(self) -> tuple[int, ...]:
        """The arms with the highest Borda score."""
        return tuple(np.flatnonzero(self.borda >= self.borda.max() - TOLERANCE).tolist())

    @cached_property
    def smith_set(self) -> tuple[int, ...]:
        """The smallest set of arms that each beat every arm outside it."""
        # Sorted by arms beaten or tied, the set is a prefix: the first that strictly beats all that follow.
        order = np.argsort(-(self.matrix >= 0.5).sum(axis=1), kind="stable")
        wins = self.beats[np.ix_(order, order)]
        # reach[i]: the last position that some arm among the first i+1 does not beat.
        last = np.where(wins, -1, np.arange(self.arms)).max(axis=1)
        reach = np.maximum.accumulate(last)
        size = int(np.flatnonzero(reach <= np.arange(self.arms))[0]) + 1
        return tuple(sorted(order[:size].tolist()))

    @cached_property
    def order(self) -> tuple[int, ...] | None:
        """An order of the arms in which nobody is beaten by a later arm, or None if the preferences cycle.

        Where exact ties leave a choice, the higher Borda score comes first; if any order satisfies strong
        stochastic transitivity, this one does.
        """
        unbeaten = self.beats.sum(axis=0)  # by how many of the arms not yet placed
        placed = np.zeros(self.arms, bool)
        order = []
        for _ in range(self.arms):
            free = np.flatnonzero((unbeaten == 0) & ~placed)
            if not free.size:
                return None
            arm = int(free[self.borda[free].argmax()])
            order.append(arm)
            placed[arm] = True
            unbeaten = unbeaten - self.beats[arm]
        return tuple(order)

    def _sorted_gaps(self) -> Floats | None:
        if self.order is None:
            return None
        return self.matrix[np.ix_(self.order, self.order)] - 0.5

    @cached_property
    def sst(self) -> bool:
        """Strong stochastic transitivity: D[i, k] >= max(D[i, j], D[j, k]) for i before j before k."""
        d = self._sorted_gaps()
        if d is None:
            return False
        # Neighbours suffice: along a row to the right and along a column upwards, gaps never shrink.
        rows = np.triu(d[:, 1:] - d[:, :-1])
        columns = np.triu(d[:-1] - d[1:], 1)
        return bool((rows >= -TOLERANCE).all() and (columns >= -TOLERANCE).all())

    @cached_property
    def sti(self) -> bool:
        """Stochastic triangle inequality: D[i, k] <= D[i, j] + D[j, k] for i before j before k."""
        d = self._sorted_gaps()
        if d is None:
            return False
        return all(
            bool((d[:j, j + 1 :] <= d[:j, j, None] + d[None, j, j + 1 :] + TOLERANCE).all())
            for j in range(1, self.arms - 1)
        )

    @cached_property
    def lower_bound_coefficient(self) -> float:
        """Sum over the other arms of (D_j / 2) / kl(P[j, winner], 1/2)."""
        winner = self._need_winner("the lower bound")
        others = np.arange(self.arms) != winner
        return float((self.gaps[others] / 2 / kl_half(self.matrix[others, winner])).sum())

    def lower_bound(self, horizon: float) -> float:
        """The asymptotic lower bound on strong regret at `horizon`: the coefficient times ln T."""
        if not horizon >= 1:
            raise InputError(f"horizon is {horizon}: it must be at least 1")
        return self.lower_bound_coefficient * log(horizon)

    def restrict(self, arms: Sequence[int], name: str | None = None) -> Preferences:
        """Return the preferences among `arms`, in the order given."""
        try:
            index = np.asarray(arms)
        except ValueError:
            index = np.asarray([])
        if index.ndim != 1 or index.size == 0 or index.dtype.kind != "i":
            raise PreferencesError(f"arms is {arms!r}: give a list with at least one arm number")
        for arm in index.tolist():
            if not 0 <= arm < self.arms:
                raise PreferencesError(f"arm {arm} does not exist: arms go from 0 to {self.arms - 1}")
        if np.unique(index).size != index.size:
            raise PreferencesError(f"arms is {arms!r}: name each arm once")
        picked = [self.labels[a] for a in index.tolist()]
        return Preferences(self.matrix[np.ix_(index, index)], picked, name or self.name)

    def __repr__(self) -> str:
        return f"<Preferences {self.name!r}: {self.arms} arms>"


def _validated(matrix: ArrayLike) -> Floats:
    try:
        if np.iscomplexobj(matrix):
            raise TypeError
        p = np.array(matrix, np.float64)
    except (TypeError, ValueError):
        raise PreferencesError("the matrix holds something that is not a number: give K rows of K numbers") from None
    if p.ndim != 2 or p.shape[0] != p.shape[1] or p.size == 0:
        raise PreferencesError(f"the matrix has shape {p.shape}: it must be square, one row and one column an arm")

    def complain(bad: NDArray[np.bool_], rule: str) -> None:
        if bad.any():
            i, j = (int(x) for x in np.argwhere(bad)[0])
            raise PreferencesError(f"P[{i}, {j}] is {float(p[i, j])!r}: {rule}")

    complain(~np.isfinite(p), "it must be a finite number")
    complain((p < 0) | (p > 1), "it must be a probability, from 0 to 1")
    diagonal = np.eye(len(p), dtype=bool)
    complain(diagonal & (np.abs(p - 0.5) > TOLERANCE), "the diagonal must be 0.5")
    off = np.abs(p + p.T - 1) > TOLERANCE
    if off.any():
        i, j = (int(x) for x in np.argwhere(off)[0])
        raise PreferencesError(
            f"P[{i}, {j}] is {float(p[i, j])!r} and P[{j}, {i}] is {float(p[j, i])!r}: they must add up to 1"
        )
    p[diagonal] = 0.5
    # Even but for rounding, on the same side of 1/2 both ways: else each would beat the other.
    p[(p - 0.5) * (p.T - 0.5) > 0] = 0.5
    return p


def _labels(labels: Sequence[str] | None, arms: int) -> tuple[str, ...]:
    if labels is None:
        return tuple(str(i) for i in range(arms))
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise PreferencesError(f"labels is {labels!r}: give a list with one label an arm")
    names = tuple(labels)
    if len(names) != arms:
        raise PreferencesError(f"{len(names)} labels for {arms} arms: give one label an arm")
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name:
            raise PreferencesError(f"label {name!r} is not a name: labels are non-empty text")
        if name in seen:
            raise PreferencesError(f"label {name!r} stands twice: labels must be unique")
        seen.add(name)
    return names
