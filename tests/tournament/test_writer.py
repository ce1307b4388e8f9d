"""Group commit: answers after COMMIT only, nobody pays for somebody else's failure."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roundel.errors import ConflictError, StoreError
from roundel.tournament import Tournament
from roundel.tournament.store import Transaction
from roundel.tournament.writer import Writer


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Writer]:
    Tournament.create(tmp_path / "s.db", "t", ["a", "b"], horizon=10, rounds=1).disconnect()
    group = Writer(tmp_path / "s.db")
    group.write(lambda tx: tx.run("CREATE TABLE web_test (n INTEGER PRIMARY KEY)"))
    yield group
    group.close()


def insert(store: Writer, n: int) -> int:
    store.write(lambda tx: tx.run("INSERT INTO web_test (n) VALUES (?)", n))
    return n


def rows(store: Writer) -> list[int]:
    return [row[0] for row in store.read(lambda tx: tx.all("SELECT n FROM web_test ORDER BY n"))]


def counting(store: Writer, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the transactions of the store beneath."""
    begun, write = [], store._inner.write
    monkeypatch.setattr(store._inner, "write", lambda work: begun.append(1) or write(work))
    return begun


def test_jobs_that_wait_share_a_transaction(store: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = counting(store, monkeypatch)

    async def many() -> list[int]:
        blocked, free = threading.Event(), threading.Event()
        first = asyncio.create_task(store.commit(lambda: (blocked.set(), free.wait(10), -1)[2]))
        await asyncio.to_thread(blocked.wait)
        rest = [asyncio.create_task(store.commit(lambda n=n: insert(store, n))) for n in range(100)]
        await asyncio.sleep(0.01)
        free.set()
        return [await first, *[await task for task in rest]]

    assert asyncio.run(many()) == [-1, *range(100)]
    assert rows(store) == list(range(100))
    assert len(begun) == 2  # the one that blocked, and one for the hundred behind it


@pytest.mark.parametrize("bad", [0, 3, 7])
def test_a_job_that_fails_after_writing_is_undone_alone(store: Writer, bad: int) -> None:
    def job(n: int) -> int:
        insert(store, n)
        if n == bad:
            raise ConflictError("this one")
        return n

    async def many() -> list[Any]:
        return await asyncio.gather(*(store.commit(lambda n=n: job(n)) for n in range(8)), return_exceptions=True)

    results = asyncio.run(many())
    assert isinstance(results[bad], ConflictError)
    assert [r for r in results if isinstance(r, int)] == rows(store) == [n for n in range(8) if n != bad]


def test_a_job_that_fails_before_writing_costs_no_second_transaction(
    store: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = counting(store, monkeypatch)

    def refuse() -> None:
        store.read(lambda tx: tx.all("SELECT n FROM web_test"))
        raise ConflictError("no")

    async def both() -> list[Any]:
        blocked, free = threading.Event(), threading.Event()
        first = asyncio.create_task(store.commit(lambda: (blocked.set(), free.wait(10))))
        await asyncio.to_thread(blocked.wait)
        tasks = [asyncio.create_task(store.commit(refuse)), asyncio.create_task(store.commit(lambda: insert(store, 1)))]
        await asyncio.sleep(0.01)
        free.set()
        await first
        return await asyncio.gather(*tasks, return_exceptions=True)

    refused, done = asyncio.run(both())
    assert isinstance(refused, ConflictError)
    assert done == 1
    assert len(begun) == 2


def test_a_commit_that_fails_is_acknowledged_to_nobody(store: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    write = store._inner.write

    def failing(work: Any) -> Any:
        def spoiled(tx: Transaction) -> Any:
            work(tx)
            raise StoreError("the disk is full")

        return write(spoiled)

    monkeypatch.setattr(store._inner, "write", failing)

    async def many() -> list[Any]:
        return await asyncio.gather(
            *(store.commit(lambda n=n: insert(store, n)) for n in range(5)), return_exceptions=True
        )

    assert all(isinstance(result, StoreError) for result in asyncio.run(many()))
    assert rows(store) == []


def test_a_job_sees_what_it_wrote_and_others_see_it_after_the_commit(store: Writer) -> None:
    def job() -> tuple[list[int], list[int]]:
        insert(store, 1)
        outside = store.reader.read(lambda tx: tx.all("SELECT n FROM web_test"))
        return rows(store), outside

    assert asyncio.run(store.commit(job)) == ([1], [])
    assert rows(store) == [1]


def test_threads_may_write_too(store: Writer) -> None:
    threads = [threading.Thread(target=insert, args=(store, n)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(store) == list(range(20))


def test_a_closed_store_says_so(store: Writer) -> None:
    store.close()
    with pytest.raises(StoreError, match="shutting down"):
        insert(store, 1)
