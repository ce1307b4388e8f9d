"""What the command line says of itself."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

import roundel
from roundel.cli import app

runner = CliRunner()


def test_the_version_is_shown() -> None:
    assert runner.invoke(app, ["--version"]).output == f"roundel {roundel.__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_help_lists_every_command_once_in_a_sentence_that_fits(arguments: list[str]) -> None:
    text = runner.invoke(app, arguments, env={"COLUMNS": "80"}).output
    listed = re.findall(r"^  ([a-z]+) +(\S.*)$", text.partition("Tournaments:")[2], re.MULTILINE)
    commands = [c.name or c.callback.__name__ for c in app.registered_commands if c.callback]
    assert sorted(name for name, _ in listed) == sorted(
        commands + [group.name or "" for group in app.registered_groups]
    )
    assert all(help.endswith(".") and "..." not in help for _, help in listed)
