"""Verdicts as they come in: every delivery is kept, and each duel counts once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

from roundel._check import whole
from roundel.errors import ConflictError, InputError, LeaseError, VerdictError
from roundel.tournament.leases import PAIR, Copies, duel_name, hashed, place
from roundel.tournament.rounds import OpenRound, head
from roundel.tournament.spec import Spec
from roundel.tournament.store import Transaction
from roundel.tournament.texts import canonical, check_name, check_text, sha256

VERDICTS = ("first", "second", "tie")
LONGEST_KEY = 500


class Count(NamedTuple):
    """What a log says of one pair: how often the first option won, the second won, and neither."""

    first: str
    second: str
    wins: int
    losses: int
    ties: int = 0


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a delivery; the same delivery gets the same receipt, however often it comes."""

    key: str
    duel: str | None  # None for counts
    became: str  # counted, late, surplus or rejected
    seq: int
    digest: str  # of this delivery and all before it: note it to check later that nothing was lost

    def to_json(self) -> dict[str, Any]:
        """Return the receipt as plain values."""
        return {
            "key": self.key,
            "duel": self.duel,
            "became": self.became,
            "seq": self.seq,
            "digest": self.digest,
        }


@dataclass(frozen=True, slots=True)
class Delivery:
    """What came in about one duel, checked."""

    verdict: str | None  # None: the judge gave no verdict that can be read
    key: str | None
    judge: str | None
    cost: float | None
    note: str | None
    body: str | None  # the raw answer

    @classmethod
    def checked(
        cls,
        verdict: Any,
        key: Any = None,
        judge: Any = None,
        cost: Any = None,
        note: Any = None,
        body: Any = None,
        *,
        rejected: bool = False,
    ) -> Delivery:
        """Check what a judge sent."""
        if rejected:
            verdict = None
        elif not isinstance(verdict, str) or verdict not in VERDICTS:
            raise VerdictError(
                f"the verdict is {verdict!r}: it must be 'first', 'second' or 'tie'; nothing was counted"
            )
        return cls(
            verdict,
            None if key is None else check_key(key),
            None if judge is None else check_name("judge", judge, VerdictError),
            check_cost(cost),
            None if note is None else check_text("note", note, VerdictError),
            None if body is None else check_text("body", body, VerdictError),
        )


def check_key(key: Any) -> str:
    """Return a key that a caller chose."""
    text = check_text("key", key, VerdictError)
    if not 0 < len(text) <= LONGEST_KEY:
        raise VerdictError(f"the key has {len(text)} characters: give 1 to {LONGEST_KEY}; hash longer ones")
    if text.startswith(("lease:", "carry:")):
        raise VerdictError(
            f"the key is {text!r}: keys that start with 'lease:' or 'carry:' are made here; choose another"
        )
    return text


def check_cost(cost: Any) -> float | None:
    """Return what a verdict cost, if that is known."""
    if cost is None:
        return None
    if isinstance(cost, bool) or not isinstance(cost, (int, float)) or not isfinite(cost) or not 0 <= cost < 1e15:
        raise VerdictError(f"the cost is {cost!r}: it must be a number, 0 or more; leave it out if it is not known")
    return float(cost) + 0.0  # not -0.0, which SQLite gives back as 0.0


class Stored(NamedTuple):
    """A delivery as it is stored, with its round's number; the digest covers all of it."""

    seq: int
    key: str
    version: int
    n: int
    k: int | None
    epoch: int | None
    verdict: str | None
    became: str
    carried: int | None
    judge: str | None
    cost: float | None
    note: str | None
    body: str | None
    received: float

    def digest(self, before: str, bulk: Sequence[Sequence[int]] = ()) -> str:
        """Return the digest that covers this row, its counts, and all deliveries before it."""
        return sha256(canonical(["delivery", before, *self, [list(row) for row in bulk]]))


class Duty(NamedTuple):
    """The duel that a delivery is about, as it stands."""

    round: int
    n: int
    reason: str | None  # why its round closed, or None
    k: int
    p: int
    state: str
    epoch: int | None  # of the lease that this delivery answers
    judge: str | None  # whom the duel was leased to
    key: str | None  # the key that the lease stands for


