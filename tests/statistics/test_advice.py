"""What docs/policies.md advises holds on the bundled problems, and its exceptions are exceptions."""

from __future__ import annotations

import pytest

import roundel as rd

RULES = ["c2b-kl", "c2b-kl:defeat=majority"]


@pytest.mark.parametrize("problem", ["six_rankers", "sushi", "irish_meath", "irish_dublin", "arithmetic", "cyclic"])
def test_majorities_save_a_quarter_of_the_regret_or_more_but_not_on_the_small_cycle(problem: str) -> None:
    rows = rd.compare(RULES, [rd.load_problem(problem)], horizon=100_000, repeats=40).summary()
    paper, majority = (row["regret"] for row in rows)
    assert majority > paper if problem == "cyclic" else majority < 0.75 * paper


def test_on_a_cycle_the_policies_that_assume_an_order_lose_the_winner() -> None:
    policies = ["c2b-kl", "scomp", "r-scomp", "scomp2"]
    rows = rd.compare(policies, [rd.load_problem("cyclic")], horizon=100_000, repeats=150).summary()
    right, scomp, r_scomp, scomp2 = (row["right"] for row in rows)
    assert right == 1
    assert 0.8 < scomp < 0.97
    assert 0.8 < r_scomp < 0.97
    assert 0.55 < scomp2 < 0.75
