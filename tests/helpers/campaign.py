"""A campaign whose verdicts depend on nothing but the duel: whatever happens on the way, it must end the same."""

from __future__ import annotations

import hashlib
import json
import os
import select
import threading
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from roundel.tournament import Duel, Tournament, rounds

NAMES = ["a", "b", "c", "d", "e"]
SETTINGS: dict[str, Any] = {"horizon": 700, "rounds": 5, "seed": 3, "contexts": ["q1", "q2", "q3"]}


def verdict(duel: Duel) -> str:
    """Judge: earlier names win 75 to 25, one verdict in 20 is a tie; a function of the duel alone."""
    digest = hashlib.sha256(f"{duel.id} {duel.first.name} {duel.second.name}".encode()).digest()
    draw = int.from_bytes(digest[:4], "big") / 2**32
    if draw < 0.05:
        return "tie"
    better = duel.first.name < duel.second.name
    return "first" if (draw < 0.05 + 0.95 * 0.75) == better else "second"


def play(
    cup: Tournament,
    limit: int = 20,
    judge: str | None = "me",
    most: int = 10**9,
    say: Callable[[Any], None] = lambda receipt: None,
) -> int:
    """Judge until nothing is left to judge, or `most` duels are; return how many were judged, and say each receipt."""
    told = 0
    while told < most and (duels := cup.lease(min(limit, most - told), judge)):
        for duel in duels:
            say(cup.tell(duel, verdict(duel)).to_json())
            told += 1
    return told


def story(cup: Tournament) -> list[Any]:
    """What a campaign came to, without times: the plans, the results, and the outcome."""

    def work(tx: Any) -> list[Any]:
        found: list[Any] = []
        for row in rounds.after(tx, cup.number, 0):
            results = [column.tolist() for column in rounds.results_of(row)] if row.reason else None
            found.append((row.n, row.plan_digest, row.reason, results))
        return found

    return [*cup.store.read(work), cup.outcome.to_json()]


def _say(into: int, value: Any) -> None:
    os.write(into, (json.dumps(value) + "\n").encode())


def forked(
    *tasks: Callable[[Callable[[Any], None]], None], meanwhile: Callable[[], None] | None = None
) -> list[tuple[int, list[Any]]]:
    """Run each task in a child process of its own, at once; a task says what it did by the function it gets.

    `meanwhile` runs beside them in a thread of this process. It starts when the last child has been forked: a program
    that was started during a fork would wait for that child, which inherits the pipe by which it says that it runs.

    Returns for each its exit status (minus the signal that killed it) and what it said, whole lines only: what a
    child that was killed had acknowledged.
    """
    children = []
    for task in tasks:
        out, into = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forks of processes with threads: these run no thread
            child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(out)
                task(partial(_say, into))
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(into)
        children.append((child, out))
    beside = threading.Thread(target=meanwhile)
    beside.start()
    # All pipes are read together: a full one would stop its child.
    said = {out: b"" for _, out in children}
    left = set(said)
    while left:
        for ready in select.select(list(left), [], [])[0]:
            piece = os.read(ready, 65536)
            said[ready] += piece
            if not piece:
                left.discard(ready)
    found = []
    for child, out in children:
        os.close(out)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        found.append((status, [json.loads(line) for line in said[out].split(b"\n")[:-1]]))
    beside.join()
    return found


def acknowledged(cup: Tournament, receipts: list[dict[str, Any]]) -> None:
    """Every delivery that was acknowledged is there, unchanged."""
    stored = cup.store.read(
        lambda tx: {
            key: {
                "key": key,
                "duel": f"{n}.{k}" if k is not None else None,
                "became": became,
                "seq": seq,
                "digest": digest,
            }
            for key, n, k, became, seq, digest in tx.all(
                "SELECT v.key, r.n, v.k, v.became, v.seq, v.digest FROM verdict v JOIN round r ON r.id = v.round "
                "WHERE v.tournament = ?",
                cup.number,
            )
        }
    )
    for receipt in receipts:
        assert stored.get(receipt["key"]) == receipt
