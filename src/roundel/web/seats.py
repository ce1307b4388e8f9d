"""What a voter does at the page: look at a pair, answer, change their mind, leave.

An answer is on disk before it is acknowledged, and nothing in the record of a tournament is ever taken back. So the
last answer of each voter is *held*: stored, but told to the tournament only when the voter answers the next pair, or
after a minute, or at once where no next pair is there (then others may be waiting for the round to close). Until
then it can be undone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from roundel.errors import AccessError, VerdictError
from roundel.tournament import Receipt, Tournament, rounds
from roundel.tournament.deliveries import VERDICTS
from roundel.tournament.leases import parse_duel_name
from roundel.tournament.store import Transaction
from roundel.web.invitations import Invitation

HOLD = 60.0  # seconds that an answer can be undone
LEASE = 300.0  # seconds until a pair that is not answered is offered to others
MARGIN = 2.0  # an answer is told this long before its lease expires or its round closes
MOST_TOKENS = 100_000

Stage = Literal["pair", "waiting", "enough", "finished"]
Notice = Literal["answered already", "too late", "nothing to undo", "undone"]


@dataclass(slots=True)
class Seat:
    """A voter's place: the pair in front of them, the one before it, and the one to come back to after an undo."""

    invitation: Invitation
    n: int
    answered: int
    duel: str | None
    ahead: str | None
    held: str | None
    verdict: str | None
    due: float | None

    @property
    def judge(self) -> str:
        """The name in the record."""
        return self.invitation.judge(self.n)

    @property
    def has_enough(self) -> bool:
        """Whether the voter has answered as often as the invitation allows."""
        return self.invitation.most is not None and self.answered >= self.invitation.most


@dataclass(frozen=True, slots=True)
class Pair:
    """A duel as the page shows it: two arms and perhaps a context, and whether an answer can still count."""

    duel: str
    first: int
    second: int
    context: int | None
    expires: float
    deadline: float | None
    over: bool


@dataclass(frozen=True, slots=True)
class View:
    """What a voter sees now."""

    stage: Stage
    pair: Pair | None
    answered: int
    can_undo: bool
    notice: Notice | None = None


_SEATED = "i.id, i.tournament, i.role, i.label, i.voters, i.most, i.made"
_COLUMNS = "n, answered, duel, ahead, held, verdict, due"


def join(tx: Transaction, invitation: Invitation, now: float) -> int:
    """Seat a voter and return their number; a personal invitation has one seat, however often it is opened."""
    if invitation.role != "voter":
        raise AccessError("this token is for programs: open the page with a voter's invitation")
    row = tx.one("SELECT COALESCE(MAX(n), 0) FROM web_voter WHERE invitation = ?", invitation.id)
    joined = int(row[0]) if row else 0
    if invitation.voters == 1 and joined:
        return 1
    if joined >= invitation.voters:
        raise AccessError(f"all {invitation.voters} places on this invitation are taken: ask for one of your own")
    tx.run("INSERT INTO web_voter (invitation, n, joined) VALUES (?, ?, ?)", invitation.id, joined + 1, now)
    return joined + 1


def load(tx: Transaction, invitation: Invitation, n: int) -> Seat | None:
    """Return a voter's seat."""
    row = tx.one(f"SELECT {_COLUMNS} FROM web_voter WHERE invitation = ? AND n = ?", invitation.id, n)
    return None if row is None else Seat(invitation, *row)


def occupied(tx: Transaction, id: str, n: int, tournament: int) -> Seat | None:
    """Return a voter's seat together with the invitation, if that is in force and for this tournament."""
    row = tx.one(
        f"SELECT {_SEATED}, r.revoked, {_COLUMNS} FROM web_voter v JOIN web_invitation i ON i.id = v.invitation "
        "LEFT JOIN web_revocation r ON r.invitation = i.id WHERE v.invitation = ? AND v.n = ?",
        id,
        n,
    )
    if row is None or row[7] is not None or row[1] != tournament:
        return None
    return Seat(Invitation(*row[:8]), *row[8:])


def look(tx: Transaction, cup: Tournament, duel: str) -> Pair | None:
    """Return a duel as it stands."""
    n, k = parse_duel_name(duel)
    row = tx.one(
        "SELECT d.first, d.second, d.context, d.expires, r.deadline, d.state, r.reason FROM duel d "
        "JOIN round r ON r.id = d.round WHERE r.tournament = ? AND r.n = ? AND d.k = ?",
        cup.number,
        n,
        k,
    )
    if row is None:
        return None
    first, second, context, expires, deadline, state, reason = row
    return Pair(duel, first, second, context, expires, deadline, state == "done" or reason is not None)


