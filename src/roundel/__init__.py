"""roundel finds the best of K options from noisy pairwise comparisons, in a handful of parallel rounds."""

from __future__ import annotations

from roundel.errors import RoundelError
from roundel.plan import Plan
from roundel.policies import batched, policies
from roundel.preferences import Preferences
from roundel.run import Round, Run
from roundel.tally import Tally

__version__ = "0.1.0"

__all__ = [
    "Plan",
    "Preferences",
    "Round",
    "RoundelError",
    "Run",
    "Tally",
    "__version__",
    "batched",
    "policies",
]
