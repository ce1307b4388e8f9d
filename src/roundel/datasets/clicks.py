"""Rankers compared by clicks: probabilistic interleaving, read by a cascade of a user, counted as duels.

For one impression of a query each ranker draws a ranking of its own from a softmax over the places in its list,
weight 1 / place ** 3 (Hofmann, Whiteson & de Rijke, CIKM 2011); an interleaved list is filled from the two by
fair coins, each time with the next document that is not in the list yet, and remembers who gave which document.
A user reads it from the top, clicks with a chance that depends on the grade of relevance, and after a click
stops with another (Guo, Liu & Wang, WSDM 2009). The ranker that gave more of the clicked documents wins.

Averaging over who might have given a document (the paper's marginalisation) would leave each chance of winning
as it is and only lower the noise of a single duel, so it has no place in an estimate of those chances.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from roundel._check import whole
from roundel.datasets.letor import MOST_GRADE, Query, Survey, read_queries, survey
from roundel.errors import DataError, InputError
from roundel.plan import Ints
from roundel.preferences import Preferences
from roundel.tally import Floats, Tally

User = Literal["perfect", "navigational", "informational"]

STEEPNESS = 3.0  # of the softmax over places: the paper's tau
PAGE = 10  # documents shown
MOST_RANKERS = 1000  # half a million pairs, each compared on every query
_ROWS = 100_000  # interleaved lists made at a time
_CLOCKS = 4_000_000  # and clocks drawn for them

# By the number of grades: (chance of a click, chance to stop after it), from grade 0 up. The tables are those
# that the literature shares (Hofmann, Schuth, Whiteson & de Rijke, TOIS 2013, and later work with 3 and 5 grades).
_USERS: dict[str, dict[int, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    "perfect": {
        2: ((0.0, 1.0), (0.0, 0.0)),
        3: ((0.0, 0.5, 1.0), (0.0, 0.0, 0.0)),
        5: ((0.0, 0.2, 0.4, 0.8, 1.0), (0.0, 0.0, 0.0, 0.0, 0.0)),
    },
    "navigational": {
        2: ((0.05, 0.95), (0.2, 0.9)),
        3: ((0.05, 0.5, 0.95), (0.2, 0.5, 0.9)),
        5: ((0.05, 0.3, 0.5, 0.7, 0.95), (0.2, 0.3, 0.5, 0.7, 0.9)),
    },
    "informational": {
        2: ((0.4, 0.9), (0.1, 0.5)),
        3: ((0.4, 0.7, 0.9), (0.1, 0.3, 0.5)),
        5: ((0.4, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5)),
    },
}


@dataclass(frozen=True, slots=True)
class Clicks:
    """A cascade of a user: by grade, the chance of a click and the chance to stop after one."""

    click: Floats
    stop: Floats

    @classmethod
    def of(cls, user: User, most_grade: int) -> Clicks:
        """Return the table of `user` for 2, 3 or 5 grades, the fewest that hold `most_grade`."""
        if user not in _USERS:
            raise InputError(f"user is {user!r}: it must be one of {', '.join(get_args(User))}")
        grades = next(n for n in (2, 3, 5) if whole("most_grade", most_grade, most=MOST_GRADE) < n)
        click, stop = _USERS[user][grades]
        return cls(np.array(click), np.array(stop))


def ranker_preferences(
    path: str | os.PathLike[str],
    *,
    features: Iterable[int] | None = None,
    user: User = "navigational",
    comparisons: int = 10_000,
    seed: int = 1,
    name: str = "rankers",
) -> Preferences:
    """Return the preferences between rankers that each order documents by one feature, larger values first.

    `features` (numbered from 1) defaults to all that are not zero everywhere. Each pair of rankers is compared
    at least `comparisons` times, equally often on every query of the file.
    """
    found = survey(path)
    chosen = found.features if features is None else np.array(list(features), np.int64)
    if chosen.size < 2:
        raise DataError(f"{os.fspath(path)}: {chosen.size} features that are not zero everywhere; two are the least")
    if chosen.size > MOST_RANKERS:
        problem = f"{chosen.size:,} features, each a ranker, and {MOST_RANKERS:,} are the most"
        raise DataError(f"{os.fspath(path)}: {problem}; choose some: ranker_preferences(path, features=[1, 2, ...])")
    return estimate(path, found, chosen, user, comparisons, seed, name)


def estimate(
    path: str | os.PathLike[str], found: Survey, features: Ints, user: User, comparisons: int, seed: int, name: str
) -> Preferences:
    """Return the preferences between the rankers of `features` in a file that was surveyed."""
    repeats = ceil(whole("comparisons", comparisons, least=1) / found.queries)
    clicks = Clicks.of(user, found.most_grade)
    tally = compare_rankers(read_queries(path), features, clicks, repeats, seed)
    return Preferences(tally.phat, [f"feature {f}" for f in features.tolist()], name)


def compare_rankers(
    queries: Iterable[Query], features: Ints, clicks: Clicks, repeats: int, seed: int, page: int = PAGE
) -> Tally:
    """Compare every pair of rankers `repeats` times on each query; the same for the same seed."""
    whole("repeats", repeats, least=1)
    whole("page", page, least=1)
    if (features < 1).any() or np.unique(features).size != features.size:
        raise InputError(f"features is {features.tolist()}: give different numbers from 1")
    first, second = np.triu_indices(features.size, 1)
    points = np.zeros(first.size, np.int64)
    total = 0
    for number, query in enumerate(queries):
        rng = np.random.default_rng([whole("seed", seed), number])
        lists = rankings(query.feature(features), rng)
        at_once = max(1, min(_ROWS // first.size, _CLOCKS // lists.size))
        for done in range(0, repeats, at_once):
            times = min(at_once, repeats - done)
            drawn = draw(lists, min(page, len(query.grades)), times, rng)
            one = drawn[:, first].reshape(times * first.size, -1)
            other = drawn[:, second].reshape(times * first.size, -1)
            shown, by_first = interleave(one, other, rng)
            points += verdicts(query.grades[shown], by_first, clicks, rng).reshape(times, -1).sum(axis=0)
        total += repeats
    table = np.zeros((features.size,) * 2, np.int64)
    table[first, second] = points
    table[second, first] = 2 * total - points
    return Tally(table)


def rankings(values: Floats, rng: np.random.Generator) -> Ints:
    """Return, for each column, the documents by falling value; equal values in random order."""
    ties = rng.random(values.shape)
    return np.lexsort((ties, -values), axis=0).T


def draw(lists: Ints, length: int, times: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw `length` documents of every list `times` times, without replacement, place p with weight p ** -3.

    Clocks that ring at a rate equal to the weight ring in just this order, and the order of those that are
    still to ring does not depend on the past. So the next document of a ranker that the other has not shown is
    a draw from its softmax over what is left: one draw per ranker serves all its pairs.
    """
    rankers, documents = lists.shape
    clocks = rng.standard_exponential((times, rankers, documents), np.float32)
    clocks *= np.arange(1, documents + 1, dtype=np.float32) ** np.float32(STEEPNESS)
    if length < documents:
        places = np.argpartition(clocks, length - 1, axis=2)[:, :, :length]
        order = np.take_along_axis(clocks, places, axis=2).argsort(axis=2)
        places = np.take_along_axis(places, order, axis=2)
    else:
        places = clocks.argsort(axis=2)
    return np.take_along_axis(lists[None], places, axis=2).astype(np.int32)


