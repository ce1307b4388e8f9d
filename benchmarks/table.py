"""What the benchmarks share: timing, a table on the terminal, and the same as JSON in out/bench."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any


def best_of(times: int, work: Callable[[], Any]) -> float:
    """Return the shortest of some runs, in seconds: what is not the work only ever adds."""
    found = []
    for _ in range(times):
        start = perf_counter()
        work()
        found.append(perf_counter() - start)
    return min(found)


def report(name: str, title: str, rows: list[dict[str, Any]]) -> None:
    """Print the rows as a table and write them to out/bench/<name>.json."""
    from roundel.cli.output import print_table

    print_table(list(rows[0]), [list(row.values()) for row in rows], title)
    folder = Path("out/bench")
    folder.mkdir(parents=True, exist_ok=True)
    machine = {"machine": platform.machine(), "python": platform.python_version()}
    (folder / f"{name}.json").write_text(json.dumps({"title": title, **machine, "rows": rows}, indent=1) + "\n")