def duty_by_token(tx: Transaction, tournament: int, token: Any, name: tuple[int, int] | None) -> Duty:
    """Return the duel that a token was granted for."""
    if not isinstance(token, str) or len(token) > 200:
        raise LeaseError("the token is no text of at most 200 characters: send it back as it came")
    try:
        secret = hashed(token)
    except UnicodeEncodeError:
        raise LeaseError("the token is not valid text: send it back as it came") from None
    row = tx.one(
        "SELECT d.round, r.n, r.reason, d.k, d.p, d.state, l.epoch, l.judge FROM lease l "
        "JOIN duel d ON d.round = l.round AND d.k = l.k JOIN round r ON r.id = d.round "
        "WHERE l.token = ? AND r.tournament = ?",
        secret,
        tournament,
    )
    if row is None or (name is not None and name != (row[1], row[3])):
        what = "this duel" if name is None else f"duel {duel_name(*name)}"
        raise LeaseError(f"nobody was given {what} under this token: send back the token that came with the duel")
    return Duty._make((*row, f"lease:{secret[:32]}"))


def duty_by_name(tx: Transaction, tournament: int, name: tuple[int, int]) -> Duty:
    """Return a duel that was offered, for a delivery without a token."""
    row = tx.one(
        "SELECT d.round, r.n, r.reason, d.k, d.p, d.state FROM duel d JOIN round r ON r.id = d.round "
        "WHERE r.tournament = ? AND r.n = ? AND d.k = ?",
        tournament,
        *name,
    )
    if row is None:
        raise LeaseError(f"duel {duel_name(*name)} was never offered to anybody: lease it first, or tell counts")
    return Duty._make((*row, None, None, None))


def record(
    tx: Transaction, tournament: int, spec_digest: str, duty: Duty, delivery: Delivery, now: float
) -> tuple[Receipt, bool]:
    """Store a delivery about a duel; return its receipt, and whether it counted just now."""
    key = delivery.key or duty.key
    if key is None:
        raise VerdictError("a verdict without a token needs a key of its own: the same key is counted once")
    judge = delivery.judge if delivery.judge is not None else duty.judge
    if (again := _repeated(tx, tournament, key, duty, delivery, judge)) is not None:
        return again, False
    if delivery.verdict is None:
        became = "rejected"
    elif duty.reason is not None:
        became = "late"
    else:
        became = "surplus" if duty.state == "done" else "counted"
    seq, before = head(tx, tournament, spec_digest)
    stored = Stored(
        seq + 1,
        key,
        1,
        duty.n,
        duty.k,
        duty.epoch,
        delivery.verdict,
        became,
        None,
        judge,
        delivery.cost,
        delivery.note,
        delivery.body,
        now,
    )
    digest = insert(tx, tournament, duty.round, stored, before)
    if became == "counted":
        settle(tx, duty.round, duty.k, duty.p)
    elif became == "rejected" and duty.reason is None and duty.state != "done":
        _give_back(tx, duty)
    return Receipt(key, duel_name(duty.n, duty.k), became, seq + 1, digest), became == "counted"


def insert(
    tx: Transaction, tournament: int, round: int, row: Stored, before: str, bulk: Sequence[Sequence[int]] = ()
) -> str:
    """Append a delivery to the log and return its digest."""
    digest = row.digest(before, bulk)
    tx.run(
        "INSERT INTO verdict (tournament, seq, key, version, round, k, epoch, verdict, became, carried, judge, cost, "
        "note, body, received, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        tournament,
        *row[:3],
        round,
        *row[4:],
        digest,
    )
    return digest


def settle(tx: Transaction, round: int, k: int, p: int) -> None:
    """Mark a duel as done."""
    tx.run("UPDATE duel SET state = 'done' WHERE round = ? AND k = ?", round, k)
    tx.run("UPDATE pair SET done = done + 1 WHERE round = ? AND p = ?", round, p)


def _give_back(tx: Transaction, duty: Duty) -> None:
    """Offer a duel again at once, unless somebody else holds it by now."""
    tx.run(
        "UPDATE duel SET state = 'open', expires = 0 WHERE round = ? AND k = ? AND state = 'leased' AND epoch = ?",
        duty.round,
        duty.k,
        duty.epoch if duty.epoch is not None else -1,
    )


