"""Handing out duels: never one to two judges at once, least-done pairs first."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heapreplace
from typing import Any

from roundel.errors import LeaseError
from roundel.tournament.draws import context_of, flipped
from roundel.tournament.rounds import OpenRound
from roundel.tournament.spec import Spec
from roundel.tournament.store import Transaction
from roundel.tournament.texts import canonical, sha256

CHUNK = 256
LONGEST_NUMBER = 18  # digits: what the 64 bits of a column surely hold


@dataclass(frozen=True, slots=True)
class Shown:
    """One side of a duel: the option's name and what is shown for it."""

    name: str
    content: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the side as it travels."""
        return {"name": self.name, **self.content}


@dataclass(frozen=True, slots=True)
class Duel:
    """A duel that was leased: which option is shown first, which second, and on what."""

    id: str  # "3.17": round 3, duel 17
    token: str  # the right to answer it
    question: str
    first: Shown
    second: Shown
    context: Shown | None
    expires: float

    def to_json(self) -> dict[str, Any]:
        """Return the duel as one line of JSON Lines; add "verdict" and send it back."""
        return {
            "duel": self.id,
            "token": self.token,
            "question": self.question,
            "first": self.first.to_json(),
            "second": self.second.to_json(),
            "context": None if self.context is None else self.context.to_json(),
            "expires": self.expires,
        }


@dataclass(frozen=True, slots=True)
class Slot:
    """A duel that has its row."""

    k: int
    first: int
    second: int
    context: int | None
    epoch: int


def duel_name(n: int, k: int) -> str:
    """Return the name that a duel goes by."""
    return f"{n}.{k}"


def parse_duel_name(name: Any) -> tuple[int, int]:
    """Read a duel's name into round and number."""
    if isinstance(name, str):
        n, dot, k = name.partition(".")
        if dot and all(part.isascii() and part.isdigit() and len(part) <= LONGEST_NUMBER for part in (n, k)):
            return int(n), int(k)
    raise LeaseError(f"{name!r} is no duel: duels go by names like '3.17'")


def hashed(token: str) -> str:
    """Return what is stored of a token."""
    return hashlib.sha256(f"roundel token {token}".encode()).hexdigest()


def lease_digest(n: int, k: int, epoch: int, token: str, judge: str | None, granted: float, expires: float) -> str:
    """Return the digest that covers a lease's row."""
    return sha256(canonical(["lease", n, k, epoch, token, judge, granted, expires]))


def place(spec: Spec, n: int, pair: Mapping[str, int], k: int) -> tuple[int, int, int | None]:
    """Return who is shown first in duel `k` of round `n`, who second, and on which context."""
    repeat, copy = divmod(k - pair["base"], spec.overlap)  # the copies of a duel are neighbours
    first, second = pair["first"], pair["second"]
    context = context_of(spec.seed, first, second, pair["earlier"] + repeat, len(spec.contexts))
    if flipped(spec.seed, n, first, second, repeat, copy):
        first, second = second, first
    return first, second, context


PAIR = ("p", "first", "second", "times", "slots", "base", "earlier", "made", "bulk")


def grant(
    tx: Transaction,
    spec: Spec,
    row: OpenRound,
    limit: int,
    judge: str | None,
    now: float,
    expires: float,
    new_token: Callable[[], str] = lambda: secrets.token_urlsafe(16),
) -> list[Duel]:
    """Lease up to `limit` duels of the open round `row`: those given back or expired, then new ones.

    Where each duel has copies for several judges, new ones come first: what waits may then wait for others than this
    judge, and is gone through only when nothing else is left.
    """
    copies = Copies(tx, spec, row.id, judge)
    offers = [partial(_waiting, tx, spec, row, copies, now), partial(_fresh, tx, spec, row, copies)]
    slots: list[Slot] = []
    for offer in offers if spec.overlap == 1 else reversed(offers):
        slots += offer(limit - len(slots))
    duels, leased, leases = [], [], []
    for slot in slots:
        token, epoch = new_token(), slot.epoch + 1
        secret = hashed(token)
        leased.append((epoch, expires, row.id, slot.k))
        digest = lease_digest(row.n, slot.k, epoch, secret, judge, now, expires)
        leases.append((row.id, slot.k, epoch, secret, judge, now, expires, digest))
        duels.append(_duel(spec, row.n, slot, token, expires))
    tx.many("UPDATE duel SET state = 'leased', epoch = ?, expires = ? WHERE round = ? AND k = ?", leased)
    tx.many(
        "INSERT INTO lease (round, k, epoch, token, judge, granted, expires, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        leases,
    )
    return duels


def _duel(spec: Spec, n: int, slot: Slot, token: str, expires: float) -> Duel:
    context = None
    if slot.context is not None:
        case = spec.contexts[slot.context]
        context = Shown(case.name, case.content)
    first, second = spec.options[slot.first], spec.options[slot.second]
    return Duel(
        id=duel_name(n, slot.k),
        token=token,
        question=spec.question,
        first=Shown(first.name, first.shown(slot.context)),
        second=Shown(second.name, second.shown(slot.context)),
        context=context,
        expires=expires,
    )


