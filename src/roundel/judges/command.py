"""A program as judge: duels go to its standard input as lines of JSON, answers come back on its standard output."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from concurrent.futures import TimeoutError as WaitedTooLong
from typing import IO, Any

from roundel._check import whole
from roundel.errors import InputError, JudgeError, RoundelError
from roundel.judges.answers import Answer, StopJudging
from roundel.judges.callable import judge_with
from roundel.judges.session import Say, Summary
from roundel.tournament import Duel, Tournament
from roundel.tournament.files import parse_json

LONGEST_LINE = 32 * 2**20  # bytes
MOST_NONSENSE = 20  # lines in a row that answer nothing
MOST_DEATHS = 5  # in a row, without an answer between them
GRACE = 5.0  # seconds that a program gets to end by itself


def judge_by_command(
    cup: Tournament,
    command: str | Sequence[str],
    name: str | None = None,
    *,
    processes: int = 1,
    timeout: float = 60.0,
    workers: int | None = None,
    say: Say | None = None,
    **options: Any,
) -> Summary:
    """Let a program judge the duels of a tournament; the arguments of `judge_with` and `Session` apply.

    `command` is split like a shell would, but no shell runs, and nothing of a duel ever stands on its command line.
    Each of `processes` copies is given a line a duel, and gives the line back with "verdict" added, in any order;
    `workers` duels (by default one a process) are with them at once. One that dies, or has not answered after
    `timeout` seconds, is started again.
    """
    try:
        line = shlex.split(command) if isinstance(command, str) else [str(part) for part in command]
    except ValueError as error:
        raise InputError(f"the command {command!r} cannot be split into words ({error}): close its quotes") from None
    if not line:
        raise InputError("the command is empty: give the program to run")
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
        raise InputError(f"timeout is {timeout!r}: it is the seconds that an answer may take, more than 0")
    count = whole("processes", processes, least=1, most=1_000)
    tell = say or (lambda _: None)
    team = [_Program(line, float(timeout), tell) for _ in range(count)]
    try:
        summary = judge_with(
            cup, _Team(team), name or os.path.basename(line[0]), workers=workers or count, say=tell, **options
        )
    finally:
        for program in team:
            program.close()
    summary.nonsense += sum(program.nonsense for program in team)
    return summary


class _Team:
    """Gives each duel to the program that has the fewest."""

    def __init__(self, programs: list[_Program]) -> None:
        self._programs = programs
        self._load = [0] * len(programs)
        self._lock = threading.Lock()

    def __call__(self, duel: Duel) -> Answer:
        with self._lock:
            at = min(range(len(self._programs)), key=self._load.__getitem__)
            self._load[at] += 1
        try:
            return self._programs[at].ask(duel)
        finally:
            with self._lock:
                self._load[at] -= 1


class _Program:
    """One running copy of a program, started again when it dies."""

    def __init__(self, line: list[str], timeout: float, say: Say) -> None:
        self._line = line
        self._timeout = timeout
        self._say = say
        self._lock = threading.Lock()  # around starting, ending and the table of who waits
        self._write = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: dict[str, tuple[Duel, Future[Answer], subprocess.Popen[bytes]]] = {}
        self._buried: list[subprocess.Popen[bytes]] = []
        self._deaths = 0
        self._junk = 0
        self.nonsense = 0

    def ask(self, duel: Duel) -> Answer:
        """Have one duel judged; `JudgeError` when the program died over it."""
        future: Future[Answer] = Future()
        with self._lock:
            process = self._running()
            self._waiting[duel.id] = (duel, future, process)
        text = json.dumps(duel.to_json(), ensure_ascii=False, allow_nan=False) + "\n"
        late = f"no answer to duel {duel.id} within {self._timeout:g} s"
        alarm = threading.Timer(self._timeout, self._bury, (process, late))  # for one that does not even read
        alarm.daemon = True
        alarm.start()
        try:
            with self._write:
                assert process.stdin is not None  # it was started with a pipe
                process.stdin.write(text.encode())
                process.stdin.flush()
        except (OSError, ValueError):
            self._bury(process, "it closed its input")
        finally:
            alarm.cancel()
        try:
            return future.result(self._timeout)
        except WaitedTooLong:
            self._bury(process, late)
            raise JudgeError(f"no answer within {self._timeout:g} s") from None
        finally:
            with self._lock:
                if self._waiting.get(duel.id, (None, None, None))[1] is future:
                    del self._waiting[duel.id]

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        if self._deaths >= MOST_DEATHS:
            raise StopJudging(f"{self._line[0]} ended {self._deaths} times without an answer: try it by hand")
        try:
            process = subprocess.Popen(
                self._line,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for us: the program first finishes what it has
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise StopJudging(f"{self._line[0]} cannot be started ({reason}): check the command") from None
        self._process = process
        threading.Thread(target=self._listen, args=(process,), name="judge-listen", daemon=True).start()
        return process

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None  # it was started with a pipe
        with process.stdout as out:
            while True:
                line = _read_line(out)
                if line is None:
                    break
                self._hear(line)
        self._bury(process, "it ended")

    def _hear(self, line: bytes) -> None:
        """Match a line with the duel that it answers."""
        if not line.strip():
            return
        try:
            value = parse_json(line.decode())
            if not isinstance(value, dict) or "duel" not in value:
                raise ValueError('no object with "duel"')
            with self._lock:
                name = value["duel"] if isinstance(value["duel"], str) else ""
                duel, future, _ = self._waiting.get(name, (None, None, None))
            if duel is None or future is None:
                raise ValueError(f"duel {value['duel']!r} is not waiting for an answer")
            if value.get("token", duel.token) != duel.token:
                raise ValueError(f"duel {duel.id} came back with another token")
        except (ValueError, RecursionError) as error:
            self.nonsense += 1
            self._junk += 1
            shown = line[:200].decode(errors="replace").strip()
            self._say(f"{self._line[0]}: a line that answers nothing ({error}): {shown}")
            if self._junk >= MOST_NONSENSE:
                self._fail(StopJudging(f"{self._line[0]} wrote {self._junk} lines in a row that answer nothing"), None)
            return
        raw = line.decode().strip()
        try:
            answer = Answer.of(value)
            result = Answer(answer.verdict, answer.cost, answer.note, raw, judge=answer.judge)
        except RoundelError as error:
            self.nonsense += 1
            result = Answer(None, note=str(error), body=raw)
        else:
            self._junk = self._deaths = 0
        with contextlib.suppress(InvalidStateError):  # its time is over
            future.set_result(result)

    def _fail(self, error: JudgeError, process: subprocess.Popen[bytes] | None) -> None:
        """Let those who wait for a process, or for any, know that it will not answer."""
        with self._lock:
            waiting = [future for _, future, whose in self._waiting.values() if process in (None, whose)]
        for future in waiting:
            with contextlib.suppress(InvalidStateError):  # answered meanwhile
                future.set_exception(error)

    def _bury(self, process: subprocess.Popen[bytes], why: str) -> None:
        """End a program, once; whoever waits for it tries again."""
        with self._lock:
            if process in self._buried:
                return
            self._buried.append(process)
            self._deaths += 1
            if self._process is process:
                self._process = None
        _end(process, 0.0)
        status = process.returncode
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        self._say(f"{self._line[0]}: {why} ({how}); it is started again when it is needed")
        self._fail(JudgeError(f"{self._line[0]} ended {how}"), process)

    def close(self) -> None:
        """Let the program end by itself, then end it."""
        with self._lock:
            process, self._process = self._process, None
            self._buried += [process] if process is not None else []
        if process is not None:
            with contextlib.suppress(OSError):
                if process.stdin is not None:
                    process.stdin.close()
            _end(process, GRACE)


def _read_line(out: IO[bytes]) -> bytes | None:
    try:
        line = out.readline(LONGEST_LINE)
    except (OSError, ValueError):
        return None
    return line or None


def _end(process: subprocess.Popen[bytes], grace: float) -> None:
    """Wait for a program and whatever it has started, then kill them."""
    steps: tuple[tuple[Callable[[], None] | None, float], ...] = (
        (None, grace),
        (lambda: os.killpg(process.pid, signal.SIGTERM), 1.0),
        (lambda: os.killpg(process.pid, signal.SIGKILL), 10.0),
    )
    for act, patience in steps:
        if act is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                act()
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
        break
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # what it left behind
    with contextlib.suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
