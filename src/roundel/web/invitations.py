"""Invitations: who may answer, as voters on a page or as programs; made and revoked by the owner."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from roundel._check import whole
from roundel.errors import AccessError, ConflictError, InputError
from roundel.tournament.store import Transaction
from roundel.tournament.texts import check_name

Role = Literal["voter", "judge"]

OWNER = "owner"  # the judge of what the owner leases and tells
MOST_VOTERS = 10_000  # on one link
MOST_AT_ONCE = 500  # invitations made in one go
MOST_LABELS = 60  # characters


@dataclass(frozen=True, slots=True)
class Invitation:
    """The right to answer in one tournament."""

    id: str
    tournament: int
    role: Role
    label: str
    voters: int  # how many may share the link; 1: it is personal
    most: int | None  # verdicts that each of them may give
    made: float
    revoked: float | None

    def judge(self, n: int = 1) -> str:
        """Return the name under which the verdicts of voter `n` are recorded."""
        return self.label if self.voters == 1 else f"{self.label} #{n}"


_COLUMNS = "i.id, i.tournament, i.role, i.label, i.voters, i.most, i.made, r.revoked"
_FROM = "FROM web_invitation i LEFT JOIN web_revocation r ON r.invitation = i.id"


def make(
    tx: Transaction, tournament: int, role: Role, label: str, now: float, voters: int = 1, most: int | None = None
) -> Invitation:
    """Make an invitation; its label names the judge in the record, so no two may share one."""
    name = check_name("the name on the invitation", label, AccessError)
    if len(name) > MOST_LABELS or "#" in name:
        raise AccessError(
            f"the name {name!r} is no name for an invitation: at most {MOST_LABELS} characters, without #"
        )
    if name.lower() == OWNER:
        raise AccessError(f"the name {name!r} stands for you in the record: choose another name")
    if role not in ("voter", "judge"):
        raise AccessError(f"the role is {role!r}: it must be 'voter' or 'judge'")
    try:
        count = whole("voters", voters, least=1, most=MOST_VOTERS if role == "voter" else 1)
        cap = None if most is None else whole("most", most, least=1, most=10**9)
    except InputError as error:
        raise AccessError(str(error)) from None
    if tx.one("SELECT 1 FROM web_invitation WHERE tournament = ? AND label = ?", tournament, name):
        raise ConflictError(f"there is an invitation for {name!r} already: choose another name")
    made = Invitation(secrets.token_urlsafe(16), tournament, role, name, count, cap, now, None)
    tx.run(
        "INSERT INTO web_invitation (id, tournament, role, label, voters, most, made) VALUES (?, ?, ?, ?, ?, ?, ?)",
        made.id,
        tournament,
        role,
        name,
        count,
        cap,
        now,
    )
    return made


def free_label(tx: Transaction, tournament: int, stem: str) -> str:
    """Return the first of "stem 1", "stem 2", ... that no invitation has."""
    taken = {str(row[0]) for row in tx.all("SELECT label FROM web_invitation WHERE tournament = ?", tournament)}
    return next(name for n in range(1, len(taken) + 2) if (name := f"{stem} {n}") not in taken)


def find(tx: Transaction, id: Any, tournament: int | None = None) -> Invitation | None:
    """Return an invitation that is in force; one of another tournament is as good as none."""
    if not isinstance(id, str):
        return None
    row = tx.one(f"SELECT {_COLUMNS} {_FROM} WHERE i.id = ?", id)
    if row is None or row[7] is not None or (tournament is not None and row[1] != tournament):
        return None
    return Invitation(*row)


def listed(tx: Transaction, tournament: int) -> list[tuple[Invitation, int, int]]:
    """Return all invitations of a tournament, each with how many voters joined and how often they answered."""
    return [
        (Invitation(*row[:8]), int(row[8]), int(row[9]))
        for row in tx.all(
            f"SELECT {_COLUMNS}, COUNT(v.n), COALESCE(SUM(v.answered), 0) {_FROM} "
            "LEFT JOIN web_voter v ON v.invitation = i.id WHERE i.tournament = ? "
            "GROUP BY i.id, i.tournament, i.role, i.label, i.voters, i.most, i.made, r.revoked "
            "ORDER BY i.made, i.label",
            tournament,
        )
    ]


Row = tuple[Invitation, int, int]


def with_programs(tx: Transaction, tournament: int, rows: Iterable[Row]) -> list[Row]:
    """Fill in how often programs without a cap have answered: at their pace nobody counts along the way."""
    told = {
        judge: int(count)
        for judge, count in tx.all(
            "SELECT judge, COUNT(*) FROM verdict WHERE tournament = ? AND verdict IS NOT NULL AND k IS NOT NULL "
            "GROUP BY judge",
            tournament,
        )
    }
    return [
        (who, joined, told.get(who.label, 0) if who.role == "judge" and who.most is None else answered)
        for who, joined, answered in rows
    ]


def revoke(tx: Transaction, tournament: int, id: str, now: float) -> None:
    """Take an invitation back; what was answered with it stays."""
    row = tx.one("SELECT tournament FROM web_invitation WHERE id = ?", id)
    if row is None or row[0] != tournament:
        raise AccessError("there is no such invitation: it may be one of another tournament")
    if tx.one("SELECT 1 FROM web_revocation WHERE invitation = ?", id) is None:
        tx.run("INSERT INTO web_revocation (invitation, revoked) VALUES (?, ?)", id, now)
