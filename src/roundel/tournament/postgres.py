"""The server dialect: PostgreSQL, through psycopg 3."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from roundel.errors import MissingExtraError, RoundelError, StoreError
from roundel.tournament.store import Row, Store, Transaction, migrations, pending

try:
    import psycopg
except ImportError:
    raise MissingExtraError("a store in PostgreSQL", "postgres") from None

T = TypeVar("T")

SCHEMA = "roundel"
OLDEST = 120000  # PostgreSQL 12
WRITERS = 0x726E646C  # the advisory lock that writers queue up at: the server grants it in order of arrival
MANY = 200  # rows from which COPY is faster than INSERT
_INSERT = re.compile(r"INSERT INTO (\w+) \(([\w, ]+)\) VALUES \([?, ]+\)")


@lru_cache(maxsize=1024)
def _psycopg_style(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s")


class PostgresTransaction:
    """A transaction on the one connection of a store.

    Statements are sent without waiting for the one before (psycopg's pipeline): only reading rows waits, and the
    commit does.
    """

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection
        self._pipeline: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()

    def begin(self, *statements: str) -> None:
        """Begin without waiting."""
        self._pipeline = self._connection.pipeline()
        self._pipeline.__enter__()
        for statement in statements:
            self._connection.execute(statement)

    def settle(self, *statements: str) -> None:
        """Wait until everything that was sent, and these last statements, are done."""
        pipeline, self._pipeline = self._pipeline, contextlib.nullcontext()
        try:
            for statement in statements:
                self._connection.execute(statement)
        except BaseException:
            with contextlib.suppress(psycopg.Error):  # the errors after the first only say "aborted"
                pipeline.__exit__(None, None, None)
            raise
        pipeline.__exit__(None, None, None)

    def _execute(self, sql: str, arguments: tuple[Any, ...]) -> psycopg.Cursor[Row]:
        return self._connection.execute(_psycopg_style(sql), arguments)

    def one(self, sql: str, *arguments: Any) -> Row | None:
        """Return the first row, or None."""
        return self._execute(sql, arguments).fetchone()

    def all(self, sql: str, *arguments: Any) -> list[Row]:
        """Return all rows."""
        return self._execute(sql, arguments).fetchall()

    def each(self, sql: str, *arguments: Any) -> Iterator[Row]:
        """Yield the rows one by one."""
        yield from self._execute(sql, arguments)

    def run(self, sql: str, *arguments: Any) -> None:
        """Execute a statement whose rows nobody needs."""
        self._execute(sql, arguments)

    def many(self, sql: str, rows: Iterable[Row]) -> None:
        """Execute a statement for each row of arguments; many insertions are copied."""
        source = iter(rows)
        first = list(islice(source, MANY))
        insertion = _INSERT.fullmatch(sql)
        with self._connection.cursor() as cursor:
            if len(first) == 1:
                cursor.execute(_psycopg_style(sql), first[0])
            elif len(first) < MANY or insertion is None:
                if first:
                    cursor.executemany(_psycopg_style(sql), chain(first, source))
            else:
                table, columns = insertion.groups()
                self.settle()  # COPY cannot share a pipeline
                with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                    for row in chain(first, source):
                        copy.write_row(row)
                self.begin()


class _LostBeforeCommitError(Exception):
    """The connection broke while nothing had been committed."""

    def __init__(self, error: psycopg.Error) -> None:
        super().__init__(str(error))
        self.error = error


class PostgresStore(Store):
    """A store in the schema `roundel` of a PostgreSQL database."""

    dialect = "postgres"

    def __init__(self, url: str, *, create: bool = False) -> None:
        """Connect, and make the schema if `create` is true and it is not there."""
        self.url = without_password(url)
        self._where = url
        self._create = create
        self._thread = threading.RLock()
        self._connection: psycopg.Connection[Row] | None = None
        self._inherited: Any = None
        self._process = 0
        self._closed = False
        with self._thread:
            self._connect()

    def _connect(self) -> psycopg.Connection[Row]:
        self._process = os.getpid()
        try:
            connection = psycopg.connect(
                self._where,
                autocommit=True,
                prepare_threshold=1,
                options=f"-c search_path={SCHEMA} -c synchronous_commit=on -c client_min_messages=warning",
                client_encoding="utf8",
                application_name="roundel",
                connect_timeout=10,
            )
        except psycopg.Error as error:
            raise self._explain(error) from error
        try:
            self._configure(connection)
        except psycopg.Error as error:
            connection.close()
            raise self._explain(error) from error
        except RoundelError:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _configure(self, connection: psycopg.Connection[Row]) -> None:
        if connection.info.server_version < OLDEST:
            raise StoreError(
                f"{self.url}: PostgreSQL {connection.info.server_version // 10000} is too old: use 12 or newer"
            )
        for setting in ("fsync", "full_page_writes"):
            row = connection.execute(f"SHOW {setting}").fetchone()
            if row != ("on",):
                raise StoreError(
                    f"{self.url}: the server runs with {setting}=off and may lose what it acknowledged: set it on"
                )
        encoding = connection.execute("SHOW server_encoding").fetchone()
        if encoding != ("UTF8",):
            raise StoreError(
                f"{self.url}: the database is encoded in {encoding and encoding[0]}: make one with ENCODING 'UTF8'"
            )
        steps = migrations("postgres")
        with connection.transaction():
            there = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.migration",)).fetchone() != (None,)
            if there:
                if not self._todo(connection, steps):
                    return
            elif not self._create:
                raise StoreError(f"{self.url}: there is no store; make one with Tournament.create or 'roundel new'")
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (WRITERS,))
            there = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.migration",)).fetchone() != (None,)
            if not there:
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
                connection.execute(
                    f"CREATE TABLE {SCHEMA}.migration "
                    "(number BIGINT PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL)"
                )
            for step in self._todo(connection, steps):
                if there and step.number > 1 and not os.environ.get("ROUNDEL_BACKED_UP"):
                    raise StoreError(
                        f"{self.url}: the schema must be brought up to date: make a backup with pg_dump, then open the "
                        "store once with ROUNDEL_BACKED_UP=1 in the environment"
                    )
                connection.execute(step.sql)
                connection.execute("INSERT INTO migration VALUES (%s, %s, %s)", (step.number, step.name, step.digest))

    def _todo(self, connection: psycopg.Connection[Row], steps: list[Any]) -> list[Any]:
        rows = connection.execute("SELECT number, digest FROM migration ORDER BY number").fetchall()
        return pending(steps, [(int(row[0]), str(row[1])) for row in rows], self.url)

    # transactions -------------------------------------------------------------------------------------------

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction that no other writer overlaps, commit it durably, and return its result."""
        # Whatever the server's default is: a snapshot from before the wait at the lock would be stale.
        begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
        return self._transact((begin, f"SELECT pg_advisory_xact_lock({WRITERS})"), work)

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on a snapshot."""
        return self._transact(("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",), work)

    def attempt(self, transaction: Transaction, work: Callable[[], T]) -> T:
        """Run `work` inside a savepoint of `transaction`: when it raises, only its own writes are undone."""
        transaction.run("SAVEPOINT attempt")
        try:
            result = work()
        except BaseException:
            if self._connection is not None and not self._connection.closed:
                transaction.run("ROLLBACK TO attempt")
                transaction.run("RELEASE attempt")
            raise
        transaction.run("RELEASE attempt")
        return result

    def _transact(self, begin: tuple[str, ...], work: Callable[[Transaction], T]) -> T:
        with self._thread:
            try:
                connection, fresh = self._at_hand()
                try:
                    return self._try(connection, begin, work)
                except _LostBeforeCommitError as lost:
                    if fresh or not isinstance(lost.error, psycopg.OperationalError):
                        raise lost.error from None
                    connection.close()  # the server went away while nobody called: nothing was done yet, so do it anew
                    try:
                        return self._try(self._connect(), begin, work)
                    except _LostBeforeCommitError as again:
                        raise again.error from None
            except psycopg.Error as error:
                raise self._explain(error) from error

    def _try(self, connection: psycopg.Connection[Row], begin: tuple[str, ...], work: Callable[[Transaction], T]) -> T:
        transaction = PostgresTransaction(connection)
        committing = False
        try:
            transaction.begin(*begin)
            try:
                result = work(transaction)
                committing = True  # from here on a lost connection leaves it open whether anything was done
                transaction.settle("COMMIT")
            finally:
                if not committing:
                    with contextlib.suppress(psycopg.Error):
                        transaction.settle()
        except BaseException as error:
            with contextlib.suppress(psycopg.Error):
                if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                    connection.execute("ROLLBACK")
            if isinstance(error, psycopg.Error) and connection.closed and not committing:
                raise _LostBeforeCommitError(error) from error
            raise
        return result

    def _at_hand(self) -> tuple[psycopg.Connection[Row], bool]:
        """Return the connection of this process, and whether it was made just now."""
        if self._closed:
            raise StoreError(f"{self.url}: the store is closed; open it again")
        connection = self._connection
        if connection is not None and self._process != os.getpid():
            self._inherited, connection = connection, None  # kept, never used: it is the parent's session
        if connection is not None and not connection.closed:
            return connection, False
        return self._connect(), True

    def _explain(self, error: psycopg.Error) -> StoreError:
        text = " ".join(str(error).split()) or type(error).__name__
        for password in passwords(self._where):
            text = text.replace(password, "...")
        if isinstance(error, psycopg.errors.DiskFull):
            remedy = "the server's disk is full; make room and repeat the call: what was acknowledged is safe"
        elif isinstance(error, psycopg.OperationalError):
            remedy = "the server cannot be reached, or ended the call; repeat it: a verdict counts once"
        else:
            remedy = "nothing of this call was stored"
        return StoreError(f"{self.url}: {text}: {remedy}")

    # care ---------------------------------------------------------------------------------------------------

    def is_failure(self, error: BaseException) -> bool:
        """Whether `error` comes from the database, and not from what somebody asked of it."""
        return isinstance(error, psycopg.Error)

    def check(self) -> list[str]:
        """Return which constraints, indices and triggers are missing or switched off."""
        wanted = {
            (kind.lower(), name)
            for step in migrations("postgres")
            for kind, name in re.findall(r"CREATE (?:UNIQUE )?(TABLE|INDEX|TRIGGER) (\w+)", step.sql)
        }

        def work(tx: Transaction) -> list[str]:
            tables = tx.all("SELECT 'table', tablename::text FROM pg_tables WHERE schemaname = ?", SCHEMA)
            indices = tx.all(
                "SELECT 'index', c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
                "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ? AND i.indisvalid AND i.indisready",
                SCHEMA,
            )
            triggers = tx.all(
                "SELECT 'trigger', t.tgname::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
                "JOIN pg_namespace n ON n.oid = c.relnamespace "
                "WHERE n.nspname = ? AND NOT t.tgisinternal AND t.tgenabled = 'O'",
                SCHEMA,
            )
            missing = wanted - {(row[0], row[1]) for row in (*tables, *indices, *triggers)}
            unchecked = tx.all(
                "SELECT conname::text FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace "
                "WHERE n.nspname = ? AND NOT k.convalidated",
                SCHEMA,
            )
            keys = tx.one(
                "SELECT COUNT(*) FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace "
                "WHERE n.nspname = ? AND k.contype IN ('p', 'u', 'f', 'c')",
                SCHEMA,
            )
            found = [f"the {kind} {name!r} is missing or switched off" for kind, name in sorted(missing)]
            found += [f"the constraint {row[0]!r} was never checked" for row in unchecked]
            if keys is None or keys[0] < CONSTRAINTS:
                found.append(f"there are {keys and keys[0]} constraints instead of {CONSTRAINTS}")
            return found

        return self.read(work)

    def backup(self, path: str | Path) -> Path:
        """Refuse: a server is backed up by its own tools."""
        raise StoreError(f"{self.url}: back up a PostgreSQL store with pg_dump, or export its tournaments")

    def close(self) -> None:
        """Let go of the database."""
        with self._thread:
            self._closed = True
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None


CONSTRAINTS = 50  # primary keys, foreign keys, UNIQUE and CHECK of the newest schema


# More than a URL's grammar allows is taken for the password, up to the last "@": libpq reads "#" and "?" as part of it.
_BEFORE_HOST = re.compile(r"^(\w+://[^:@/?]*):(.*)@", re.DOTALL)
_IN_QUERY = re.compile(r"(?<=[?&])(?:ssl)?password=([^&]*)&?")


def without_password(url: str) -> str:
    """Return a URL that may be printed."""
    return _IN_QUERY.sub("", _BEFORE_HOST.sub(r"\1@", url)).rstrip("?&")


def passwords(url: str) -> list[str]:
    """Return what may not be printed of a URL."""
    found = [match[2] for match in _BEFORE_HOST.finditer(url)] + _IN_QUERY.findall(url)
    pieces = [piece for password in found for piece in re.split("[@/]", password) if len(piece) > 2]
    return [password for password in found if password] + pieces  # libpq may take a piece for the host