def _repeated(
    tx: Transaction, tournament: int, key: str, duty: Duty, delivery: Delivery, judge: str | None
) -> Receipt | None:
    """Return the first receipt of a delivery that came before; refuse another delivery under its key."""
    row = tx.one(
        "SELECT v.seq, v.became, v.digest, r.n, v.k, v.verdict, v.judge, v.cost, v.note, v.body "
        "FROM verdict v JOIN round r ON r.id = v.round WHERE v.tournament = ? AND v.key = ? AND v.version = 1",
        tournament,
        key,
    )
    if row is None:
        return None
    seq, became, digest, n, k, *body = row
    given = [delivery.verdict, judge, delivery.cost, delivery.note, delivery.body]
    if (n, k) != (duty.n, duty.k) or body != given:
        fields = ("verdict", "judge", "cost", "note", "body")
        what = (
            "duel"
            if (n, k) != (duty.n, duty.k)
            else next(f for f, a, b in zip(fields, body, given, strict=True) if a != b)
        )
        raise ConflictError(
            f"key {key!r} was delivered before with another {what}: one key is one delivery; nothing was changed"
        )
    return Receipt(key, duel_name(n, k), became, seq, digest)


def record_counts(
    tx: Transaction,
    tournament: int,
    spec_digest: str,
    open_round: tuple[int, int] | None,
    key: str,
    counts: Sequence[tuple[int, int, int, int, int]],
    judge: str | None,
    cost: float | None,
    note: str | None,
    now: float,
) -> tuple[Receipt, bool]:
    """Store counts as rows (lower arm, higher arm, wins, ties, played); a new version replaces the old one."""
    last = tx.one(
        "SELECT v.seq, v.version, v.became, v.digest, v.round, r.n, r.reason, v.judge, v.cost, v.note, v.k "
        "FROM verdict v JOIN round r ON r.id = v.round WHERE v.tournament = ? AND v.key = ? "
        "ORDER BY v.version DESC LIMIT 1",
        tournament,
        key,
    )
    old: dict[tuple[int, int], tuple[int, int, int]] = {}
    if last is not None:
        if last[10] is not None:
            raise ConflictError(f"key {key!r} stands for a single verdict: give counts a key of their own")
        old = {
            (a, b): (wins, ties, played)
            for a, b, wins, ties, played in tx.all(
                "SELECT q.first, q.second, b.wins, b.ties, b.played FROM bulk b "
                "JOIN pair q ON q.round = b.round AND q.p = b.p WHERE b.tournament = ? AND b.seq = ?",
                tournament,
                last[0],
            )
        }
        new = {(a, b): (wins, ties, played) for a, b, wins, ties, played in counts}
        if new == old and tuple(last[7:10]) == (judge, cost, note):
            return Receipt(key, None, last[2], last[0], last[3]), False
        round, n, became = last[4], last[5], "counted" if last[6] is None else "late"
    elif open_round is None:
        raise VerdictError("the tournament has finished: there is no round to tell counts for")
    else:
        (round, n), became = open_round, "counted"
    rows = _fit(tx, round, n, counts, old, became == "counted")
    seq, before = head(tx, tournament, spec_digest)
    version = 1 if last is None else last[1] + 1
    stored = Stored(seq + 1, key, version, n, None, None, None, became, None, judge, cost, note, None, now)
    digest = insert(tx, tournament, round, stored, before, rows)
    tx.many(
        "INSERT INTO bulk (tournament, seq, round, p, wins, ties, played) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(tournament, seq + 1, round, *row) for row in rows],
    )
    return Receipt(key, None, became, seq + 1, digest), became == "counted"


def _fit(
    tx: Transaction,
    round: int,
    n: int,
    counts: Sequence[tuple[int, int, int, int, int]],
    old: dict[tuple[int, int], tuple[int, int, int]],
    counted: bool,
) -> list[tuple[int, int, int, int]]:
    """Return the rows (p, wins, ties, played) of a delivery, after making room for it in its pairs."""
    rows = []
    change = {pair: -played for pair, (_, _, played) in old.items()}
    for a, b, wins, ties, played in counts:
        found = tx.one("SELECT p FROM pair WHERE round = ? AND first = ? AND second = ?", round, a, b)
        if found is None:
            raise VerdictError(f"round {n} does not compare option {a} with option {b}: drop these counts")
        rows.append((int(found[0]), wins, ties, played))
        change[a, b] = change.get((a, b), 0) + played
    for (a, b), more in change.items():
        if not counted or not more:
            continue
        room = tx.one(
            "SELECT p, slots - made - bulk FROM pair WHERE round = ? AND first = ? AND second = ?", round, a, b
        ) or (0, 0)
        if more > room[1]:
            raise VerdictError(
                f"round {n} has room for {room[1]} more duels of options {a} and {b}, these counts have {more}: "
                "take as many as were planned; nothing was counted"
            )
        tx.run("UPDATE pair SET bulk = bulk + ? WHERE round = ? AND p = ?", more, round, room[0])
    return sorted(rows)


