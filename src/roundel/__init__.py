"""roundel finds the best of K options from noisy pairwise comparisons, in a handful of parallel rounds."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from roundel.errors import RoundelError
from roundel.plan import Plan
from roundel.policies.registry import batched, policies
from roundel.preferences import Preferences
from roundel.run import Round, Run
from roundel.tally import Tally

if TYPE_CHECKING:
    from roundel.datasets import load_problem, problems
    from roundel.simulation import Comparison, Trial, compare, simulate
    from roundel.tournament import Tournament

__version__ = "0.1.0"

__all__ = [
    "Comparison",
    "Plan",
    "Preferences",
    "Round",
    "RoundelError",
    "Run",
    "Tally",
    "Tournament",
    "Trial",
    "__version__",
    "batched",
    "compare",
    "load_problem",
    "policies",
    "problems",
    "simulate",
]

_LATER = {
    "Comparison": "simulation",
    "Tournament": "tournament",
    "Trial": "simulation",
    "compare": "simulation",
    "load_problem": "datasets",
    "problems": "datasets",
    "simulate": "simulation",
}  # what loads when it is first used, so that importing roundel stays quick


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'roundel' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"roundel.{_LATER[name]}"), name)
    return value
