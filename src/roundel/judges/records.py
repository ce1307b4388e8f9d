"""What judges need to know of a round beyond a lease: duels by name, and the room that pairs have left."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from roundel.tournament import Duel, Shown, Tournament
from roundel.tournament.leases import duel_name
from roundel.tournament.rounds import current

Row = tuple[int, int, int]  # wins of the pair's first option, ties, verdicts


class Room(NamedTuple):
    """A pair of the open round, and how many verdicts it can still take."""

    p: int
    first: str
    second: str
    free: int  # what was told under the keys in question taken back


class Field(NamedTuple):
    """The open round, seen by somebody who delivers counts under some keys."""

    n: int
    pairs: list[Room]
    told: dict[str, dict[int, Row]]  # under each key that this round counts, by pair
    closed: dict[str, int]  # keys that another round has counted, and its number


def duel_from(cup: Tournament, n: int, k: int, first: int, second: int, context: int | None) -> Duel:
    """Return an offered duel, without a token."""
    spec = cup.spec
    case = None if context is None else Shown(spec.contexts[context].name, spec.contexts[context].content)
    one, other = spec.options[first], spec.options[second]
    return Duel(
        duel_name(n, k),
        "",
        spec.question,
        Shown(one.name, one.shown(context)),
        Shown(other.name, other.shown(context)),
        case,
        0.0,
    )


def offered(cup: Tournament, names: set[str] | None = None) -> dict[str, tuple[Duel, str]]:
    """Return the offered duels of all rounds, or those with certain names, each with its state."""

    def work(tx: Any) -> dict[str, tuple[Duel, str]]:
        found = {}
        for n, k, first, second, context, state, reason in tx.each(
            "SELECT r.n, d.k, d.first, d.second, d.context, d.state, r.reason FROM duel d "
            "JOIN round r ON r.id = d.round WHERE r.tournament = ?",
            cup.number,
        ):
            name = duel_name(n, k)
            if names is None or name in names:
                found[name] = (duel_from(cup, n, k, first, second, context), "closed" if reason else str(state))
        return found

    return cup.store.read(work)


def unfinished(cup: Tournament, judge: str) -> list[Duel]:
    """Return the duels of the open round that wait for a verdict and about which this judge has answers on record."""

    def work(tx: Any) -> set[str]:
        row = current(tx, cup.number)
        if row is None:
            return set()
        waiting = {
            duel_name(row.n, k) for (k,) in tx.all("SELECT k FROM duel WHERE round = ? AND state <> 'done'", row.id)
        }
        if not waiting:
            return set()
        asked = (
            json.loads(request)["duel"]
            for (request,) in tx.each(
                "SELECT i.request FROM intent i JOIN response r ON r.tournament = i.tournament AND r.key = i.key "
                "WHERE i.tournament = ? AND i.judge = ?",
                cup.number,
                judge,
            )
        )
        return waiting & set(asked)

    names = cup.store.read(work)
    return [duel for name, (duel, _) in offered(cup, names).items() if name in names] if names else []


def field_of(cup: Tournament, keys: list[str]) -> Field | None:
    """Return the open round as somebody sees it who delivers counts under `keys`; None if none is open."""

    def work(tx: Any) -> Field | None:
        row = current(tx, cup.number)
        if row is None:
            return None
        told: dict[str, dict[int, Row]] = {}
        closed: dict[str, int] = {}
        back: dict[int, int] = {}
        for key in keys:
            last = tx.one(
                "SELECT v.seq, v.round, r.n FROM verdict v JOIN round r ON r.id = v.round "
                "WHERE v.tournament = ? AND v.key = ? ORDER BY v.version DESC LIMIT 1",
                cup.number,
                key,
            )
            if last is None:
                continue
            if last[1] != row.id:
                closed[key] = int(last[2])
                continue
            rows = tx.all(
                "SELECT p, wins, ties, played FROM bulk WHERE tournament = ? AND seq = ?", cup.number, last[0]
            )
            told[key] = {int(p): (int(wins), int(ties), int(played)) for p, wins, ties, played in rows}
            for p, (_, _, played) in told[key].items():
                back[p] = back.get(p, 0) + played
        names = cup.spec.names
        pairs = [
            Room(int(p), names[first], names[second], int(free) + back.get(p, 0))
            for p, first, second, free in tx.all(
                "SELECT p, first, second, slots - made - bulk FROM pair WHERE round = ? ORDER BY p", row.id
            )
        ]
        return Field(row.n, pairs, told, closed)

    return cup.store.read(work)
