"""What a report says, as numbers and names; how it looks is elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from roundel.plan import Ints
from roundel.tournament import Spec, Status, Tournament


@dataclass(frozen=True, slots=True)
class RoundFacts:
    """One closed round."""

    n: int
    options: int  # in play when it began
    pairs: int
    asked: int
    played: int
    out: tuple[str, ...]
    reason: str
    opened: float
    closed: float


@dataclass(frozen=True, slots=True)
class JudgeFacts:
    """What one judge did."""

    name: str
    counted: int
    other: int  # deliveries that did not count
    calls: int  # paid calls on record
    cost: float


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a report shows."""

    spec: Spec
    status: Status
    rounds: tuple[RoundFacts, ...]
    judges: tuple[JudgeFacts, ...]
    points: Ints  # half-wins of the row's option over the column's, by arm
    certificate: dict[str, Any]
    written: float


def facts_of(cup: Tournament) -> Facts:
    """Collect what a report of a tournament shows."""
    certificate = cup.certificate()
    gone: dict[int, list[str]] = {}
    for e in certificate["eliminations"]:
        gone.setdefault(e["round"], []).append(e["option"])
    left = len(cup.spec.options)
    played = []
    for row in certificate["rounds"]:
        out = tuple(gone.get(row["n"], ()))
        played.append(
            RoundFacts(
                n=row["n"],
                options=left,
                pairs=len(row["plan"]),
                asked=sum(times for _, _, times in row["plan"]),
                played=sum(row["played"]),
                out=out,
                reason=row["reason"],
                opened=row["opened"],
                closed=row["closed"],
            )
        )
        left -= len(out)
    return Facts(
        spec=cup.spec,
        status=cup.status,
        rounds=tuple(played),
        judges=_judges(cup),
        points=cup.store.read(cup.state).tally.points,
        certificate=certificate,
        written=time.time(),
    )


def _judges(cup: Tournament) -> tuple[JudgeFacts, ...]:
    def work(tx: Any) -> tuple[JudgeFacts, ...]:
        found: dict[str, list[float]] = {}
        for judge, became, count, cost in tx.all(
            "SELECT judge, became, COUNT(*), SUM(cost) FROM verdict WHERE tournament = ? AND k IS NOT NULL "
            "GROUP BY judge, became",
            cup.number,
        ):
            row = found.setdefault(judge or "unnamed", [0, 0, 0, 0.0])
            row[0 if became == "counted" else 1] += int(count)
            row[3] += cost or 0.0
        # Of counts the last version stands; each holds many verdicts.
        for judge, became, played in tx.all(
            "SELECT v.judge, v.became, SUM(b.played) FROM verdict v JOIN bulk b "
            "ON b.tournament = v.tournament AND b.seq = v.seq WHERE v.tournament = ? AND NOT EXISTS (SELECT 1 FROM "
            "verdict w WHERE w.tournament = v.tournament AND w.key = v.key AND w.version > v.version) "
            "GROUP BY v.judge, v.became",
            cup.number,
        ):
            found.setdefault(judge or "unnamed", [0, 0, 0, 0.0])[0 if became == "counted" else 1] += int(played)
        for judge, cost in tx.all(
            "SELECT judge, SUM(cost) FROM verdict WHERE tournament = ? AND k IS NULL AND cost IS NOT NULL "
            "GROUP BY judge",
            cup.number,
        ):
            found.setdefault(judge or "unnamed", [0, 0, 0, 0.0])[3] += cost
        for judge, calls, cost in tx.all(
            "SELECT i.judge, COUNT(*), SUM(CASE WHEN EXISTS (SELECT 1 FROM verdict v WHERE v.tournament = r.tournament "
            "AND v.key = r.key AND v.cost IS NOT NULL) THEN 0.0 ELSE r.cost END) "
            "FROM intent i JOIN response r ON r.tournament = i.tournament AND r.key = i.key "
            "WHERE i.tournament = ? GROUP BY i.judge",
            cup.number,
        ):
            row = found.setdefault(judge or "unnamed", [0, 0, 0, 0.0])
            row[2] += int(calls)
            row[3] += cost or 0.0
        rows = [JudgeFacts(name, int(a), int(b), int(c), d) for name, (a, b, c, d) in found.items()]
        return tuple(sorted(rows, key=lambda row: (-row.counted, row.name)))

    return cup.store.read(work)
