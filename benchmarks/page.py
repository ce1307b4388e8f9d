"""Put what the benchmarks left in out/bench into docs/benchmarks.md: the page has the words, each run the tables."""

from __future__ import annotations

import json
import os
import platform
import re
from pathlib import Path
from typing import Any

from roundel.cli.output import number

PAGE, FOUND = Path("docs/benchmarks.md"), Path("out/bench")
BLOCK = re.compile(r"(<!-- (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def machine() -> str:
    """Name the processor, the cores and the Python."""
    model = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists() and (found := re.search(r"model name\s*: (.*)", cpuinfo.read_text())):
        model = found[1]
    return f"{os.cpu_count()} cores of {model}, Python {platform.python_version()}."


def table(rows: list[dict[str, Any]]) -> str:
    """Return rows as a Markdown table, numbers to the right."""
    numeric = [all(isinstance(row[key], (int, float)) or row[key] == "" for row in rows) for key in rows[0]]
    lines = [list(rows[0]), ["---:" if right else "---" for right in numeric]]
    lines += [[number(cell) for cell in row.values()] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def block(found: re.Match[str]) -> str:
    """Return a block of the page with what was measured in it; one that was not measured now stays as it is."""
    result = FOUND / f"{found['name']}.json"
    if found["name"] == "machine":
        return f"{found[1]}{machine()}\n{found[3]}"
    if not result.exists():
        return found[0]
    return f"{found[1]}\n{table(json.loads(result.read_text())['rows'])}\n\n{found[3]}"


if __name__ == "__main__":
    PAGE.write_text(BLOCK.sub(block, PAGE.read_text()))
