"""Comparisons that somebody else made, counted: what the loaders of ballots and battles have in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roundel._check import whole
from roundel.errors import InputError
from roundel.plan import Ints
from roundel.preferences import Preferences
from roundel.tally import Tally


@dataclass(frozen=True, slots=True)
class Counted:
    """Who was compared, how often each was seen, and the tally of points between them."""

    labels: tuple[str, ...]
    seen: Ints  # ballots that rank it, battles that it was in
    tally: Tally

    def top(self, arms: int) -> Counted:
        """Keep the `arms` that were seen most (ties: those that stand first), in the order they stand in."""
        most = len(self.labels)
        if whole("top", arms, least=1) > most:
            raise InputError(f"top is {arms}: there are only {most} arms")
        kept = np.sort(np.argsort(-self.seen, kind="stable")[:arms])
        labels = tuple(self.labels[i] for i in kept.tolist())
        return Counted(labels, self.seen[kept], Tally(self.tally.points[np.ix_(kept, kept)]))

    def preferences(self, name: str) -> Preferences:
        """P[i, j]: the share of the points between i and j that i took; 1/2 where nobody compared them."""
        return Preferences(self.tally.phat, self.labels, name)
