"""The arms in play of a policy that eliminates: an ascending list in an array, of which the first `size` count."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roundel._jit import kernel

Ints = NDArray[np.int64]


@kernel
def strike(field: Ints, size: int, place: int) -> int:
    """Take the arm at `place` off the list and return the new size."""
    for n in range(place, size - 1):
        field[n] = field[n + 1]
    return size - 1


@kernel
def place_of(field: Ints, size: int, arm: int) -> int:
    """Return where `arm` stands on the list, or belongs if it does not."""
    n = 0
    for k in range(size):
        n += int(field[k] < arm)
    return n


@kernel
def enlist(field: Ints, size: int, arm: int) -> int:
    """Put `arm` into its place on the list and return the new size."""
    place = place_of(field, size, arm)
    for n in range(size, place, -1):
        field[n] = field[n - 1]
    field[place] = arm
    return size + 1


def mask(arms: int, field: Ints) -> NDArray[np.bool_]:
    """Return which of `arms` arms are on the list `field`."""
    active = np.zeros(arms, bool)
    active[field] = True
    return active
