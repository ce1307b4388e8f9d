"""The first hour of the docs, run as a reader would: each file written, each command run, each promised line seen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def follow(page: str, folder: Path) -> list[str]:
    """Do what the blocks of a page say; return what each command printed."""
    tools = folder / "bin"
    tools.mkdir()
    for name, code in (("roundel", "-c 'from roundel.cli import main; main()' \"$@\""), ("python", '"$@"')):
        (tools / name).write_text(f"#!/bin/sh\nexec {sys.executable} {code}\n")
        (tools / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    printed: list[str] = []
    for kind, text in BLOCK.findall(page):
        target = re.match(r"# file: (\S+)\n", text)
        if target:
            (folder / target[1]).write_text(text)
        elif kind in ("bash", "python"):
            command = ["bash", "-euo", "pipefail", "-c", text] if kind == "bash" else [sys.executable, "-c", text]
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
            printed.append(done.stdout)
        elif kind == "text":
            for line in text.splitlines():
                assert line in printed[-1], f"promised {line!r}, printed:\n{printed[-1]}"
        else:
            pytest.fail(f"a block of kind {kind!r}: nobody runs it")
    return printed


def test_the_first_hour_works(tmp_path: Path) -> None:
    assert len(follow(PAGE.read_text(encoding="utf-8"), tmp_path)) >= 10


@pytest.mark.parametrize("block", ["```bash\nfalse\n```\n", "```bash\necho a\n```\n\n```text\nb\n```\n"])
def test_a_page_that_promises_too_much_fails(tmp_path: Path, block: str) -> None:
    with pytest.raises(AssertionError):
        follow(block, tmp_path)
