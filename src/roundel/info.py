"""What runs here: versions, optional parts, and which SQLite."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import roundel

PARTS = {
    "numpy": "arrays",
    "typer": "command line",
    "rich": "tables and progress",
    "numba": "compiled kernels: extra 'fast'",
    "joblib": "many runs on several cores: extra 'sim'",
    "pyarrow": "tables as Parquet: extra 'sim'",
    "matplotlib": "figures: extra 'plot'",
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
    return rows
