"""Paid calls: noted before they are made, answers kept before they are read, so that nothing is paid for twice."""

from __future__ import annotations

from dataclasses import dataclass

from roundel.errors import ConflictError, InputError
from roundel.tournament.store import Transaction
from roundel.tournament.texts import canonical, sha256


@dataclass(frozen=True, slots=True)
class Intent:
    """A paid call that was noted."""

    key: str
    fresh: bool  # noted by this very call: nobody can have made the paid one before
    response: str | None  # what came back, if it is known: do not pay again
    cost: float | None


def intend_digest(key: str, judge: str | None, request: str, made: float) -> str:
    """Return the digest that covers an intent's row."""
    return sha256(canonical(["intent", key, judge, request, made]))


def respond_digest(key: str, body: str, cost: float | None, received: float) -> str:
    """Return the digest that covers a response's row."""
    return sha256(canonical(["response", key, body, cost, received]))


def intend(tx: Transaction, tournament: int, key: str, judge: str | None, request: str, now: float) -> Intent:
    """Note a call; one that was noted before comes back with what is known of it."""
    row = tx.one("SELECT judge, request FROM intent WHERE tournament = ? AND key = ?", tournament, key)
    if row is None:
        tx.run(
            "INSERT INTO intent (tournament, key, judge, request, made, digest) VALUES (?, ?, ?, ?, ?, ?)",
            tournament,
            key,
            judge,
            request,
            now,
            intend_digest(key, judge, request, now),
        )
        return Intent(key, True, None, None)
    if row != (judge, request):
        raise ConflictError(f"key {key!r} stands for another call already: hash everything that the answer depends on")
    answer = _response(tx, tournament, key)
    return Intent(key, False, *(answer or (None, None)))


def respond(tx: Transaction, tournament: int, key: str, body: str, cost: float | None, now: float) -> Intent:
    """Keep the answer to a call; the first one stays."""
    if tx.one("SELECT 1 FROM intent WHERE tournament = ? AND key = ?", tournament, key) is None:
        raise InputError(f"key {key!r} was never intended: note a call with intend() before it is made")
    answer = _response(tx, tournament, key)
    if answer is None:
        tx.run(
            "INSERT INTO response (tournament, key, body, cost, received, digest) VALUES (?, ?, ?, ?, ?, ?)",
            tournament,
            key,
            body,
            cost,
            now,
            respond_digest(key, body, cost, now),
        )
        return Intent(key, True, body, cost)
    if answer != (body, cost):
        raise ConflictError(f"key {key!r} has another answer already: the first one stays; use it")
    return Intent(key, False, *answer)


def _response(tx: Transaction, tournament: int, key: str) -> tuple[str, float | None] | None:
    row = tx.one("SELECT body, cost FROM response WHERE tournament = ? AND key = ?", tournament, key)
    return (row[0], row[1]) if row else None
