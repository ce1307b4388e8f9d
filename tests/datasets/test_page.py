"""The page on data tells the truth, and all of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from roundel.datasets import battles, load_problem, preflib, problems
from roundel.datasets.clicks import _USERS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "datasets.md").read_text("utf-8")


def test_every_name_and_suffix_is_there():
    for word in (*problems(), *(f"`{s}`" for s in (*battles.SUFFIXES, *preflib.SUFFIXES, ".npz"))):
        assert word in PAGE


@pytest.mark.parametrize("name", [name for name, problem in problems().items() if problem.kind == "bundled"])
def test_the_row_of_a_bundled_problem(name):
    problem = load_problem(name)
    winner, gap = "none", "none"
    if problem.winner is not None:
        winner, gap = problem.labels[problem.winner], f"{np.delete(problem.gaps, problem.winner).min():.4f}"
    sst, sti = ("yes" if holds else "no" for holds in (problem.sst, problem.sti))
    assert f"| `{name}` | {problem.arms} | {winner} | {gap} | {sst} | {sti} |" in PAGE


def test_parameters_are_described():
    for problem in problems().values():
        if problem.kind == "generated" and not problem.name.endswith("stand-in"):
            row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{problem.name}`"))
            for parameter in problem.parameters[2:]:
                assert f"`{parameter.name}` ({parameter.default:g})" in row


def test_tables_of_the_users():
    def shown(chances):
        return ", ".join(f"{c:g}".replace("0.", ".") for c in chances)

    for user, tables in _USERS.items():
        cells = [shown(row) for grades in (5, 3, 2) for row in tables[grades]]
        assert f"| `{user}` | {' | '.join(cells)} |" in PAGE
