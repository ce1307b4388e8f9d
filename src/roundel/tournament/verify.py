"""Checking a store: every row against its digest, every count against its rows, every decision against a replay."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from roundel.errors import RoundelError, VerifyError
from roundel.run import Run
from roundel.tournament import rounds
from roundel.tournament.certificate import Report
from roundel.tournament.deliveries import Stored
from roundel.tournament.files import parse_json
from roundel.tournament.intents import intend_digest, respond_digest
from roundel.tournament.leases import PAIR, duel_name, lease_digest, place
from roundel.tournament.rounds import RoundRow
from roundel.tournament.spec import Spec
from roundel.tournament.store import Store, Transaction, open_store
from roundel.tournament.texts import check_name

VERDICT_COLUMNS = "seq, key, version, n, k, epoch, verdict, became, carried, judge, cost, note, body, received, digest"


def verify_store(where: str | Path | Store, name: str | None = None, expect: str | None = None) -> Report:
    """Check a store, or one tournament of it; raise VerifyError at the first thing that does not hold.

    `expect` is a head that was noted earlier ("412:9f2c..."): that delivery, and all before it, must still be there.
    """
    store = open_store(where)
    try:
        if found := store.check():
            raise VerifyError(f"{store.url}: {found[0]}")
        report = Report(store.url, ["pages, indices and references are sound"])
        store.read(lambda tx: _tournaments(tx, store.url, name, expect, report))
        return report
    except RoundelError as error:
        raise error if isinstance(error, VerifyError) else VerifyError(str(error)) from error
    finally:
        if not isinstance(where, Store):
            store.close()


def _tournaments(tx: Transaction, url: str, name: str | None, expect: str | None, report: Report) -> None:
    rows = tx.all("SELECT id, name, spec, digest FROM tournament ORDER BY id")
    if name is not None:
        wanted = check_name("the tournament's name", name)
        rows = [row for row in rows if row[1] == wanted]
        if not rows:
            raise VerifyError(f"{url} has no tournament {wanted!r}")
    if expect is not None and len(rows) != 1:
        raise VerifyError(f"{url} holds {len(rows)} tournaments: say which one the noted head is of")
    for row in rows:
        check_tournament(tx, row, expect, report)


def check_tournament(tx: Transaction, row: tuple[Any, ...], expect: str | None, report: Report) -> None:
    """Check one tournament, whose row (id, name, spec, digest) is given, as the snapshot `tx` has it."""
    number, name, text, digest = row
    check = _Check(tx, number, name, text, digest)
    try:
        check.run(expect, report)
    except VerifyError:
        raise
    except (RoundelError, KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise VerifyError(f"{name}: it cannot be replayed: {error}") from error


class _Check:
    def __init__(self, tx: Transaction, number: int, name: str, text: str, digest: str) -> None:
        self.tx, self.number, self.name, self.text, self.digest = tx, number, name, text, digest

    def must(self, holds: bool, what: str) -> None:
        if not holds:
            raise VerifyError(f"{self.name}: {what}")

    def run(self, expect: str | None, report: Report) -> None:
        self.spec = Spec.from_json(parse_json(self.text))
        self.must(self.spec.digest() == self.digest and self.spec.text() == self.text, "the spec was changed")
        self.must(self.spec.name == self.name, "its name is not the one in its spec")
        seq, head, heads = self._deliveries(expect)
        run = self.spec.run()
        duels = leases = 0
        before, open_rounds, last = self.digest, 0, None
        met: dict[tuple[int, int], int] = {}
        for n, row in enumerate(list(rounds.after(self.tx, self.number, 0)), 1):
            self.must(row.n == n and not open_rounds, f"round {row.n} stands where round {n} should")
            before, met = self._opening(row, run, before, met)
            results, made, granted = self._contents(row)
            duels, leases, last = duels + made, leases + granted, row
            if row.reason is None:
                open_rounds += 1
                continue
            before = self._closing(row, results, heads)
            run.tell(*results)
        ended = last is not None and last.reason == "ended"
        self.must(open_rounds == (run.ask() is not None and not ended), "the open round is missing, or one too many")
        intents = self._intents()
        report.head = f"{seq}:{head}"
        report.holds += [
            f"{self.name}: {seq} deliveries, {leases} leases and {intents} paid calls are what their digests cover",
            f"{self.name}: {duels} duels, each counted once at most, and only if it was offered",
            f"{self.name}: {run.rounds} closed rounds follow from their verdicts, by replay of {self.spec.policy}",
            f"{self.name}: head {report.head}",
        ]

    # the log of deliveries ----------------------------------------------------------------------------------

    def _deliveries(self, expect: str | None) -> tuple[int, str, dict[int, str]]:
        """Check the chain of deliveries; return its head, and the digests at which rounds closed."""
        at, _, noted = (expect or "").partition(":")
        if expect is not None and not (at.isascii() and at.isdigit() and noted):
            raise VerifyError(f"{expect!r} is no head: heads look like '412:9f2c...'")
        wanted = {
            int(row[0]) for row in self.tx.all("SELECT seq FROM round WHERE tournament = ? AND seq > 0", self.number)
        }
        heads = {0: self.digest}
        bulk = self._bulk()
        pending = next(bulk, None)
        seq, digest, seen = 0, self.digest, int(at or 0) == 0 and noted in ("", self.digest)
        for row in self.tx.each(
            f"SELECT {VERDICT_COLUMNS} FROM (SELECT v.*, r.n FROM verdict v JOIN round r ON r.id = v.round) log "
            "WHERE tournament = ? ORDER BY seq",
            self.number,
        ):
            stored = Stored(*row[:-1])
            seq += 1
            counts: list[tuple[int, ...]] = []
            if pending is not None and pending[0] == stored.seq:
                counts = pending[1]
                pending = next(bulk, None)
            digest = stored.digest(digest, counts)
            self.must(stored.seq == seq, f"delivery {seq} is missing")
            self.must(digest == row[-1], f"delivery {seq} is not what its digest covers, or one before it is gone")
            if seq in wanted:
                heads[seq] = digest
            if expect is not None and seq == int(at):
                self.must(digest == noted, f"delivery {seq} is not the one whose head was noted")
                seen = True
        self.must(pending is None, "there are counts that belong to no delivery")
        astray = self.tx.one(
            "SELECT b.seq FROM bulk b JOIN verdict v ON v.tournament = b.tournament AND v.seq = b.seq "
            "WHERE b.tournament = ? AND b.round <> v.round LIMIT 1",
            self.number,
        )
        self.must(astray is None, f"the counts of delivery {astray and astray[0]} belong to another round than it")
        self.must(
            seen or expect is None, f"delivery {at} was noted as stored, but the log ends at {seq}: rows were lost"
        )
        return seq, digest, heads

    def _bulk(self) -> Iterator[tuple[int, list[tuple[int, ...]]]]:
        rows = self.tx.each(
            "SELECT seq, p, wins, ties, played FROM bulk WHERE tournament = ? ORDER BY seq, p", self.number
        )
        for seq, group in groupby(rows, key=lambda row: int(row[0])):
            yield seq, [tuple(row[1:]) for row in group]

    # rounds -------------------------------------------------------------------------------------------------

    def _opening(
        self, row: RoundRow, run: Run, before: str, met: dict[tuple[int, int], int]
    ) -> tuple[str, dict[tuple[int, int], int]]:
        what = f"round {row.n}"
        plan, replayed = rounds.plan_of(row), run.ask()
        self.must(replayed is not None and replayed == plan, f"{what} is not what {self.spec.policy}, replayed, plans")
        self.must(plan.digest() == row.plan_digest, f"{what}: the plan is not what its digest covers")
        self.must(row.before == before, f"{what} does not build on the round before it")
        digest = rounds.opening_digest(row.n, row.plan_digest, row.before, row.opened, row.deadline)
        self.must(digest == row.digest, f"{what}: its opening is not what its digest covers")
        base, rows = 0, 0
        for (a, b, times), pair in zip(plan, self._pairs(row.id), strict=False):
            slots = times * self.spec.overlap
            expected = (rows, a, b, times, slots, base, met.get((a, b), 0))
            self.must(tuple(pair[:7]) == expected, f"{what}: pair {rows} is not the one that was planned")
            met[a, b] = met.get((a, b), 0) + times
            base, rows = base + slots, rows + 1
        counted = self.tx.one("SELECT COUNT(*) FROM pair WHERE round = ?", row.id)
        self.must(rows == len(plan) and counted == (rows,), f"{what} has other pairs than were planned")
        return digest, met

    def _pairs(self, round: int) -> Iterator[tuple[Any, ...]]:
        return self.tx.each(f"SELECT {', '.join(PAIR)}, done FROM pair WHERE round = ? ORDER BY p", round)

    def _contents(self, row: RoundRow) -> tuple[rounds.Results, int, int]:
        """Check duels, leases and counted verdicts of a round; return its result, added up anew."""
        what = f"round {row.n}"
        pairs = [dict(zip((*PAIR, "done"), values, strict=True)) for values in self._pairs(row.id)]
        counted = self._counted(row)
        leased = self._leases(row)
        grants = next(leased, None)
        made, done = [0] * len(pairs), [0] * len(pairs)
        ahead: dict[tuple[int, int], int] = {}
        duels = granted = 0
        for k, p, first, second, context, state, epoch, expires in self.tx.each(
            "SELECT k, p, first, second, context, state, epoch, expires FROM duel WHERE round = ? ORDER BY k", row.id
        ):
            name, pair = f"duel {duel_name(row.n, k)}", pairs[p]
            duels += 1
            self.must(k == pair["base"] + made[p], f"{name} is not the next one of its pair")
            made[p] += 1
            self.must((first, second, context) == place(self.spec, row.n, pair, k), f"{name} shows what was not drawn")
            last = (0, 0.0)
            if grants is not None and grants[0] == k:
                last = grants[1]
                granted += last[0]
                grants = next(leased, None)
            verdict = counted.pop(k, None)
            self.must(epoch == last[0], f"{name} has epoch {epoch} and {last[0]} leases")
            self.must((state == "done") == (verdict is not None), f"{name} is {state}, and counts {verdict}")
            if state == "leased":
                self.must(expires == last[1] and epoch > 0, f"{name} does not expire with its lease")
            elif state == "open":
                self.must(expires == 0, f"{name} is open and expires")
            else:
                self.must(expires in (0, last[1]), f"{name} is done and does not expire with its last lease")
            if verdict is not None:
                self.must(
                    verdict[1] is None or verdict[1] <= epoch, f"{name} counts a verdict that nobody was asked for"
                )
                done[p] += 1
                sign = 0 if verdict[0] == "tie" else 1 if (verdict[0] == "first") == (first < second) else -1
                repeat = (p, (k - pair["base"]) // self.spec.overlap)
                ahead[repeat] = ahead.get(repeat, 0) + sign
        self.must(grants is None, f"{what} has leases of duels that are not there")
        self.must(not counted, f"{what} counts verdicts of duels that are not there")
        table = np.zeros((3, len(pairs)), np.int64)
        for (p, _), sign in ahead.items():
            table[:, p] += (sign > 0, sign == 0, 1)
        bulk = self._counts(row, table)
        for p, pair in enumerate(pairs):
            found = (made[p], bulk[p], done[p])
            kept = (pair["made"], pair["bulk"], pair["done"])
            self.must(kept == found, f"{what}: pair {p} keeps counts {kept}, its rows say {found}")
        return rounds.Results(*table), duels, granted

    def _counted(self, row: RoundRow) -> dict[int, tuple[str, int | None]]:
        counted: dict[int, tuple[str, int | None]] = {}
        for k, verdict, epoch in self.tx.each(
            "SELECT k, verdict, epoch FROM verdict WHERE round = ? AND became = 'counted' AND k IS NOT NULL", row.id
        ):
            self.must(k not in counted, f"duel {duel_name(row.n, k)} counts twice")
            counted[k] = (verdict, epoch)
        return counted

    def _leases(self, row: RoundRow) -> Iterator[tuple[int, tuple[int, float]]]:
        """Check the leases of a round; yield for each duel how many it had, and when the last one expires."""
        rows = self.tx.each(
            "SELECT k, epoch, token, judge, granted, expires, digest FROM lease WHERE round = ? ORDER BY k, epoch",
            row.id,
        )
        for k, group in groupby(rows, key=lambda lease: int(lease[0])):
            count, expires = 0, 0.0
            for lease in group:
                count, expires = count + 1, lease[5]
                name = f"lease {lease[1]} of duel {duel_name(row.n, k)}"
                self.must(lease[1] == count, f"{name} is not number {count}")
                self.must(lease_digest(row.n, *lease[:-1]) == lease[-1], f"{name} is not what its digest covers")
            yield k, (count, expires)

    def _counts(self, row: RoundRow, table: Any) -> list[int]:
        """Add the counts in force of a round to `table`; return how many duels they took from each pair."""
        told = self.tx.each(
            "SELECT key, seq FROM verdict WHERE round = ? AND k IS NULL AND became = 'counted' ORDER BY seq", row.id
        )
        latest: dict[str, int] = dict(told)  # a later version replaces the one before it
        taken = [0] * table.shape[1]
        for seq in latest.values():
            for p, wins, ties, played in self.tx.all(
                "SELECT p, wins, ties, played FROM bulk WHERE tournament = ? AND seq = ?", self.number, seq
            ):
                table[:, p] += (wins, ties, played)
                taken[p] += played
        return taken

    def _closing(self, row: RoundRow, results: rounds.Results, heads: dict[int, str]) -> str:
        what = f"round {row.n}"
        stored = rounds.results_of(row)
        same = all(np.array_equal(a, b) for a, b in zip(stored, results, strict=True))
        self.must(same, f"{what}: its result is not what its verdicts add up to")
        self.must(row.seq is not None and heads.get(row.seq) == row.head, f"{what} closed on deliveries that are gone")
        assert row.reason is not None
        assert row.closed is not None
        assert row.seq is not None
        assert row.head is not None
        digest = rounds.closing_digest(row.digest, row.reason, row.closed, results, row.seq, row.head)
        self.must(digest == row.close_digest, f"{what}: its closing is not what its digest covers")
        return digest

    def _intents(self) -> int:
        count = 0
        for key, judge, request, made, digest in self.tx.each(
            "SELECT key, judge, request, made, digest FROM intent WHERE tournament = ?", self.number
        ):
            count += 1
            self.must(intend_digest(key, judge, request, made) == digest, f"the paid call {key!r} was changed")
        for key, body, cost, received, digest in self.tx.each(
            "SELECT key, body, cost, received, digest FROM response WHERE tournament = ?", self.number
        ):
            self.must(respond_digest(key, body, cost, received) == digest, f"the answer to call {key!r} was changed")
        return count
