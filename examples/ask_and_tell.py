"""The loop: ask for the duels of a round, give their verdicts, until a winner stands."""

import random

import roundel as rd

true_strength = [0.9, 0.5, 0.4, 0.35, 0.3, 0.1]  # what your judges know and you do not
judge = random.Random(7)


def wins(first: int, second: int, times: int) -> int:
    """How often `first` wins; a real judge is a person, a program, a language model, a log of clicks."""
    chance = 0.5 + (true_strength[first] - true_strength[second]) / 2
    return sum(judge.random() < chance for _ in range(times))


run = rd.Run("c2b-kl:defeat=majority", arms=6, horizon=5_000, rounds=8, seed=0)
while (plan := run.ask()) is not None:
    run.tell(wins=[wins(*pair) for pair in plan])
    print(f"round {run.rounds}: {plan.total} duels, arms still in play: {run.active.tolist()}")
print(f"winner: arm {run.winner} after {run.spent} duels in {run.rounds} rounds")
