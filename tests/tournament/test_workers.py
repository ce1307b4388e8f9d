"""Many processes at once: no duel twice, fair turns, a server that restarts in the middle; and the group writer."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from campaign import acknowledged, forked, play, story, verdict
from roundel.errors import StoreError, VerdictError
from roundel.tournament import Tournament, Writer

NAMES = [f"o{n}" for n in range(8)]
BUSY: dict[str, Any] = {"horizon": 1600, "rounds": 2, "seed": 4, "policy": "pcomp"}
Said = Callable[[Any], None]


def calm(where: str, settings: dict[str, Any] = BUSY) -> list[Any]:
    with Tournament.create(where, "busy", NAMES, **settings) as cup:
        play(cup, limit=500)
        return story(cup)


def test_32_workers_share_a_round_fairly_and_never_a_duel(where: str, tmp_path: Path) -> None:
    settings = {**BUSY, "rounds": 1}  # between rounds some would find nothing to do, and leave
    expected = calm(str(tmp_path / "calm.db"), settings)
    Tournament.create(where, "busy", NAMES, **settings).disconnect()
    out, into = os.pipe()  # the start signal: closed when all are ready
    ready_out, ready_into = os.pipe()

    def start() -> None:
        ready = 0
        while ready < 32:
            ready += len(os.read(ready_out, 32))
        os.close(into)

    def worker(say: Said) -> None:
        os.close(into)
        with Tournament.open(where, "busy") as cup:
            os.write(ready_into, b"r")
            os.read(out, 1)  # returns when nobody holds the other end any more
            while duels := cup.lease(1, f"worker {os.getpid()}"):
                say(cup.tell(duels[0], verdict(duels[0])).to_json())

    starter = threading.Thread(target=start)
    starter.start()
    found = forked(*[worker] * 32)
    starter.join()
    for end in (out, ready_out, ready_into):
        os.close(end)
    assert {status for status, _ in found} == {0}
    said = [receipt for _, receipts in found for receipt in receipts]
    assert len({receipt["duel"] for receipt in said}) == len(said) == 1600
    assert {receipt["became"] for receipt in said} == {"counted"}
    shares = sorted(len(receipts) for _, receipts in found)
    assert shares[0] * 3 >= shares[-1], f"a worker starved: {shares}"
    with Tournament.open(where, "busy") as cup:
        cup.verify()
        acknowledged(cup, said)
        assert story(cup) == expected


def test_workers_that_are_killed_lose_nothing(where: str, tmp_path: Path) -> None:
    expected = calm(str(tmp_path / "calm.db"))
    clock = [1e6]
    Tournament.create(where, "busy", NAMES, clock=lambda: clock[0], **BUSY).disconnect()

    def worker(say: Said, dies: bool) -> None:
        with Tournament.open(where, "busy", clock=lambda: clock[0]) as cup:
            if dies:
                threading.Timer(0.4 + (os.getpid() % 7) / 10, os.kill, [os.getpid(), signal.SIGKILL]).start()
            play(cup, limit=3, say=say)
            if dies:
                time.sleep(10)

    found = forked(*[lambda say, d=n % 2 == 0: worker(say, d) for n in range(8)])
    assert [status for status, _ in found] == [-signal.SIGKILL, 0] * 4
    clock[0] += 10**6
    with Tournament.open(where, "busy", clock=lambda: clock[0]) as cup:
        play(cup)
        cup.verify()
        acknowledged(cup, [receipt for _, receipts in found for receipt in receipts])
        assert story(cup) == expected


def test_a_server_restarts_in_the_middle(server: Any, tmp_path: Path) -> None:
    settings = {**BUSY, "horizon": 900}
    expected = calm(str(tmp_path / "calm.db"), settings)
    url = server.fresh()
    clock = [1e6]
    Tournament.create(url, "busy", NAMES, clock=lambda: clock[0], **settings).disconnect()

    def worker(say: Said, dies: bool) -> None:
        cup = None
        pending: list[Any] = []
        if dies:
            threading.Timer(1.5, os.kill, [os.getpid(), signal.SIGKILL]).start()
        while True:
            try:
                cup = cup or Tournament.open(url, "busy", clock=lambda: clock[0])
                pending = pending or cup.lease(2, "me")
                if not pending:
                    break
                say(cup.tell(pending[0], verdict(pending[0])).to_json())
                pending.pop(0)
                time.sleep(0.01)  # so that the restart meets them all at work
            except StoreError as error:
                say(str(error))
                time.sleep(0.05)
        if dies:
            time.sleep(30)

    def restart() -> None:
        time.sleep(0.5)
        server.stop("immediate")
        server.start()

    found = forked(*[lambda say, d=n < 4: worker(say, d) for n in range(16)], meanwhile=restart)
    assert [status for status, _ in found] == [-signal.SIGKILL] * 4 + [0] * 12
    said = [one for _, receipts in found for one in receipts]
    assert any(isinstance(one, str) and "repeat it" in one for one in said), "the restart was noticed"
    clock[0] += 10**6
    with Tournament.open(url, "busy", clock=lambda: clock[0]) as cup:
        play(cup)
        cup.verify()
        acknowledged(cup, [one for one in said if isinstance(one, dict)])
        assert story(cup) == expected


def test_a_server_with_another_isolation_level_serves_many_workers(server: Any) -> None:
    import psycopg

    url = server.fresh()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"ALTER DATABASE {connection.info.dbname} SET default_transaction_isolation = 'repeatable read'"
        )
    Tournament.create(url, "busy", NAMES, **{**BUSY, "horizon": 300}).disconnect()

    def worker(say: Said) -> None:
        with Tournament.open(url, "busy") as cup:
            play(cup, limit=1, most=20, say=say)

    found = forked(*[worker] * 4)
    assert [(status, len(said)) for status, said in found] == [(0, 20)] * 4


def test_the_writer_commits_for_many_threads(where: str, tmp_path: Path) -> None:
    expected = calm(str(tmp_path / "calm.db"))
    Tournament.create(where, "busy", NAMES, **BUSY).disconnect()
    with Writer(where) as store:
        cups = [Tournament.open(store, "busy") for _ in range(16)]
        said: list[Any] = []

        def work(cup: Tournament) -> None:
            with pytest.raises(VerdictError):
                cup.tell("1.0", "first")
            play(cup, limit=1, say=said.append)

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(work, cups))
        cup = cups[0]
        assert len(said) == 1600
        acknowledged(cup, said)
        cup.verify()
        assert story(cup) == expected


def test_fifty_copies_of_one_delivery_count_once(where: str) -> None:
    with Tournament.create(where, "busy", NAMES, **BUSY) as cup, Writer(where) as store:
        (duel,) = cup.lease(1, "me")
        shared = Tournament.open(store, "busy")
        with ThreadPoolExecutor(16) as pool:
            receipts = list(pool.map(lambda _: shared.tell(duel, "first"), range(50)))
        assert len(set(receipts)) == 1
        assert cup.status.verdicts["counted"] == 1
