"""The examples and the README's Python run, and say what they promise."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def run(code: list[str], cwd: Path) -> str:
    done = subprocess.run([sys.executable, "-W", "error", *code], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_ask_and_tell_finds_the_strongest(tmp_path: Path) -> None:
    assert "winner: arm 0" in run([str(ROOT / "examples" / "ask_and_tell.py")], tmp_path)


def test_a_policy_of_ones_own_runs_like_any_other(tmp_path: Path) -> None:
    lines = run([str(ROOT / "examples" / "own_policy.py")], tmp_path).splitlines()
    assert [line.split()[0] for line in lines] == ["one-shot", "one-shot:share=0.1", "c2b-kl:defeat=majority"]
    assert all("winner ranker 0" in line for line in lines)
    alone = "import own_policy, roundel; print(roundel.Run('one-shot', 1, 10).winner)"
    assert run(["-c", f"import sys; sys.path.insert(0, {str(ROOT / 'examples')!r}); {alone}"], tmp_path) == "0\n"


def test_the_readme_shows_what_its_simulation_prints(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    code, printed = re.search(r"```python\n([^`]*rd.compare.*?)```.*?```\n(.*?)```", readme, re.DOTALL).groups()
    assert run(["-c", code], tmp_path) == printed


PAGES = (ROOT / "README.md").read_text() + (ROOT / "docs" / "simulation.md").read_text()


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGES, re.DOTALL))
def test_the_python_of_the_readme_and_of_the_simulation_page_runs(block: str, tmp_path: Path) -> None:
    run(["-c", block], tmp_path)
