"""The desk: the store behind its one writer, the tournaments in it, and who may do what."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TypeVar

from roundel.errors import AccessError, InputError, RoundelError
from roundel.tournament import Tournament, rounds
from roundel.tournament.store import Transaction, open_store
from roundel.tournament.writer import Writer
from roundel.web import invitations, schema
from roundel.web.insight import Insight, insight_of
from roundel.web.invitations import Invitation
from roundel.web.keys import Keys
from roundel.web.media import Gallery
from roundel.web.seats import Table

T = TypeVar("T")

TICK = 1.0  # seconds between looks at what is due
SHARE = 0.1  # of the time, at most, is spent on numbers for the dashboard

log = logging.getLogger("roundel.web")


@dataclass(slots=True)
class Progress:
    """How far the open round is, give or take a second."""

    round: int
    rounds: int
    asked: int
    done: int
    at: float


class Hall:
    """One tournament as the server holds it: one side writes through the group, the other reads snapshots."""

    def __init__(self, desk: Desk, name: str) -> None:
        """Open the tournament `name`."""
        self.cup = Tournament.open(desk.store, name, clock=desk.clock)
        self.snapshot = Tournament.open(desk.archive, name, clock=desk.clock)
        self.number = self.cup.number
        self.table = Table(self.cup, desk.clock)
        self._progress: Progress | None = None
        self._counting: asyncio.Task[Progress] | None = None
        self._insight: Insight | None = None
        self._insight_next = 0.0
        self._insight_lock = asyncio.Lock()

    async def progress(self) -> Progress:
        """Return how far the open round is; counted once a second at most, and waited for only the first time."""
        if self._progress is None:
            self._progress = await asyncio.to_thread(self._measure)
        elif time.monotonic() - self._progress.at > 1 and (self._counting is None or self._counting.done()):
            self._counting = asyncio.create_task(self._refresh())
        return self._progress

    async def _refresh(self) -> Progress:
        self._progress = await asyncio.to_thread(self._measure)
        return self._progress

    def _measure(self) -> Progress:
        n, (asked, done) = self.snapshot.store.read(self._count)
        return Progress(n, self.cup.spec.rounds, asked, done, time.monotonic())

    def _count(self, tx: Transaction) -> tuple[int, tuple[int, int]]:
        row = rounds.current(tx, self.number)
        if row is None:
            last = rounds.last_closed(tx, self.number)
            return (last[0] if last else 0), (0, 0)
        asked, done, _ = rounds.progress(tx, row.id)
        return row.n, (asked, done)

    async def insight(self) -> Insight:
        """Return the numbers of the dashboard: fresh, but never at more than a tenth of the server's time."""
        async with self._insight_lock:
            now = time.monotonic()
            if self._insight is None or now >= self._insight_next:
                self._insight = await asyncio.to_thread(insight_of, self.snapshot, self._insight)
                spent = time.monotonic() - now
                self._insight_next = now + max(0.5, spent / SHARE)
            return self._insight

    def forget_insight(self) -> None:
        """Count anew at the next look: something was changed by hand."""
        self._insight_next = 0.0