def interleave(
    one: NDArray[Any], other: NDArray[Any], rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Fill one list from each two rows by fair coins; return the lists and whose `one` each place is."""
    rows, length = one.shape
    by_first = rng.integers(0, 2, (length, rows), dtype=np.uint8).astype(bool)
    # Places come first in memory, so that each step runs along rows.
    both = np.stack((other.T, one.T))  # [whose, place, row]
    gone = np.zeros(both.shape, bool)
    shown = np.empty((length, rows), np.int32)
    row = np.arange(rows)
    for place in range(length):
        whose = by_first[place].astype(np.intp)
        # Both lists have met at most `place` of their documents: the next is among the first place + 1.
        seen = gone[:, : place + 1]
        at = np.argmin(np.where(by_first[place], seen[1], seen[0]), axis=0)
        shown[place] = both[whose, at, row]
        gone |= both == shown[place]
    return shown.T, by_first.T


def verdicts(grades: Ints, by_first: NDArray[np.bool_], clicks: Clicks, rng: np.random.Generator) -> Ints:
    """Let a user read each list; return the points of its first ranker: 2 won, 1 tied, 0 lost."""
    clicked = rng.random(grades.shape) < clicks.click[grades]
    stopped = clicked & (rng.random(grades.shape) < clicks.stop[grades])
    before = np.zeros(stopped.shape, bool)
    np.logical_or.accumulate(stopped[:, :-1], axis=1, out=before[:, 1:])
    clicked &= ~before
    lead = np.sum(clicked & by_first, axis=1) * 2 - np.sum(clicked, axis=1)
    return np.asarray(np.sign(lead) + 1, np.int64)
