"""Small kernels that several policies share."""

from __future__ import annotations

from math import exp, log

from roundel._jit import kernel

_FOREVER = 2**62
_LOG_FOREVER = 42.9


@kernel
def first_time(level: float) -> int:
    """Return the smallest whole t >= 1 with ln t >= level (2**62, which no horizon reaches, if it is far away)."""
    if level <= 0.0:
        return 1
    if level > _LOG_FOREVER:
        return _FOREVER
    t = int(exp(level))
    # exp is right to a rounding, which matters next to a whole number.
    if log(t) >= level:
        return t
    if log(t + 1) >= level:
        return t + 1
    return t + 2


@kernel
def half_kl(p: float) -> float:
    """Return kl(p, 1/2) = p ln 2p + (1-p) ln 2(1-p), with 0 ln 0 = 0; above 0 for every p but 1/2."""
    q = 1.0 - p
    total = 0.0
    if p > 0.0:
        total += p * log(2.0 * p)
    if q > 0.0:
        total += q * log(2.0 * q)
    return max(total, 2.0 * (p - 0.5) ** 2)  # Pinsker's bound: near 1/2 the terms cancel
