"""The campaign itself, on both databases: leases, verdicts, rounds, outcomes."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from campaign import NAMES, SETTINGS, play, story, verdict
from roundel.errors import ConflictError, InputError, LeaseError, RoundelError, SpecError, StoreError, VerdictError
from roundel.tournament import Tournament, open_store, rounds
from roundel.tournament.verify import verify_store


def make(where: str, clock: Any, **changes: Any) -> Tournament:
    return Tournament.create(where, "cup", NAMES, clock=clock, **{**SETTINGS, **changes})


def test_a_campaign_runs_to_its_winner_and_verifies(where: str, clock: Any) -> None:
    with make(where, clock) as cup:
        assert cup.outcome.word == "open"
        judged = play(cup)
        outcome = cup.outcome
        assert outcome.word == "winner"
        assert (outcome.winner, outcome.leader) == ("a", "a")
        assert "every other option was eliminated" in outcome.why
        status = cup.status
        assert not status.is_open
        assert status.spent == judged == status.verdicts["counted"] == sum(status.judges.values())
        assert {s.name: s.by for s in status.standings}["a"] is None
        assert all(s.out is not None and s.by is not None for s in status.standings if s.name != "a")
        assert sum(s.wins for s in status.standings) == sum(s.losses for s in status.standings)
        assert cup.verify(expect=status.head).head == status.head
        assert cup.lease() == []


def test_another_process_sees_the_same(where: str, clock: Any) -> None:
    with make(where, clock) as one, Tournament.open(where, "cup", clock=clock) as other:
        assert Tournament.names(where) == ["cup"]
        for turn in range(10_000):
            cup = (one, other)[turn % 2]
            if not play(cup, limit=7, most=7):
                break
        assert story(one) == story(other)
        assert one.outcome.word == "winner"


def test_the_order_of_arrival_decides_nothing(where: str, clock: Any, tmp_path: Path) -> None:
    with make(where, clock) as cup:
        while duels := cup.lease(1000, "me"):
            for duel in reversed(duels):
                cup.tell(duel, verdict(duel))
        shuffled = story(cup)
    with make(str(tmp_path / "other.db"), clock) as cup:
        play(cup, limit=1)
        assert story(cup) == shuffled


def test_no_duel_is_held_twice_and_pairs_stay_level(where: str, clock: Any) -> None:
    with make(where, clock) as cup:
        total = cup.status.asked
        seen: list[str] = []
        count: Counter[frozenset[str]] = Counter()
        while duels := cup.lease(3, "me"):
            for duel in duels:
                seen.append(duel.id)
                count[frozenset((duel.first.name, duel.second.name))] += 1
            assert max(count.values()) - min(count.get(p, 0) for p in count) <= 1
        assert len(seen) == len(set(seen)) == total
        assert len({duel.token for duel in duels} | {""}) == 1
        assert cup.status.leased == total


def test_sides_and_contexts_are_level_within_each_pair_and_round(where: str, clock: Any) -> None:
    with make(where, clock) as cup:
        contexts: dict[frozenset[str], list[str]] = {}
        while duels := cup.lease(1000, "me"):
            sides: dict[frozenset[str], Counter[str]] = {}
            for duel in sorted(duels, key=lambda d: int(d.id.split(".")[1])):
                pair = frozenset((duel.first.name, duel.second.name))
                sides.setdefault(pair, Counter())[duel.first.name] += 1
                assert duel.context is not None
                contexts.setdefault(pair, []).append(duel.context.name)
                cup.tell(duel, verdict(duel))
            for pair, first in sides.items():
                shown = [first[name] for name in pair]
                assert abs(shown[0] - shown[1]) <= 1
        assert len(contexts) == 10
        for drawn in contexts.values():
            for start in range(0, len(drawn) - 2, 3):  # each context once before one comes twice, across rounds
                assert sorted(drawn[start : start + 3]) == ["1", "2", "3"]
        assert len({tuple(drawn[:3]) for drawn in contexts.values()}) > 1


def test_an_expired_lease_is_offered_again_and_the_first_verdict_counts(where: str, clock: Any) -> None:
    with make(where, clock) as cup:
        (slow,) = cup.lease(1, "slow", ttl=60)
        clock.ahead(59)
        assert slow.id not in {duel.id for duel in cup.lease(3, "x", ttl=10**6)}
        clock.ahead(2)
        (again,) = cup.lease(1, "quick")
        assert again.id == slow.id
        assert again.token != slow.token
        assert (again.first, again.second, again.context) == (slow.first, slow.second, slow.context)
        assert cup.tell(slow, "first").became == "counted"
        assert cup.tell(again, "second").became == "surplus"
        assert cup.status.verdicts == {"counted": 1, "late": 0, "surplus": 1, "rejected": 0}
        cup.verify()


def test_clock_jumps_change_no_decision(where: str, clock: Any, tmp_path: Path) -> None:
    with make(where, clock) as cup:
        while duels := cup.lease(9, "me", ttl=30):
            clock.ahead(-10_000 if len(duels) % 2 else 20_000)
            for duel in duels:
                cup.tell(duel, verdict(duel))
        cup.verify()
        jumpy = story(cup)
    with make(str(tmp_path / "calm.db"), clock) as cup:
        play(cup)
        assert story(cup) == jumpy


def test_a_clock_of_whole_seconds_verifies(where: str) -> None:
    with make(where, lambda: 1_000_000, deadline=100) as cup:
        play(cup, most=5)
        cup.intend("call", "request")
        cup.respond("call", "response")
        cup.close()
        cup.verify()


def test_the_same_delivery_gets_the_same_receipt_and_another_is_refused(where: str, clock: Any) -> None:
    with make(where, clock) as cup:
        (duel,) = cup.lease(1, "me")
        first = cup.tell(duel, "first", cost=0.25, note="clear")
        clock.ahead(5)
        assert [cup.tell(duel, "first", cost=0.25, note="clear") for _ in range(3)] == [first] * 3
        for other in ({"verdict": "second"}, {"verdict": "first", "cost": 0.5}, {"verdict": "first", "judge": "you"}):
            with pytest.raises(ConflictError, match="delivered before with another"):
                cup.tell(duel, **{"cost": 0.25, "note": "clear", **other})
        status = cup.status
        assert status.verdicts["counted"] == 1
        assert status.cost == 0.25
        cup.verify()


def test_forged_and_foreign_tokens_are_refused_alike(where: str, clock: Any) -> None:
    with make(where, clock) as cup:
        other = Tournament.create(cup.store, "other", NAMES, clock=clock, **SETTINGS)
        (mine,), (foreign,) = cup.lease(1, "me"), other.lease(1, "me")
        texts = set()
        for token in ("forged", foreign.token, "", "x" * 200, "\x00", "é"):
            with pytest.raises(LeaseError, match="nobody was given") as caught:
                cup.tell({"duel": mine.id, "token": token}, "first")
            texts.add(str(caught.value))
        assert len(texts) == 1
        for bad in ({"duel": "9.9", "token": mine.token}, {"token": "no"}, {"duel": "1.0"}, {}, "1.0", {"token": 5}):
            with pytest.raises((LeaseError, VerdictError)):
                cup.tell(bad, "first")
        with pytest.raises(LeaseError):
            cup.tell({"duel": "1.0", "token": "\ud800"}, "first")
        assert cup.status.verdicts["counted"] == 0
        assert cup.tell({"token": mine.token}, "tie").became == "counted"


def test_a_line_of_json_goes_out_and_comes_back(where: str, clock: Any) -> None:
    with make(where, clock) as cup:
        (duel,) = cup.lease(1)
        line = json.dumps(duel.to_json())
        assert set(json.loads(line)) == {"duel", "token", "question", "first", "second", "context", "expires"}
        answer = json.dumps({**json.loads(line), "verdict": "second", "judge": "model", "cost": 1e-4, "note": "no"})
        receipt = cup.tell(answer)
        assert receipt.became == "counted"
        assert cup.tell(answer) == receipt
        assert cup.status.judges == {"model": 1}


def test_a_rejected_answer_is_kept_and_the_duel_is_offered_again(where: str, clock: Any) -> None:
    with make(where, clock) as cup:
        (duel,) = cup.lease(1, "model")
        assert cup.reject(duel, body="I cannot say", cost=0.5).became == "rejected"
        (again,) = cup.lease(1, "other")
        assert again.id == duel.id
        with pytest.raises(ConflictError):
            cup.tell(duel, "first")
        assert cup.tell(again, "first").became == "counted"
        assert cup.status.cost == 0.5
        cup.verify()


def test_late_verdicts_are_kept_change_nothing_and_can_be_carried(where: str, clock: Any) -> None:
    with make(where, clock) as cup:
        held = cup.lease(4, "slow")
        play(cup, most=30)
        assert cup.close() == 1
        closed = story(cup)[0]
        receipts = [cup.tell(duel, "first", cost=1.0) for duel in held]
        assert [r.became for r in receipts] == ["late"] * 4
        assert story(cup)[0] == closed
        before = cup.status
        carried = cup.carry(receipts[0].key)
        assert carried.became == "counted"
        assert carried.duel is not None
        assert carried.duel.startswith("2.")
        assert cup.carry(receipts[0].key) == carried
        after = cup.status
        assert after.done == before.done + 1
        assert after.cost == before.cost == 4.0
        winner = next(s for s in after.standings if s.name == held[0].first.name)
        assert winner.wins == next(s for s in before.standings if s.name == winner.name).wins + 1
        with pytest.raises(VerdictError, match="only late ones"):
            cup.carry(carried.key)
        with pytest.raises(VerdictError, match="never delivered"):
            cup.carry("nothing")
        cup.verify()
        play(cup)
        cup.verify()


def test_a_deadline_closes_a_round_with_what_it_has(where: str, clock: Any) -> None:
    with make(where, clock, deadline=100.0) as cup:
        clock.ahead(1000)
        assert cup.advance() == 1, "an empty round is not closed"
        play(cup, most=5)
        assert cup.advance() == 2
        row = story(cup)[0]
        assert row[2] == "deadline"
        assert sum(row[3][2]) == 1, "the deadline of round 1 had passed: its first verdict closed it"
        clock.ahead(50)
        held = cup.lease(1, "slow")
        play(cup, most=3)
        clock.ahead(60)
        assert cup.tell(held[0], "first").became == "late", "past the deadline it comes too late"
        cup.verify()


def test_closing_by_hand_and_ending(where: str, clock: Any) -> None:
    with make(where, clock) as cup:
        with pytest.raises(InputError, match="no verdict yet"):
            cup.close()
        assert cup.close(empty=True) == 1
        play(cup, most=20)
        assert cup.close() == 2
        play(cup, most=10)
        assert cup.close(end=True) == 3
        outcome = cup.outcome
        assert outcome.word == "undecided"
        assert "ended by hand" in outcome.why
        assert outcome.winner is None
        assert outcome.leader in NAMES
        with pytest.raises(InputError, match="has finished"):
            cup.close()
        assert cup.lease() == []
        cup.verify()


def test_counts_of_pairs_replace_earlier_ones_and_fit_the_plan(where: str, clock: Any) -> None:
    with make(where, clock, rounds=2, horizon=900) as cup:
        times = cup.status.asked // 10
        rows = [("b", "a", 3, 10, 1), ("c", "a", 2, 9, 0)]
        first = cup.tell_counts(rows, key="log/0/2026-01")
        assert first.became == "counted"
        assert cup.tell_counts(list(reversed(rows)), key="log/0/2026-01") == first
        assert cup.status.done == 25
        again = cup.tell_counts([("b", "a", 4, 11, 1)], key="log/0/2026-01")
        assert again.seq == first.seq + 1
        assert cup.status.done == 16
        a, b = (next(s for s in cup.status.standings if s.name == n) for n in "ab")
        assert (a.wins, a.losses, a.ties) == (11, 4, 1)
        assert (b.wins, b.losses, b.ties) == (4, 11, 1)
        with pytest.raises(VerdictError, match="has room for"):
            cup.tell_counts([("a", "b", times, 0)], key="another")
        assert cup.status.done == 16
        assert cup.tell_counts([("a", "b", times - 16, 0)], key="another").became == "counted"
        pairs = {frozenset((d.first.name, d.second.name)) for d in cup.lease(9 * times, "me")}
        assert frozenset("ab") not in pairs, "that pair is full"
        for bad in (
            [("a", "a", 1, 0)],
            [("a", "z", 1, 0)],
            [("a", "c", -1, 0)],
            [("a", "c", True, 0)],
            [("a", "c", float("nan"), 0)],
            [("a", "c", 0.5, 0)],
            [("a", "c", 10**30, 0)],
            [("a", "c", 1)],
            [("a", "c", 1, 0), ("c", "a", 1, 0)],
            [],
            [5],
        ):
            with pytest.raises((VerdictError, SpecError)):
                cup.tell_counts(bad, key="bad")
        with pytest.raises(VerdictError, match="the counts are 5"):
            cup.tell_counts(5, key="bad")  # type: ignore[arg-type]
        cup.verify()


def test_counts_of_every_pair_close_the_round(where: str, clock: Any) -> None:
    with make(where, clock, policy="pcomp", rounds=2, horizon=900) as cup:
        times = cup.status.asked // 10
        rows = [(x, y, times, 0) for i, x in enumerate(NAMES) for y in NAMES[i + 1 :]]
        cup.tell_counts(rows, key="log")
        assert cup.outcome.word == "winner" or cup.status.round == 2
        assert cup.tell_counts([("a", "b", 1, times - 1)], key="log").became == "late"
        cup.verify()


def test_overlap_asks_different_judges_and_takes_the_majority(where: str, clock: Any) -> None:
    with make(where, clock, overlap=3, rounds=2, horizon=60) as cup:
        asked = cup.status.asked
        with pytest.raises(LeaseError, match="different judges"):
            cup.lease(1)
        with pytest.raises(VerdictError, match="counts do not say"):
            cup.tell_counts([("a", "b", 1, 0)], key="x")
        by: dict[str, list[Any]] = {judge: cup.lease(10_000, judge) for judge in ("x", "y", "z")}
        assert {judge: len(duels) for judge, duels in by.items()} == dict.fromkeys(by, asked // 3)
        assert cup.lease(5, "w") == []
        plan_pairs = cup.store.read(
            lambda tx: tx.all("SELECT p, base FROM pair JOIN round ON id = pair.round ORDER BY p")
        )
        for duels in by.values():  # nobody got two copies of one duel
            repeats = set()
            for duel in duels:
                k = int(duel.id.split(".")[1])
                p, base = next(r for r in reversed(plan_pairs) if r[1] <= k)
                repeats.add((p, (k - base) // 3))
            assert len(repeats) == len(duels)
        for judge, duels in by.items():  # x and y say the earlier name, z the later one: two against one
            for duel in duels:
                early = "first" if duel.first.name < duel.second.name else "second"
                late = "second" if early == "first" else "first"
                cup.tell(duel, late if judge == "z" else early)
        row = story(cup)[0]
        assert row[2] == "complete"
        assert row[3][0] == row[3][2], "every duel went to the earlier name"
        cup.verify()


def test_a_judge_alone_sets_aside_no_more_copies_than_it_takes(where: str, clock: Any) -> None:
    """A lease then costs what it hands out, however many duels of the round are for others."""
    with Tournament.create(where, "cup", NAMES[:2], horizon=4000, rounds=1, overlap=2, clock=clock) as cup:
        rows = 0
        for _ in range(30):
            assert len(cup.lease(1, "x")) == 1
            rows = int((cup.store.read(lambda tx: tx.one("SELECT COUNT(*) FROM duel")) or (0,))[0])
        assert rows <= 60
        assert len(cup.lease(10_000, "x")) == 4000 - 30
        assert cup.lease(1, "x") == []
        assert len(cup.lease(10_000, "y")) == 4000
        cup.verify()


def test_a_carried_verdict_is_one_of_a_different_judge(where: str, clock: Any) -> None:
    with Tournament.create(where, "cup", NAMES[:2], horizon=16, rounds=2, overlap=2, clock=clock) as cup:
        slow = cup.lease(2, "x")
        for duel in cup.lease(1, "y"):
            cup.tell(duel, "tie")
        cup.close()
        late = [cup.tell(duel, "first") for duel in slow]
        base, times = (
            cup.store.read(lambda tx: tx.one("SELECT base, times FROM pair ORDER BY round DESC LIMIT 1")) or ()
        )
        assert cup.carry(late[0].key).duel == f"2.{base}"
        assert len(cup.lease(times - 1, "x")) == times - 1
        with pytest.raises(VerdictError, match="another copy"):
            cup.carry(late[1].key)
        assert cup.lease(10_000, "x") == [], "the copies that are left are of duels that x has judged"
        play(cup, judge="y")
        play(cup, judge="z")
        cup.verify()


def test_overlap_closed_early_judges_by_what_is_in(where: str, clock: Any) -> None:
    with make(where, clock, overlap=2, rounds=2, horizon=60) as cup:
        for judge, word in (("x", "first"), ("y", "tie")):
            for duel in cup.lease(3 if judge == "x" else 10_000, judge)[: 3 if judge == "x" else 4]:
                cup.tell(duel, word)
        cup.close()
        assert sum(story(cup)[0][3][2]) <= 7
        cup.verify()


@pytest.mark.parametrize("policy", ["rucb", "pcomp", "c2b:fallback=true", "bcope", "scomp"])
def test_any_policy_runs(where: str, clock: Any, policy: str) -> None:
    with make(where, clock, policy=policy, horizon=200, rounds=4) as cup:
        judged = play(cup)
        assert 0 < judged <= 200
        outcome = cup.outcome
        assert outcome.word in ("winner", "undecided")
        cup.verify()
        cup.certificate()


def test_a_ring_ends_without_a_condorcet_winner(where: str, clock: Any) -> None:
    beats = {("a", "b"), ("b", "c"), ("c", "a")}
    with Tournament.create(where, "ring", ["a", "b", "c"], horizon=2000, rounds=5, clock=clock) as cup:
        while duels := cup.lease(1000, "me"):
            for duel in duels:
                cup.tell(duel, "first" if (duel.first.name, duel.second.name) in beats else "second")
        outcome = cup.outcome
        assert outcome.word == "no Condorcet winner"
        assert outcome.winner is None
        assert len(outcome.cycle) == 3
        ring = [*outcome.cycle, outcome.cycle[0]]
        assert all(pair in beats for pair in itertools.pairwise(ring))
        assert set(outcome.copeland) == {"a", "b", "c"}
        assert outcome.borda in "abc"
        cup.verify()


def test_nothing_is_paid_for_twice(where: str, clock: Any) -> None:
    with make(where, clock) as cup:
        intent = cup.intend("call-1", '{"prompt": 1}', judge="model")
        assert intent.fresh
        assert intent.response is None
        assert not cup.intend("call-1", '{"prompt": 1}', judge="model").fresh
        with pytest.raises(ConflictError):
            cup.intend("call-1", '{"prompt": 2}', judge="model")
        with pytest.raises(InputError, match="never intended"):
            cup.respond("call-2", "x")
        assert cup.respond("call-1", "first", cost=0.75).fresh
        assert cup.intend("call-1", '{"prompt": 1}', judge="model").response == "first"
        assert not cup.respond("call-1", "first", cost=0.75).fresh
        with pytest.raises(ConflictError):
            cup.respond("call-1", "second", cost=0.75)
        assert cup.status.cost == 0.75
        (duel,) = cup.lease(1, "model")
        cup.tell(duel, "first", key="call-1", cost=0.75)
        assert cup.status.cost == 0.75, "one call, one price"
        cup.verify()


def test_a_delivery_without_a_lease_needs_a_key(where: str, clock: Any) -> None:
    with make(where, clock) as cup:
        (duel,) = cup.lease(1, "me")
        with pytest.raises(VerdictError, match="needs a key"):
            cup.tell(duel.id, "first")
        with pytest.raises(LeaseError, match="never offered"):
            cup.tell("1.999", "first", key="k")
        for huge in (f"1.{10**19}", f"{10**19}.1", f"1.{'9' * 5000}"):
            with pytest.raises(LeaseError, match="is no duel"):
                cup.tell(huge, "first", key="k")
        assert cup.tell(duel.id, "first", key="k").became == "counted"
        assert cup.tell(duel, "first").became == "surplus"
        cup.verify()


def test_bad_input_changes_nothing(where: str, clock: Any) -> None:
    with make(where, clock) as cup:
        (duel,) = cup.lease(1, "me")
        head = cup.status.head
        for bad in (None, "", "First", "1", 1, True, "first ", ["first"], float("nan")):
            with pytest.raises(VerdictError):
                cup.tell(duel, bad)  # type: ignore[arg-type]
        for field, values in {
            "cost": (float("nan"), float("inf"), -1, True, "1", 1e300),
            "judge": ("", " ", "\x00", "a\nb", "x" * 201, "\ud800", 5, "\u202eabc"),
            "note": ("\x00", "\ud800", 7),
            "key": ("", "\x00", "\ud800", "x" * 501, "lease:1", "carry:1", 5),
            "body": ("\x00", "\udfff", b"x"),
        }.items():
            for value in values:
                with pytest.raises(VerdictError):
                    cup.tell(duel, "first", **{field: value})
        for limit in (0, -1, 1.5, True, 10**9, "3", None):
            with pytest.raises(InputError):
                cup.lease(limit)  # type: ignore[arg-type]
        for ttl in (0, -1, float("nan"), float("inf"), True, "9", 1e12):
            with pytest.raises(LeaseError):
                cup.lease(1, ttl=ttl)  # type: ignore[arg-type]
        assert cup.status.head == head
        right_to_left = cup.tell(duel, "first", judge="שופט", note="ملاحظة")
        assert right_to_left.became == "counted"
        assert cup.status.judges == {"שופט": 1}


def test_a_cost_of_minus_zero_is_zero(where: str, clock: Any) -> None:
    with make(where, clock) as cup:
        (duel,) = cup.lease(1, "me")
        receipt = cup.tell({**duel.to_json(), "verdict": "tie", "cost": -0.0})
        assert cup.tell(duel, "tie", cost=0) == receipt
        cup.tell_counts([("a", "b", 1, 0)], key="log", cost=-0.0)
        cup.intend("call", "request")
        cup.respond("call", "response", cost=-0.0)
        cup.verify()


def test_names_are_taken_once_and_unknown_ones_are_named(where: str, clock: Any) -> None:
    with make(where, clock) as cup:
        with pytest.raises(ConflictError, match="has a tournament 'cup' already"):
            Tournament.create(cup.store, "cup", NAMES)
        with pytest.raises(InputError, match="no tournament 'mug': it holds cup"):
            Tournament.open(cup.store, "mug")
        assert Tournament.open(cup.store).name == "cup"
        Tournament.create(cup.store, "second", NAMES)
        with pytest.raises(InputError, match="holds 2 tournaments"):
            Tournament.open(cup.store)


def test_a_name_is_one_name_however_its_accents_are_written(where: str) -> None:
    composed, apart = "caf\u00e9", "cafe\u0301"
    with Tournament.create(where, apart, [apart, "tea"], horizon=20) as cup:
        assert (cup.name, cup.spec.names) == (composed, (composed, "tea"))
        assert Tournament.open(cup.store, apart).number == cup.number
        for name in (composed, apart):
            assert cup.tell_counts([(name, "tea", 1, 0)], key=f"log {name}").became == "counted"
            assert verify_store(cup.store, name).holds


def test_a_store_that_is_not_there_is_not_made_by_opening(tmp_path: Path, server: Any) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        Tournament.open(tmp_path / "none.db", "cup")
    assert not list(tmp_path.iterdir())
    with pytest.raises(StoreError, match="there is no store"):
        Tournament.open(server.fresh(), "cup")
    with pytest.raises(StoreError, match="is no store"):
        open_store("mysql://x/y")


def test_a_closed_store_says_so(where: str, clock: Any) -> None:
    cup = make(where, clock)
    cup.disconnect()
    with pytest.raises(StoreError, match="closed"):
        cup.lease()


def test_a_turn_costs_the_same_after_many_verdicts(tmp_path: Path, clock: Any) -> None:
    """Counted in steps of SQLite's machine, of which a scan of 2,000 verdicts would take thousands more."""
    cup = Tournament.create(tmp_path / "s.db", "cup", NAMES, policy="pcomp", horizon=9000, rounds=1, clock=clock)
    steps = [0]

    def count() -> int:
        steps[0] += 1
        return 0

    def turns() -> int:
        steps[0] = 0
        cup.store._connection.set_progress_handler(count, 10)  # type: ignore[attr-defined]
        for n in range(20):
            (duel,) = cup.lease(1, "me")
            receipt = cup.tell(duel, verdict(duel))
            assert cup.tell(duel, verdict(duel)) == receipt
            cup.tell_counts([("a", "b", n, 1)], key="log")
            cup.intend(f"{receipt.key[6:]}", "request")
        cup.store._connection.set_progress_handler(None, 0)  # type: ignore[attr-defined]
        return steps[0]

    turns()
    early = turns()
    play(cup, limit=500, most=2000)
    late = turns()
    assert 0 < late < 2 * early
    cup.disconnect()


def test_a_policy_that_fails_loses_no_verdict(where: str, clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with make(where, clock) as cup:
        duels = cup.lease(10_000, "me")

        def broken(*_: Any) -> None:
            raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr(rounds, "start", broken)
            receipts = [cup.tell(duel, verdict(duel)) for duel in duels]
            assert {r.became for r in receipts} == {"counted"}
            assert cup.status.done == len(duels)
            with pytest.raises(ZeroDivisionError):
                cup.lease()
        assert cup.lease(), "the next lease plans the next round"
        cup.verify()


def test_a_changed_plan_is_found_before_it_is_played(where: str, clock: Any) -> None:
    with make(where, clock) as cup:
        for duel in cup.lease(10_000, "me"):
            cup.tell(duel, verdict(duel))
        forged = Tournament(cup.store, cup.number, Tournament.open(cup.store).spec, clock)
        forged.spec = type(forged.spec).from_json({**forged.spec.to_json(), "policy": "pcomp", "parameters": {}})
        for duel in forged.lease(10_000, "me"):
            cup.tell(duel, verdict(duel))
        with pytest.raises(RoundelError, match=r"replay|plans after"):
            forged.close(empty=True)
