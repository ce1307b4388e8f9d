"""Python functions and programs as judges: in parallel, failing, dying, lying, interrupted."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from roundel.errors import InputError, JudgeError, StoreError
from roundel.judges import Answer, StopJudging, TryAgain, judge_by_command, judge_with
from roundel.tournament import Duel, Tournament

NAMES = ["a", "b", "c", "d"]


def new(folder: Path, **changes: Any) -> Tournament:
    return Tournament.create(folder / "t.db", "t", NAMES, **{"horizon": 400, "rounds": 2, "seed": 5, **changes})


def right(duel: Duel) -> str:
    return "first" if duel.first.name < duel.second.name else "second"


def test_a_function_plays_a_tournament(tmp_path: Path) -> None:
    with new(tmp_path) as cup:
        summary = judge_with(cup, right, "me")
        assert (summary.stopped, summary.passed) == ("the tournament has ended", 0)
        assert cup.outcome.winner == "a"
        assert cup.status.judges == {"me": summary.counted}
        assert not [one for one in cup.outcome.standings if one.name == "a" and one.losses]
        cup.verify()


def test_an_async_function_waits_for_many_duels_at_once(tmp_path: Path) -> None:
    here = most = 0
    ready = asyncio.Event()

    async def judge(duel: Duel) -> str:
        nonlocal here, most
        here += 1
        most = max(most, here)
        if here == 20:
            ready.set()
        await ready.wait()  # nobody answers before twenty have come: one after the other, this would not end
        here -= 1
        return right(duel)

    with new(tmp_path) as cup:
        assert judge_with(cup, judge, workers=20, limit=60).counted == 60
    assert most == 20


def test_an_object_with_an_async_call_is_a_judge(tmp_path: Path) -> None:
    class Judge:
        async def __call__(self, duel: Duel) -> Answer:
            await asyncio.sleep(0)
            return Answer(right(duel), cost=0.5, note="sure")

    with new(tmp_path) as cup:
        summary = judge_with(cup, Judge(), "object", limit=4)
        assert (summary.counted, summary.cost, cup.status.cost) == (4, 2.0, 2.0)


def test_one_that_fails_is_asked_again(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()

    def flaky(duel: Duel) -> str:
        seen[duel.id] += 1
        if seen[duel.id] == 1:
            raise TryAgain("busy", after=0.0)
        return right(duel)

    with new(tmp_path) as cup:
        summary = judge_with(cup, flaky, limit=10)
        assert summary.counted == 10
        assert set(seen.values()) == {2}


@pytest.mark.parametrize("answer", [None, "left", 1, True, {"verdict": "maybe"}, {}])
def test_what_is_no_verdict_is_passed_on_and_offered_again(tmp_path: Path, answer: Any) -> None:
    with new(tmp_path) as cup:
        summary = judge_with(cup, lambda duel: answer, "odd", limit=3, retries=0)
        assert (summary.counted, summary.passed) == (0, 3)
        assert cup.status.verdicts["rejected"] == 3
        assert cup.status.leased == 0
        assert judge_with(cup, right).stopped == "the tournament has ended"


def test_a_judge_that_never_answers_is_given_up(tmp_path: Path) -> None:
    asked = []

    def broken(duel: Duel) -> str:
        asked.append(duel.id)
        raise ValueError("broken")

    said: list[str] = []
    with new(tmp_path) as cup:
        summary = judge_with(cup, broken, retries=0, workers=1, patience=5, say=said.append)
        assert "5 duels in a row without a verdict; the last: ValueError: broken" in summary.stopped
        assert len(asked) == 5
        assert len(said) == 5


def test_a_judge_may_stop_the_session(tmp_path: Path) -> None:
    count = 0

    def tired(duel: Duel) -> str:
        nonlocal count
        count += 1
        if count > 3:
            raise StopJudging("enough")
        return right(duel)

    with new(tmp_path) as cup:
        summary = judge_with(cup, tired, workers=1)
        assert (summary.counted, summary.stopped) == (3, "enough")
        assert cup.status.leased == 0


def test_a_paid_function_is_not_asked_twice(tmp_path: Path) -> None:
    """It fails after it was paid: nobody knows, so it is left alone, until somebody says again."""
    seen: Counter[str] = Counter()

    def paid(duel: Duel) -> Answer:
        seen[duel.id] += 1
        number = list(seen).index(duel.id)
        if seen[duel.id] == 1 and number in (3, 13):
            raise OSError("the line went dead")
        if seen[duel.id] == 1 and number in (5, 15):
            raise TryAgain("busy, nothing charged", after=0.0)
        return Answer(right(duel), cost=1.0)

    with new(tmp_path) as cup:
        summary = judge_with(cup, paid, "p", paid=True, limit=20, workers=1)
        assert [number for number, times in enumerate(seen.values()) if times != 1] == [5, 15]
        assert (summary.counted, summary.passed, summary.in_doubt) == (18, 2, 2)
        assert summary.cost == cup.status.cost == 18.0
        judge_with(cup, paid, "p", paid=True, workers=1, limit=3)
        lost = list(seen)[3]
        assert seen[lost] == 1
        judge_with(cup, paid, "p", paid=True, workers=1, again=True, limit=30)
        assert seen[lost] == 2
        cup.verify()


def test_without_paid_a_failure_is_asked_again(tmp_path: Path) -> None:
    """The negative control of the test above."""
    seen: Counter[str] = Counter()

    def flaky(duel: Duel) -> str:
        seen[duel.id] += 1
        if seen[duel.id] == 1:
            raise OSError("the line went dead")
        return right(duel)

    with new(tmp_path) as cup:
        assert judge_with(cup, flaky, "f", workers=1, limit=2).counted == 2
        assert set(seen.values()) == {2}


def test_a_store_that_fails_ends_the_session(tmp_path: Path) -> None:
    with new(tmp_path) as cup:

        def full(*_: Any, **__: Any) -> Any:
            raise StoreError("the disk is full")

        cup.tell = full  # type: ignore[method-assign]
        with pytest.raises(StoreError, match="full"):
            judge_with(cup, right)


def test_two_judges_share_a_round(tmp_path: Path) -> None:
    with new(tmp_path, overlap=2) as cup:
        both = [
            threading.Thread(target=judge_with, args=(cup, right, name), kwargs={"wait": 20.0}) for name in ("x", "y")
        ]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        judges = cup.status.judges
        assert judges["x"] == judges["y"] == sum(judges.values()) / 2
        assert cup.outcome.winner == "a"


INTERRUPTED = """
import sys, time
from roundel.judges import judge_with
from roundel.tournament import Tournament

