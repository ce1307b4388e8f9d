"""A store: where tournaments live. One interface; SQLite and PostgreSQL are its two dialects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Protocol, TypeVar

from roundel.errors import StoreError, StoreVersionError
from roundel.tournament.texts import sha256

T = TypeVar("T")
Row = tuple[Any, ...]


class Transaction(Protocol):
    """One transaction: SQL with `?` for each argument."""

    def one(self, sql: str, *arguments: Any) -> Row | None:
        """Return the first row, or None."""

    def all(self, sql: str, *arguments: Any) -> list[Row]:
        """Return all rows."""

    def each(self, sql: str, *arguments: Any) -> Iterator[Row]:
        """Yield the rows one by one, without holding them all."""

    def run(self, sql: str, *arguments: Any) -> None:
        """Execute a statement whose rows nobody needs."""

    def many(self, sql: str, rows: Iterable[Row]) -> None:
        """Execute a statement for each row of arguments."""


class Store(ABC):
    """A database of tournaments.

    `write` runs a piece of work in one transaction, alone: when it returns, the result is on disk; when it raises,
    nothing happened. `read` sees one state of the database throughout.
    """

    dialect: str
    url: str

    @abstractmethod
    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction that no other writer overlaps, commit it durably, and return its result."""

    @abstractmethod
    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on a snapshot."""

    @abstractmethod
    def attempt(self, transaction: Transaction, work: Callable[[], T]) -> T:
        """Run `work` inside a savepoint of `transaction`: when it raises, only its own writes are undone."""

    @abstractmethod
    def is_failure(self, error: BaseException) -> bool:
        """Whether `error` comes from the database, and not from what somebody asked of it."""

    @abstractmethod
    def check(self) -> list[str]:
        """Return what the database itself finds wrong with its pages and references."""

    @abstractmethod
    def backup(self, path: str | Path) -> Path:
        """Write a copy of the whole store, taken at one moment, to a new file."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database."""

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_store(where: str | Path | Store, *, create: bool = False) -> Store:
    """Open the store at a path (SQLite) or a `postgresql://` URL; `create` makes one where there is none."""
    if isinstance(where, Store):
        return where
    text = str(where)
    if text.startswith(("postgresql://", "postgres://")):
        from roundel.tournament.postgres import PostgresStore

        return PostgresStore(text, create=create)
    if "://" in text:
        raise StoreError(f"{text!r} is no store: give a path (SQLite) or a postgresql:// URL")
    from roundel.tournament.sqlite import SqliteStore

    return SqliteStore(text, create=create)


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema."""

    number: int
    name: str
    sql: str

    @property
    def digest(self) -> str:
        """SHA-256 of the SQL."""
        return sha256(self.sql)


def migrations(dialect: str) -> list[Migration]:
    """Return the steps that make the schema of this version, in order."""
    folder = resources.files("roundel.tournament").joinpath("migrations", dialect)
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [Migration(int(f.name[:4]), f.name[5:-4], f.read_text(encoding="utf-8")) for f in files]


def pending(steps: list[Migration], applied: list[tuple[int, str]], url: str) -> list[Migration]:
    """Return the steps that a store still needs; refuse a store that is newer or was changed by hand."""
    known = {step.number: step for step in steps}
    for number, digest in applied:
        if number not in known:
            raise StoreVersionError(
                f"{url}: written by a newer roundel (schema {number}, this version knows {max(known)}): upgrade roundel"
            )
        if known[number].digest != digest:
            raise StoreVersionError(
                f"{url}: schema step {number} is not the one that this version knows: the store was made by a "
                "development version; export it with that version and import it with this one"
            )
    done = {number for number, _ in applied}
    return [step for step in steps if step.number not in done]
