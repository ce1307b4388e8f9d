"""Who is shown first, and on which context: functions of (seed, round, pair, repeat), so that all of it replays."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from roundel.rng import Stream


@lru_cache(maxsize=65536)
def _coin(seed: int, round: int, first: int, second: int) -> int:
    return Stream(seed, "side", round, first, second).below(2)


def flipped(seed: int, round: int, first: int, second: int, repeat: int, copy: int) -> bool:
    """Whether the second arm of a pair is shown first in this repeat of its duels.

    A coin decides for the first duel of each pair and round, and the sides alternate from there: whenever a round
    ends, each arm of a pair was shown first as often as the other, give or take one. The copies of a duel that
    several judges get alternate as well.
    """
    return (_coin(seed, round, first, second) + repeat + copy) % 2 == 1


@lru_cache(maxsize=4096)
def _order(seed: int, first: int, second: int, cycle: int, contexts: int) -> NDArray[np.int64]:
    draws = Stream(seed, "context", first, second, cycle).uniforms(contexts)
    return np.argsort(draws, kind="stable").astype(np.int64)


def context_of(seed: int, first: int, second: int, number: int, contexts: int) -> int | None:
    """Return the context of the duel with this number among all that were ever planned for a pair, from 0.

    Drawn without replacement: a pair meets each context once before it meets one twice, across rounds.
    """
    if not contexts:
        return None
    cycle, place = divmod(number, contexts)
    return int(_order(seed, first, second, cycle, contexts)[place])