def slow(duel):
    sys.stdout.write("asked\\n"); sys.stdout.flush()
    time.sleep(0.3)
    return "first" if duel.first.name < duel.second.name else "second"

with Tournament.open(sys.argv[1]) as cup:
    print(judge_with(cup, slow, "slow", workers=3).to_json(), flush=True)
"""


def test_ctrl_c_delivers_what_is_under_way(tmp_path: Path) -> None:
    new(tmp_path).disconnect()
    (tmp_path / "run.py").write_text(INTERRUPTED)
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "run.py"), str(tmp_path / "t.db")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for _ in range(4):
            assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.returncode == 0
    asked = 4 + rest.count("asked")
    with Tournament.open(tmp_path / "t.db") as cup:
        status = cup.status
        assert status.verdicts["counted"] == asked  # all of them, and nothing new was begun afterwards
        assert "'stopped': 'interrupted'" in rest
        assert status.leased == 0
        cup.verify()


def test_a_second_ctrl_c_leaves_at_once(tmp_path: Path) -> None:
    new(tmp_path).disconnect()
    (tmp_path / "run.py").write_text(INTERRUPTED.replace("time.sleep(0.3)", "time.sleep(600)"))
    line = [sys.executable, str(tmp_path / "run.py"), str(tmp_path / "t.db")]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        while process.poll() is None:  # one that came before the first was taken would be lost among it
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in (process.stderr.read() if process.stderr else "")
    with Tournament.open(tmp_path / "t.db") as cup:
        assert cup.status.verdicts["counted"] == 0
        cup.verify()


# programs -----------------------------------------------------------------------------------------------------

PROGRAM = """
import json, os, sys
mark = os.environ.get("MARK", "")
def first_time(what):
    path = f"{mark}.{what}"
    if os.path.exists(path):
        return False
    open(path, "w").close()
    return True
