"""kill -9 at every statement, faults inside write and fsync, a full disk: nothing acknowledged is lost."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import campaign
from campaign import acknowledged, forked, play, story
from roundel.errors import StoreError, VerifyError
from roundel.tournament import Tournament, open_store
from roundel.tournament.sqlite import SqliteStore
from roundel.tournament.verify import verify_store

NAMES = ["a", "b", "c"]
SMALL: dict[str, Any] = {"horizon": 10, "rounds": 2, "seed": 1}
LATER = 10**6


def small(where: str, clock: Any) -> list[Any]:
    """Make the small campaign in `where`, and return how it must end: as a copy that nothing happens to."""
    with Tournament.create(where, "cup", NAMES, clock=clock, **SMALL) as cup:
        calm = Tournament.create(cup.store, "calm", NAMES, clock=clock, **SMALL)
        play(calm, limit=2)
        return story(calm)


def campaign_until(cup: Tournament, say: Callable[[Any], None]) -> None:
    """Everything that writes: leases, verdicts, repeats, rejections, paid calls, counts."""
    cup.intend("call", "request")
    cup.respond("call", "response", cost=1.0)
    (duel,) = cup.lease(1, "me")
    cup.reject(duel, body="?")
    play(cup, limit=2, say=say)


class DieAt:
    """Kills this process at the n-th statement that it sends to the database."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, *_: Any) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def watch(store: Any, hook: Callable[..., None]) -> None:
    if isinstance(store, SqliteStore):
        store._connection.set_trace_callback(hook)
        return
    connection = store._connection
    execute = connection.execute

    def watched(*arguments: Any, **named: Any) -> Any:
        hook()
        return execute(*arguments, **named)

    connection.execute = watched


def count_statements(where: str, clock: Any) -> int:
    with Tournament.create(where, "rehearsal", NAMES, clock=clock, **SMALL) as cup:
        seen: list[int] = []
        watch(cup.store, lambda *_: seen.append(1))
        campaign_until(cup, lambda receipt: None)
        return len(seen)


def test_kill_at_every_statement(where: str, clock: Any, tmp_path: Path) -> None:
    statements = count_statements(where, clock)
    assert statements > 100
    sqlite = "://" not in where
    step = 1 if sqlite else 3  # a server answers slower; three runs with other offsets would cover the rest
    calm = None
    killed = 0
    place = str(tmp_path / "again.db") if sqlite else where
    for at in range(1, statements + 2, step):
        name = f"cup {at}"
        with Tournament.create(place, name, NAMES, clock=clock, **SMALL):
            pass

        def child(say: Callable[[Any], None], at: int = at, name: str = name) -> None:
            with Tournament.open(place, name, clock=clock) as cup:
                watch(cup.store, DieAt(at))
                campaign_until(cup, say)

        ((status, said),) = forked(child)
        assert status in (0, -signal.SIGKILL)
        killed += status != 0
        clock.ahead(LATER)
        with Tournament.open(place, name, clock=clock) as cup:
            acknowledged(cup, said)
            play(cup)
            cup.verify()
            acknowledged(cup, said)
            calm = story(cup) if calm is None else calm
            assert story(cup) == calm
    assert killed >= (statements - 1) // step


def test_the_check_of_acknowledgements_sees_a_lost_one(where: str, clock: Any) -> None:
    with Tournament.create(where, "cup", NAMES, clock=clock, **SMALL) as cup:
        said: list[Any] = []
        play(cup, say=said.append, most=3)
        acknowledged(cup, said)
        for forged in ({**said[0], "key": "gone"}, {**said[0], "became": "late"}, {**said[0], "digest": "0"}):
            with pytest.raises(AssertionError):
                acknowledged(cup, [forged])


# faults inside system calls ---------------------------------------------------------------------------------

WORKER = """
import json, os, sys
sys.path.insert(0, os.path.dirname(sys.argv[2]))
from campaign import verdict
from roundel.errors import StoreError
from roundel.tournament import Tournament
failures = 0
cup = None
pending = []
while failures < 50:
    try:
        cup = cup or Tournament.open(sys.argv[1], "cup", clock=lambda: 1e6)
        if sys.argv[3:] == ["weak"]:
            cup.store._connection.execute("PRAGMA synchronous=OFF")
        pending = pending or cup.lease(2, "me")
        if not pending:
            break
        print(json.dumps(cup.tell(pending[0], verdict(pending[0])).to_json()), flush=True)
        pending.pop(0)
    except StoreError as error:
        failures += 1
        print(error, file=sys.stderr, flush=True)
print("failures", failures, file=sys.stderr)
"""


