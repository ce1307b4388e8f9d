"""Ratings for people, and who leads while nobody has won."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np

from roundel.errors import RoundelError
from roundel.plan import Ints
from roundel.tally import Floats, Tally, kl_half

RIDGE = 0.1  # the prior on a strength has standard deviation sqrt(1 / RIDGE), about 3.2 (odds of 24 to 1)
SCALE = 400 / log(10)  # rating points a unit of strength: 400 points are odds of 10 to 1, as in chess
CENTRE = 1500.0
TWO_SIDED_95 = 1.959963984540054
ROUNDING = 1e-14  # how far sums of doubles may be off, relative to what they add up
PULLS = (1.0, 1e6)  # the least and the most that a prediction may weigh, in duels of its pair


@dataclass(frozen=True, slots=True)
class Strengths:
    """A regularised Bradley-Terry fit: P(i beats j) = 1 / (1 + exp(strength[j] - strength[i]))."""

    strength: Floats
    error: Floats  # standard errors
    converged: bool

    @property
    def predictions(self) -> Floats:
        """`predictions[i, j]`: the chance that i beats j, if one strength an option explains everything."""
        return _logistic(self.strength[:, None] - self.strength[None, :])


def _logistic(x: Floats) -> Floats:
    return np.asarray(np.exp(-np.logaddexp(0, -x)))  # exact for the smallest chances too


def bradley_terry(tally: Tally, ridge: float = RIDGE) -> Strengths:
    """Fit strengths by penalised maximum likelihood: the penalty, ridge/2 times the sum of squares, keeps them finite.

    Without it an option that never lost has no finite strength. Newton's method, halving a step that does not help:
    the objective is strictly concave, so there is one maximum. Among counts of very different sizes the objective's
    rounding hides what a small pair gains, so a loss within the rounding is no reason to halve, and a gradient within
    its own rounding is as near as numbers come.
    """
    wins: Floats = np.asarray(0.5 * tally.points, np.float64)
    duels = wins + wins.T
    strength = np.zeros(tally.arms)
    value = _objective(strength, wins, ridge)
    converged = False
    for _ in range(100):
        gradient, curvature = _derivatives(strength, wins, duels, ridge)
        step = np.linalg.solve(curvature, gradient)
        noise = ROUNDING * (np.diagonal(curvature) + np.abs(strength))
        if float(np.abs(step).max(initial=0.0)) < 1e-10 or bool((np.abs(gradient) <= noise).all()):
            converged = True
            break
        size, least = 1.0, value - ROUNDING * abs(value)
        while (candidate := _objective(strength + size * step, wins, ridge)) < least and size > 1e-6:
            size /= 2
        strength, value = strength + size * step, candidate
    curvature = _derivatives(strength, wins, duels, ridge)[1]
    spread = np.linalg.inv(curvature)
    spread -= spread.mean(axis=0)  # of strengths against their mean: where the mean lies is nobody's question
    spread -= spread.mean(axis=1, keepdims=True)
    error = np.sqrt(np.maximum(np.diagonal(spread), 0.0))
    return Strengths(strength - strength.mean(), error, converged)


def _objective(strength: Floats, wins: Floats, ridge: float) -> float:
    gaps = strength[:, None] - strength[None, :]
    return float(-(wins * np.logaddexp(0, -gaps)).sum() - 0.5 * ridge * (strength @ strength))


def _derivatives(strength: Floats, wins: Floats, duels: Floats, ridge: float) -> tuple[Floats, Floats]:
    share = _logistic(strength[:, None] - strength[None, :])
    gradient = (wins * share.T - wins.T * share).sum(axis=1) - ridge * strength  # share.T is 1 - share, exactly
    weight = duels * share * share.T
    curvature = np.diag(weight.sum(axis=1) + ridge) - weight
    return gradient, curvature


def pull_of(tally: Tally, strengths: Strengths) -> float:
    """Return how many duels of its pair a prediction of the rating is worth, as the misfit of the rating tells.

    If the true chances scatter around the predictions like beta variables worth m duels, the misfit X^2 (Pearson's)
    is its degrees of freedom plus the sum of (n - 1) / (m + 1) over the pairs; solved for m. A misfit within one
    standard deviation of chance is no reason to doubt the rating.
    """
    upper = np.triu_indices(tally.arms, 1)
    duels = tally.counts[upper]
    met = duels > 0
    n, predicted = duels[met].astype(np.float64), strengths.predictions[upper][met]
    observed = 0.5 * tally.points[upper][met] / n
    variance = np.maximum(predicted * (1 - predicted), 1e-12)
    misfit = float((n * (observed - predicted) ** 2 / variance).sum())
    freedom = max(1, n.size - (tally.arms - 1))
    excess = misfit - freedom - sqrt(2 * freedom)
    if excess <= 0:
        return PULLS[1]
    return min(PULLS[1], max(PULLS[0], float((n - 1).sum()) / excess - 1))


def shrunk_evidence(tally: Tally, strengths: Strengths, pull: float) -> Floats:
    """Return the evidence against each arm, on pair estimates that are shrunk towards the rating's predictions.

    The prediction counts like `pull` more duels of each pair.
    """
    wins = 0.5 * tally.points + pull * strengths.predictions
    duels = wins + wins.T
    np.fill_diagonal(wins, 0.5)
    np.fill_diagonal(duels, 1.0)
    share = wins / duels
    return np.asarray((duels * kl_half(share) * (share < 0.5)).sum(axis=1))


def leader(tally: Tally, active: Ints, strengths: Strengths | None = None, pull: float | None = None) -> int:
    """Return the arm, among `active`, with the least shrunk evidence against it; the higher rating decides ties.

    A rating names the best more often than the evidence wherever it fits, since it borrows strength across pairs;
    where it does not fit, the evidence does. `pull` (default: `pull_of`) decides between them by the fit itself:
    benchmarks/leader.py shows that this is about as good as the better of the two everywhere.
    """
    fit = bradley_terry(tally) if strengths is None else strengths
    weight = pull_of(tally, fit) if pull is None else pull
    evidence = np.round(shrunk_evidence(tally, fit, weight)[active], 9)
    return int(active[np.lexsort((active, -fit.strength[active], evidence))[0]])


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an option stands."""

    arm: int
    name: str
    rating: float  # 1500 is the average; 400 points more are odds of 10 to 1
    low: float  # of a 95% interval
    high: float
    wins: int
    losses: int
    ties: int
    duels: int
    out: int | None  # the round that eliminated it
    by: str | None  # the option that did most of it

    @property
    def win_rate(self) -> float | None:
        """The share of its points: a tie is half a win; None before its first duel."""
        return (self.wins + self.ties / 2) / self.duels if self.duels else None

    def to_json(self) -> dict[str, Any]:
        """Return the standing as plain values."""
        return {
            "option": self.name,
            "rating": self.rating,
            "low": self.low,
            "high": self.high,
            "wins": self.wins,
            "losses": self.losses,
            "ties": self.ties,
            "duels": self.duels,
            "win_rate": self.win_rate,
            "out": self.out,
            "by": self.by,
        }


def ratings(strengths: Strengths) -> tuple[Floats, Floats, Floats]:
    """Return rating, low and high of each arm, to a hundredth of a point."""
    if not strengths.converged:
        raise RoundelError("the rating did not converge: please report these counts")
    middle, spread = CENTRE + SCALE * strengths.strength, SCALE * TWO_SIDED_95 * strengths.error
    return np.round(middle, 2), np.round(middle - spread, 2), np.round(middle + spread, 2)


def unseparated(tally: Tally, active: Ints, best: int) -> list[int]:
    """Return the active arms that the evidence does not separate from `best`.

    Arm j is separated when the direct duels speak for `best` at the 5% level, shared by the other active arms
    (N kl > ln(1/0.05) + ln(number of them), one-sided Chernoff bounds).
    """
    others = active[active != best]
    if not others.size:
        return []
    limit = log(others.size / 0.05)
    against = tally.losses(others)[:, best]
    return [int(arm) for arm, loss in zip(others, against, strict=True) if loss <= limit]


def wilson(points: int, duels: int) -> tuple[float, float] | None:
    """Return the 95% Wilson interval of a share of `points` half-wins in `duels` duels."""
    if not duels:
        return None
    z, share = TWO_SIDED_95, points / (2 * duels)
    middle = (share + z * z / (2 * duels)) / (1 + z * z / duels)
    spread = z / (1 + z * z / duels) * sqrt(share * (1 - share) / duels + z * z / (4 * duels * duels))
    return max(0.0, middle - spread), min(1.0, middle + spread)
