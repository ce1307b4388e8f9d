"""One writer, group commit: what comes in together is written to disk together, and answered only then."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from roundel.errors import RoundelError, StoreError
from roundel.tournament.store import Row, Store, Transaction, open_store

T = TypeVar("T")

MOST_TOGETHER = 256  # jobs in one transaction


class _Job(NamedTuple):
    work: Callable[[], Any]
    future: asyncio.Future[Any] | Future[Any]


class _Failed(NamedTuple):
    error: BaseException


class _Watched:
    """A transaction that knows whether a job has written anything."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self.writes = 0

    def one(self, sql: str, *arguments: Any) -> Row | None:
        """Return the first row, or None."""
        if not sql.startswith("SELECT"):
            self.writes += 1
        return self._transaction.one(sql, *arguments)

    def all(self, sql: str, *arguments: Any) -> list[Row]:
        """Return all rows."""
        return self._transaction.all(sql, *arguments)

    def each(self, sql: str, *arguments: Any) -> Iterator[Row]:
        """Yield the rows one by one."""
        return self._transaction.each(sql, *arguments)

    def run(self, sql: str, *arguments: Any) -> None:
        """Execute a statement whose rows nobody needs."""
        self.writes += 1
        self._transaction.run(sql, *arguments)

    def many(self, sql: str, rows: Iterable[Row]) -> None:
        """Execute a statement for each row of arguments."""
        self.writes += 1
        self._transaction.many(sql, rows)


class Writer(Store):
    """A store whose writes all happen in one thread, as many at once as are waiting.

    A job is any callable that uses this store: what it writes joins the transaction of its group. Its result is
    given out after COMMIT. A job that fails undoes nobody else's work: a group with a failure among its writes is
    rolled back whole and played again in halves, until the failure stands alone.

    Readers use a connection of their own and never wait for the writer.
    """

    def __init__(self, where: str | Path) -> None:
        """Open the store at a path or a `postgresql://` URL, twice: to write, and to read."""
        self._inner = open_store(where)
        try:
            self.reader = open_store(where)
        except BaseException:
            self._inner.close()
            raise
        self.dialect, self.url = self._inner.dialect, self._inner.url
        self._open: Any = None  # the transaction of the group that is being played
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._writer = threading.Thread(target=self._serve, name="roundel writer", daemon=True)
        self._writer.start()

    # work ---------------------------------------------------------------------------------------------------

    async def commit(self, work: Callable[[], T]) -> T:
        """Run `work` in the writer; its result is on disk when this returns."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._submit(_Job(work, future))
        return await future

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in the transaction of the group, or, from another thread, wait until the writer has."""
        if threading.get_ident() == self._writer.ident:
            return work(self._open)
        future: Future[T] = Future()
        self._submit(_Job(lambda: work(self._open), future))
        return future.result()

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on a snapshot; inside a job, on what the group has written so far."""
        if threading.get_ident() == self._writer.ident:
            return work(self._open)
        return self.reader.read(work)

    def attempt(self, transaction: Transaction, work: Callable[[], T]) -> T:
        """Run `work` inside a savepoint of `transaction`: when it raises, only its own writes are undone."""
        return self._inner.attempt(transaction, work)

    def is_failure(self, error: BaseException) -> bool:
        """Whether `error` comes from the database, and not from what somebody asked of it."""
        return self._inner.is_failure(error)

    def check(self) -> list[str]:
        """Return what the database itself finds wrong with its pages and references."""
        return self.reader.check()

    def backup(self, path: str | Path) -> Path:
        """Write a copy of the whole store, taken at one moment, to a new file."""
        return self.reader.backup(path)

    def close(self) -> None:
        """Finish what was begun, and let go of the database."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._jobs.put(None)
        self._writer.join()
        self._inner.close()
        self.reader.close()

    def _submit(self, job: _Job) -> None:
        with self._closing:
            if self._closed:
                raise StoreError(f"{self.url}: the server is shutting down; repeat the call when it is back")
            self._jobs.put(job)

    # the writer ---------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            group = [job]
            last = False
            with contextlib.suppress(Empty):
                while len(group) < MOST_TOGETHER and not last:
                    following = self._jobs.get_nowait()
                    if following is None:
                        last = True
                    else:
                        group.append(following)
            self._play(group)
            if last:
                return

    def _play(self, group: list[_Job]) -> None:
        """Commit a group and hand out its results; where that fails, find out whose fault it is."""
        try:
            results = self._inner.write(lambda transaction: self._run(group, transaction))
        except BaseException as error:
            if len(group) == 1:
                _hand_out(group, [_Failed(error)])
                return
            half = len(group) // 2
            self._play(group[:half])
            self._play(group[half:])
            return
        _hand_out(group, results)

    def _run(self, group: list[_Job], transaction: Transaction) -> list[Any]:
        watched = _Watched(transaction)
        self._open = watched
        results: list[Any] = []
        try:
            for job in group:
                before = watched.writes
                try:
                    results.append(job.work())
                except RoundelError as error:
                    if watched.writes > before or isinstance(error, StoreError):
                        raise  # its writes must be undone
                    results.append(_Failed(error))
        finally:
            self._open = None
        return results


def _hand_out(group: list[_Job], results: list[Any]) -> None:
    """Settle the futures: those of an event loop in one call into its thread."""
    waiting: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for job, result in zip(group, results, strict=True):
        if isinstance(job.future, Future):
            if isinstance(result, _Failed):
                job.future.set_exception(result.error)
            else:
                job.future.set_result(result)
        else:
            waiting.setdefault(job.future.get_loop(), []).append((job.future, result))
    for loop, settled in waiting.items():
        with contextlib.suppress(RuntimeError):  # the loop has gone, and with it whoever waited
            loop.call_soon_threadsafe(_settle, settled)


def _settle(settled: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, result in settled:
        if future.done():  # the client has gone
            continue
        if isinstance(result, _Failed):
            future.set_exception(result.error)
        else:
            future.set_result(result)
