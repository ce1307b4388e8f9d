"""Policies: algorithms that turn tallies into plans."""

from __future__ import annotations

from roundel.policies.arms import Arms, Elimination, Result
from roundel.policies.registry import Parameter, Policy, batched, find, parse, policies

__all__ = ["Arms", "Elimination", "Parameter", "Policy", "Result", "batched", "find", "parse", "policies"]