def _waiting(tx: Transaction, spec: Spec, row: OpenRound, copies: Copies, now: float, limit: int) -> list[Slot]:
    """Return duels that were offered before and are free again, the longest waiting first."""
    chunk = limit if spec.overlap == 1 else max(limit, CHUNK)
    found: list[Slot] = []
    after = (-1.0, -1)
    while len(found) < limit:
        rows = tx.all(
            "SELECT d.expires, d.k, d.p, d.first, d.second, d.context, d.epoch FROM duel d "
            f"WHERE d.round = ? AND d.state <> 'done' AND d.expires <= ? AND (d.expires, d.k) > (?, ?) {copies.free} "
            "ORDER BY d.expires, d.k LIMIT ?",
            row.id,
            now,
            *after,
            *copies.free_values,
            chunk,
        )
        for expires, k, p, first, second, context, epoch in rows:
            after = (expires, k)
            if len(found) < limit and copies.take(p, k):
                found.append(Slot(k, first, second, context, epoch))
        if len(rows) < chunk:
            break
    return found


def _fresh(tx: Transaction, spec: Spec, row: OpenRound, copies: Copies, limit: int) -> list[Slot]:
    """Give rows to duels that were never offered, pair by pair, those with the least verdicts in or out first."""
    found: list[Slot] = []
    while len(found) < limit:
        wanted = limit - len(found)
        pairs = [
            dict(zip(PAIR, values, strict=True))
            for values in tx.all(
                f"SELECT {', '.join(PAIR)} FROM pair WHERE round = ? AND made + bulk < slots "
                "ORDER BY made + bulk, p LIMIT ?",
                row.id,
                wanted,
            )
        ]
        if not pairs:
            break
        least = [(pair["made"] + pair["bulk"], pair["p"], pair) for pair in pairs]
        heapify(least)
        rows = []
        for _ in range(wanted):
            if not least:
                break
            count, p, pair = least[0]
            k = pair["base"] + pair["made"]
            pair["made"] += 1
            if pair["made"] + pair["bulk"] < pair["slots"]:
                heapreplace(least, (count + 1, p, pair))
            else:
                heappop(least)
            slot = Slot(k, *place(spec, row.n, pair, k), 0)
            rows.append((row.id, k, p, slot.first, slot.second, slot.context))
            if copies.take(p, k):
                found.append(slot)  # else its row waits for another judge
        tx.many("INSERT INTO duel (round, k, p, first, second, context, state) VALUES (?, ?, ?, ?, ?, ?, 'open')", rows)
        tx.many(
            "UPDATE pair SET made = ? WHERE round = ? AND p = ?", [(pair["made"], row.id, pair["p"]) for pair in pairs]
        )
    return found


# Whether a judge has, or had, another copy of duel k: by a lease, or by a carried verdict, which has none.
_MET = """EXISTS (
  SELECT 1 FROM lease o WHERE o.round = {round} AND o.k BETWEEN {first} AND {last} AND o.k <> {k} AND o.judge = ?
) OR EXISTS (
  SELECT 1 FROM verdict v WHERE v.round = {round} AND v.k BETWEEN {first} AND {last} AND v.k <> {k} AND v.judge = ?
    AND v.became = 'counted' AND v.k IS NOT NULL
)"""


class Copies:
    """The copies of a duel are for different judges: keeps one judge from getting two of them."""

    def __init__(self, tx: Transaction, spec: Spec, round: int, judge: str | None) -> None:
        self._tx, self._overlap, self._round, self._judge = tx, spec.overlap, round, judge
        self._given: set[tuple[int, int]] = set()  # pair and repeat, in this very call
        self._base: dict[int, int] = {}  # pair -> its first duel

    @property
    def free(self) -> str:
        """Return the condition that a duel `d` has no copy which this judge has or had."""
        if self._overlap == 1:
            return ""
        first = f"d.k - (d.k - q.base) % {self._overlap}"
        met = _MET.format(round="d.round", first=first, last=f"{first} + {self._overlap - 1}", k="d.k")
        return f"AND NOT EXISTS (SELECT 1 FROM pair q WHERE q.round = d.round AND q.p = d.p AND ({met}))"

    @property
    def free_values(self) -> tuple[str | None, ...]:
        """Return the values for `free`."""
        return () if self._overlap == 1 else (self._judge, self._judge)

    def take(self, p: int, k: int) -> bool:
        """Whether the judge may have duel `k` of pair `p`; if so, the other copies are not for this judge."""
        if self._overlap == 1:
            return True
        if p not in self._base:
            row = self._tx.one("SELECT base FROM pair WHERE round = ? AND p = ?", self._round, p) or (0,)
            self._base[p] = int(row[0])
        repeat, copy = divmod(k - self._base[p], self._overlap)
        first = k - copy
        met = "SELECT 1 WHERE " + _MET.format(round="?", first="?", last="?", k="?")
        other = (self._round, first, first + self._overlap - 1, k, self._judge)
        if (p, repeat) in self._given or self._tx.one(met, *other, *other):
            return False
        self._given.add((p, repeat))
        return True
