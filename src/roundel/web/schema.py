"""The tables of the pages: beside the tournaments, in the same database, with steps of their own."""

from __future__ import annotations

import re
from importlib import resources

from roundel.tournament.store import Migration, Store, Transaction, pending

_EXISTS = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'web_migration'",
    "postgres": "SELECT 1 WHERE to_regclass('web_migration') IS NOT NULL",
}
_END = re.compile(r";\s*?\n")  # no statement of ours has one in its middle


def steps(dialect: str) -> list[Migration]:
    """Return the steps that make these tables, in order."""
    folder = resources.files("roundel.web").joinpath("migrations", dialect)
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [Migration(int(f.name[:4]), f.name[5:-4], f.read_text(encoding="utf-8")) for f in files]


def prepare(store: Store) -> None:
    """Bring the tables up to date, forward only; a store that a newer version prepared is refused."""
    known = steps(store.dialect)

    def work(tx: Transaction) -> None:
        applied: list[tuple[int, str]] = []
        if tx.one(_EXISTS[store.dialect]) is None:
            tx.run("CREATE TABLE web_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL)")
        else:
            applied = [(int(n), str(digest)) for n, digest in tx.all("SELECT number, digest FROM web_migration")]
        for step in pending(known, applied, store.url):
            for statement in _END.split(step.sql):
                if statement.strip():
                    tx.run(statement)
            tx.run(
                "INSERT INTO web_migration (number, name, digest) VALUES (?, ?, ?)", step.number, step.name, step.digest
            )

    store.write(work)
