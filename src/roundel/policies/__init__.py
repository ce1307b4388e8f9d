"""Policies: algorithms that turn tallies into plans.

To register one, use `roundel.batched` (here, `batched` is the folder of those that come with roundel).
"""

from __future__ import annotations

from roundel.policies.arms import Arms, Elimination, Result
from roundel.policies.registry import Parameter, Policy, find, parse, policies

__all__ = ["Arms", "Elimination", "Parameter", "Policy", "Result", "find", "parse", "policies"]
