"""How many of your past votes a tournament would have needed: a log of battles, replayed."""

from __future__ import annotations

import os
import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roundel._check import whole
from roundel.datasets.battles import count_battles, read_battles
from roundel.datasets.counted import Counted
from roundel.errors import DataError, ScheduleWarning
from roundel.plan import Ints
from roundel.run import Run
from roundel.tally import Tally
from roundel.tournament.spec import DEFAULT_POLICY


@dataclass(frozen=True, slots=True)
class Estimate:
    """What replays of a log came to."""

    log: str
    options: tuple[str, ...]
    votes: int  # in the log
    policy: str
    horizon: int
    rounds: int
    repeats: int
    favourite: str  # of the whole log
    condorcet: bool  # whether it beats every other option in the log
    decided: float  # share of the replays that ended with a winner
    right: float  # share of all replays whose winner, or leader, was the log's favourite
    used: int  # votes, the median
    low: int  # the 5% and 95% quantiles
    high: int
    rounds_taken: int  # the median
    asked: int  # duels that the policy asked for, the median
    missing: float  # share of the duels asked for that the log had no vote for
    short: tuple[tuple[str, str, int, int], ...]  # pairs: votes in the log, most that a replay wanted; worst first

    @property
    def share(self) -> float:
        """The votes used, as a share of those in the log."""
        return self.used / self.votes

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as plain values."""
        return {**asdict(self), "share": self.share}

    def __str__(self) -> str:
        beats = "which beats every other option" if self.condorcet else "though it does not beat every other option"
        name = self.favourite
        spread = f"9 of 10 replays: {self.low:,} to {self.high:,}"
        took = f"would have used {self.used:,} of them, {self.share:.1%}, in {self.rounds_taken} rounds ({spread})"
        ended = f"it ended with a winner in {self.decided:.0%} of {self.repeats} replays"
        lines = [
            f"{self.log}: {self.votes:,} votes on {len(self.options)} options; the log favours {name}, {beats}",
            f"a tournament ({self.policy}) {took}",
            f"{ended}, and favoured {name} in {self.right:.0%}",
        ]
        if self.missing > 0:
            first, second, have, wanted = self.short[0]
            lines.append(
                f"caution: for {self.missing:.0%} of the {self.asked:,} duels it asked for, the log had no vote left; "
                f"e.g. {first} and {second}: {have:,} votes, {wanted:,} wanted"
            )
        if self.decided < 0.5:
            lines.append(
                "the votes in this log do not decide it: most replays ran out of them before one option was left"
            )
        return "\n".join(lines)


def replay_log(
    path: str | os.PathLike[str],
    *,
    policy: str | None = None,
    horizon: int | None = None,
    rounds: int | None = None,
    repeats: int = 100,
    seed: int = 0,
    top: int | None = None,
    first: str = "",
    second: str = "",
    verdict: str = "",
) -> Estimate:
    """Estimate from a log of battles how many of its votes a tournament would have needed.

    Each replay asks the log instead of judges: a duel takes one of the votes that the log has for its pair, at random
    and never the same twice; where none is left the duel stays unanswered. `horizon` is by default the number of votes.
    `top`: keep the options that were seen most.
    """
    counted = count_battles(path, first=first, second=second, verdict=verdict)
    ties = _ties(path, counted, first, second, verdict)
    if top is not None:
        order = counted.top(top)
        index = [counted.labels.index(label) for label in order.labels]
        counted, ties = order, ties[np.ix_(index, index)]
    arms = len(counted.labels)
    if arms < 2:
        raise DataError(f"{os.fspath(path)}: only one option: there is nothing to compare")
    votes = counted.tally.duels
    budget = votes if horizon is None else whole("horizon", horizon, least=1)
    times = whole("repeats", repeats, least=1, most=100_000)
    wins = (counted.tally.points - ties) // 2
    name = policy or DEFAULT_POLICY
    rng = np.random.Generator(np.random.PCG64(whole("seed", seed)))
    plays = []
    wanted: Ints = np.zeros((arms, arms), np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScheduleWarning)
        for repeat in range(times):
            run = Run(name, arms, budget, rounds, seed + repeat, keep_history=False)
            plays.append(_play(run, wins.copy(), ties.copy(), rng, wanted))
        taken = Run(name, arms, budget, rounds, seed)
    favourite, condorcet = _favourite(counted.tally)
    used = np.array([play[0] for play in plays])
    asked = np.array([play[1] for play in plays])
    low, middle, high = np.quantile(used, (0.05, 0.5, 0.95))
    have = counted.tally.counts
    gaps = [(int(i), int(j)) for i, j in np.argwhere(np.triu(wanted > have)) if wanted[i, j] > have[i, j]]
    gaps.sort(key=lambda pair: (have[pair] - wanted[pair], pair))
    return Estimate(
        log=os.fspath(path),
        options=counted.labels,
        votes=votes,
        policy=name,
        horizon=budget,
        rounds=taken.max_rounds,
        repeats=times,
        favourite=counted.labels[favourite],
        condorcet=condorcet,
        decided=float(np.mean([play[3] is not None for play in plays])),
        right=float(np.mean([play[4] == favourite for play in plays])),
        used=round(float(middle)),
        low=round(float(low)),
        high=round(float(high)),
        rounds_taken=round(float(np.median([play[2] for play in plays]))),
        asked=round(float(np.median(asked))),
        missing=float(1 - used.sum() / max(1, asked.sum())),
        short=tuple((counted.labels[i], counted.labels[j], int(have[i, j]), int(wanted[i, j])) for i, j in gaps[:10]),
    )


def _ties(path: str | os.PathLike[str], counted: Counted, first: str, second: str, verdict: str) -> Ints:
    place = {label: arm for arm, label in enumerate(counted.labels)}
    ties = np.zeros((len(place),) * 2, np.int64)
    for battle in read_battles(path, first=first, second=second, verdict=verdict):
        if battle.verdict == "tie":
            i, j = place[battle.first], place[battle.second]
            ties[i, j] += 1
            ties[j, i] += 1
    return ties


def _favourite(tally: Tally) -> tuple[int, bool]:
    """Return the option that beats most others in the log, the higher mean share among equals; whether it beats all."""
    share: NDArray[np.float64] = tally.phat
    beaten = (share > 0.5).sum(axis=1)
    best = int(np.lexsort((-share.mean(axis=1), -beaten))[0])
    return best, bool(beaten[best] == tally.arms - 1)


def _play(
    run: Run, wins: Ints, ties: Ints, rng: np.random.Generator, wanted: Ints
) -> tuple[int, int, int, int | None, int]:
    """Play one replay, taking its votes out of `wins` and `ties`; note in `wanted` the most asked of a pair."""
    used = asked = 0
    total: Ints = np.zeros_like(wins)
    while (plan := run.ask()) is not None:
        i, j = plan.first, plan.second
        kinds = np.stack([wins[i, j], wins[j, i], ties[i, j]], axis=1)
        played = np.minimum(plan.times, kinds.sum(axis=1))
        drawn = np.array([_draw(rng, row, int(count)) for row, count in zip(kinds, played, strict=True)])
        wins[i, j] -= drawn[:, 0]
        wins[j, i] -= drawn[:, 1]
        ties[i, j] -= drawn[:, 2]
        ties[j, i] -= drawn[:, 2]
        total[i, j] += plan.times
        used += int(played.sum())
        asked += plan.total
        run.tell(drawn[:, 0], drawn[:, 2], played)
        if not played.any():
            break  # the log has nothing more to say of these pairs
    np.maximum(wanted, total + total.T, out=wanted)
    return used, asked, run.rounds, run.winner, run.leader


def _draw(rng: np.random.Generator, kinds: Ints, count: int) -> Ints:
    if count == int(kinds.sum()):
        return kinds
    return np.asarray(rng.multivariate_hypergeometric(kinds, count, method="marginals"))
