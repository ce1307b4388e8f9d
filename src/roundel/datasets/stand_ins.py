"""Stand-ins for problems whose data may not be bundled: generated ranking data, put through the same clicks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from roundel._check import whole
from roundel.datasets.build import SAMPLE
from roundel.datasets.clicks import Clicks, compare_rankers
from roundel.datasets.letor import Query
from roundel.errors import ProblemError
from roundel.preferences import Preferences

_ATTEMPTS = 100  # generated data sets tried before we give up on a Condorcet winner


@dataclass(frozen=True, slots=True)
class _Shape:
    """What generated ranking data looks like: about as many documents a query, and grades about as often."""

    queries: int
    documents: int
    repeats: int
    shares: tuple[float, ...]  # of the grades 0, 1, 2, 3; what is left is grade 4


_SHAPES = {
    "mslr30": _Shape(150, 120, 16, (0.52, 0.32, 0.13, 0.02)),
    "yahoo30": _Shape(300, 24, 8, (0.26, 0.36, 0.28, 0.08)),
}


def stand_in(name: str, seed: int = 1) -> Preferences:
    """Return a synthetic problem of the size of mslr30 or yahoo30: generated ranking data, the same clicks."""
    if name not in _SHAPES:
        raise ProblemError(f"there is no stand-in for {name!r}: choose one of {', '.join(_SHAPES)}")
    whole("seed", seed)
    shape, clicks = _SHAPES[name], Clicks.of("navigational", 4)
    labels = [f"synthetic ranker {i}" for i in range(1, SAMPLE + 1)]
    for attempt in range(_ATTEMPTS):
        rng = np.random.default_rng([seed, attempt, *name.encode()])
        queries = _generated(shape, rng)
        tally = compare_rankers(queries, np.arange(1, SAMPLE + 1), clicks, shape.repeats, seed)
        made = Preferences(tally.phat, labels, f"{name}-stand-in:seed={seed}")
        if made.winner is not None:
            return made
    raise ProblemError(f"the stand-in for {name} has no Condorcet winner with seed {seed}; try another seed")


def _generated(shape: _Shape, rng: np.random.Generator) -> Iterator[Query]:
    """Documents have a hidden relevance; its quantiles are the grades, each feature its noisy copy."""
    fidelity = np.concatenate(([0.7], rng.uniform(-0.1, 0.6, SAMPLE - 1)))  # correlation with the relevance
    rng.shuffle(fidelity)
    noise = np.sqrt(1 - fidelity**2)
    hidden = rng.standard_normal((shape.queries, shape.documents))
    steps = np.quantile(hidden, np.cumsum(shape.shares))
    for number, relevance in enumerate(hidden):
        values = fidelity * relevance[:, None] + noise * rng.standard_normal((shape.documents, SAMPLE))
        yield Query(f"generated {number}", np.searchsorted(steps, relevance).astype(np.int64), values)
