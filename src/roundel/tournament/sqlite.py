"""The embedded dialect: one SQLite file, no server."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from roundel.errors import RoundelError, StoreError
from roundel.tournament.sqlite_library import sqlite_library
from roundel.tournament.store import Migration, Row, Store, Transaction, migrations, pending

T = TypeVar("T")

MAGIC = b"SQLite format 3\0"  # how the file of a database begins
APPLICATION = 0x726E646C  # "rndl": marks the file as ours
PATIENCE = 60.0  # seconds to wait for a writer outside the queue, such as a backup tool


class SqliteTransaction:
    """A transaction on the one connection of a store."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def one(self, sql: str, *arguments: Any) -> Row | None:
        """Return the first row, or None."""
        cursor = self._connection.execute(sql, arguments)
        row: Row | None = cursor.fetchone()
        cursor.close()  # an unfinished statement would keep the transaction open
        return row

    def all(self, sql: str, *arguments: Any) -> list[Row]:
        """Return all rows."""
        return list(self._connection.execute(sql, arguments).fetchall())

    def each(self, sql: str, *arguments: Any) -> Iterator[Row]:
        """Yield the rows one by one, without holding them all."""
        for row in self._connection.execute(sql, arguments):  # noqa: UP028  `yield from` would close what is closed
            yield row

    def run(self, sql: str, *arguments: Any) -> None:
        """Execute a statement whose rows nobody needs."""
        self._connection.execute(sql, arguments)

    def many(self, sql: str, rows: Iterable[Row]) -> None:
        """Execute a statement for each row of arguments."""
        self._connection.executemany(sql, rows)


