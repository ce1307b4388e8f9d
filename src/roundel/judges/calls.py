"""Paid calls of a judge, each noted before it is made: what was paid for is never asked again."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from roundel.errors import JudgeError
from roundel.judges.answers import CapReached, StopJudging
from roundel.judges.pace import Pace
from roundel.tournament import Tournament
from roundel.tournament.texts import canonical, sha256

T = TypeVar("T")
Kind = Literal["answer", "unpaid", "lost", "refused"]

MOST_ATTEMPTS = 1_000  # a runaway is a defect, not a bill


@dataclass(frozen=True, slots=True)
class Exchange:
    """What became of one call.

    answer: paid for, `body` came back; unpaid: the server failed or was busy, ask again; lost: no answer, and
    nobody knows whether it was paid for; refused: this request will never be answered.
    """

    kind: Kind
    body: str
    cost: float | None = None  # None: not known
    status: int | None = None
    after: float | None = None  # seconds that the server asks to wait

    def text(self) -> str:
        """Return what is kept of the call."""
        return canonical({"kind": self.kind, "status": self.status, "body": self.body})

    @classmethod
    def stored(cls, text: str, cost: float | None) -> Exchange:
        """Read what was kept."""
        value = json.loads(text)
        return cls(value["kind"], value["body"], cost, value["status"])


@dataclass(frozen=True, slots=True)
class Result(Generic[T]):
    """What a question came to, after all its attempts."""

    value: T | None
    why: str  # where there is no value
    keys: tuple[str, ...]  # of the calls on record
    cost: float | None  # of the calls made now; None where one of them is not known
    known: bool  # nothing was asked now
    body: str | None  # the last raw answer


class Budget:
    """A spending cap that holds whatever the answers cost: the worst case is set aside before each call."""

    def __init__(self, cap: float | None, spent: float = 0.0) -> None:
        self.cap = cap
        self._spent = spent
        self._lock = threading.Lock()

    @property
    def spent(self) -> float:
        """What is spent or set aside."""
        return self._spent

    def reserve(self, most: float | None) -> None:
        """Set the worst case of a call aside; raise `CapReached` where the cap has no room for it."""
        if self.cap is None:
            return
        with self._lock:
            if self._spent + (most or 0.0) > self.cap:
                raise CapReached(
                    f"the spending cap of {self.cap:g} is reached: {self._spent:.4g} is spent or set aside, and a call "
                    f"may cost {most or 0.0:.4g}"
                )
            self._spent += most or 0.0

    def check(self, noted: float) -> None:
        """Raise `CapReached` where the calls on record, of other sessions too, may cost more than the cap."""
        if self.cap is not None and noted > self.cap:
            raise CapReached(
                f"the spending cap of {self.cap:g} is reached: with calls under way {noted:.4g} may be spent"
            )

    def settle(self, most: float | None, cost: float | None) -> None:
        """Replace the worst case by what the call did cost, if that is known."""
        if self.cap is not None and cost is not None:
            with self._lock:
                self._spent += cost - (most or 0.0)


class Calls:
    """The paid calls of one judge in one tournament. Threads may share it."""

    def __init__(
        self, cup: Tournament, judge: str, revision: str, pace: Pace, *, again: bool = False, cap: float | None = None
    ) -> None:
        """`revision` names everything that the answers depend on; `again` repeats calls whose answer was lost."""
        self.cup = cup
        self.judge = judge
        self.revision = revision
        self.pace = pace
        self.again = again
        self.budget = Budget(cap, 0.0 if cap is None else self._paid())
        self.made = self.nonsense = self.in_doubt = 0
        self.cost = 0.0
        self._lock = threading.Lock()

    def _paid(self) -> float:
        """Add up what this judge has cost here so far; a call of unknown cost counts as its worst case."""

        def work(tx: Any) -> float:
            known = tx.one(
                "SELECT SUM(r.cost) FROM intent i JOIN response r ON r.tournament = i.tournament AND r.key = i.key "
                "WHERE i.tournament = ? AND i.judge = ?",
                self.cup.number,
                self.judge,
            )
            unknown = tx.all(
                "SELECT i.request FROM intent i LEFT JOIN response r ON r.tournament = i.tournament AND r.key = i.key "
                "WHERE i.tournament = ? AND i.judge = ? AND r.cost IS NULL",
                self.cup.number,
                self.judge,
            )
            return float(known[0] or 0.0) + sum(json.loads(request).get("most") or 0.0 for (request,) in unknown)

        return self.cup.store.read(work)

    def ask(
        self,
        duel: str,
        question: Mapping[str, Any],
        send: Callable[[str], Exchange] | None,
        read: Callable[[str], T | None],
        *,
        most: float | None = None,
        answers: int = 1,
        failures: int = 5,
    ) -> Result[T]:
        """Ask a question about a duel until an answer can be read, and never one that was answered before.

        `question`: what the answer depends on besides the judge and its revision. `send(key)` makes the call; None
        looks only at what is on record. `read` gets a raw answer and returns None where it makes no sense; then
        up to `answers` are asked for in all. After a failure that cost nothing up to `failures` more follow.
        """
        keys: list[str] = []
        cost: float | None = 0.0
        asked = read_so_far = failed = 0
        body: str | None = None

        def result(value: T | None, why: str = "") -> Result[T]:
            return Result(value, why, tuple(keys), cost, asked == 0, body)

        for attempt in range(MOST_ATTEMPTS):
            key = self._key(duel, question, attempt)
            if send is None:
                exchange = self._recorded(key)
                fresh = False
                if exchange is None:
                    return result(None, "not on record")
            else:
                exchange, fresh = self._call(duel, question, attempt, key, send, most)
            keys.append(key)
            body = exchange.body or body
            if fresh:
                asked += 1
                cost = None if cost is None or exchange.cost is None else cost + exchange.cost
            if exchange.kind == "answer":
                value = read(exchange.body)
                if value is not None:
                    return result(value)
                read_so_far += 1
                if fresh:
                    with self._lock:
                        self.nonsense += 1
                if read_so_far >= answers:
                    return result(None, f"the answer could not be read: {_short(exchange.body)}")
            elif exchange.kind == "refused":
                return result(None, f"the request was refused: {_short(exchange.body)}")
            elif exchange.kind == "lost":
                if not self.again:
                    with self._lock:
                        self.in_doubt += send is not None
                    return result(None, "in doubt: an earlier call may have been paid for, its answer was lost")
                if fresh and (failed := failed + 1) > failures:
                    return result(None, f"no answer after {failed} attempts: {_short(exchange.body)}")
            elif fresh:  # unpaid
                failed += 1
                if failed > failures:
                    return result(None, f"no answer after {failed} attempts: {_short(exchange.body)}")
                self.pace.pause(failed - 1, exchange.after)
        raise JudgeError(f"duel {duel}: {MOST_ATTEMPTS} attempts are on record: give this judge another name")

    def _key(self, duel: str, question: Mapping[str, Any], attempt: int) -> str:
        parts = [self.cup.digest, duel, self.judge, self.revision, dict(question), attempt]
        return f"call:{sha256(canonical(parts))}"

    def _call(
        self,
        duel: str,
        question: Mapping[str, Any],
        attempt: int,
        key: str,
        send: Callable[[str], Exchange],
        most: float | None,
    ) -> tuple[Exchange, bool]:
        if (known := self._recorded(key)) is not None:
            return known, False
        self.pace.turn()
        self.budget.reserve(most)
        fields = {"duel": duel, "revision": self.revision, "question": dict(question), "attempt": attempt}
        intent = self.cup.intend(key, canonical({**fields, "most": most}), self.judge)
        if not intent.fresh:  # another session made this very call since we looked
            self.budget.settle(most, 0.0)
            return _stored(intent.response, intent.cost), False
        try:
            if self.budget.cap is not None:
                self.budget.check(self._paid())  # this call is noted: of two sessions, the later one sees both
            exchange = send(key)
        except StopJudging as error:  # refused before anything was paid for: no doubt is left behind
            self.cup.respond(key, Exchange("unpaid", str(error)).text(), 0.0)
            self.budget.settle(most, 0.0)
            raise
        kept = self.cup.respond(key, exchange.text(), exchange.cost)
        self.budget.settle(most, kept.cost)
        with self._lock:
            self.made += exchange.kind in ("answer", "lost")
            self.cost += kept.cost or 0.0
        return exchange, True

    def _recorded(self, key: str) -> Exchange | None:
        """Return what is known of a call that was noted before, or None for one that was not."""
        row = self.cup.store.read(
            lambda tx: tx.one(
                "SELECT r.body, r.cost FROM intent i LEFT JOIN response r "
                "ON r.tournament = i.tournament AND r.key = i.key WHERE i.tournament = ? AND i.key = ?",
                self.cup.number,
                key,
            )
        )
        return None if row is None else _stored(*row)


def _stored(text: str | None, cost: float | None) -> Exchange:
    """Read what is on record; a call without an answer was cut off, or its answer is still awaited elsewhere."""
    return Exchange("lost", "noted, but no answer came back") if text is None else Exchange.stored(text, cost)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else f"{line[:197]}..."
