"""Looking through a row of numbers, in loops that compile to vector instructions.

Compilers keep the order in which a maximum of floats is taken, for the sake of NaN and -0, and so take it one by one.
Floats without NaN that are not negative compare like their bits read as integers, and for integers any order is
as good: so a policy keeps a second, integer view of such a row, and looks at that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roundel._jit import kernel

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def bits(table: Floats) -> Ints:
    """Return the integer view of a table of floats: the same memory."""
    return table.view(np.int64)


@kernel
def highest(row: Ints) -> int:
    """Return the highest number of a row."""
    top = row[0]
    for k in range(len(row)):
        top = max(top, row[k])
    return int(top)


@kernel
def lowest(row: Ints) -> int:
    """Return the lowest number of a row."""
    low = row[0]
    for k in range(len(row)):
        low = min(low, row[k])
    return int(low)


@kernel
def places(row: Ints, value: int) -> tuple[int, int]:
    """Return how often a row holds `value`, and the sum of the places where it does: the place if it is one."""
    times = total = 0
    for k in range(len(row)):
        here = int(row[k] == value)
        times += here
        total += k * here
    return times, total


@kernel
def nth_place(row: Ints, value: int, n: int) -> int:
    """Return where a row holds `value` for the n-th time, from 0."""
    k = -1
    while n >= 0:
        k += 1
        n -= int(row[k] == value)
    return k
