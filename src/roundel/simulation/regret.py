"""Regret: what a duel costs, as a table over pairs of arms, for each kind of regret."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from roundel.errors import InputError
from roundel.preferences import Preferences
from roundel.tally import Floats

Kind = Literal["strong", "weak", "copeland", "borda"]
KINDS: tuple[str, ...] = get_args(Kind)


def regret_table(problem: Preferences, kind: str) -> Floats:
    """Return the cost of each duel (i, j); the diagonal is the cost of a self-duel, which counts its arm twice."""
    if kind in ("strong", "weak"):
        cost = problem.gaps  # refuses preferences without a Condorcet winner
        if kind == "weak":
            return np.minimum(cost[:, None], cost[None, :])
    elif kind == "copeland":
        cost = (problem.copeland.max() - problem.copeland) / max(1, problem.arms - 1)
    elif kind == "borda":
        cost = problem.borda.max() - problem.borda
    else:
        raise InputError(f"regret is {kind!r}: it must be one of {', '.join(KINDS)}")
    table: Floats = (cost[:, None] + cost[None, :]) / 2
    return table


def best_arms(problem: Preferences, kind: str) -> tuple[int, ...]:
    """Return the arms that cost nothing under this kind of regret: the right answers."""
    return tuple(np.flatnonzero(np.diagonal(regret_table(problem, kind)) <= 1e-12).tolist())
