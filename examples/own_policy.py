"""A policy of your own: register it, and it runs, simulates, compares and holds tournaments like any other."""

import roundel as rd


@rd.batched("one-shot", paper="none: an example")
def one_shot(arms, horizon, rounds, rng, *, share: float = 0.5):
    """Duel all pairs once, with a share of the budget, and commit to who took most points."""
    pairs = max(1, arms.count * (arms.count - 1) // 2)
    result = yield rd.Plan.all_pairs(arms.active, max(1, int(share * horizon / pairs)))
    return int(result.total.points.sum(axis=1).argmax())


if __name__ == "__main__":
    problem = rd.load_problem("six_rankers")
    for policy in ("one-shot", "one-shot:share=0.1", "c2b-kl:defeat=majority"):
        trial = rd.simulate(policy, problem, horizon=100_000)
        print(
            f"{policy:24} regret {trial.regret:7.0f}   rounds {trial.rounds:2}   winner {problem.labels[trial.leader]}"
        )
