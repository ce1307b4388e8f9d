"""How fast a click log is counted, and in how much memory; the floor is a scan of the same columns.

    python benchmarks/clicks.py [--rows 100000000] [--folder DIR]

Writes the log as Parquet in files of ten million rows (about 1.2 bytes a row), counts it in a process of its own, tells
the counts to a tournament, and removes the files.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from table import report

ARMS = 20
FILE_ROWS = 10_000_000

GENERATE = """
COPY (
  SELECT 'ranker ' || a AS ranker_a,
         'ranker ' || (a + 1 + b) % {arms} AS ranker_b,
         CASE WHEN u < 10 THEN 'tie' WHEN u < 55 THEN 'first' ELSE 'second' END AS winner
  FROM (
    SELECT (h % {arms})::INT AS a, ((h >> 12) % ({arms} - 1))::INT AS b, ((h >> 24) % 100)::INT AS u
    FROM (SELECT hash(i) AS h FROM range({start}, {stop}) t(i))
  )
) TO '{path}' (FORMAT parquet, COMPRESSION zstd)
"""


def generate(folder: Path, rows: int) -> None:
    import duckdb

    with duckdb.connect() as db:
        db.execute("SET preserve_insertion_order = false")
        db.execute("SET memory_limit = '2GB'")
        for number, start in enumerate(range(0, rows, FILE_ROWS)):
            stop = min(rows, start + FILE_ROWS)
            path = folder / f"{number:04}.parquet"
            db.execute(GENERATE.format(arms=ARMS, start=start, stop=stop, path=path))


def measure(folder: Path) -> dict[str, Any]:
    """Count in this process and say how long it took and how much memory it needed."""
    from roundel.judges import LogColumns, count_log, tell_log
    from roundel.tournament import Tournament

    pattern, columns = str(folder / "*.parquet"), LogColumns("ranker_a", "ranker_b", "winner")
    start = time.perf_counter()
    counts = count_log(pattern, columns)
    counted = time.perf_counter() - start
    rows = sum(sum(cells.values()) for cells in counts.values())
    with Tournament.create(
        folder / "t.db", "t", [f"ranker {arm}" for arm in range(ARMS)], horizon=10**7, rounds=4
    ) as cup:
        start = time.perf_counter()
        told = tell_log(cup, pattern, columns)
        total = time.perf_counter() - start
    return {
        "rows": rows,
        "count_s": counted,
        "count_and_tell_s": total,
        "told": told.counted,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def floor(folder: Path) -> dict[str, Any]:
    """Read the same three columns and count what is not NULL."""
    import duckdb

    with duckdb.connect() as db:
        db.execute("SET memory_limit = '1GB'")
        start = time.perf_counter()
        db.execute(
            "SELECT COUNT(ranker_a), COUNT(ranker_b), COUNT(winner) FROM read_parquet(?)",
            [str(folder / "*.parquet")],
        ).fetchall()
        return {"floor_s": time.perf_counter() - start}


def child(what: str, folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, "--measure", what, "--folder", folder], capture_output=True, check=True
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=10**8)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--measure", choices=("floor", "count"))
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(floor(given.folder) if given.measure == "floor" else measure(given.folder)))
        return
    folder = Path(tempfile.mkdtemp(prefix="roundel-clicks-", dir=given.folder))
    try:
        generate(folder, given.rows)
        result = {"bytes": sum(path.stat().st_size for path in folder.glob("*.parquet"))}
        result |= child("floor", folder) | child("count", folder)
    finally:
        shutil.rmtree(folder)
    report(
        "clicks",
        f"A click log in {os.cpu_count()} cores",
        [
            {
                "rows": result["rows"],
                "GB on disk": result["bytes"] / 1e9,
                "counted in s": result["count_s"],
                "million rows/s": result["rows"] / result["count_s"] / 1e6,
                "bare scan s": result["floor_s"],
                "times a bare scan": result["count_s"] / result["floor_s"],
                "counted and told in s": result["count_and_tell_s"],
                "peak memory MB": result["peak_mb"],
            }
        ],
    )


if __name__ == "__main__":
    main()
