"""Whoever is told to install an extra finds it in pyproject.toml."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def named_in_code(text: str) -> Iterator[str]:
    """The extras that a module names: the last argument of the two ways to refuse without one, and `extra '...'`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("MissingExtraError", "need"):
            last = node.args[-1]
            if isinstance(last, ast.Constant):
                yield last.value
    yield from mentioned(text)


def mentioned(text: str) -> list[str]:
    return re.findall(r"(?:roundel\[|extra ')(\w+)", text)


def test_every_extra_that_an_error_or_a_page_names_exists() -> None:
    named = {(path.name, name) for path in (ROOT / "src").rglob("*.py") for name in named_in_code(path.read_text())}
    named |= {(page.name, name) for page in PAGES for name in mentioned(page.read_text())}
    assert len(named) > 12
    assert {one for one in named if one[1] not in EXTRAS} == set()


def test_the_check_would_see_an_extra_that_does_not_exist() -> None:
    assert list(named_in_code('raise MissingExtraError("a thing", "nothing")')) == ["nothing"]
    assert mentioned("extra 'nothing', roundel[none]") == ["nothing", "none"]
