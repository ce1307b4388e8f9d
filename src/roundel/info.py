"""What runs here: versions, optional parts, and which SQLite."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import roundel
from roundel.tournament.sqlite_library import sqlite_library

PARTS = {
    "numpy": "arrays",
    "typer": "command line",
    "rich": "tables and progress",
    "pyyaml": "options and contexts as YAML",
    "numba": "compiled simulations: extra 'fast'",
    "joblib": "many runs on several cores: extra 'sim'",
    "pyarrow": "tables as Parquet: extra 'sim'",
    "matplotlib": "figures: extra 'plot'",
    "pysqlite3": "a SQLite of its own: extra 'sqlite'",
    "psycopg": "stores in PostgreSQL: extra 'postgres'",
    "duckdb": "click logs: extra 'clicks'",
    "openai": "language models as judges: extra 'model'",
    "fastapi": "voting page, dashboard and API: extra 'web'",
    "ray": "comparisons on a Ray cluster: extra 'ray'",
    "distributed": "comparisons on a Dask cluster: extra 'dask'",
}


def describe() -> list[dict[str, str | None]]:
    """Return one row a part: its name, its version (None: not installed), and what it is for."""
    rows: list[dict[str, str | None]] = [
        {"part": "roundel", "version": roundel.__version__, "use": "this package"},
        {"part": "python", "version": platform.python_version(), "use": platform.platform(terse=True)},
    ]
    for part, use in PARTS.items():
        try:
            found: str | None = version(part)
        except PackageNotFoundError:
            found = None
        rows.append({"part": part, "version": found, "use": use})
    library = sqlite_library()
    version_text = ".".join(map(str, library.version))
    rows.append({"part": "sqlite", "version": version_text, "use": f"stores: {library.describe()}"})
    return rows
