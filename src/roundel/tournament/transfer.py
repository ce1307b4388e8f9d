"""Export and import: a tournament as JSON Lines, in the order in which it happened."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from roundel.errors import ConflictError, InputError, RoundelError, VerifyError
from roundel.tournament import rounds
from roundel.tournament.certificate import Report
from roundel.tournament.files import parse_json
from roundel.tournament.spec import Spec
from roundel.tournament.store import Store, Transaction, open_store
from roundel.tournament.tournament import Tournament
from roundel.tournament.verify import check_tournament

FORMAT = "roundel export 1"
OPENING = ("n", "plan", "plan_digest", "before", "opened", "deadline", "digest")
CLOSING = ("reason", "closed", "result", "seq", "head", "close_digest")
PAIR = ("p", "first", "second", "times", "slots", "base", "earlier", "made", "bulk", "done")
DUEL = ("k", "p", "first", "second", "context", "state", "epoch", "expires")
LEASE = ("k", "epoch", "token", "judge", "granted", "expires", "digest")
VERDICT = (
    *("seq", "key", "version", "k", "epoch", "verdict", "became", "carried", "judge", "cost", "note", "body"),
    *("received", "digest"),
)
BULK = ("p", "wins", "ties", "played")
INTENT = ("key", "judge", "request", "made", "digest")
RESPONSE = ("key", "body", "cost", "received", "digest")
SCHEMA: dict[str, tuple[str, ...]] = {
    "round": OPENING,
    "close": CLOSING,
    "pair": PAIR,
    "duel": DUEL,
    "lease": LEASE,
    "verdict": ("n", *VERDICT, "counts"),
    "intent": INTENT,
    "response": RESPONSE,
}


def export_lines(cup: Tournament) -> Iterator[str]:
    """Yield the whole tournament, a line of JSON each; tokens appear as hashes only."""
    # One snapshot for all: the lines are made inside the transaction, and held, since a reader may be slow.
    return iter(cup.store.read(lambda tx: list(_export(cup, tx))))


def _line(kind: str, columns: Sequence[str], values: Iterable[Any]) -> str:
    row = {c: v.hex() if isinstance(v, (bytes, memoryview)) else v for c, v in zip(columns, values, strict=True)}
    return json.dumps({"is": kind, **row}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _export(cup: Tournament, tx: Transaction) -> Iterator[str]:
    created = (tx.one("SELECT created FROM tournament WHERE id = ?", cup.number) or (0.0,))[0]
    yield _line(
        "tournament", ("format", "created", "digest", "spec"), (FORMAT, created, cup.digest, cup.spec.to_json())
    )
    told = 0
    for row in rounds.after(tx, cup.number, 0):
        yield _line("round", OPENING, row[1:8])
        for table, order in (("pair", "p"), ("duel", "k"), ("lease", "k, epoch")):
            columns = SCHEMA[table]
            for values in tx.each(f"SELECT {', '.join(columns)} FROM {table} WHERE round = ? ORDER BY {order}", row.id):
                yield _line(table, columns, values)
        until = row.seq if row.seq is not None else 2**62
        yield from _export_verdicts(cup, tx, told, until)
        told = until
        if row.reason is not None:
            yield _line("close", CLOSING, row[8:])
    yield from _export_verdicts(cup, tx, told, 2**62)
    for table in ("intent", "response"):
        columns = SCHEMA[table]
        # Sorted here, by key: a server sorts as its language does, and two exports of one tournament are to be equal.
        for values in sorted(tx.all(f"SELECT {', '.join(columns)} FROM {table} WHERE tournament = ?", cup.number)):
            yield _line(table, columns, values)
    seq, digest = rounds.head(tx, cup.number, cup.digest)
    yield _line("end", ("head",), (f"{seq}:{digest}",))


def _export_verdicts(cup: Tournament, tx: Transaction, after: int, until: int) -> Iterator[str]:
    columns = ", ".join(f"v.{column}" for column in VERDICT)
    for values in tx.each(
        f"SELECT r.n, {columns} FROM verdict v JOIN round r ON r.id = v.round "
        "WHERE v.tournament = ? AND v.seq > ? AND v.seq <= ? ORDER BY v.seq",
        cup.number,
        after,
        until,
    ):
        counts = None
        if values[4] is None:  # k: without a duel it is counts
            counts = [
                list(count)
                for count in tx.all(
                    f"SELECT {', '.join(BULK)} FROM bulk WHERE tournament = ? AND seq = ? ORDER BY p",
                    cup.number,
                    values[1],
                )
            ]
        yield _line("verdict", (*SCHEMA["verdict"][:-1], "counts"), (*values, counts))


def import_lines(where: str | Path | Store, lines: Iterable[str]) -> Report:
    """Write an exported tournament into a store, all of it or nothing, after checking it as `verify` does."""
    rows = _parsed(lines)
    first = next(rows, None)
    if first is None or first[1].get("is") != "tournament" or first[1].get("format") != FORMAT:
        raise InputError(f"this is no export that this version reads ({FORMAT!r}): the first line says what it is")
    store = open_store(where, create=True)
    report = Report(store.url)

    def work(tx: Transaction) -> None:
        _Import(tx, store.url).run(chain([first], rows), report)

    try:
        store.write(work)
    except RoundelError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise VerifyError(f"the export is damaged: {type(error).__name__}: {error}; nothing was imported") from error
    finally:
        if not isinstance(where, Store):
            store.close()
    return report


def _parsed(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError as error:
            raise InputError(f"line {number}: not JSON: {error}; nothing was imported") from None
        if not isinstance(row, dict):
            raise InputError(f"line {number}: not an object; nothing was imported")
        yield number, row


class _Import:
    def __init__(self, tx: Transaction, url: str) -> None:
        self.tx, self.url = tx, url
        self.number = 0
        self.round_ids: dict[int, int] = {}
        self.batch: tuple[str, list[tuple[Any, ...]]] = ("", [])

    def run(self, rows: Iterable[tuple[int, dict[str, Any]]], report: Report) -> None:
        head = None
        for number, row in rows:
            kind = row.pop("is", None)
            if head is not None:
                raise InputError(f"line {number}: there is more after the end; nothing was imported")
            if kind == "tournament":
                if self.number:  # only the last one would be checked
                    raise InputError(f"line {number}: a second tournament; an export holds one; nothing was imported")
                self._tournament(row)
            elif kind == "end":
                head = row["head"]
            elif kind in SCHEMA:
                if set(row) != set(SCHEMA[kind]):
                    raise InputError(f"line {number}: a {kind} has {', '.join(SCHEMA[kind])}; nothing was imported")
                getattr(self, f"_{kind}")(row)
            else:
                raise InputError(f"line {number}: {kind!r} is nothing that an export holds; nothing was imported")
        self._flush()
        if head is None:
            raise InputError('the export is cut off: its last line, which says "end", is missing; nothing was imported')
        stored = self.tx.one("SELECT id, name, spec, digest FROM tournament WHERE id = ?", self.number)
        assert stored is not None
        check_tournament(self.tx, stored, head, report)
        if report.head != head:
            raise VerifyError(f"the export ends at {report.head}, its last line says {head}; nothing was imported")

    def _tournament(self, row: dict[str, Any]) -> None:
        spec = Spec.from_json(row["spec"])
        if self.tx.one("SELECT 1 FROM tournament WHERE name = ?", spec.name):
            raise ConflictError(f"{self.url} has a tournament {spec.name!r} already: import into another store")
        created = self.tx.one(
            "INSERT INTO tournament (name, spec, digest, created) VALUES (?, ?, ?, ?) RETURNING id",
            spec.name,
            spec.text(),
            row["digest"],
            row["created"],
        )
        self.number = int(created[0]) if created else 0

    def _round(self, row: dict[str, Any]) -> None:
        self._flush()
        values = [bytes.fromhex(row[c]) if c == "plan" else row[c] for c in OPENING]
        marks = ", ".join("?" * (len(values) + 1))
        made = self.tx.one(
            f"INSERT INTO round (tournament, {', '.join(OPENING)}) VALUES ({marks}) RETURNING id", self.number, *values
        )
        self.open = self.round_ids[row["n"]] = int(made[0]) if made else 0

    def _close(self, row: dict[str, Any]) -> None:
        self._flush()
        values = [bytes.fromhex(row[c]) if c == "result" else row[c] for c in CLOSING]
        self.tx.run(f"UPDATE round SET {', '.join(f'{c} = ?' for c in CLOSING)} WHERE id = ?", *values, self.open)

    def _pair(self, row: dict[str, Any]) -> None:
        self._add("pair", ("round", *PAIR), (self.open, *(row[c] for c in PAIR)))

    def _duel(self, row: dict[str, Any]) -> None:
        self._add("duel", ("round", *DUEL), (self.open, *(row[c] for c in DUEL)))

    def _lease(self, row: dict[str, Any]) -> None:
        self._add("lease", ("round", *LEASE), (self.open, *(row[c] for c in LEASE)))

    def _verdict(self, row: dict[str, Any]) -> None:
        round = self.round_ids[row["n"]]
        values = (self.number, round, *(row[c] for c in VERDICT))
        self._add("verdict", ("tournament", "round", *VERDICT), values)
        if row["counts"] is not None:
            for count in row["counts"]:
                self._add("bulk", ("tournament", "seq", "round", *BULK), (self.number, row["seq"], round, *count))

    def _intent(self, row: dict[str, Any]) -> None:
        self._add("intent", ("tournament", *INTENT), (self.number, *(row[c] for c in INTENT)))

    def _response(self, row: dict[str, Any]) -> None:
        self._add("response", ("tournament", *RESPONSE), (self.number, *(row[c] for c in RESPONSE)))

    def _add(self, table: str, columns: Sequence[str], values: tuple[Any, ...]) -> None:
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        if self.batch[0] != sql or len(self.batch[1]) >= 10_000:
            self._flush()
            self.batch = (sql, [])
        self.batch[1].append(values)

    def _flush(self) -> None:
        sql, rows = self.batch
        if rows:
            self.tx.many(sql, rows)
        self.batch = ("", [])
