"""Problems: bundled matrices, generators, and loaders for matrices, ballots, battle logs and ranking data."""

from __future__ import annotations

from roundel.datasets.battles import Battle, count_battles, read_battles, tally_battles
from roundel.datasets.build import BUILDABLE, build, data_folder, save
from roundel.datasets.clicks import ranker_preferences
from roundel.datasets.counted import Counted
from roundel.datasets.generators import (
    bradley_terry,
    hard_condorcet,
    linear_utilities,
    mallows,
    random_condorcet,
)
from roundel.datasets.letor import Query, read_queries
from roundel.datasets.preflib import read_preflib
from roundel.datasets.problems import Problem, load_problem, problems
from roundel.datasets.stand_ins import stand_in

__all__ = [
    "BUILDABLE",
    "Battle",
    "Counted",
    "Problem",
    "Query",
    "bradley_terry",
    "build",
    "count_battles",
    "data_folder",
    "hard_condorcet",
    "linear_utilities",
    "load_problem",
    "mallows",
    "problems",
    "random_condorcet",
    "ranker_preferences",
    "read_battles",
    "read_preflib",
    "read_queries",
    "save",
    "stand_in",
    "tally_battles",
]