for line in sys.stdin:
    duel = json.loads(line)
    duel["verdict"] = "first" if duel["first"]["name"] < duel["second"]["name"] else "second"
    BODY
    print(json.dumps(duel), flush=True)
"""


def program(folder: Path, body: str = "pass", **environment: str) -> list[str]:
    path = folder / "judge.py"
    path.write_text(PROGRAM.replace("BODY", body))
    pairs = [f"{name}={value}" for name, value in environment.items()]
    return ["env", f"MARK={folder / 'mark'}", *pairs, sys.executable, str(path)]


def test_a_program_plays_a_tournament(tmp_path: Path) -> None:
    with new(tmp_path) as cup:
        summary = judge_by_command(cup, program(tmp_path), "prog", processes=2, workers=6)
        assert (summary.stopped, summary.nonsense) == ("the tournament has ended", 0)
        assert cup.outcome.winner == "a"
        assert cup.status.judges == {"prog": summary.counted}
        cup.verify()


def test_answers_may_come_in_any_order(tmp_path: Path) -> None:
    body = """
    held = globals().setdefault("held", [])
    held.append(json.dumps(duel))
    if len(held) < 4:
        continue
    for text in reversed(held):
        print(text, flush=True)
    held.clear()
    continue
"""
    with new(tmp_path) as cup:
        assert judge_by_command(cup, program(tmp_path, body.strip()), workers=4, limit=40).counted == 40
        assert all(one.losses == 0 for one in cup.outcome.standings if one.name == "a")


def test_one_that_dies_is_started_again(tmp_path: Path) -> None:
    said: list[str] = []
    body = 'os.kill(os.getpid(), 9) if first_time("died") else None'
    with new(tmp_path) as cup:
        summary = judge_by_command(cup, program(tmp_path, body), workers=1, limit=10, say=said.append)
        assert (summary.counted, summary.passed) == (10, 0)
    assert len([line for line in said if "by signal 9" in line]) == 1


def test_one_that_keeps_dying_is_given_up(tmp_path: Path) -> None:
    with new(tmp_path) as cup:
        summary = judge_by_command(cup, [sys.executable, "-c", "raise SystemExit(3)"], retries=1)
        assert "ended 5 times without an answer" in summary.stopped
        assert summary.counted == 0
        assert cup.status.leased == 0


def test_one_that_hangs_is_ended(tmp_path: Path) -> None:
    said: list[str] = []
    body = '__import__("time").sleep(600) if first_time("hung") else None'
    with new(tmp_path) as cup:
        summary = judge_by_command(cup, program(tmp_path, body), workers=1, limit=6, timeout=2.0, say=said.append)
        assert summary.counted == 6
    assert any("no answer to duel" in line and "within 2 s" in line for line in said)


def test_one_that_does_not_even_read_is_ended(tmp_path: Path) -> None:
    """A duel that is larger than a pipe is not written to its end; three workers wait for the same program."""
    options = [{"name": name, "text": name * 200_000} for name in NAMES]
    said: list[str] = []
    with Tournament.create(tmp_path / "t.db", "t", options, horizon=400, rounds=2) as cup:
        started = time.monotonic()
        summary = judge_by_command(cup, "sleep 60", workers=3, timeout=0.5, retries=1, limit=3, say=said.append)
        assert time.monotonic() - started < 20
        assert (summary.counted, summary.passed) == (0, 3)
    assert any("no answer to duel" in line for line in said)


def test_a_paid_program_that_dies_is_not_asked_again(tmp_path: Path) -> None:
    body = 'os.kill(os.getpid(), 9) if first_time("died") else None'
    with new(tmp_path) as cup:
        summary = judge_by_command(cup, program(tmp_path, body), "p", workers=1, limit=10, paid=True)
        assert (summary.counted, summary.passed, summary.in_doubt) == (9, 1, 1)


def test_nonsense_is_reported_and_not_counted(tmp_path: Path) -> None:
    said: list[str] = []
    body = """
    if first_time("one"):
        print("loading the model ...", flush=True)
        print('{"duel": "9.9", "verdict": "first"}', flush=True)
        print(json.dumps({**duel, "token": "forged"}), flush=True)
        print('{"duel": "1.1", "duel": "1.2"}', flush=True)
        sys.stdout.buffer.write(b"\\xff\\xfe\\n")
    elif first_time("two"):
        duel["verdict"] = "both, really"
