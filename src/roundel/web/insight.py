"""What the owner wants to know: where it stands, who judged what, whether they agree, and who moves the result."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from roundel.plan import Ints
from roundel.policies import Elimination
from roundel.tally import Tally
from roundel.tournament import Status, Tournament, rounds
from roundel.tournament.standings import bradley_terry, leader
from roundel.tournament.store import Transaction
from roundel.web.invitations import Invitation, listed, with_programs

MOST_JUDGES = 200  # judges that are looked at one by one
MOST_OPTIONS = 100  # beyond that, who would lead without a judge is not worked out
SHOWN = 40  # options in the table of pairs
BIAS_FROM = 30  # verdicts from which a preference for a side is worth a word


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """One judge, or all who share a link."""

    name: str
    verdicts: int
    ties: int
    agreement: float | None  # the chance that its verdict agrees with another judge's on the same pair
    compared: int  # verdicts that could be compared with somebody else's
    first_share: float | None  # how often it chose the side that was shown first, ties aside
    without: str | None  # who would lead without its verdicts, if somebody else

    @property
    def leans(self) -> bool:
        """Whether it prefers a side by more than chance explains (three standard errors)."""
        decided = self.verdicts - self.ties
        if self.first_share is None or decided < BIAS_FROM:
            return False
        return bool(abs(self.first_share - 0.5) > 1.5 / np.sqrt(decided))


@dataclass(frozen=True, slots=True)
class Cell:
    """One pair, seen from the option of its row."""

    duels: int
    share: float | None  # of the points

    @property
    def shade(self) -> int:
        """0 (lost all) to 10 (won all)."""
        return 5 if self.share is None else round(10 * self.share)


@dataclass(frozen=True, slots=True)
class RoundLine:
    """One round as it was played."""

    n: int
    pairs: int
    planned: int
    played: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class Insight:
    """Everything on the dashboard that follows from the record."""

    status: Status
    judges: tuple[JudgeRow, ...]
    cells: tuple[tuple[str, tuple[Cell | None, ...]], ...]  # best option first
    hidden: int  # options that the table of pairs leaves out
    eliminations: tuple[tuple[str, str, Elimination], ...]  # who, by whom
    rounds: tuple[RoundLine, ...]
    invitations: tuple[tuple[Invitation, int, int], ...]
    pooled_leader: str | None
    version: str  # changes whenever something does

    @property
    def alarms(self) -> tuple[JudgeRow, ...]:
        """Judges, or links, without whom somebody else would lead."""
        return tuple(row for row in self.judges if row.without is not None)


def insight_of(cup: Tournament, before: Insight | None = None) -> Insight:
    """Work the dashboard out from one snapshot; where nothing happened since `before`, only what the clock changes."""

    status = cup.status

    def work(tx: Transaction) -> Insight:
        asked = tuple(listed(tx, cup.number))
        text = repr((status.head, status.round, status.outcome.word, asked, status.leased, status.done))
        version = hashlib.sha256(text.encode()).hexdigest()[:20]
        if before is not None and before.version == version:
            return before
        state = cup.state(tx)
        played = tuple(_round(row, tx) for row in rounds.after(tx, cup.number, 0))
        names = cup.spec.names
        judges, pooled = judge_rows(_votes(tx, cup.number), names, _groups(asked))
        order = [standing.arm for standing in status.standings]
        return Insight(
            status=status,
            judges=judges,
            cells=cells(state.tally, names, order[:SHOWN]),
            hidden=max(0, len(order) - SHOWN),
            eliminations=tuple((names[e.arm], names[e.by], e) for e in state.run.eliminations),
            rounds=played,
            invitations=tuple(with_programs(tx, cup.number, asked)),
            pooled_leader=pooled,
            version=version,
        )

    return cup.store.read(work)


def _round(row: rounds.RoundRow, tx: Transaction) -> RoundLine:
    plan = rounds.plan_of(row)
    played = int(rounds.results_of(row).played.sum()) if row.reason else rounds.progress(tx, row.id)[1]
    return RoundLine(row.n, len(plan), plan.total, played, row.reason)


def cells(tally: Tally, names: tuple[str, ...], order: list[int]) -> tuple[tuple[str, tuple[Cell | None, ...]], ...]:
    """Return the table of pairs, rows and columns in `order`."""
    counts, share = tally.counts, tally.phat
    return tuple(
        (
            names[i],
            tuple(
                None if i == j else Cell(int(counts[i, j]), float(share[i, j]) if counts[i, j] else None) for j in order
            ),
        )
        for i in order
    )


# judges -----------------------------------------------------------------------------------------------------

Vote = tuple[str, int, int, str, int]  # judge, arm shown first, arm shown second, verdict, how often


def _votes(tx: Transaction, number: int) -> list[Vote]:
    return [
        (str(judge), int(first), int(second), str(verdict), int(count))
        for judge, first, second, verdict, count in tx.all(
            "SELECT v.judge, d.first, d.second, v.verdict, COUNT(*) FROM verdict v "
            "JOIN duel d ON d.round = v.round AND d.k = v.k "
            "WHERE v.tournament = ? AND v.became = 'counted' AND v.judge IS NOT NULL "
            "GROUP BY v.judge, d.first, d.second, v.verdict",
            number,
        )
    ]


def _groups(asked: tuple[tuple[Invitation, int, int], ...]) -> set[str]:
    """Return the labels of shared links: whoever came by one may be the same person many times."""
    return {invitation.label for invitation, _, _ in asked if invitation.voters > 1}


def judge_rows(
    votes: list[Vote],
    names: tuple[str, ...],
    shared: set[str] = frozenset(),  # type: ignore[assignment]
) -> tuple[tuple[JudgeRow, ...], str | None]:
    """Return a row for each judge and for each shared link, and who leads when all verdicts are pooled."""
    arms = len(names)
    tables: dict[str, Ints] = defaultdict(lambda: np.zeros((3, arms, arms), np.int64))  # wins, ties, shown-first wins
    if arms > MOST_OPTIONS or len({vote[0] for vote in votes}) > MOST_JUDGES * 10:
        return _counts_only(votes), None
    for judge, first, second, verdict, count in votes:
        link = judge.rpartition(" #")[0]
        owners = [judge] + ([f"{link} (all who share the link)"] if link in shared else [])
        for owner in owners:
            table = tables[owner]
            if verdict == "tie":
                table[1, first, second] += count
                table[1, second, first] += count
            elif verdict == "first":
                table[0, first, second] += count
                table[2, first, second] += count
            else:
                table[0, second, first] += count
    everybody = np.zeros((3, arms, arms), np.int64)
    for judge in {vote[0] for vote in votes}:
        everybody += tables[judge]
    if not everybody[:2].any():
        return (), None
    field = np.arange(arms)
    best = leader(_tally(everybody), field)
    largest = sorted(tables, key=lambda name: -int(tables[name][0].sum()))[:MOST_JUDGES]
    rows = [_judge(name, tables[name], everybody, best, names, field) for name in largest]
    return tuple(sorted(rows, key=lambda row: (-row.verdicts, row.name))), names[best]


def _counts_only(votes: list[Vote]) -> tuple[JudgeRow, ...]:
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for judge, _, _, verdict, count in votes:
        totals[judge][0] += count
        totals[judge][1] += count if verdict == "tie" else 0
        totals[judge][2] += count if verdict == "first" else 0
    top = sorted(totals.items(), key=lambda item: (-item[1][0], item[0]))[:MOST_JUDGES]
    return tuple(
        JudgeRow(name, n, ties, None, 0, first / (n - ties) if n > ties else None, None)
        for name, (n, ties, first) in top
    )


def _tally(table: Ints) -> Tally:
    return Tally(2 * table[0] + table[1])


def _judge(name: str, mine: Ints, all_: Ints, best: int, names: tuple[str, ...], field: Ints) -> JudgeRow:
    others = all_ - mine
    wins, ties = mine[0], mine[1]
    verdicts = int(wins.sum() + ties.sum() // 2)
    tied = int(ties.sum() // 2)
    # The chance that two verdicts on the same pair, one of this judge and one of another, are the same.
    theirs = others[0] + others[0].T + others[1]
    met = theirs > 0
    safe = np.where(met, theirs, 1)
    same = float((wins * others[0] / safe).sum() + (ties * others[1] / safe)[np.triu_indices(len(names), 1)].sum())
    compared = int((wins * met).sum() + (ties * met).sum() // 2)
    without = None
    if others[:2].any() and (instead := leader(_tally(others), field, bradley_terry(_tally(others)))) != best:
        without = names[instead]
    decided = int(wins.sum())
    return JudgeRow(
        name=name,
        verdicts=verdicts,
        ties=tied,
        agreement=same / compared if compared else None,
        compared=compared,
        first_share=int(mine[2].sum()) / decided if decided else None,
        without=without,
    )


def percent(value: float | None) -> str:
    """Write a share."""
    return "–" if value is None else f"{value:.0%}"


def plain(insight: Insight) -> dict[str, Any]:
    """Return the judges as plain values, for programs."""
    return {
        "judging": [
            {
                "judge": row.name,
                "verdicts": row.verdicts,
                "ties": row.ties,
                "agreement": row.agreement,
                "compared": row.compared,
                "first_share": row.first_share,
                "leader_without": row.without,
            }
            for row in insight.judges
        ]
    }