def under_strace(where: str, *options: str, weak: bool = False) -> tuple[int, list[Any], str]:
    """Run the worker under strace; return its exit status, what was acknowledged, and what it complained of."""
    import json

    if shutil.which("strace") is None:
        pytest.fail("strace is missing: run tools/system_packages.sh")
    worker = [sys.executable, "-c", WORKER, where, campaign.__file__, *(["weak"] if weak else [])]
    done = subprocess.run(["strace", "-f", "-qq", *options, *worker], capture_output=True, text=True, timeout=120)
    if "PTRACE_TRACEME" in done.stderr or ("ptrace" in done.stderr and "Operation not permitted" in done.stderr):
        pytest.skip("this system does not allow tracing: faults cannot be injected")
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@pytest.mark.parametrize(
    ("call", "when"), [("pwrite64", n) for n in (1, 2, 5, 17, 40)] + [("fsync,fdatasync", n) for n in (1, 2, 5)]
)
@pytest.mark.parametrize("fault", ["signal=SIGKILL", "error=ENOSPC", "error=EIO"])
def test_faults_inside_write_and_fsync(tmp_path: Path, clock: Any, fault: str, call: str, when: int) -> None:
    where = str(tmp_path / "store.db")
    calm = small(where, clock)
    log = ("-o", str(tmp_path / "strace.log"), "-e", f"trace={call}", "-e", f"inject={call}:{fault}:when={when}")
    status, said, complaints = under_strace(where, *log)
    if fault == "signal=SIGKILL":
        assert status != 0
    else:
        assert status == 0, complaints
        assert "INJECTED" in (tmp_path / "strace.log").read_text()
    clock.ahead(LATER)
    with Tournament.open(where, "cup", clock=clock) as cup:
        cup.verify()
        acknowledged(cup, said)
        play(cup)
        cup.verify()
        assert story(cup) == calm


def synced(tmp_path: Path, clock: Any, weak: bool) -> tuple[int, int]:
    """Return how many verdicts a worker acknowledged, and how often it waited for the disk."""
    where = str(tmp_path / f"{weak}.db")
    small(where, clock)
    log = tmp_path / "strace.log"
    _, said, _ = under_strace(where, "-o", str(log), "-e", "trace=fdatasync,fsync", weak=weak)
    return len(said), log.read_text().count("sync(")