class SqliteStore(Store):
    """A store in one SQLite file.

    Writers queue up at a lock on a side file before they begin: SQLite's own busy handler polls, and lets some
    workers starve; the kernel's lock queue is fair.
    """

    dialect = "sqlite"

    def __init__(self, path: str | Path, *, create: bool = False) -> None:
        """Open the file, or make it if `create` is true and there is none."""
        self.library = sqlite_library()
        self._errors = (self.library.module.Error, OSError, UnicodeDecodeError)  # the last: damaged text
        self.path = Path(path)
        self.url = str(path)
        self._create = create
        self._thread = threading.RLock()
        self._connection: Any = None
        self._inherited: Any = None
        self._lock_file = -1
        self._process = 0
        self._reads_queue = False
        _stores.add(self)
        if "\0" in self.url:
            raise StoreError(f"{self.url!r} is no path: it holds a zero character")
        if not self.path.exists():
            if not create:
                raise StoreError(f"{self.url}: there is no store; make one with Tournament.create or 'roundel new'")
            if not self.path.parent.is_dir():
                raise StoreError(f"{self.url}: there is no folder {str(self.path.parent)!r}; make it first")
        elif self.path.is_dir():
            raise StoreError(f"{self.url}: this is a folder; give the path of a file in it")
        else:
            self._refuse_other_files()
        with self._thread:
            self._connect()

    def _refuse_other_files(self) -> None:
        """Refuse what is no database, and an empty file, before a lock is put beside it."""
        try:
            with self.path.open("rb") as file:
                start = file.read(len(MAGIC))
        except OSError as error:
            raise self._explain(error) from error
        if not start and not self._create:  # a store cut off at its first byte must not pass for a sound one
            raise StoreError(
                f"{self.url}: the file is empty, there is no store in it; restore a backup, or make one with "
                "Tournament.create or 'roundel new'"
            )
        if start not in (b"", MAGIC):
            raise self._explain(ValueError("file is not a database"))

    # connection ---------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        """Open the connection in this process: a connection must not be carried over a fork."""
        self._process = os.getpid()
        try:
            self._lock_file = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            self._connection = self.library.module.connect(
                self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False, cached_statements=256
            )
            with self._queue():
                self._configure()
                self._migrate(migrations("sqlite"))
        except self._errors as error:
            self.close()
            raise self._explain(error) from error
        except RoundelError:
            self.close()
            raise

    def _configure(self) -> None:
        run = self._connection.execute
        ours = self._pragma("application_id") == APPLICATION
        if not ours and (not self._create or run("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()):
            raise StoreError(f"{self.url}: this is a database of another program; give another path")
        wanted = self.library.journal_mode
        if self._pragma("journal_mode") != wanted:
            got = run(f"PRAGMA journal_mode={wanted}").fetchone()[0]
            if got != wanted:
                raise StoreError(
                    f"{self.url}: the journal mode is {got}, and {self.library.describe()} may not use it: "
                    "close the other programs that have the file open"
                )
        self._reads_queue = wanted != "wal"  # with a rollback journal readers and writers block each other
        run("PRAGMA synchronous=FULL")
        run("PRAGMA fullfsync=ON")
        run("PRAGMA checkpoint_fullfsync=ON")
        run("PRAGMA foreign_keys=ON")
        run("PRAGMA recursive_triggers=ON")  # REPLACE then fires the triggers that forbid deletion
        run("PRAGMA cell_size_check=ON")
        run("PRAGMA trusted_schema=OFF")
        run("PRAGMA cache_size=-32768")

    def _pragma(self, name: str) -> Any:
        return self._connection.execute(f"PRAGMA {name}").fetchone()[0]

    def _migrate(self, steps: list[Migration]) -> None:
        """Bring the schema up to date, forward only; a store that holds something is copied first."""
        run = self._connection.execute
        fresh = self._pragma("application_id") != APPLICATION
        applied = [] if fresh else run("SELECT number, digest FROM migration ORDER BY number").fetchall()
        todo = pending(steps, applied, self.url)
        if not todo:
            return
        if not fresh:
            self._copy(Path(f"{self.path}.before-{todo[0].number:04d}.bak"))
        run("BEGIN IMMEDIATE")
        try:
            if fresh:
                run(f"PRAGMA application_id={APPLICATION}")
                run(
                    "CREATE TABLE migration "
                    "(number INTEGER PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL) STRICT"
                )
            for step in todo:
                for statement in self._statements(step.sql):
                    run(statement)
                run("INSERT INTO migration VALUES (?, ?, ?)", (step.number, step.name, step.digest))
            run("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise

    def _statements(self, script: str) -> Iterator[str]:
        statement = ""
        for line in script.splitlines(keepends=True):
            statement += line
            if self.library.module.complete_statement(statement):
                yield statement
                statement = ""

    # transactions -------------------------------------------------------------------------------------------

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction that no other writer overlaps, commit it durably, and return its result."""
        return self._transact("BEGIN IMMEDIATE", work, queue=True)

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on a snapshot."""
        return self._transact("BEGIN", work, queue=self._reads_queue)

    def attempt(self, transaction: Transaction, work: Callable[[], T]) -> T:
        """Run `work` inside a savepoint of `transaction`: when it raises, only its own writes are undone."""
        transaction.run("SAVEPOINT attempt")
        try:
            result = work()
        except BaseException:
            if self._connection.in_transaction:  # a full disk has rolled everything back already
                transaction.run("ROLLBACK TO attempt")
                transaction.run("RELEASE attempt")
            raise
        transaction.run("RELEASE attempt")
        return result

    def _transact(self, begin: str, work: Callable[[Transaction], T], queue: bool) -> T:
        with self._thread:
            if self._connection is None:
                raise StoreError(f"{self.url}: the store is closed; open it again")
            if self._process != os.getpid():
                self._inherited = self._connection  # kept, never used: closing it would touch the parent's files
                self._connect()
            connection = self._connection
            try:
                with self._queue() if queue else contextlib.nullcontext():
                    connection.execute(begin)
                    try:
                        result = work(SqliteTransaction(connection))
                        connection.execute("COMMIT")
                    except BaseException:
                        self._roll_back()
                        raise
            except self._errors as error:
                raise self._explain(error) from error
            return result

    def _roll_back(self) -> None:
        """Undo the transaction; where even that fails, start over with a new connection, which recovers."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except self._errors:
            with contextlib.suppress(*self._errors):
                self._connection.close()
            self._connection = self.library.module.connect(
                self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False, cached_statements=256
            )
            self._configure()

    @contextlib.contextmanager
    def _queue(self) -> Iterator[None]:
        fcntl.flock(self._lock_file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._lock_file, fcntl.LOCK_UN)

    def _explain(self, error: Exception) -> StoreError:
        text = str(error)
        if isinstance(error, OSError):
            text, remedy = error.strerror or text, "check the path, its permissions and the space on its disk"
        elif "full" in text:
            remedy = "the disk is full; make room and repeat the call: what was acknowledged is safe"
        elif "locked" in text or "busy" in text:
            remedy = "another program holds the file; let it finish and repeat the call"
        elif "not a database" in text:
            remedy = "give the path of a store, or another path to make one"
        elif "malformed" in text or "corrupt" in text or "decode" in text:
            remedy = "restore a backup or import an export; 'roundel verify' says what is damaged"
        elif "disk I/O" in text:
            remedy = "the disk reports errors; repeat the call, and if it stays so move the store to another disk"
        elif "readonly" in text:
            remedy = "the file or its folder may not be written; check the permissions"
        else:
            remedy = "nothing of this call was stored"
        return StoreError(f"{self.url}: {text}: {remedy}")

    # care ---------------------------------------------------------------------------------------------------

    def is_failure(self, error: BaseException) -> bool:
        """Whether `error` comes from the database, and not from what somebody asked of it."""
        return isinstance(error, self._errors)

    def check(self) -> list[str]:
        """Return what the database itself finds wrong with its pages and references."""

        def work(transaction: Transaction) -> list[str]:
            pages = [str(row[0]) for row in transaction.all("PRAGMA integrity_check")]
            found = [] if pages == ["ok"] else [f"integrity check: {line}" for line in pages]
            found += self._schema(transaction)
            broken = transaction.all("PRAGMA foreign_key_check")
            return found + [f"{row[0]}, row {row[1]}: refers to a {row[2]} that is not there" for row in broken]

        return self.read(work)

    def _schema(self, transaction: Transaction) -> list[str]:
        """Compare tables, indices and triggers with those that the migrations make."""
        # The tables of the pages (web_...) stand beside the record and are no part of it.
        query = (
            "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name <> 'migration' "
            "AND tbl_name NOT GLOB 'web_*'"
        )
        fresh = self.library.module.connect(":memory:")
        try:
            for step in migrations("sqlite"):
                fresh.executescript(step.sql)
            wanted = {(kind, name): sql for kind, name, sql in fresh.execute(query)}
        finally:
            fresh.close()
        have = {(kind, name): sql for kind, name, sql in transaction.all(query)}
        return [
            f"the {kind} {name!r} is {'missing' if (kind, name) not in have else 'not the one that was made'}"
            for (kind, name), sql in wanted.items()
            if have.get((kind, name)) != sql
        ] + [f"there is a {kind} {name!r} that does not belong here" for kind, name in have.keys() - wanted.keys()]

    def backup(self, path: str | Path) -> Path:
        """Write a copy of the whole store, taken at one moment, to a new file."""
        with self._thread:
            try:
                return self._copy(Path(path))
            except self._errors as error:
                raise self._explain(error) from error

    def _copy(self, target: Path) -> Path:
        if target.exists():
            raise StoreError(f"{target}: there is a file already; a backup never overwrites one")
        self._connection.execute("VACUUM INTO ?", (str(target),))
        with target.open("rb") as file:
            os.fsync(file.fileno())
        copied = self.library.module.connect(target)
        try:
            if (verdict := copied.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
                raise StoreError(f"{target}: the backup is not sound: {verdict}")
        finally:
            copied.close()
        return target

    def close(self) -> None:
        """Let go of the database."""
        with self._thread:
            if self._connection is not None and self._process == os.getpid():
                with contextlib.suppress(*self._errors):
                    self._connection.close()
            self._connection = None
            if self._lock_file >= 0:
                os.close(self._lock_file)
                self._lock_file = -1

    def let_go_of_the_lock(self) -> None:
        """Close a forked child's copy of the lock file: with it a lock of a killed parent would live on."""
        if self._lock_file >= 0:
            os.close(self._lock_file)
            self._lock_file = -1


_stores: weakref.WeakSet[SqliteStore] = weakref.WeakSet()


def _in_child() -> None:
    for store in list(_stores):
        store.let_go_of_the_lock()


os.register_at_fork(after_in_child=_in_child)