def checked_counts(counts: Iterable[Any], arm: Any) -> list[tuple[int, int, int, int, int]]:
    """Check counts of pairs and turn them the way of their pair: (lower arm, higher arm, wins, ties, played)."""
    if not isinstance(counts, Iterable):
        raise VerdictError(f"the counts are {counts!r}: give a list of (first, second, wins, losses, ties)")
    rows: dict[tuple[int, int], tuple[int, int, int, int, int]] = {}
    for number, item in enumerate(counts, 1):
        try:
            count = Count(**item) if isinstance(item, dict) else Count(*item)
        except TypeError:
            raise VerdictError(f"count {number} is {item!r}: give (first, second, wins, losses, ties)") from None
        a, b = arm(count.first), arm(count.second)
        if a == b:
            raise VerdictError(f"count {number}: {count.first!r} is compared with itself: name two options")
        try:
            wins, losses, ties = (
                whole(f"count {number}: {what}", value, most=10**15)
                for what, value in zip(("wins", "losses", "ties"), count[2:], strict=True)
            )
        except InputError as error:
            raise VerdictError(str(error)) from None
        if a > b:
            a, b, wins, losses = b, a, losses, wins
        if (a, b) in rows:
            raise VerdictError(f"count {number}: the pair {count.first!r}, {count.second!r} stands twice: add it up")
        rows[a, b] = (a, b, wins, ties, wins + losses + ties)
    if not rows:
        raise VerdictError("there are no counts: give at least one (first, second, wins, losses, ties)")
    return list(rows.values())


def carry(
    tx: Transaction, tournament: int, spec_digest: str, spec: Spec, row: OpenRound, key: str, now: float
) -> Receipt:
    """Count a late verdict as a new duel of the open round between the same arms."""
    late = tx.one(
        "SELECT v.seq, v.verdict, v.judge, v.note, d.first, d.second, v.became FROM verdict v "
        "JOIN duel d ON d.round = v.round AND d.k = v.k WHERE v.tournament = ? AND v.key = ? AND v.version = 1",
        tournament,
        key,
    )
    if late is None or late[6] != "late":
        state = "was never delivered" if late is None else f"is {late[6]}, not late"
        raise VerdictError(f"the verdict with key {key!r} {state}: only late ones are carried into the open round")
    carried, verdict, judge, note, first, second, _ = late
    again = tx.one(
        "SELECT v.key, r.n, v.k, v.became, v.seq, v.digest FROM verdict v JOIN round r ON r.id = v.round "
        "WHERE v.tournament = ? AND v.carried = ?",
        tournament,
        carried,
    )
    if again is not None:
        return Receipt(again[0], duel_name(again[1], again[2]), *again[3:])
    low, high = min(first, second), max(first, second)
    found = tx.one(
        f"SELECT {', '.join(PAIR)} FROM pair WHERE round = ? AND first = ? AND second = ? AND made + bulk < slots",
        row.id,
        low,
        high,
    )
    if found is None:
        raise VerdictError(
            f"round {row.n} has no free duel of {spec.names[low]!r} and {spec.names[high]!r}: "
            "the late verdict stays on record, uncounted"
        )
    pair = dict(zip(PAIR, found, strict=True))
    k = pair["base"] + pair["made"]
    if not Copies(tx, spec, row.id, judge).take(pair["p"], k):
        raise VerdictError(
            f"round {row.n} has {judge!r} judge another copy of the next duel of {spec.names[low]!r} and "
            f"{spec.names[high]!r}: a duel's verdicts come from different judges; carry it when that duel is given out"
        )
    shown = place(spec, row.n, pair, k)
    if verdict != "tie" and shown[0] != first:
        verdict = "second" if verdict == "first" else "first"
    tx.run(
        "INSERT INTO duel (round, k, p, first, second, context, state) VALUES (?, ?, ?, ?, ?, ?, 'open')",
        row.id,
        k,
        pair["p"],
        *shown,
    )
    tx.run("UPDATE pair SET made = made + 1 WHERE round = ? AND p = ?", row.id, pair["p"])
    seq, before = head(tx, tournament, spec_digest)
    name = f"carry:{carried}"
    stored = Stored(seq + 1, name, 1, row.n, k, None, verdict, "counted", carried, judge, None, note, None, now)
    digest = insert(tx, tournament, row.id, stored, before)
    settle(tx, row.id, k, pair["p"])
    return Receipt(name, duel_name(row.n, k), "counted", seq + 1, digest)