def test_every_acknowledgement_waits_for_the_disk(tmp_path: Path, clock: Any) -> None:
    said, waits = synced(tmp_path, clock, weak=False)
    assert 0 < said <= waits
    said, waits = synced(tmp_path, clock, weak=True)
    assert 0 < waits + 1 < said + 3, "the control: without FULL there are fewer waits than acknowledgements"


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
        problem = done.stderr if done.returncode else ""
    except OSError as error:
        problem = str(error)
    if problem:
        pytest.skip(f"a 1 MB disk cannot be mounted here: {problem.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_fills_and_grows(tiny_disk: Path, tmp_path: Path, clock: Any) -> None:
    settings: dict[str, Any] = {"horizon": 4000, "rounds": 3, "seed": 1}
    with Tournament.create(tmp_path / "calm.db", "cup", NAMES, clock=clock, **settings) as cup:
        play(cup, limit=500)
        calm = story(cup)
    with Tournament.create(tiny_disk / "store.db", "cup", NAMES, clock=clock, **settings) as cup:
        said: list[Any] = []
        with pytest.raises(StoreError, match=r"full|space"):
            play(cup, limit=50, say=said.append)
        assert len(said) > 10
        acknowledged(cup, said)
        failures = 0
        for number in range(40):  # what room is left may be used; what does not fit fails as a whole
            try:
                cup.intend(f"call {number}", "x" * 50_000)
            except StoreError:
                failures += 1
        assert failures > 10
        subprocess.run(["mount", "-o", "remount,size=64m", str(tiny_disk)], check=True)
        cup.verify()
        acknowledged(cup, said)
        clock.ahead(LATER)
        play(cup, limit=50)
        cup.verify()
        acknowledged(cup, said)
        assert story(cup) == calm


# what a crash can leave of the log ---------------------------------------------------------------------------


def test_a_truncated_log_is_found_by_a_noted_head(tmp_path: Path, clock: Any) -> None:
    cup = Tournament.create(tmp_path / "store.db", "cup", NAMES, clock=clock, **SMALL)
    store = cup.store
    assert isinstance(store, SqliteStore)
    if store.library.journal_mode != "wal":
        pytest.skip("this SQLite has no safe WAL: there is no log to truncate")
    store._connection.execute("PRAGMA wal_autocheckpoint=0")
    store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    play(cup, limit=1, most=6)
    head = cup.status.head
    log = (tmp_path / "store.db-wal").read_bytes()
    lost = 0
    for cut in range(0, len(log), max(1, len(log) // 25)):
        folder = tmp_path / f"cut{cut}"
        folder.mkdir()
        shutil.copy(tmp_path / "store.db", folder / "store.db")
        (folder / "store.db-wal").write_bytes(log[:cut])
        check = sqlite3.connect(folder / "store.db") if cut == 0 else None
        if check is not None:
            check.close()
        verify_store(folder / "store.db")  # what is left is sound: SQLite cannot know that there was more
        with pytest.raises(VerifyError, match=r"rows were lost|was noted"):
            verify_store(folder / "store.db", expect=head)
        lost += 1
    assert lost > 20
    assert cup.verify(expect=head).head == head
    play(cup)
    assert cup.verify(expect=head), "an earlier head is still found after more deliveries"
    with pytest.raises(VerifyError, match="not the one"):
        cup.verify(expect=f"{head.partition(':')[0]}:{'0' * 64}")
    with pytest.raises(VerifyError, match="no head"):
        cup.verify(expect="yesterday")
    cup.disconnect()


def test_a_forked_process_gets_a_connection_of_its_own(where: str, clock: Any) -> None:
    with Tournament.create(where, "cup", NAMES, clock=clock, **SMALL) as cup:
        held = cup.lease(2, "parent")

        def child(say: Callable[[Any], None]) -> None:
            play(cup, limit=1, judge="child", most=3, say=say)

        ((status, said),) = forked(child)
        assert status == 0
        assert len(said) == 3
        for duel in held:
            cup.tell(duel, "first")
        acknowledged(cup, said)
        cup.verify()


def test_a_child_does_not_keep_the_lock_of_a_parent_that_was_killed(tmp_path: Path, clock: Any) -> None:
    where = str(tmp_path / "store.db")
    Tournament.create(where, "cup", NAMES, clock=clock, **SMALL).disconnect()
    out, into = os.pipe()

    def work(_: Any) -> None:  # the lock is held
        if os.fork():
            os.kill(os.getpid(), signal.SIGKILL)
        os.close(into)
        os.read(out, 1)  # lives until the test lets go
        os._exit(0)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        parent = os.fork()
    if parent == 0:
        Tournament.open(where, "cup", clock=clock).store.write(work)
    assert os.waitstatus_to_exitcode(os.waitpid(parent, 0)[1]) == -signal.SIGKILL

    def other(say: Callable[[Any], None]) -> None:
        signal.alarm(20)  # would wait for the lock as long as that child lives
        with Tournament.open(where, "cup", clock=clock) as cup:
            play(cup, say=say)

    ((status, said),) = forked(other)
    os.close(into)
    os.close(out)
    assert status == 0
    with Tournament.open(where, "cup", clock=clock) as cup:
        acknowledged(cup, said)
        cup.verify()


def test_files_that_are_no_stores(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("options: [a, b]\n" * 100)
    with pytest.raises(StoreError, match="not a database"):
        open_store(text)
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(StoreError, match="another program"):
        open_store(foreign)
    empty = tmp_path / "empty.db"
    empty.touch()
    with pytest.raises(StoreError, match="the file is empty"):
        open_store(empty)
    assert not any(place.with_name(f"{place.name}.lock").exists() for place in (text, empty)), "nothing is put beside"
    with pytest.raises(StoreError, match="the file is empty"):
        verify_store(empty)
    assert empty.stat().st_size == 0
    open_store(empty, create=True).close()
    assert verify_store(empty).holds
    with pytest.raises(StoreError, match="folder"):
        open_store(tmp_path)
    with pytest.raises(StoreError, match="no folder"):
        open_store(tmp_path / "none" / "x.db", create=True)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:sentinel@localhost:1/db",
        "postgresql://me:sentinel@localhost:1,localhost:2/db",
        "postgresql://me:sentinel@localhost:word/db",
        "postgresql://me:sentinel%zz@localhost:1/db",
        "postgresql://me:#sentinel@localhost:1/db",
        "postgresql://me:a?sentinel@localhost:1/db",
        "postgresql://me:a/sentinel@localhost:1/db",
        "postgresql://me:a@sentinel@localhost:1/db",
        "postgresql://me:sentinel@[::1/db",
        "postgresql://me:sentinel@[::1]x/db",
        "postgresql://me@localhost:1/db?password=sentinel&sslpassword=sentinel",
        "postgresql://me@localhost:1/db?password=sentinel=1",
    ],
)
def test_a_server_that_cannot_be_reached_is_named_without_its_password(url: str) -> None:
    with pytest.raises(StoreError, match="postgresql://me@") as caught:
        open_store(url)
    assert "sentinel" not in str(caught.value)
    assert url.endswith("sentinel=1") or "localhost" in str(caught.value) or "[::1" in str(caught.value)
