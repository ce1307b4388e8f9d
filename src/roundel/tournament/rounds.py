"""Rounds in a store: opened with a plan, closed with a result, chained by digests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from roundel.errors import ReplayError
from roundel.plan import Ints, Plan
from roundel.run import Round
from roundel.tournament.spec import Spec
from roundel.tournament.store import Transaction
from roundel.tournament.texts import canonical, sha256

CHUNK = 10_000  # rows
COLUMNS = "id, n, plan, plan_digest, before, opened, deadline, digest, reason, closed, result, seq, head, close_digest"


class RoundRow(NamedTuple):
    """A round as it is stored; what comes after `digest` is None while it is open."""

    id: int
    n: int
    plan: bytes
    plan_digest: str
    before: str  # close_digest of the round before it, or the digest of the spec
    opened: float
    deadline: float | None
    digest: str
    reason: str | None
    closed: float | None
    result: bytes | None
    seq: int | None  # the last delivery before it closed
    head: str | None  # and its digest
    close_digest: str | None


class Results(NamedTuple):
    """What came of a round, pair by pair of its plan."""

    wins: Ints
    ties: Ints
    played: Ints


def pack(*columns: Ints) -> bytes:
    """Return columns of one length as bytes, the same on every machine."""
    return np.ascontiguousarray(np.stack(columns), dtype="<i8").tobytes()


def unpack(data: bytes) -> tuple[Ints, Ints, Ints]:
    """Return the three columns that `pack` packed."""
    if len(data) % 24:
        raise ReplayError(f"a table of {len(data)} bytes has no three columns: the store is damaged")
    a, b, c = np.frombuffer(data, dtype="<i8").reshape(3, -1).astype(np.int64)
    return a, b, c


def plan_of(row: RoundRow) -> Plan:
    """Return the recorded plan."""
    return Plan(*unpack(row.plan))


def results_of(row: RoundRow) -> Results:
    """Return the recorded result of a closed round."""
    return Results(*unpack(row.result or b""))


def recorded(row: RoundRow) -> Round:
    """Return a closed round as `Run.replay` takes it."""
    return Round(plan_of(row), *results_of(row))


def opening_digest(n: int, plan_digest: str, before: str, opened: float, deadline: float | None) -> str:
    """Return the digest of an open round."""
    return sha256(canonical(["round", n, plan_digest, before, opened, deadline]))


def closing_digest(digest: str, reason: str, closed: float, results: Results, seq: int, head: str) -> str:
    """Return the digest of a closed round, which the next one builds on."""
    columns = [column.tolist() for column in results]
    return sha256(canonical(["closed", digest, reason, closed, seq, head, columns]))


class OpenRound(NamedTuple):
    """What each lease and verdict needs of the open round: not its plan, which may be large."""

    id: int
    n: int
    deadline: float | None


def current(tx: Transaction, tournament: int) -> OpenRound | None:
    """Return the open round, if there is one."""
    row = tx.one("SELECT id, n, deadline FROM round WHERE tournament = ? AND reason IS NULL", tournament)
    return OpenRound(*row) if row else None


def numbered(tx: Transaction, tournament: int, n: int) -> RoundRow | None:
    """Return round `n`."""
    row = tx.one(f"SELECT {COLUMNS} FROM round WHERE tournament = ? AND n = ?", tournament, n)
    return RoundRow(*row) if row else None


def after(tx: Transaction, tournament: int, n: int) -> Iterator[RoundRow]:
    """Yield the rounds after round `n`, oldest first."""
    for row in tx.each(f"SELECT {COLUMNS} FROM round WHERE tournament = ? AND n > ? ORDER BY n", tournament, n):
        yield RoundRow(*row)


def last_closed(tx: Transaction, tournament: int) -> tuple[int, str] | None:
    """Return number and digest of the last closed round."""
    row = tx.one(
        "SELECT n, close_digest FROM round WHERE tournament = ? AND reason IS NOT NULL ORDER BY n DESC LIMIT 1",
        tournament,
    )
    return (int(row[0]), str(row[1])) if row else None


def start(tx: Transaction, tournament: int, n: int, plan: Plan, spec: Spec, before: str, now: float) -> None:
    """Open round `n` with `plan`: a row a pair; the duels get theirs when they are offered."""
    deadline = None if spec.deadline is None else now + spec.deadline
    arms = len(spec.options)
    planned = plan.digest()
    row = tx.one(
        "INSERT INTO round (tournament, n, plan, plan_digest, before, opened, deadline, digest) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        tournament,
        n,
        pack(plan.first, plan.second, plan.times),
        planned,
        before,
        now,
        deadline,
        opening_digest(n, planned, before, now, deadline),
    )
    assert row is not None  # RETURNING gives a row for each one inserted
    met = np.zeros((arms, arms), np.int64)
    if n > 1:
        for a, b, total in tx.each(
            "SELECT first, second, SUM(times) FROM pair WHERE round IN (SELECT id FROM round WHERE tournament = ?) "
            "GROUP BY first, second",
            tournament,
        ):
            met[a, b] = total
    tx.many(
        "INSERT INTO pair (round, p, first, second, times, slots, base, earlier) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        _pairs(int(row[0]), plan, spec.overlap, met),
    )


def _pairs(round: int, plan: Plan, overlap: int, met: Ints) -> Iterator[tuple[int, ...]]:
    """Yield the rows of a plan; a million pairs are never objects all at once."""
    slots = plan.times * overlap
    columns = (plan.first, plan.second, plan.times, slots, np.cumsum(slots) - slots, met[plan.first, plan.second])
    for start in range(0, len(plan), CHUNK):
        piece = (column[start : start + CHUNK].tolist() for column in columns)
        for p, values in enumerate(zip(*piece, strict=True), start):
            yield round, p, *values


def close(tx: Transaction, row: RoundRow, reason: str, results: Results, now: float, head: tuple[int, str]) -> str:
    """Close a round for good and return its digest."""
    digest = closing_digest(row.digest, reason, now, results, *head)
    tx.run(
        "UPDATE round SET reason = ?, closed = ?, result = ?, seq = ?, head = ?, close_digest = ? WHERE id = ?",
        reason,
        now,
        pack(*results),
        *head,
        digest,
        row.id,
    )
    return digest


def is_complete(tx: Transaction, round: int) -> bool:
    """Whether every duel of a round has its verdicts."""
    # Ordered as the index is: no planner then takes the primary key, and walks over all the pairs that are done.
    sql = "SELECT 1 FROM pair WHERE round = ? AND done + bulk < slots ORDER BY done + bulk LIMIT 1"
    return tx.one(sql, round) is None


# What each duel came to: its verdicts (one a copy) add up to the majority; a draw among them is a tie. A duel counts
# as soon as one verdict is in, so that a round that closes early judges by what it has.
_DUELS = """
SELECT p, SUM(CASE WHEN ahead > 0 THEN 1 ELSE 0 END), SUM(CASE WHEN ahead = 0 THEN 1 ELSE 0 END), COUNT(*) FROM (
  SELECT d.p AS p, SUM(CASE
    WHEN v.verdict = 'tie' THEN 0
    WHEN (v.verdict = 'first') = (d.first < d.second) THEN 1
    ELSE -1 END) AS ahead
  FROM verdict v
  JOIN duel d ON d.round = v.round AND d.k = v.k
  JOIN pair q ON q.round = d.round AND q.p = d.p
  WHERE v.round = ? AND v.became = 'counted' AND v.k IS NOT NULL
  GROUP BY d.p, (d.k - q.base) / (q.slots / q.times)
) duels GROUP BY p
"""
_BULK = """
SELECT b.p, SUM(b.wins), SUM(b.ties), SUM(b.played) FROM bulk b
JOIN verdict v ON v.tournament = b.tournament AND v.seq = b.seq
WHERE v.round = ? AND v.k IS NULL AND v.became = 'counted' AND NOT EXISTS (
  SELECT 1 FROM verdict w WHERE w.round = v.round AND w.key = v.key AND w.version > v.version AND w.k IS NULL
    AND w.became = 'counted'
) GROUP BY b.p
"""


def results(tx: Transaction, round: int, pairs: int) -> Results:
    """Add up the counted verdicts of a round, from the deliveries themselves."""
    table = np.zeros((3, pairs), np.int64)
    for query in (_DUELS, _BULK):
        for p, wins, ties, played in tx.each(query, round):
            table[:, p] += (int(wins), int(ties), int(played))
    return Results(*table)


def head(tx: Transaction, tournament: int, spec_digest: str) -> tuple[int, str]:
    """Return number and digest of the last delivery; 0 and the spec's digest before the first."""
    row = tx.one("SELECT seq, digest FROM verdict WHERE tournament = ? ORDER BY seq DESC LIMIT 1", tournament)
    return (int(row[0]), str(row[1])) if row else (0, spec_digest)


def progress(tx: Transaction, round: int) -> tuple[int, int, int]:
    """Return how many verdicts a round asks for, how many are in, and how many slots were never offered."""
    row: Any = tx.one("SELECT SUM(slots), SUM(done + bulk), SUM(slots - made - bulk) FROM pair WHERE round = ?", round)
    return int(row[0] or 0), int(row[1] or 0), int(row[2] or 0)
