"""The example judges run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from roundel.judges import ModelSettings, judge_by_command
from roundel.tournament import Tournament

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_function(tmp_path: Path) -> None:
    line = [sys.executable, "-W", "error", str(EXAMPLES / "function_judge.py")]
    done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "winner plain" in done.stdout


def test_a_command_in_shell(tmp_path: Path) -> None:
    if shutil.which("jq") is None:
        pytest.skip("there is no jq: install Debian's package jq")
    with Tournament.create(tmp_path / "t.db", "t", {"x": "short", "y": "much longer"}, horizon=40, rounds=2) as cup:
        assert judge_by_command(cup, [str(EXAMPLES / "command_judge.sh")], workers=3).nonsense == 0
        assert cup.outcome.leader == "x"


def test_the_settings_of_a_model() -> None:
    settings = ModelSettings.from_file(EXAMPLES / "model_judge.toml", cap=1.0)
    assert (settings.cap, settings.orders, settings.fields_of_request()["max_completion_tokens"]) == (1.0, "both", 4096)
