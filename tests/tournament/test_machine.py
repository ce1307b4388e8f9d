"""Any sequence of calls, good and bad: what was acknowledged stays, nothing counts twice, and verify agrees."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from campaign import acknowledged
from roundel.errors import ConflictError, InputError, LeaseError, VerdictError
from roundel.tournament import Duel, Store, Tournament, open_store

NAMES = ["a", "b", "c"]
WORDS = st.sampled_from(["first", "second", "tie"])
JUDGES = st.sampled_from(["x", "y", "z"])
numbers = count()


class Machine(RuleBasedStateMachine):
    where: str

    def __init__(self) -> None:
        super().__init__()
        self.now = 1e6
        self.stores: list[Store] = [open_store(self.where, create=True) for _ in range(2)]
        self.held: list[Duel] = []
        self.told: dict[str, tuple[Duel, str, dict[str, Any]]] = {}  # token -> delivery and its receipt
        self.counts: dict[str, dict[str, Any]] = {}

    @initialize(
        overlap=st.integers(1, 2), deadline=st.sampled_from([None, 500.0]), policy=st.sampled_from([None, "rucb"])
    )
    def start(self, overlap: int, deadline: float | None, policy: str | None) -> None:
        self.overlap = overlap
        name = f"cup {next(numbers)}"
        Tournament.create(
            self.stores[0],
            name,
            NAMES,
            horizon=40,
            rounds=3,
            overlap=overlap,
            deadline=deadline,
            policy=policy,
            contexts=["p", "q"],
            clock=lambda: self.now,
        )
        self.cups = [Tournament.open(store, name, clock=lambda: self.now) for store in self.stores]

    def cup(self, side: bool) -> Tournament:
        return self.cups[side]

    @rule(side=st.booleans(), limit=st.integers(1, 9), judge=JUDGES, ttl=st.sampled_from([1.0, 100.0, 1e6]))
    def lease(self, side: bool, limit: int, judge: str, ttl: float) -> None:
        duels = self.cup(side).lease(limit, judge, ttl)
        assert len({duel.id for duel in duels}) == len(duels) <= limit
        alive = {duel.id for duel in self.held if duel.expires > self.now and duel.token not in self.told}
        assert not alive & {duel.id for duel in duels}, "a duel was given to two judges at once"
        self.held += duels

    @precondition(lambda self: self.held)
    @rule(side=st.booleans(), at=st.integers(0, 10**6), word=WORDS)
    def tell(self, side: bool, at: int, word: str) -> None:
        duel = self.held[at % len(self.held)]
        if duel.token in self.told:
            _, before, receipt = self.told[duel.token]
            if before == word:
                assert self.cup(side).tell(duel, word).to_json() == receipt
            else:
                with pytest.raises(ConflictError):
                    self.cup(side).tell(duel, word)
            return
        receipt = self.cup(side).tell(duel, word).to_json()
        self.told[duel.token] = (duel, word, receipt)

    @precondition(lambda self: self.held)
    @rule(side=st.booleans(), at=st.integers(0, 10**6))
    def reject(self, side: bool, at: int) -> None:
        duel = self.held[at % len(self.held)]
        if duel.token not in self.told:
            receipt = self.cup(side).reject(duel, body="?").to_json()
            assert receipt["became"] == "rejected"
            self.told[duel.token] = (duel, "", receipt)

    @rule(side=st.booleans(), token=st.text(max_size=30), word=WORDS)
    def forge(self, side: bool, token: str, word: str) -> None:
        head = self.cup(side).status.head
        with pytest.raises(LeaseError):
            self.cup(side).tell({"duel": "1.0", "token": token}, word)
        assert self.cup(side).status.head == head

    @rule(side=st.booleans(), key=st.sampled_from(["log 1", "log 2"]), wins=st.integers(0, 3), losses=st.integers(0, 3))
    def tell_counts(self, side: bool, key: str, wins: int, losses: int) -> None:
        try:
            receipt = self.cup(side).tell_counts([("a", "b", wins, losses)], key=key)
        except VerdictError:
            return  # no room, overlap, or the tournament has finished
        self.counts[f"{key} {receipt.seq}"] = receipt.to_json()

    @precondition(lambda self: any(r["became"] == "late" for _, _, r in self.told.values()))
    @rule(side=st.booleans(), at=st.integers(0, 10**6))
    def carry(self, side: bool, at: int) -> None:
        late = [r for _, _, r in self.told.values() if r["became"] == "late"]
        try:
            receipt = self.cup(side).carry(late[at % len(late)]["key"])
        except VerdictError:
            return  # no free duel of this pair
        assert receipt == self.cup(not side).carry(late[at % len(late)]["key"])

    @rule(seconds=st.sampled_from([-1e5, -10.0, 1.0, 150.0, 1e5]))
    def turn_clock(self, seconds: float) -> None:
        self.now += seconds

    @rule(side=st.booleans(), end=st.sampled_from([False, False, False, True]))
    def close(self, side: bool, end: bool) -> None:
        with suppress(InputError):  # nothing to close
            self.cup(side).close(end=end)

    @rule(side=st.booleans())
    def reopen(self, side: bool) -> None:
        name = self.cups[side].name
        self.stores[side].close()
        self.stores[side] = open_store(self.where)
        self.cups[side] = Tournament.open(self.stores[side], name, clock=lambda: self.now)

    @invariant()
    def both_sides_agree(self) -> None:
        if hasattr(self, "cups"):
            one, other = (cup.status for cup in self.cups)
            assert one == other

    @invariant()
    def each_duel_counts_once(self) -> None:
        counted = [r["duel"] for _, _, r in self.told.values() if r["became"] == "counted"]
        assert len(counted) == len(set(counted))

    def teardown(self) -> None:
        if hasattr(self, "cups"):
            self.cups[0].verify()
            acknowledged(self.cups[1], [receipt for _, _, receipt in self.told.values()])
        for store in self.stores:
            store.close()


def test_any_sequence_of_calls(where: str) -> None:
    machine = type("Here", (Machine,), {"where": where})
    few = settings(max_examples=30 if "://" not in where else 12, stateful_step_count=30)
    run_state_machine_as_test(machine, settings=few)


def test_the_machine_sees_a_duel_given_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: leases that never hold must be found."""
    from roundel.tournament import leases

    waiting = leases._waiting
    monkeypatch.setattr(
        leases, "_waiting", lambda tx, spec, row, limit, copies, now: waiting(tx, spec, row, limit, copies, now + 1e9)
    )
    machine = type("Here", (Machine,), {"where": str(tmp_path / "store.db")})
    few = settings(max_examples=30, stateful_step_count=30, phases=[Phase.generate], print_blob=False)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=few)