"""
    with new(tmp_path) as cup:
        summary = judge_by_command(cup, program(tmp_path, body.strip()), workers=1, limit=5, say=said.append)
        assert (summary.counted, summary.passed, summary.nonsense) == (4, 1, 6)
        assert cup.status.verdicts == {"counted": 4, "late": 0, "surplus": 0, "rejected": 1}
    for word in ("loading the model", "9.9", "another token", "stands twice"):
        assert any(word in line for line in said), word


@pytest.mark.parametrize("fields", ['"cost": -1', '"cost": "much"', '"cost": 1e400', '"note": 7', '"judge": "\\n"'])
def test_costs_and_notes_that_are_none(tmp_path: Path, fields: str) -> None:
    """What the store would refuse passes the duel on; it does not end the session."""
    body = f"if first_time('odd'): print(json.dumps(duel)[:-1] + ', ' + {fields!r} + '}}', flush=True); continue"
    with new(tmp_path) as cup:
        summary = judge_by_command(cup, program(tmp_path, body), workers=1, limit=3, timeout=1.0, retries=0)
        assert (summary.counted, summary.passed) == (2, 1)


def test_a_duel_that_outlasts_its_lease_is_judged_once(tmp_path: Path) -> None:
    asked: Counter[str] = Counter()

    def slow(duel: Duel) -> str:
        asked[duel.id] += 1
        time.sleep(0.15)
        return right(duel)

    with new(tmp_path) as cup:
        summary = judge_with(cup, slow, workers=3, limit=9, lease=0.05)
        assert summary.counted == 9
        assert max(asked.values()) == 1


def test_a_program_that_only_talks_is_given_up(tmp_path: Path) -> None:
    with new(tmp_path) as cup, pytest.MonkeyPatch.context() as patch:
        patch.setattr("roundel.judges.command.GRACE", 0.2)
        summary = judge_by_command(cup, ["yes"], timeout=30.0)
        assert "lines in a row that answer nothing" in summary.stopped


def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    """What a shell would do with these words does not happen, neither in the command nor in the contents."""
    trap = tmp_path / "trap"
    options = {"a": f"$(touch {trap})", "b": f"`touch {trap}`; touch {trap}"}
    line = f"{' '.join(program(tmp_path))} $(touch {trap}) ; touch {trap}"
    with Tournament.create(tmp_path / "s.db", "s", options, horizon=40, rounds=2) as cup:
        assert judge_by_command(cup, line, "j", limit=4).counted == 4
    assert not trap.exists()


def test_commands_that_cannot_run(tmp_path: Path) -> None:
    with new(tmp_path) as cup:
        assert "cannot be started" in judge_by_command(cup, "no-such-program").stopped
        with pytest.raises(InputError, match="empty"):
            judge_by_command(cup, "  ")
        with pytest.raises(InputError, match="close its quotes"):
            judge_by_command(cup, "cat 'a b")
        with pytest.raises(InputError, match="timeout"):
            judge_by_command(cup, "cat", timeout=0)
        with pytest.raises(JudgeError):
            judge_by_command(cup, "cat", "two\nlines")


def test_nothing_is_left_running(tmp_path: Path) -> None:
    """A program that starts another one and ignores the end of its input."""
    script = tmp_path / "stay.py"
    script.write_text(
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        + PROGRAM.replace("BODY", "pass")
        + "\ntime.sleep(600)\n"
    )
    with new(tmp_path) as cup, pytest.MonkeyPatch.context() as patch:
        patch.setattr("roundel.judges.command.GRACE", 0.2)
        assert judge_by_command(cup, [sys.executable, str(script)], limit=2).counted == 2
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    until = time.monotonic() + 20
    while any(_alive(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(_alive(pid) for pid in pids)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_command_line(tmp_path: Path) -> None:
    new(tmp_path).disconnect()
    command = " ".join(program(tmp_path))
    line = [sys.executable, "-m", "roundel", "judge", str(tmp_path / "t.db"), "t", "--command", command, "-n", "7"]
    done = subprocess.run([*line, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["counted"] == 7
    bad = subprocess.run(line[:6], capture_output=True, text=True)
    assert bad.returncode == 2
    assert "--command or --model" in bad.stderr
    assert os.listdir(tmp_path)
