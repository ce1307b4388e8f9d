"""Which SQLite runs: the bundled one of pysqlite3 where it is installed, else the one Python came with.

SQLite 3.7.0 to 3.51.2 can lose committed writes in WAL mode when a checkpoint resets the log under another
process's feet (fixed in 3.51.3, 3.50.7 and 3.44.6). A library without the fix is used with a rollback journal
instead, which is slower and not affected.
"""

from __future__ import annotations

import importlib
import sqlite3
from dataclasses import dataclass
from functools import cache
from typing import Any

from roundel.errors import StoreError

OLDEST = (3, 37, 0)  # STRICT tables


@dataclass(frozen=True, slots=True)
class SqliteLibrary:
    """A SQLite and how a store may use it."""

    module: Any
    name: str  # "pysqlite3" or "sqlite3"
    version: tuple[int, int, int]

    @property
    def wal_is_safe(self) -> bool:
        """Whether this version has the fix of the WAL-reset bug."""
        major, minor, patch = self.version
        fixed_branch = (major, minor) in ((3, 44), (3, 50)) and patch >= {44: 6, 50: 7}[minor]
        return self.version >= (3, 51, 3) or fixed_branch

    @property
    def journal_mode(self) -> str:
        """The journal mode that stores are written in."""
        return "wal" if self.wal_is_safe else "truncate"

    def describe(self) -> str:
        """Say in one line which SQLite it is and how it is used."""
        version = ".".join(map(str, self.version))
        why = (
            "" if self.wal_is_safe else " (no fix of the WAL-reset bug: pip install 'roundel[sqlite]' for a faster one)"
        )
        return f"SQLite {version} by {self.name}, journal_mode={self.journal_mode}, synchronous=full{why}"


@cache
def sqlite_library() -> SqliteLibrary:
    """Return the SQLite that this process uses for all its stores (two in one process would break file locks)."""
    try:
        found = _library(importlib.import_module("pysqlite3.dbapi2"), "pysqlite3")
        if found.wal_is_safe:
            return found
    except ImportError:
        pass
    standard = _library(sqlite3, "sqlite3")
    if standard.version < OLDEST:
        raise StoreError(
            f"SQLite {sqlite3.sqlite_version} is too old: stores need {'.'.join(map(str, OLDEST))} or newer; "
            "pip install 'roundel[sqlite]'"
        )
    return standard


def _library(module: Any, name: str) -> SqliteLibrary:
    major, minor, patch = (int(part) for part in module.sqlite_version.split(".")[:3])
    return SqliteLibrary(module, name, (major, minor, patch))
