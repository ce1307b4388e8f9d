"""How fast duels go out and verdicts come in, with Optuna's ask and tell on the same storage as the yardstick.

Aims (2 cores): embedded 1,000 pairs a second by 1 process and 500 by 16, at least 10 times Optuna's; a round of a
million duels planned and stored in 10 s; leasing from it as fast as from a thousand; 100,000 duels verified in 5 s.
`python benchmarks/tournament.py [--seconds S]`
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from table import report

from roundel.tournament import Tournament, Writer

sys.path.append(str(Path(__file__).parents[1] / "tools"))
from own_postgres import Server, own_server

Turn = Callable[[], None]


def race(workers: int, seconds: float, prepare: Callable[[], Turn]) -> dict[str, Any]:
    """Let processes take turns for some seconds, all starting at once; return rate, fairness and the slow waits."""
    pipes = [os.pipe() for _ in range(workers)]
    start = time.time() + 1.0 + 0.15 * workers
    children = []
    for out, into in pipes:
        child = os.fork()
        if child == 0:
            try:
                os.close(out)
                turn = prepare()
                time.sleep(max(0.0, start - time.time()))
                waits, end = [], start + seconds
                while (begin := time.time()) < end:
                    turn()
                    waits.append(time.time() - begin)
                with os.fdopen(into, "w") as pipe:
                    json.dump(waits, pipe)
            finally:
                os._exit(0)
        children.append(child)
        os.close(into)
    found = []
    for out, _ in pipes:
        with os.fdopen(out) as pipe:
            found.append(json.load(pipe))
    for child in children:
        os.waitpid(child, 0)
    return summary(found, seconds)


def summary(found: list[list[float]], seconds: float) -> dict[str, Any]:
    waits = sorted(wait for one in found for wait in one)
    shares = sorted(len(one) for one in found)
    return {
        "pairs/s": round(len(waits) / seconds),
        "fastest/slowest": round(shares[-1] / max(1, shares[0]), 2),
        "p99 ms": round(1000 * waits[int(0.99 * (len(waits) - 1))], 1),
    }


def big(where: str, name: str, duels: int = 10**6) -> None:
    """Make a tournament whose only round has a million duels of 50 options."""
    Tournament.create(where, name, [f"o{n}" for n in range(50)], policy="pcomp", horizon=duels, rounds=1).disconnect()


def ours(where: str, name: str) -> Turn:
    cup = Tournament.open(where, name)

    def turn() -> None:
        cup.tell(cup.lease(1, "me")[0], "first")

    return turn


def optuna_turn(storage: str) -> Turn:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.load_study(study_name="s", storage=optuna_storage(storage), sampler=optuna.samplers.RandomSampler())

    def turn() -> None:
        study.tell(study.ask(), 0.5)

    return turn


def optuna_storage(storage: str) -> Any:
    import optuna
    from optuna.storages.journal import JournalFileBackend

    if storage.endswith(".log"):
        return optuna.storages.JournalStorage(JournalFileBackend(storage))
    return storage


def yardstick(storage: str, workers: int, seconds: float) -> dict[str, Any]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    optuna.create_study(study_name="s", storage=optuna_storage(storage))
    return race(workers, seconds, lambda: optuna_turn(storage))


def server(where: str, name: str, clients: int, seconds: float) -> dict[str, Any]:
    """Threads behind one group writer, as a server has them."""
    with Writer(where) as store:
        turns = [Tournament.open(store, name) for _ in range(clients)]
        found: list[list[float]] = [[] for _ in turns]
        end = time.time() + seconds

        def client(at: int) -> None:
            while (begin := time.time()) < end:
                turns[at].tell(turns[at].lease(1, "me")[0], "first")
                found[at].append(time.time() - begin)

        threads = [threading.Thread(target=client, args=(at,)) for at in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return summary(found, seconds)


def speeds(folder: Path, seconds: float, postgres: Server) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    sqlite = str(folder / "ours.db")
    theirs = postgres.fresh().replace("postgresql://", "postgresql+psycopg://")
    places = [
        ("SQLite", sqlite, lambda n: f"sqlite:///{folder}/optuna{n}.db"),
        ("PostgreSQL", postgres.fresh(), lambda n: theirs),
    ]
    for database, where, yard in places:
        for workers in (1, 4, 16):
            name = f"race {workers}"
            big(where, name)
            mine = race(workers, seconds, lambda where=where, name=name: ours(where, name))
            rows.append({"what": f"roundel, {database}", "workers": workers, **mine})
            if database == "SQLite" or workers == 1:
                found = yardstick(yard(workers), workers, seconds)
                rows.append({"what": f"Optuna, {database}", "workers": workers, **found})
            if database == "SQLite":
                found = yardstick(str(folder / f"optuna{workers}.log"), workers, seconds)
                rows.append({"what": "Optuna, journal", "workers": workers, **found})
        for clients in (16, 32):
            name = f"server {clients}"
            big(where, name)
            rows.append(
                {"what": f"group writer, {database}", "workers": clients, **server(where, name, clients, seconds)}
            )
    return rows


def sizes(folder: Path) -> list[dict[str, Any]]:
    """Rounds of a thousand and a million duels: planning, storing, leasing."""
    rows = []
    for options, duels in ((50, 1225), (50, 10**6), (1415, 10**6)):
        where = str(folder / f"{options}-{duels}.db")
        begin = time.time()
        names = [f"o{n}" for n in range(options)]
        cup = Tournament.create(where, "size", names, policy="pcomp", horizon=duels, rounds=1)
        made = time.time() - begin
        begin, count = time.time(), 0
        while time.time() < begin + 2 and count < 1000:
            cup.tell(cup.lease(1, "me")[0], "first")
            count += 1
        rows.append(
            {
                "options": options,
                "duels": duels,
                "planned and stored, s": round(made, 2),
                "pairs/s": round(count / (time.time() - begin)),
                "MB": round(Path(where).stat().st_size / 1e6, 1),
            }
        )
        cup.disconnect()
    return rows


def care(folder: Path) -> list[dict[str, Any]]:
    """Verify 100,000 duels; recover after kill -9."""
    where = str(folder / "care.db")
    cup = Tournament.create(
        where, "care", [f"o{n}" for n in range(20)], policy="pcomp", horizon=100_000, rounds=1, contexts=list("abcdefg")
    )
    with Writer(where) as store, ThreadPoolExecutor(16) as pool:
        writer = Tournament.open(store, "care")
        while duels := cup.lease(5000, "me"):
            list(
                pool.map(
                    lambda duel: writer.tell(duel, "first" if duel.first.name < duel.second.name else "second"), duels
                )
            )
    begin = time.time()
    cup.verify()
    rows = [{"what": "verify 100,000 duels", "seconds": round(time.time() - begin, 2)}]
    begin = time.time()
    certificate = cup.certificate()
    rows.append({"what": "its certificate", "seconds": round(time.time() - begin, 2)})
    assert certificate["outcome"]["outcome"] != "open"
    cup.disconnect()

    big(where, "crash")
    child = os.fork()
    if child == 0:
        turn = ours(where, "crash")
        while True:
            turn()
    time.sleep(3)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    begin = time.time()
    with Tournament.open(where, "crash") as cup:
        cup.lease(1, "me")
        rows.append({"what": "first lease after kill -9", "seconds": round(time.time() - begin, 3)})
        cup.verify()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--only", choices=("speeds", "sizes", "care"))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if chosen.only in (None, "sizes"):
            report("tournament-sizes", "Rounds of a thousand and a million duels", sizes(folder))
        if chosen.only in (None, "care"):
            report("tournament-care", "Checking and recovering", care(folder))
        if chosen.only in (None, "speeds"):
            title = "Lease and verdict, pairs a second"
            with own_server() as postgres:
                report("tournament-speeds", title, speeds(folder, chosen.seconds, postgres))


if __name__ == "__main__":
    main()
