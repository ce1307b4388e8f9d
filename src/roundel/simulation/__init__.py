"""Simulation: one run, many runs, regret curves, comparisons over processes or a cluster."""

from __future__ import annotations

from roundel.simulation.comparison import Comparison
from roundel.simulation.grid import compare
from roundel.simulation.trial import Curve, Trial, simulate

__all__ = ["Comparison", "Curve", "Trial", "compare", "simulate"]