class Desk:
    """Everything that the pages and the API share."""

    def __init__(self, where: str, keys: Keys, clock: Callable[[], float] = time.time) -> None:
        """Open the store at `where`."""
        self.keys = keys
        self.clock = clock
        self.store = Writer(where)
        self.archive = open_store(where)  # for what takes long: nobody else waits for this connection
        try:
            schema.prepare(self.store)
            self.gallery = Gallery(keys.alias)
            self._halls: dict[int, Hall] = {}
            for number, _ in self.names():
                self.hall(number)
        except BaseException:
            self.close()
            raise

    def names(self) -> list[tuple[int, str]]:
        """Return number and name of each tournament, oldest first."""
        rows = self.store.reader.read(lambda tx: tx.all("SELECT id, name FROM tournament ORDER BY id"))
        return [(int(number), str(name)) for number, name in rows]

    def hall(self, number: int) -> Hall | None:
        """Return a tournament by number; also one that was made a moment ago by somebody else."""
        found = self._halls.get(number)
        if found is None:
            name = dict(self.names()).get(number) if 0 < number < 2**62 else None
            if name is None:
                return None
            found = self._halls[number] = Hall(self, name)
            self.gallery.add(found.cup.spec)
        return found

    def close(self) -> None:
        """Let go of the store."""
        self.store.close()
        self.archive.close()

    # who ----------------------------------------------------------------------------------------------------

    async def commit(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in the writer's transaction; what it returns is on disk."""
        return await self.store.commit(lambda: self.store.write(work))

    def claim(self, token: str, role: str) -> str | None:
        """Return the id of the invitation that a token is signed for; whether it is in force is in the database."""
        value = self.keys.read(role, token)
        return value if isinstance(value, str) else None

    def invited(self, tx: Transaction, token: str, number: int | None = None) -> Invitation | None:
        """Return the invitation behind a bearer's token, if it is in force (for tournament `number`)."""
        for role in ("judge", "voter"):
            found = invitations.find(tx, self.claim(token, role), number)
            if found is not None and found.role == role:
                return found
        return None

    def token(self, invitation: Invitation) -> str:
        """Return the token that stands for an invitation: made from its id, stored nowhere."""
        return self.keys.sign(invitation.role, invitation.id)

    async def invite(
        self, number: int, role: invitations.Role, labels: list[str], count: int, voters: int, most: int | None
    ) -> list[Invitation]:
        """Make invitations: one a label, or `count` numbered ones."""
        wanted = len(labels) or count
        if not 1 <= wanted <= invitations.MOST_AT_ONCE:
            raise AccessError(f"{wanted} invitations at once: make 1 to {invitations.MOST_AT_ONCE}")

        def work(tx: Transaction) -> list[Invitation]:
            now = self.clock()
            names = labels or [""] * count
            return [
                invitations.make(tx, number, role, name or invitations.free_label(tx, number, role), now, voters, most)
                for name in names
            ]

        return await self.commit(work)

    # what is due --------------------------------------------------------------------------------------------

    async def tick(self) -> None:
        """Tell held answers whose time has come, and close rounds at their deadline."""
        now = self.clock()
        for hall in list(self._halls.values()):
            await self._tick(hall, now)

    async def _tick(self, hall: Hall, now: float) -> None:
        def due(tx: Transaction) -> bool:
            held = tx.one(
                "SELECT 1 FROM web_voter v JOIN web_invitation i ON i.id = v.invitation "
                "WHERE v.held IS NOT NULL AND v.due <= ? AND i.tournament = ? LIMIT 1",
                now,
                hall.number,
            )
            row = rounds.current(tx, hall.number) if hall.cup.spec.deadline is not None else None
            return held is not None or (row is not None and row.deadline is not None and row.deadline <= now)

        try:
            if await asyncio.to_thread(self.archive.read, due):  # a look costs no commit
                await self.commit(lambda tx: hall.table.tell_due(tx, now))
                if hall.cup.spec.deadline is not None:
                    await self.store.commit(hall.cup.advance)
        except RoundelError as error:
            log.error("%s: %s", hall.cup.name, error)

    async def close_round(self, hall: Hall, *, end: bool, empty: bool) -> int:
        """Close the open round by hand, after the answers that are still held."""

        def work(tx: Transaction) -> int:
            while hall.table.tell_due(tx, float("inf")):
                pass
            return hall.cup.close(end=end, empty=empty)

        closed = await self.commit(work)
        hall.forget_insight()
        return closed

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Look after what is due for as long as the server runs."""

        async def look_after() -> None:
            while True:
                try:
                    await self.tick()
                except Exception:
                    log.exception("what was due could not be done; it is tried again")
                await asyncio.sleep(TICK)

        task = asyncio.create_task(look_after())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await asyncio.to_thread(self.close)


def whole_field(name: str, text: str) -> int:
    """Read a whole number from a form; nothing is one."""
    if not text.strip():
        return 1
    if not (text.strip().isascii() and text.strip().isdigit()) or len(text) > 12:
        raise InputError(f"{name} is {text[:40]!r}: it must be a whole number")
    return int(text)
