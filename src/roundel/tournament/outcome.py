"""How a tournament ends: in one of four words, with the reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from roundel.plan import Ints
from roundel.policies.batched.bcope import decide
from roundel.run import Run
from roundel.tally import Tally, hoeffding_level
from roundel.tournament.spec import Spec
from roundel.tournament.standings import Standing, bradley_terry, leader, ratings, unseparated
from roundel.tournament.texts import counted

Word = Literal["open", "winner", "undecided", "no Condorcet winner"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a tournament so far."""

    word: Word
    why: str
    winner: str | None
    leader: str  # the winner; without one, the option that the evidence favours
    not_separable: tuple[str, ...]  # options still in play that may be as good as the leader
    cycle: tuple[str, ...]  # each surely beats the next one, and the last one the first
    copeland: tuple[str, ...]  # without a Condorcet winner: who beats the most others
    borda: str | None  # without a Condorcet winner: who wins most often against a random other
    standings: tuple[Standing, ...]  # best first

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as plain values."""
        return {
            "outcome": self.word,
            "why": self.why,
            "winner": self.winner,
            "leader": self.leader,
            "not_separable": list(self.not_separable),
            "cycle": list(self.cycle),
            "copeland": list(self.copeland),
            "borda": self.borda,
            "standings": [standing.to_json() for standing in self.standings],
        }

    def __str__(self) -> str:
        return f"{self.word}: {self.why}"


def outcome_of(spec: Spec, run: Run, tally: Tally, ties: Ints, *, is_open: bool, ended: bool) -> Outcome:
    """Judge a run and its tally; `ties[i, j]` says how often i and j tied, `ended` that a person stopped it."""
    names = spec.names
    fit = bradley_terry(tally)
    decided = run.winner is not None and not is_open
    best = int(run.winner) if decided and run.winner is not None else leader(tally, run.active, fit)
    rest = () if decided else tuple(names[arm] for arm in unseparated(tally, run.active, best))
    cycle: tuple[str, ...] = ()
    copeland: tuple[str, ...] = ()
    borda: str | None = None
    if run.no_condorcet_evidence:
        sure, _ = decide(tally, hoeffding_level(run.arms, run.max_rounds, run.horizon))
        cycle = tuple(names[arm] for arm in find_cycle(sure))
        copeland = tuple(names[arm] for arm in copeland_winners(tally))
        borda = names[borda_winner(tally)]
    word, why = _judge(names, run, best, rest, cycle, is_open=is_open, ended=ended)
    return Outcome(
        word=word,
        why=why,
        winner=names[best] if word == "winner" else None,
        leader=names[best],
        not_separable=rest,
        cycle=cycle,
        copeland=copeland,
        borda=borda,
        standings=_standings(names, run, tally, ties, ratings(fit), best),
    )


def _judge(
    names: tuple[str, ...],
    run: Run,
    best: int,
    rest: tuple[str, ...],
    cycle: tuple[str, ...],
    *,
    is_open: bool,
    ended: bool,
) -> tuple[Word, str]:
    out = run.arms - len(run.active)
    if is_open:
        doubt = "; so far no option beats all others" if run.no_condorcet_evidence else ""
        return "open", f"round {run.rounds + 1} is being played, {out} of {run.arms} options out{doubt}"
    if run.no_condorcet_evidence:
        ring = " beats ".join((*cycle, cycle[0])) if cycle else "every option is surely beaten by another"
        return "no Condorcet winner", f"no option beats all others: {ring}"
    played = counted(run.rounds, "round")
    if run.winner is not None:
        if out == run.arms - 1:
            return "winner", f"every other option was eliminated within {played}"
        return "winner", f"{run.policy.name} committed to it after {played}; {counted(out, 'option')} eliminated"
    spent = "it was ended by hand" if ended else f"{played} and {run.spent:,} of {run.horizon:,} duels are spent"
    close = f"{counted(len(rest), 'option')} may be as good as the leader" if rest else "nobody else is close"
    return "undecided", f"{spent}, {counted(len(run.active), 'option')} still in play; {close}"


def _standings(
    names: tuple[str, ...], run: Run, tally: Tally, ties: Ints, rated: tuple[Any, Any, Any], best: int
) -> tuple[Standing, ...]:
    gone = {e.arm: e for e in run.eliminations}
    tied, points, counts = ties.sum(axis=1), tally.points.sum(axis=1), tally.counts.sum(axis=1)
    found = []
    for arm, name in enumerate(names):
        wins = int(points[arm] - tied[arm]) // 2
        how = gone.get(arm)
        found.append(
            Standing(
                arm=arm,
                name=name,
                rating=float(rated[0][arm]),
                low=float(rated[1][arm]),
                high=float(rated[2][arm]),
                wins=wins,
                losses=int(counts[arm] - tied[arm]) - wins,
                ties=int(tied[arm]),
                duels=int(counts[arm]),
                out=None if how is None else how.round,
                by=None if how is None else names[how.by],
            )
        )
    # The leader, who is still in play, who went last; the rating within each.
    found.sort(key=lambda s: (s.arm != best, s.out is not None, -(s.out or 0), -s.rating, s.arm))
    return tuple(found)


def find_cycle(beats: NDArray[np.bool_]) -> list[int]:
    """Return arms each of which beats the next one and the last one the first; empty if there is no such ring."""
    while True:  # drop who is beaten by nobody left, or beats nobody left: no ring runs through them
        alive = np.asarray(beats.any(axis=0)) & np.asarray(beats.any(axis=1))
        pruned: NDArray[np.bool_] = beats & alive[:, None] & alive[None, :]
        if (pruned == beats).all():
            break
        beats = pruned
    members = np.flatnonzero(alive)
    if not members.size:
        return []
    path = [int(members[0])]
    while True:  # walk from each arm to one that beats it: the walk must come back
        before = int(np.flatnonzero(beats[:, path[-1]])[0])
        if before in path:
            return path[path.index(before) :][::-1]
        path.append(before)


def copeland_winners(tally: Tally) -> list[int]:
    """Return the arms that beat the most others, by majority of the duels so far (half a win for an even pair)."""
    share = tally.phat
    score = (2 * (share > 0.5) + ((share == 0.5) & ~np.eye(tally.arms, dtype=bool))).sum(axis=1)
    return [int(arm) for arm in np.flatnonzero(score == score.max())]


def borda_winner(tally: Tally) -> int:
    """Return the arm that wins most often against another one drawn at random."""
    share = tally.phat
    np.fill_diagonal(share, 0.0)
    return int(share.sum(axis=1).argmax())
