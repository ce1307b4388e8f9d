"""Voters who answer, undo, leave and come back in any order: what was acknowledged counts, once, and nothing else."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from roundel.tournament import Tournament
from roundel.tournament.store import Transaction
from roundel.tournament.writer import Writer
from roundel.web import invitations, schema, seats
from roundel.web.seats import HOLD, Table, View

VOTERS = st.integers(0, 2)


class Voting(RuleBasedStateMachine):
    """Three voters at one table, with a clock that jumps."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.now = 1000.0
        path = Path(self.folder.name) / "s.db"
        Tournament.create(path, "t", ["a", "b", "c"], horizon=40, rounds=2, clock=self.clock).disconnect()
        self.open(path)
        self.acknowledged: dict[tuple[int, str], str] = {}  # (voter, duel) -> the verdict that the voter last saw taken

    def clock(self) -> float:
        return self.now

    def open(self, path: Path) -> None:
        self.path, self.store = path, Writer(path)
        schema.prepare(self.store)
        self.cup = Tournament.open(self.store, "t", clock=self.clock)
        self.table = Table(self.cup, self.clock)

    @initialize()
    def invite(self) -> None:
        def work(tx: Transaction) -> list[Any]:
            made = [invitations.make(tx, self.cup.number, "voter", f"v{n}", self.now) for n in range(3)]
            for invitation in made:
                seats.join(tx, invitation, self.now)
            return made

        self.invitations = self.store.write(work)
        self.views: dict[int, View] = {n: self.do(n, self.table.sit) for n in range(3)}
        self.answered = dict.fromkeys(range(3), 0)

    def do(self, voter: int, what: Any, *arguments: str) -> Any:
        def work(tx: Transaction) -> Any:
            seat = seats.load(tx, self.invitations[voter], 1)
            assert seat is not None
            return what(tx, seat, *arguments)

        return self.store.write(work)

    @rule(voter=VOTERS, verdict=st.sampled_from(["first", "second", "tie"]), twice=st.booleans())
    def answer(self, voter: int, verdict: str, twice: bool) -> None:
        pair = self.views[voter].pair
        if pair is None:
            return
        for _ in range(1 + twice):  # the second time is a repetition, and changes nothing
            self.views[voter] = self.do(voter, self.table.answer, pair.duel, verdict)
        if (voter, pair.duel) not in self.acknowledged:
            self.answered[voter] += 1
        self.acknowledged[voter, pair.duel] = verdict

    @rule(voter=VOTERS)
    def undo(self, voter: int) -> None:
        view = self.do(voter, self.table.undo)
        if view.notice == "undone":
            assert view.pair is not None
            del self.acknowledged[voter, view.pair.duel]
            self.answered[voter] -= 1
        self.views[voter] = view

    @rule(voter=VOTERS)
    def look_again(self, voter: int) -> None:
        self.views[voter] = self.do(voter, self.table.sit)

    @rule(voter=VOTERS)
    def leave(self, voter: int) -> None:
        self.do(voter, self.table.leave)
        self.views[voter] = self.do(voter, self.table.view)

    @rule(seconds=st.sampled_from([1.0, HOLD + 1, 400.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.store.write(lambda tx: self.table.tell_due(tx, self.now))

    @precondition(lambda self: self.cup.is_open)
    @rule()
    def close_the_round(self) -> None:
        self.store.write(lambda tx: (self.table.tell_due(tx, float("inf")), self.cup.close(empty=True)))

    @rule()
    def the_server_starts_again(self) -> None:
        self.store.close()
        self.open(self.path)

    def record(self) -> dict[tuple[int, str], str]:
        rows = self.store.read(
            lambda tx: tx.all(
                "SELECT v.judge, r.n, v.k, v.verdict FROM verdict v JOIN round r ON r.id = v.round "
                "WHERE v.verdict IS NOT NULL"
            )
        )
        found = {(int(judge[1:]), f"{n}.{k}"): verdict for judge, n, k, verdict in rows}
        assert len(found) == len(rows)  # nobody's verdict on a duel stands twice
        return found

    @invariant()
    def all_of_it_is_on_disk(self) -> None:
        if not hasattr(self, "views"):
            return
        held = {
            (self.ids[id], duel): verdict
            for id, duel, verdict in self.store.read(
                lambda tx: tx.all("SELECT invitation, held, verdict FROM web_voter WHERE held IS NOT NULL")
            )
        }
        record = self.record()
        assert not record.keys() & held.keys()
        assert record | held == self.acknowledged
        for voter, view in self.views.items():
            assert view.answered == self.answered[voter]

    @property
    def ids(self) -> dict[str, int]:
        return {invitation.id: n for n, invitation in enumerate(self.invitations)}

    def teardown(self) -> None:
        if hasattr(self, "views"):
            self.store.write(lambda tx: self.table.tell_due(tx, float("inf")))
            assert self.record() == self.acknowledged
            self.cup.verify()
        self.store.close()
        self.folder.cleanup()


def test_what_was_acknowledged_counts_once_whatever_happens() -> None:
    run_state_machine_as_test(Voting, settings=settings(max_examples=40, stateful_step_count=30, deadline=None))
