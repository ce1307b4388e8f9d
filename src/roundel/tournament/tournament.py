"""Tournament: a durable campaign. Everything paid for is on disk before it is acknowledged."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import fsum, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from roundel._check import whole
from roundel.errors import ConflictError, InputError, LeaseError, RoundelError, SpecError, VerdictError
from roundel.plan import Ints
from roundel.run import Run
from roundel.tally import Tally
from roundel.tournament import deliveries, intents, leases, rounds
from roundel.tournament.deliveries import Delivery, Receipt
from roundel.tournament.files import parse_json, read_spec
from roundel.tournament.intents import Intent
from roundel.tournament.leases import Duel
from roundel.tournament.outcome import Outcome, outcome_of
from roundel.tournament.rounds import OpenRound, RoundRow
from roundel.tournament.spec import Spec
from roundel.tournament.standings import Standing
from roundel.tournament.store import Store, Transaction, open_store
from roundel.tournament.texts import check_name, check_text

if TYPE_CHECKING:
    from roundel.tournament.certificate import Report

MOST_AT_ONCE = 10_000  # duels leased in one call
LONGEST_LEASE = 366 * 24 * 3600.0
DEFAULT_LEASE = 900.0  # seconds


@dataclass(frozen=True, slots=True)
class Status:
    """Where a tournament stands, in plain numbers."""

    name: str
    outcome: Outcome
    round: int  # the open one, or the last
    rounds: int  # at most
    asked: int  # verdicts that the open round asks for
    done: int  # of those, how many are in
    leased: int  # of those, how many are out with a judge
    spent: int  # duels judged in all
    horizon: int
    verdicts: dict[str, int]  # deliveries by what became of them
    cost: float
    deadline: float | None  # of the open round
    judges: dict[str, int]  # counted verdicts a judge
    head: str  # number and digest of the last delivery: note it, and verify against it later

    @property
    def is_open(self) -> bool:
        """Whether a round is being played."""
        return self.outcome.word == "open"

    @property
    def leader(self) -> str:
        """The option that leads."""
        return self.outcome.leader

    @property
    def standings(self) -> tuple[Standing, ...]:
        """Where each option stands, best first."""
        return self.outcome.standings

    def to_json(self) -> dict[str, Any]:
        """Return the status as plain values."""
        return {
            "tournament": self.name,
            **self.outcome.to_json(),
            "round": self.round,
            "rounds": self.rounds,
            "asked": self.asked,
            "done": self.done,
            "leased": self.leased,
            "spent": self.spent,
            "horizon": self.horizon,
            "verdicts": self.verdicts,
            "cost": self.cost,
            "deadline": self.deadline,
            "judges": self.judges,
            "head": self.head,
        }


@dataclass(frozen=True, slots=True)
class State:
    """A tournament at one moment: what status, outcome and certificate are made of."""

    run: Run
    tally: Tally  # the open round's verdicts included
    ties: Ints
    row: OpenRound | None  # the open round
    last: RoundRow | None  # the last closed one
    outcome: Outcome


class Tournament:
    """A durable campaign that finds the best of K options: a `Run` whose rounds live in a database.

    Any number of processes may open the same one and lease and tell at the same time.
    """

    def __init__(self, store: Store, number: int, spec: Spec, clock: Callable[[], float] = time.time) -> None:
        """Use `create` or `open`."""
        self.store = store
        self.spec = spec
        self.digest = spec.digest()
        self._number = number
        # Digests tell 5 from 5.0, and databases give back 5.0.
        self._clock: Callable[[], float] = lambda: float(clock())
        self._lock = threading.RLock()
        self._run: Run | None = None  # stands after the round whose digest is noted beside it
        self._run_at: str = self.digest

    # making and finding -------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        store: str | Path | Store,
        name: str,
        options: Any,
        *,
        contexts: Any = None,
        question: str | None = None,
        policy: str | None = None,
        horizon: int | None = None,
        rounds: int | None = None,
        seed: int | None = None,
        overlap: int | None = None,
        deadline: float | None = None,
        folder: str | Path = ".",
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Make a tournament and plan its first round.

        `options`: names, mappings of name to text, mappings with "name" and one of "text", "markdown", "image",
        "data", or "contents", one a context. `contexts`: test cases on which the options are compared. `horizon`:
        duels to spend; `rounds`: rounds to take; `overlap`: verdicts a duel, by different judges (the majority
        counts); `deadline`: seconds after which a round closes with what it has.
        """
        spec = Spec.build(
            name,
            options,
            contexts=contexts,
            question=question,
            policy=policy,
            horizon=horizon,
            rounds=rounds,
            seed=seed,
            overlap=overlap,
            deadline=deadline,
            folder=folder,
        )
        return cls._insert(open_store(store, create=True), spec, clock, owned=not isinstance(store, Store))

    @classmethod
    def from_file(
        cls,
        store: str | Path | Store,
        name: str,
        path: str | Path,
        *,
        clock: Callable[[], float] = time.time,
        **changes: Any,
    ) -> Self:
        """Make a tournament from a file of options (YAML, JSON, JSON Lines, CSV); `changes` go before the file."""
        fields = {**read_spec(path), **{key: value for key, value in changes.items() if value is not None}}
        return cls.create(store, name, clock=clock, **fields)

    @classmethod
    def _insert(cls, store: Store, spec: Spec, clock: Callable[[], float], owned: bool) -> Self:
        plan = spec.run().ask()
        if plan is None:
            raise SpecError(f"{spec.policy} has nothing to ask of {len(spec.options)} options: choose another policy")
        text, now = spec.text(), float(clock())
        spec = Spec.from_json(parse_json(text))  # just as whoever opens it later will see it
        digest = spec.digest()

        def work(tx: Transaction) -> int:
            if tx.one("SELECT 1 FROM tournament WHERE name = ?", spec.name):
                raise ConflictError(
                    f"{store.url} has a tournament {spec.name!r} already: choose another name, or open it"
                )
            row = tx.one(
                "INSERT INTO tournament (name, spec, digest, created) VALUES (?, ?, ?, ?) RETURNING id",
                spec.name,
                text,
                digest,
                now,
            )
            number = int(row[0]) if row else 0
            rounds.start(tx, number, 1, plan, spec, digest, now)
            return number

        try:
            return cls(store, store.write(work), spec, clock)
        except BaseException:
            if owned:
                store.close()
            raise

    @classmethod
    def open(
        cls, store: str | Path | Store, name: str | None = None, *, clock: Callable[[], float] = time.time
    ) -> Self:
        """Open a tournament; the name may be left out where the store holds just one."""
        opened = open_store(store)
        try:
            names = cls.names(opened)
            if name is None and len(names) == 1:
                name = names[0]
            if name is None:
                raise InputError(
                    f"{opened.url} holds {len(names)} tournaments: name one of {', '.join(names) or 'none'}"
                )
            wanted = check_name("the tournament's name", name)
            row = opened.read(lambda tx: tx.one("SELECT id, spec, digest FROM tournament WHERE name = ?", wanted))
            if row is None:
                have = f"it holds {', '.join(names)}" if names else "it holds none"
                raise InputError(f"{opened.url} has no tournament {wanted!r}: {have}")
            spec = Spec.from_json(_stored_spec(opened, row[1]))
            if spec.digest() != row[2]:
                raise RoundelError(f"{opened.url}: the spec of {wanted!r} was changed: run 'roundel verify'")
            return cls(opened, int(row[0]), spec, clock)
        except BaseException:
            if not isinstance(store, Store):
                opened.close()
            raise

    @staticmethod
    def names(store: str | Path | Store) -> list[str]:
        """Return the names of the tournaments in a store, oldest first."""
        opened = open_store(store)
        try:
            return [str(row[0]) for row in opened.read(lambda tx: tx.all("SELECT name FROM tournament ORDER BY id"))]
        finally:
            if not isinstance(store, Store):
                opened.close()

    @property
    def name(self) -> str:
        """The tournament's name."""
        return self.spec.name

    @property
    def number(self) -> int:
        """The tournament's number in its store."""
        return self._number

    def disconnect(self) -> None:
        """Let go of the store (`close` closes a round)."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.disconnect()

    def __repr__(self) -> str:
        return f"<Tournament {self.name!r} in {self.store.url}: {len(self.spec.options)} options>"

    # duels and verdicts -------------------------------------------------------------------------------------

    def lease(self, limit: int = 1, judge: str | None = None, ttl: float = DEFAULT_LEASE) -> list[Duel]:
        """Hand out up to `limit` duels that nobody else holds; an empty list says that there is none to do now.

        A lease lasts `ttl` seconds; then its duel is offered again, but the first verdict to come still counts.
        """
        count = whole("limit", limit, least=1, most=MOST_AT_ONCE)
        who = None if judge is None else check_name("judge", judge, LeaseError)
        if (
            isinstance(ttl, bool)
            or not isinstance(ttl, (int, float))
            or not isfinite(ttl)
            or not 0 < ttl <= LONGEST_LEASE
        ):
            raise LeaseError(f"ttl is {ttl!r}: a lease lasts some seconds, more than 0 and at most a year")
        if self.spec.overlap > 1 and who is None:
            raise LeaseError(f"each duel is judged by {self.spec.overlap} different judges: say who asks (judge=...)")

        def work(tx: Transaction) -> list[Duel]:
            now = self._clock()
            row = self._advance(tx, now)
            return [] if row is None else leases.grant(tx, self.spec, row, count, who, now, now + ttl)

        return self.store.write(work)

    def tell(
        self,
        duel: Duel | Mapping[str, Any] | str,
        verdict: str | None = None,
        *,
        key: str | None = None,
        judge: str | None = None,
        cost: float | None = None,
        note: str | None = None,
        body: str | None = None,
    ) -> Receipt:
        """Deliver a verdict: "first", "second" or "tie", of the sides as they were shown.

        `duel` is what `lease` gave, or its JSON line (whose "verdict", "key", "judge", "cost", "note", "body" are
        taken where no argument is given), or, for a delivery without a lease, its name ("3.17") together with a
        `key`. The same delivery may come any number of times: it counts once, and gets the same receipt.
        """
        name, token, line = _parts(duel)
        delivery = Delivery.checked(
            verdict if verdict is not None else line.get("verdict"),
            *(
                given if given is not None else line.get(field)
                for field, given in (("key", key), ("judge", judge), ("cost", cost), ("note", note), ("body", body))
            ),
        )
        return self._deliver(name, token, delivery)

    def reject(
        self,
        duel: Duel | Mapping[str, Any] | str,
        *,
        key: str | None = None,
        judge: str | None = None,
        cost: float | None = None,
        note: str | None = None,
        body: str | None = None,
    ) -> Receipt:
        """Record an answer that holds no verdict (it cannot be read, the judge passes) and offer the duel again."""
        name, token, _ = _parts(duel)
        return self._deliver(name, token, Delivery.checked(None, key, judge, cost, note, body, rejected=True))

    def _deliver(self, name: tuple[int, int] | None, token: str | None, delivery: Delivery) -> Receipt:
        if token is None and delivery.key is None:
            raise VerdictError("a verdict without a lease needs a key: the same key is counted once")

        def work(tx: Transaction) -> Receipt:
            now = self._clock()
            if self.spec.deadline is not None:
                self._try_advance(tx, now)
            if token is not None:
                duty = deliveries.duty_by_token(tx, self._number, token, name)
            else:
                assert name is not None  # _parts gives one or the other
                duty = deliveries.duty_by_name(tx, self._number, name)
            receipt, counted = deliveries.record(tx, self._number, self.digest, duty, delivery, now)
            if counted and rounds.is_complete(tx, duty.round):
                self._try_advance(tx, now)
            return receipt

        return self.store.write(work)

    def tell_counts(
        self,
        counts: Iterable[Any],
        *,
        key: str,
        judge: str | None = None,
        cost: float | None = None,
        note: str | None = None,
    ) -> Receipt:
        """Deliver counts of whole pairs, as logs have them: rows (first, second, wins, losses, ties).

        `key` names the source, partition and window. The same rows under the same key count once; other rows
        replace the earlier ones, as long as the round is open.
        """
        if self.spec.overlap > 1:
            raise VerdictError(f"each duel needs {self.spec.overlap} verdicts: counts do not say whose; tell duels")
        rows = deliveries.checked_counts(counts, self.spec.arm)
        given = Delivery.checked("tie", key, judge, cost, note)  # the word is not used: this checks the rest
        assert given.key is not None

        def work(tx: Transaction) -> Receipt:
            now = self._clock()
            if self.spec.deadline is not None:
                self._try_advance(tx, now)
            row = rounds.current(tx, self._number)
            receipt, counted = deliveries.record_counts(
                tx,
                self._number,
                self.digest,
                None if row is None else (row.id, row.n),
                given.key or "",
                rows,
                given.judge,
                given.cost,
                given.note,
                now,
            )
            if counted and row is not None and rounds.is_complete(tx, row.id):
                self._try_advance(tx, now)
            return receipt

        return self.store.write(work)

    def carry(self, key: str) -> Receipt:
        """Count a late verdict, named by its key, as a duel of the open round between the same options."""
        wanted = check_text("key", key, VerdictError)

        def work(tx: Transaction) -> Receipt:
            now = self._clock()
            row = self._advance(tx, now)
            if row is None:
                raise VerdictError(
                    "the tournament has finished: a late verdict cannot be carried into a round any more"
                )
            receipt = deliveries.carry(tx, self._number, self.digest, self.spec, row, wanted, now)
            if rounds.is_complete(tx, row.id):
                self._try_advance(tx, now)
            return receipt

        return self.store.write(work)

    def intend(self, key: str, request: str, judge: str | None = None) -> Intent:
        """Note a paid call before it is made; the intent says whether it was noted before, and what came back."""
        wanted = deliveries.check_key(key)
        text = check_text("request", request, VerdictError)
        who = None if judge is None else check_name("judge", judge, VerdictError)
        return self.store.write(lambda tx: intents.intend(tx, self._number, wanted, who, text, self._clock()))

    def respond(self, key: str, body: str, cost: float | None = None) -> Intent:
        """Keep what a paid call gave back, before anybody tries to understand it."""
        wanted = deliveries.check_key(key)
        text = check_text("body", body, VerdictError)
        price = deliveries.check_cost(cost)
        return self.store.write(lambda tx: intents.respond(tx, self._number, wanted, text, price, self._clock()))

    # rounds -------------------------------------------------------------------------------------------------

    def close(self, *, end: bool = False, empty: bool = False) -> int:
        """Close the open round by hand with the verdicts that are in, and plan the next; return its number.

        `end` ends the whole tournament with it. A round without a verdict closes only with `empty` or `end`.
        """

        def work(tx: Transaction) -> int:
            now = self._clock()
            row = self._advance(tx, now)
            if row is None:
                raise InputError(f"{self.name!r} has finished: there is no round to close")
            if not (empty or end or rounds.progress(tx, row.id)[1]):
                raise InputError(
                    f"round {row.n} has no verdict yet: closing it would spend a round on nothing; "
                    "wait, or close it with empty=True (--empty)"
                )
            self._close(tx, row, "ended" if end else "hand", now)
            return row.n

        return self.store.write(work)

    def advance(self) -> int | None:
        """Close the open round if it is complete or past its deadline; return the round now open, if any."""
        row = self.store.write(lambda tx: self._advance(tx, self._clock()))
        return None if row is None else row.n

    def _advance(self, tx: Transaction, now: float) -> OpenRound | None:
        """Close the open round if it is due; return the round that is open then."""
        row = rounds.current(tx, self._number)
        if row is None or (reason := self._due(tx, row, now)) is None:
            return row
        self._close(tx, row, reason, now)
        return rounds.current(tx, self._number)

    def _try_advance(self, tx: Transaction, now: float) -> None:
        """Advance, but never lose the delivery of this transaction over it: the next lease tries again and reports."""
        try:
            self.store.attempt(tx, lambda: self._advance(tx, now))
        except Exception as error:
            if self.store.is_failure(error):
                raise  # then the delivery is not stored either

    def _due(self, tx: Transaction, row: OpenRound, now: float) -> str | None:
        if rounds.is_complete(tx, row.id):
            return "complete"
        # A deadline never closes an empty round: nothing would be decided, and a round be lost.
        if row.deadline is not None and now >= row.deadline and rounds.progress(tx, row.id)[1]:
            return "deadline"
        return None

    def _close(self, tx: Transaction, row: OpenRound, reason: str, now: float) -> None:
        with self._lock:
            stored = rounds.numbered(tx, self._number, row.n)
            assert stored is not None  # it was just read
            run = self._run_before(tx, stored)
            plan = run.ask()
            assert plan is not None  # an open round was planned by this very run
            results = rounds.results(tx, row.id, len(plan))
            digest = rounds.close(tx, stored, reason, results, now, rounds.head(tx, self._number, self.digest))
            self._run = None  # until it has taken the results
            run.tell(*results)
            self._run, self._run_at = run, digest
            following = run.ask()
        if following is not None and reason != "ended":
            rounds.start(tx, self._number, row.n + 1, following, self.spec, digest, now)

    def _run_before(self, tx: Transaction, row: RoundRow) -> Run:
        """Return the run that stands before the open round `row`, and check that it plans what was recorded."""
        run = self._replayed(tx, rounds.last_closed(tx, self._number))
        plan = run.ask()
        if plan is None or plan.digest() != row.plan_digest or rounds.plan_of(row) != plan:
            raise RoundelError(
                f"round {row.n} of {self.name!r} is not what {self.spec.policy} plans after the recorded verdicts: "
                "the store was changed, or made by another version of the policy; run 'roundel verify'"
            )
        return run

    def _replayed(self, tx: Transaction, last: tuple[int, str] | None) -> Run:
        """Return the run after the closed rounds, reusing the one at hand where it stands on the same history."""
        run, at = self._run, self._run_at
        known = 0 if run is None else run.rounds
        if run is not None:
            row = rounds.numbered(tx, self._number, known) if known else None
            if at != (self.digest if not known else row and row.close_digest):
                run = None
        if run is None:
            run, at, known = self.spec.run(), self.digest, 0
        if last is not None and known < last[0]:
            self._run = None
            for row in rounds.after(tx, self._number, known):
                if row.close_digest is None:
                    break
                run.replay([rounds.recorded(row)])
                at = row.close_digest
        self._run, self._run_at = run, at
        return run

    # what it says -------------------------------------------------------------------------------------------

    def state(self, tx: Transaction) -> State:
        """Return the tournament as the snapshot `tx` has it."""
        with self._lock:
            last = rounds.last_closed(tx, self._number)
            run = self._replayed(tx, last)
            row = rounds.current(tx, self._number)
            tally, ties = run.tally, np.zeros((run.arms, run.arms), np.int64)
            for closed in rounds.after(tx, self._number, 0):
                plan = rounds.plan_of(closed)
                results = rounds.results_of(closed) if closed.reason else rounds.results(tx, closed.id, len(plan))
                if not closed.reason:
                    tally = tally.plus(plan, 2 * results.wins + results.ties, results.played)
                ties[plan.first, plan.second] += results.ties
                ties[plan.second, plan.first] += results.ties
            final = rounds.numbered(tx, self._number, last[0]) if last else None
            ended = final is not None and final.reason == "ended"
            outcome = outcome_of(self.spec, run, tally, ties, is_open=row is not None, ended=ended)
        return State(run, tally, ties, row, final, outcome)

    @property
    def outcome(self) -> Outcome:
        """How it ends, or stands: winner, undecided, no Condorcet winner, or open; with the reasons."""
        return self.store.read(self.state).outcome

    @property
    def is_open(self) -> bool:
        """Whether a round is open."""
        return self.store.read(lambda tx: rounds.current(tx, self._number)) is not None

    @property
    def status(self) -> Status:
        """Everything that a table of progress needs."""
        return self.store.read(self._status)

    def _status(self, tx: Transaction) -> Status:
        state = self.state(tx)
        row, now = state.row, self._clock()
        asked = done = leased = 0
        if row is not None:
            asked, done, _ = rounds.progress(tx, row.id)
            held = tx.one("SELECT COUNT(*) FROM duel WHERE round = ? AND state <> 'done' AND expires > ?", row.id, now)
            leased = int(held[0]) if held else 0
        verdicts = dict.fromkeys(("counted", "late", "surplus", "rejected"), 0)
        for became, count in tx.all(
            "SELECT became, COUNT(*) FROM verdict WHERE tournament = ? GROUP BY became", self._number
        ):
            verdicts[became] = int(count)
        judges = {
            str(judge): int(count)
            for judge, count in tx.all(
                "SELECT judge, COUNT(*) FROM verdict WHERE tournament = ? AND became = 'counted' AND judge IS NOT NULL "
                "GROUP BY judge ORDER BY COUNT(*) DESC, judge",
                self._number,
            )
        }
        seq, digest = rounds.head(tx, self._number, self.digest)
        return Status(
            name=self.name,
            outcome=state.outcome,
            round=row.n if row is not None else state.run.rounds,
            rounds=self.spec.rounds if state.run.policy.kind == "batched" else self.spec.horizon,
            asked=asked,
            done=done,
            leased=leased,
            spent=state.tally.duels,
            horizon=self.spec.horizon,
            verdicts=verdicts,
            cost=self._cost(tx),
            deadline=None if row is None else row.deadline,
            judges=judges,
            head=f"{seq}:{digest}",
        )

    def certificate(self) -> dict[str, Any]:
        """Return the proof of the outcome, self-contained: `roundel verify` checks it with nothing but arithmetic."""
        from roundel.tournament.certificate import certificate_of

        return certificate_of(self)

    def verify(self, expect: str | None = None) -> Report:
        """Check every row, digest and decision; `expect` is a head noted earlier (`status.head`)."""
        from roundel.tournament.verify import verify_store

        return verify_store(self.store, self.name, expect)

    def export(self) -> Iterator[str]:
        """Yield the whole tournament as lines of JSON, which `import_lines` reads."""
        from roundel.tournament.transfer import export_lines

        return export_lines(self)

    def _cost(self, tx: Transaction) -> float:
        """Add up what was paid: what deliveries say, and paid responses that no delivery speaks of."""
        told = tx.all("SELECT cost FROM verdict WHERE tournament = ? AND cost IS NOT NULL", self._number)
        silent = tx.all(
            "SELECT cost FROM response WHERE tournament = ? AND cost IS NOT NULL AND NOT EXISTS "
            "(SELECT 1 FROM verdict v WHERE v.tournament = response.tournament AND v.key = response.key "
            "AND v.version = 1 AND v.cost IS NOT NULL)",
            self._number,
        )
        return fsum(row[0] for row in told + silent)


def _parts(duel: Any) -> tuple[tuple[int, int] | None, str | None, Mapping[str, Any]]:
    """Return name and token of what a caller says is a duel, and the other fields of its line."""
    if isinstance(duel, Duel):
        return leases.parse_duel_name(duel.id), duel.token, {}
    if isinstance(duel, str) and duel.lstrip().startswith("{"):
        try:
            duel = parse_json(duel)
        except ValueError as error:
            raise InputError(f"this is no line of JSON: {error}") from None
    if isinstance(duel, Mapping):
        name, token = duel.get("duel"), duel.get("token")
        if name is None and token is None:
            raise LeaseError('there is no "duel" and no "token" in it: send back the line that lease gave')
        return None if name is None else leases.parse_duel_name(name), token, duel
    return leases.parse_duel_name(duel), None, {}


def _stored_spec(store: Store, text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise RoundelError(
            f"{store.url}: a spec cannot be read ({error}): restore a backup, or import an export"
        ) from None
