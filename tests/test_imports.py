"""The layout is the architecture: imports point one way, and `import roundel` stays light."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import roundel

SOURCE = Path(roundel.__file__).parent

# DESIGN: a part imports only from levels with a smaller number. Level 0 is one level of single modules that build on
# each other; the parts of a higher level do not know each other.
LEVELS = {
    **dict.fromkeys(("errors", "_check", "plan", "tally", "preferences", "rng", "_jit"), 0),
    **dict.fromkeys(("_textfile", "_matrixfile"), 0),
    "policies": 1,
    "run": 2,
    **dict.fromkeys(("simulation", "datasets", "tournament"), 3),
    **dict.fromkeys(("judges", "plots"), 4),
    **dict.fromkeys(("web", "report", "paper", "info"), 5),
    **dict.fromkeys(("cli", "__main__"), 6),
}
# Convenience methods that reach up for a leaf, when they are called and not before.
REACHES_UP = {("simulation", "plots")}


class Import(NamedTuple):
    """One `import` statement inside the package."""

    where: str  # file and line
    part: str  # the part that imports
    target: tuple[str, ...]  # the dotted name below `roundel`; empty for `roundel` itself
    names: tuple[str, ...]
    lazy: bool  # inside a function, or only for type checkers


def part_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imports_of(path: Path, text: str | None = None) -> Iterator[tuple[str, tuple[str, ...], int, bool]]:
    """Every module that a file imports: its name, the names taken from it, the line, and whether lazily."""
    tree = ast.parse(path.read_text(encoding="utf-8") if text is None else text)
    lazy: set[int] = set()
    for node in ast.walk(tree):
        late = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            late = True
        if late:
            lazy |= {id(child) for child in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, (), node.lineno, id(node) in lazy
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            if node.level:
                package = ["roundel", *path.relative_to(SOURCE).parts[:-1]]
                package = package[: len(package) - node.level + 1]
                name = ".".join([*package, *filter(None, (node.module or "").split("."))])
                yield name, names, node.lineno, id(node) in lazy
            else:
                yield node.module or "", names, node.lineno, id(node) in lazy


def used_of_root(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    attributes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == "roundel"}


def inside() -> list[Import]:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        for name, names, line, lazy in imports_of(path):
            root, *rest = name.split(".")
            if root != "roundel":
                continue
            if not rest and not names:  # `import roundel`: what counts is what is used of it
                names = tuple(sorted(used_of_root(path)))
            if not rest and names and all(taken in LEVELS for taken in names):
                found += [Import(f"{path.name}:{line}", part_of(path), (taken,), (), lazy) for taken in names]
            else:
                found.append(Import(f"{path.relative_to(SOURCE)}:{line}", part_of(path), tuple(rest), names, lazy))
    return found


def fault(one: Import) -> str | None:
    """Say what is wrong with an import, or None."""
    if one.part == "__init__":
        return None  # it re-exports the public names of all levels
    here = LEVELS[one.part]
    if not one.target:
        if here == 6 or set(one.names) == {"__version__"}:
            return None
        return f"{one.where}: import from the module itself; `roundel` gathers all levels"
    there = one.target[0]
    if there not in LEVELS:
        return f"{one.where}: {there!r} has no level: give it one here"
    if there == one.part or LEVELS[there] < here or (here == LEVELS[there] == 0):
        return None
    if here == LEVELS[there] == 6:
        return None
    if one.lazy and (one.part, there) in REACHES_UP:
        return None
    return f"{one.where}: level {here} ({one.part}) imports level {LEVELS[there]} ({there})"


def test_every_part_has_a_level() -> None:
    parts = {part_of(path) for path in SOURCE.rglob("*.py")} - {"__init__"}
    assert parts <= set(LEVELS), "a new part: say here which level it is"


def test_imports_point_to_lower_levels_only() -> None:
    found = inside()
    assert len(found) > 50
    assert [message for one in found if (message := fault(one))] == []


@pytest.mark.parametrize(
    ("part", "line", "wrong"),
    [
        ("plan", "from roundel.policies.arms import Arms", True),
        ("policies", "from roundel.run import Run", True),
        ("policies", "def f():\n    from roundel.preferences import x\n    import roundel.simulation.trial", True),
        ("tournament", "from roundel.simulation import simulate", True),
        ("run", "from roundel import Plan", True),
        ("simulation", "import roundel.plots", True),
        ("simulation", "def plot():\n    import roundel.plots", False),
        ("run", "from roundel.policies.registry import parse", False),
        ("tally", "from roundel.plan import Plan", False),
        ("cli", "import roundel", False),
    ],
)
def test_the_rule_itself_finds_what_points_up(part: str, line: str, wrong: bool) -> None:
    faults = [
        fault(Import("here", part, tuple(name.split(".")[1:]), names, lazy))
        for name, names, _, lazy in imports_of(SOURCE / f"{part}.py", line)
    ]
    assert any(faults) is wrong


POLICY_MUST_NOT_KNOW = {
    *("time", "datetime", "random", "secrets", "os", "io", "sys", "pathlib", "sqlite3", "socket", "threading"),
    "roundel.preferences",
}


def test_a_policy_does_no_io_reads_no_clock_and_never_sees_the_preferences() -> None:
    files = sorted((SOURCE / "policies").rglob("*.py"))
    assert len(files) > 8
    seen = [(path.name, name) for path in files for name, *_ in imports_of(path)]
    assert [one for one in seen if one[1] in POLICY_MUST_NOT_KNOW or one[1].startswith("numpy.random")] == []
    for path in files:
        names = {ast.unparse(n) for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Attribute)}
        assert not {name for name in names if name.startswith(("np.random", "numpy.random"))}, path.name


def test_one_place_knows_about_numba() -> None:
    knows = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for name, *_ in imports_of(path)
        if name.split(".")[0] == "numba"
    }
    assert knows <= {"_jit.py"}


HEAVY = {
    *(
        "numba",
        "llvmlite",
        "matplotlib",
        "fastapi",
        "starlette",
        "uvicorn",
        "jinja2",
        "pydantic",
        "sqlite3",
        "pysqlite3",
    ),
    *(
        "psycopg",
        "joblib",
        "pyarrow",
        "polars",
        "pandas",
        "duckdb",
        "scipy",
        "openai",
        "httpx",
        "typer",
        "rich",
        "click",
    ),
    *("asyncio", "multiprocessing", "concurrent.futures", "ssl", "http.client"),
}


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter holds after running `code`, beyond those of numpy alone."""
    script = (
        "import numpy, sys, json; before = set(sys.modules); "
        f"{code}; print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_roundel_loads_nothing_heavy() -> None:
    loaded = loaded_by("import roundel")
    assert "roundel.run" in loaded
    assert loaded & HEAVY == set()
    assert not {name for name in loaded if name.startswith(("roundel.cli", "roundel.web", "roundel.plots"))}


def test_playing_a_batched_run_loads_nothing_heavy() -> None:
    play = "import roundel; r = roundel.Run('c2b-kl', 4, 1000); r.ask(); r.tell([1] * 6); roundel.policies()"
    assert loaded_by(play) & (HEAVY - {"numba", "llvmlite"}) == set()


def test_the_check_for_heavy_parts_would_see_one() -> None:
    assert "sqlite3" in loaded_by("import roundel, sqlite3")