class Table:
    """The seats of one tournament, and what happens at them; all of it inside the writer's transaction."""

    def __init__(self, cup: Tournament, clock: Callable[[], float]) -> None:
        """Serve `cup`."""
        self.cup = cup
        self._clock = clock
        self._tokens: OrderedDict[str, str] = OrderedDict()  # to give pairs back early; forgotten by a restart

    def view(self, tx: Transaction, seat: Seat, notice: Notice | None = None) -> View:
        """Return what the voter sees; changes nothing."""
        pair = None if seat.duel is None else look(tx, self.cup, seat.duel)
        stage: Stage = "pair"
        if pair is None or pair.over:
            still = rounds.current(tx, self.cup.number) is not None
            if pair is None:
                stage = "enough" if seat.has_enough else "waiting" if still else "finished"
            elif not still:
                stage, pair = "finished", None
        return View(stage, pair, seat.answered, seat.held is not None and stage == "pair", notice)

    def sit(self, tx: Transaction, seat: Seat, notice: Notice | None = None) -> View:
        """Put a pair in front of the voter, unless there is one that still counts."""
        pair = None if seat.duel is None else look(tx, self.cup, seat.duel)
        if pair is None or pair.over:
            self._deal(seat, tx)
            self._save(tx, seat)
        return self.view(tx, seat, notice)

    def answer(self, tx: Transaction, seat: Seat, duel: str, verdict: str) -> View:
        """Take the answer about the pair in front of the voter, and put the next one there."""
        if verdict not in VERDICTS:
            raise VerdictError(
                f"the verdict is {verdict!r}: it must be 'first', 'second' or 'tie'; nothing was counted"
            )
        if duel == seat.held and verdict == seat.verdict:  # the same once more: the reply to it was lost
            return self.view(tx, seat)
        if duel != seat.duel:  # another tab, or the way back after Finish: the next one is what there is to see
            return self.sit(tx, seat, "answered already")
        pair = look(tx, self.cup, duel)
        if pair is None:
            return self.view(tx, seat, "answered already")
        now = self._clock()
        self._tell_held(seat)
        self._tokens.pop(duel, None)
        late = False
        due = min(now + HOLD, pair.expires - MARGIN, (pair.deadline or pair.expires) - MARGIN)
        if pair.over or due <= now:
            late = self._tell(seat, duel, verdict).became != "counted"
        else:
            seat.held, seat.verdict, seat.due = duel, verdict, due
        seat.answered += 1
        self._deal(seat, tx)
        if seat.duel is None and seat.held is not None:
            self._tell_held(seat)
            self._deal(seat, tx)  # with it the round may have closed, and the next one begun
        self._save(tx, seat)
        return self.view(tx, seat, "too late" if late else None)

    def undo(self, tx: Transaction, seat: Seat) -> View:
        """Take the held answer back and show its pair again."""
        if seat.held is None:
            return self.view(tx, seat, "nothing to undo")
        seat.ahead, seat.duel = seat.duel, seat.held
        seat.held = seat.verdict = seat.due = None
        seat.answered -= 1
        self._save(tx, seat)
        return self.view(tx, seat, "undone")

    def leave(self, tx: Transaction, seat: Seat) -> None:
        """Tell what is held, and give the pairs back so that others need not wait for them."""
        self._tell_held(seat)
        for duel in (seat.duel, seat.ahead):
            token = self._tokens.pop(duel or "", None)
            if duel is not None and token is not None:
                self.cup.reject({"duel": duel, "token": token}, note="the voter left")
        seat.duel = seat.ahead = None
        self._save(tx, seat)

    def tell_due(self, tx: Transaction, now: float) -> int:
        """Tell the tournament what was held long enough; return how many answers that were."""
        rows = tx.all(
            "SELECT v.invitation, v.n, v.held FROM web_voter v JOIN web_invitation i ON i.id = v.invitation "
            "WHERE v.held IS NOT NULL AND v.due <= ? AND i.tournament = ? ORDER BY v.due LIMIT 1000",
            now,
            self.cup.number,
        )
        told = 0
        for id, n, held in rows:
            seat = _any_seat(tx, id, n)
            if seat is not None and seat.held == held:
                self._tell_held(seat)
                self._save(tx, seat)
                told += 1
        return told

    # the parts ----------------------------------------------------------------------------------------------

    def _deal(self, seat: Seat, tx: Transaction) -> None:
        ahead, seat.duel, seat.ahead = seat.ahead, None, None
        if ahead is not None and (pair := look(tx, self.cup, ahead)) and not pair.over and pair.expires > self._clock():
            seat.duel = ahead
            return
        if seat.has_enough:
            return
        for duel in self.cup.lease(1, judge=seat.judge, ttl=LEASE):
            seat.duel = duel.id
            self._tokens[duel.id] = duel.token
            while len(self._tokens) > MOST_TOKENS:
                self._tokens.popitem(last=False)

    def _tell_held(self, seat: Seat) -> None:
        if seat.held is not None and seat.verdict is not None:
            self._tell(seat, seat.held, seat.verdict)
        seat.held = seat.verdict = seat.due = None

    def _tell(self, seat: Seat, duel: str, verdict: str) -> Receipt:
        # One verdict a voter and duel: the key says so, whatever happens around it.
        return self.cup.tell(duel, verdict, key=f"vote:{seat.invitation.id}:{seat.n}:{duel}", judge=seat.judge)

    def _save(self, tx: Transaction, seat: Seat) -> None:
        tx.run(
            "UPDATE web_voter SET answered = ?, duel = ?, ahead = ?, held = ?, verdict = ?, due = ? "
            "WHERE invitation = ? AND n = ?",
            seat.answered,
            seat.duel,
            seat.ahead,
            seat.held,
            seat.verdict,
            seat.due,
            seat.invitation.id,
            seat.n,
        )


def _any_seat(tx: Transaction, id: str, n: int) -> Seat | None:
    """Return a seat even of a revoked invitation: what was acknowledged is told."""
    row = tx.one(
        f"SELECT {_SEATED}, NULL, {_COLUMNS} FROM web_voter v JOIN web_invitation i ON i.id = v.invitation "
        "WHERE v.invitation = ? AND v.n = ?",
        id,
        n,
    )
    return None if row is None else Seat(Invitation(*row[:8]), *row[8:])
