"""The commands around judges: send, fetch, replay, report; and a session that is told to end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roundel.cli import app
from roundel.cli.judging import tell_log_or_counts
from roundel.errors import InputError
from roundel.tournament import Tournament

runner = CliRunner()


def new(folder: Path) -> str:
    path = folder / "t.db"
    Tournament.create(path, "a tone/1", ["a", "b", "c"], horizon=90, rounds=2, seed=1).disconnect()
    return str(path)


def test_send_and_fetch(tmp_path: Path) -> None:
    store = new(tmp_path)
    out = tmp_path / "m.jsonl"
    sent = runner.invoke(app, ["send", store, "a tone/1", "--out", str(out), "-n", "4"])
    assert sent.exit_code == 0, sent.output
    assert "4 duels" in sent.output
    rows = [{**json.loads(line), "verdict": "tie"} for line in out.read_text().splitlines()]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    fetched = runner.invoke(app, ["fetch", store, "a tone/1", str(tmp_path / "r.jsonl"), "--json"])
    assert json.loads(fetched.output)["became"] == {"counted": 4}
    tasks = runner.invoke(app, ["send", store, "a tone/1", "--as", "label-studio", "--out", str(tmp_path / "l.json")])
    assert "l.xml" in tasks.output
    assert (tmp_path / "l.xml").exists()


def test_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = new(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = runner.invoke(app, ["report", store, "a tone/1"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "a tone_1.html").read_text().startswith("<!DOCTYPE html>")


def test_replay(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("x,y,w\n" + "p,q,p\n" * 200 + "p,q,q\n" * 20)
    line = ["replay", str(tmp_path / "l.csv"), "--first", "x", "--second", "y", "--verdict", "w", "--repeats", "5"]
    shown = runner.invoke(app, line)
    assert "220 votes on 2 options; the log favours p" in shown.output
    assert json.loads(runner.invoke(app, [*line, "--json"]).output)["favourite"] == "p"


def test_logs_and_counts(tmp_path: Path) -> None:
    store = new(tmp_path)
    (tmp_path / "l.csv").write_text("first,second,pick\na,b,a\n")
    told = tell_log_or_counts(store, "a tone/1", str(tmp_path / "l.csv"), None, "verdict=pick")
    assert told.counted == 1
    (tmp_path / "c.csv").write_text("first,second,wins,losses,ties\na,c,1,1,1\n")
    assert tell_log_or_counts(store, "a tone/1", None, tmp_path / "c.csv").counted == 3
    with pytest.raises(InputError, match="either"):
        tell_log_or_counts(store, "a tone/1", None, None)


@pytest.mark.parametrize("line", [["--command", "cat", "--model", "m"], []])
def test_one_kind_of_judge_at_a_time(tmp_path: Path, line: list[str]) -> None:
    assert runner.invoke(app, ["judge", new(tmp_path), "a tone/1", *line]).exit_code == 2


@pytest.mark.parametrize(
    ("command", "status", "why"),
    [
        ("./not-there", 1, "cannot be started"),
        (f"{sys.executable} -c pass", 1, "ended"),
        ('sed -u \'s/}$/, "verdict": "tie"}/\'', 0, "the tournament has ended"),
    ],
)
def test_the_status_says_whether_the_judge_could_go_on(tmp_path: Path, command: str, status: int, why: str) -> None:
    done = runner.invoke(app, ["judge", new(tmp_path), "a tone/1", "--command", command])
    assert (done.exit_code, why in done.output) == (status, True), done.output


def test_a_model_without_a_key_or_with_bad_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ROUNDEL_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    store = new(tmp_path)
    line = ["judge", store, "a tone/1", "--model", "m"]
    assert "no API key" in str(runner.invoke(app, line).exception)
    assert "two numbers" in str(runner.invoke(app, [*line, "--prices", "cheap"]).exception)
    assert "needs prices" in str(runner.invoke(app, [*line, "--cap", "1"]).exception)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["verdicts.jsonl", "--log", "clicks.csv"], "FILE is 'verdicts.jsonl'"),
        (["verdicts.jsonl", "--counts", "counts.csv"], "FILE is 'verdicts.jsonl'"),
        (["--counts", "counts.csv", "--columns", "first=a"], "--columns is 'first=a'"),
        (["--since", "2026-01-01"], "give --log with it"),
        (["--until", "2026-01-01"], "give --log with it"),
    ],
)
def test_what_tell_would_pass_over_is_refused(tmp_path: Path, line: list[str], message: str) -> None:
    done = runner.invoke(app, ["tell", new(tmp_path), "a tone/1", *line], input="")
    assert isinstance(done.exception, InputError)
    assert message in str(done.exception)


def test_sigterm_ends_a_session_cleanly(tmp_path: Path) -> None:
    store = new(tmp_path)
    script = tmp_path / "slow.py"
    script.write_text(
        "import json, sys, time\n"
        "for line in sys.stdin:\n"
        "    duel = json.loads(line)\n"
        "    print('asked', file=sys.stderr, flush=True)\n"
        "    time.sleep(0.2)\n"
        "    print(json.dumps({**duel, 'verdict': 'first'}), flush=True)\n"
    )
    line = [sys.executable, "-m", "roundel", "judge", store, "a tone/1", "--command", f"{sys.executable} {script}"]
    with subprocess.Popen([*line, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for _ in range(2):
            assert "asked" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate()
    summary = json.loads(out)
    assert process.returncode == 130
    assert summary["stopped"] == "interrupted"
    assert summary["counted"] == 2 + err.count("asked")  # what was under way was delivered
    with Tournament.open(store) as cup:
        assert cup.status.verdicts["counted"] == summary["counted"]
        assert cup.status.leased == 0
