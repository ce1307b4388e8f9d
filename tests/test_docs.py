"""The documentation builds without a warning, and nothing that people can call is missing from it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from typer.main import get_command

import roundel
from roundel import datasets, errors, judges, simulation, tournament
from roundel.cli import app

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    code = [sys.executable, "-m", "sphinx", "-W", "-q", "-d", str(folder / "cache"), str(DOCS), str(folder / "html")]
    done = subprocess.run(code, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "html"


def commands(command: object, path: str) -> Iterator[tuple[str, list[str]]]:
    """Every command, with what its options are called."""
    below = getattr(command, "commands", None)
    if below is None:
        yield path, [option for parameter in command.params for option in parameter.opts if option.startswith("-")]
        return
    for name, inner in below.items():
        yield from commands(inner, f"{path} {name}")


def test_every_command_and_option_is_documented(built: Path) -> None:
    page = unescape((built / "commands.html").read_text())
    sections = {part.partition("<")[0]: part for part in page.split("<h2>")[1:]}
    for name, options in commands(get_command(app), "roundel"):
        assert name in sections
        assert [option for option in options if option not in sections[name]] == []


def test_every_option_says_what_it_is_for() -> None:
    def silent(command: object) -> Iterator[str]:
        for inner in getattr(command, "commands", {}).values():
            if not inner.help:
                yield inner.name
            yield from (f"{inner.name} {p.name}" for p in inner.params if not p.help)
            yield from silent(inner)

    assert list(silent(get_command(app))) == []


def test_every_value_of_an_option_has_a_name_for_people() -> None:
    def nameless(command: object) -> Iterator[str]:
        for inner in getattr(command, "commands", {}).values():
            valued = (p for p in inner.params if p.opts != ["--help"] and not getattr(p, "is_flag", False))
            yield from (f"{inner.name} {p.name}" for p in valued if not p.metavar)
            yield from nameless(inner)

    assert list(nameless(get_command(app))) == []


def test_every_policy_is_documented(built: Path) -> None:
    page = unescape((built / "policies.html").read_text())
    assert [name for name in roundel.policies() if f"<h3>{name}<" not in page] == []


@pytest.mark.parametrize(
    "module", [roundel, datasets, errors, judges, simulation, tournament], ids=lambda m: m.__name__
)
def test_every_public_name_is_documented(built: Path, module: object) -> None:
    page = (built / "reference.html").read_text()
    names = getattr(module, "__all__", None) or [n for n, v in vars(module).items() if isinstance(v, type)]
    anchors = {part.partition('"')[0].rpartition(".")[2] for part in page.split(' id="roundel.')[1:]}
    assert [name for name in names if not name.startswith("__") and name not in anchors] == []


PROSE = {"as", "finds", "tells"}  # "import roundel as rd", "roundel finds the best"


def calls(text: str) -> list[list[str]]:
    """The words after `roundel` wherever a page calls it: in a block or in backticks, first or in a pipe."""
    found = re.findall(r"(?:^|[\s`|&(!])roundel +([a-z]+\b[^`|&>;\n]*)", text, re.MULTILINE)
    return [words for line in found if (words := line.partition(" #")[0].split())[0] not in PROSE]


def unknown(words: list[str]) -> set[str]:
    """What of a call does not exist: its command, or else its options."""
    known = {path.removeprefix("roundel "): set(options) for path, options in commands(get_command(app), "roundel")}
    name = next((name for name in (" ".join(words[:2]), words[0]) if name in known), None)
    options = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    return {words[0]} if name is None else options - known[name]


def test_every_command_that_a_page_shows_exists_with_its_options() -> None:
    root = DOCS.parent
    pages = [root / "README.md", *sorted(DOCS.glob("*.md")), *sorted((root / "examples").glob("*.*"))]
    shown = [(page.name, words) for page in pages for words in calls(page.read_text())]
    assert len(shown) > 40
    assert [one for one in shown if unknown(one[1])] == []


@pytest.mark.parametrize(
    "line", ["roundel repotr a.db b", "x | roundel tell a.db b --colums c", "`roundel new a -x 1`"]
)
def test_the_check_would_see_a_call_that_does_not_exist(line: str) -> None:
    assert all(unknown(words) for words in calls(line))
    assert len(calls(line)) == 1
