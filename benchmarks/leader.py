"""Who names the true best more often while a tournament is undecided: the evidence, a rating, or pairs shrunk to it?

Uniform votes over all pairs of real data; the share of repeats in which each names the Condorcet winner. The pull is
how many duels of its pair the rating's prediction counts like: 0 is the evidence, without end the rating. "leader" is
what tournaments use: the pull that the rating's own misfit calls for.
`python benchmarks/leader.py [--repeats N]`
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from table import report

from roundel.datasets import load_problem
from roundel.tally import Tally
from roundel.tournament.standings import bradley_terry, leader

PROBLEMS = ("sushi", "irish_dublin", "six_rankers", "arithmetic")
VOTES = (300, 1_000, 5_000, 20_000)
PULLS = (3.0, 30.0, 300.0)


def vote(chance: np.ndarray, votes: int, draw: np.random.Generator) -> Tally:
    """Spread votes evenly over all pairs, and let them fall as the matrix says."""
    arms = len(chance)
    first, second = np.triu_indices(arms, 1)
    times = np.full(first.size, votes // first.size)
    times[draw.permutation(first.size)[: votes % first.size]] += 1
    wins = draw.binomial(times, chance[first, second])
    points = np.zeros((arms, arms), np.int64)
    points[first, second], points[second, first] = 2 * wins, 2 * (times - wins)
    return Tally(points)


def raw(tally: Tally) -> int:
    """The least evidence against; more points decide ties, as Run.leader has it."""
    return int(np.lexsort((-tally.points.sum(axis=1), tally.evidence()))[0])


def measure(problem: str, votes: int, repeats: int) -> dict[str, Any]:
    preferences = load_problem(problem)
    best, chance = preferences.winner, preferences.matrix
    draw = np.random.default_rng(votes)
    right = dict.fromkeys(("evidence", "rating", "leader", *(f"pull {pull:g}" for pull in PULLS)), 0)
    everyone = np.arange(len(chance))
    for _ in range(repeats):
        tally = vote(chance, votes, draw)
        fit = bradley_terry(tally)
        right["evidence"] += raw(tally) == best
        right["rating"] += int(fit.strength.argmax()) == best
        right["leader"] += leader(tally, everyone, fit) == best
        for pull in PULLS:
            right[f"pull {pull:g}"] += leader(tally, everyone, fit, pull) == best
    return {"problem": problem, "votes": votes, **{name: f"{count / repeats:.0%}" for name, count in right.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=1000)
    repeats = parser.parse_args().repeats
    rows = [measure(problem, votes, repeats) for problem in PROBLEMS for votes in VOTES]
    report("leader", f"How often the leader is the best ({repeats} repeats)", rows)


if __name__ == "__main__":
    main()
