"""Votes a second behind one server process, every one on disk before it is acknowledged.

Starts `roundel serve` as a process of its own on 127.0.0.1 and lets clients vote in a closed loop, each on its own
connection: at the voting page (an answer and the next pair in one request), and at the API (a verdict and the next
lease in one request). Every acknowledged vote is looked for in the store afterwards.

    python benchmarks/web.py [--clients 16 32] [--seconds 5] [--store FOLDER]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from table import report

from roundel.tournament import Tournament
from roundel.web import Client

OWNER = "benchmark-owner-token"
SERVER = """
import sys
from roundel.web.server import serve
serve(sys.argv[1], port=0, votes=(1e9, 1e9), calls=(1e9, 1e9))
"""
DUEL = re.compile(rb'name="duel" value="([0-9.]+)"')


class Browser:
    """One connection that posts and reads answers, with as little of its own as there can be."""

    def __init__(self, port: int, cookie: str = "", token: str = "") -> None:
        self.port, self.headers = port, f"Host: 127.0.0.1:{port}\r\nSec-Fetch-Site: same-origin\r\n"
        if cookie:
            self.headers += f"Cookie: {cookie}\r\nX-Fragment: 1\r\n"
        if token:
            self.headers += f"Authorization: Bearer {token}\r\n"

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)

    async def post(self, path: str, body: bytes, kind: str) -> tuple[bytes, bytes]:
        head = f"POST {path} HTTP/1.1\r\n{self.headers}Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)
        head_ = await self.reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"(?i)content-length: (\d+)", head_)
        return head_, await self.reader.readexactly(int(found[1]) if found else 0)

    def close(self) -> None:
        self.writer.close()


async def vote_on_page(port: int, paths: list[str], seconds: float) -> tuple[list[float], set[str]]:
    """Let a voter at each invitation answer until time is up; return how long each answer took, and which they were."""
    form, times, done = "application/x-www-form-urlencoded", [], set()

    async def voter(path: str, until: float) -> None:
        browser = Browser(port)
        await browser.open()
        head, _ = await browser.post(path, b"", form)
        browser.headers += f"X-Fragment: 1\r\nCookie: {re.search(rb'(?i)set-cookie: ([^;]+)', head)[1].decode()}\r\n"
        _, page = await browser.post("/vote/1/next", b"", form)
        while time.perf_counter() < until:
            found = DUEL.search(page)
            if found is None:
                raise RuntimeError(page.decode())
            duel = found[1].decode()
            started = time.perf_counter()
            head, page = await browser.post("/vote/1/answer", f"duel={duel}&verdict=first".encode(), form)
            times.append(time.perf_counter() - started)
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(head.decode() + page.decode())
            done.add(duel)
        browser.close()

    until = time.perf_counter() + seconds
    await asyncio.gather(*(voter(path, until) for path in paths))
    return times, done


async def vote_by_api(port: int, tokens: list[str], seconds: float) -> tuple[list[float], set[str]]:
    """The same by the API: each request tells a verdict and leases the next duel."""
    times, done = [], set()

    async def judge(token: str, until: float) -> None:
        browser = Browser(port, token=token)
        await browser.open()
        _, body = await browser.post("/api/tournaments/1/lease", b"{}", "application/json")
        while time.perf_counter() < until:
            line = json.loads(body)["duels"][0]
            told = {"duel": line["duel"], "token": line["token"], "verdict": "first"}
            ask = json.dumps({"verdicts": [told], "lease": 1}).encode()
            started = time.perf_counter()
            head, body = await browser.post("/api/tournaments/1/tell", ask, "application/json")
            times.append(time.perf_counter() - started)
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(head.decode() + body.decode())
            done.add(line["duel"])
        browser.close()

    until = time.perf_counter() + seconds
    await asyncio.gather(*(judge(token, until) for token in tokens))
    return times, done


def measure(what: str, clients: int, seconds: float, folder: str) -> dict[str, float | int | str]:
    """Run one server and its clients; return what came of it."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        store = f"{place}/bench.db"
        names = [f"option {n}" for n in range(12)]
        Tournament.create(store, "bench", names, horizon=10_000_000, policy="c2b-kl", rounds=2).disconnect()
        environment = {**os.environ, "ROUNDEL_OWNER_TOKEN": OWNER}
        server = subprocess.Popen(
            [sys.executable, "-c", SERVER, store], env=environment, stdout=subprocess.PIPE, text=True
        )
        try:
            port = next(int(found[1]) for line in server.stdout or () if (found := re.search(r":(\d+)/", line)))
            owner = Client(f"http://127.0.0.1:{port}", OWNER)
            role = "voter" if what == "page" else "judge"
            invited = [owner.tournament(1).invite(role, f"{role} {n}") for n in range(clients)]
            if what == "page":
                work = vote_on_page(port, [row["path"] for row in invited], seconds)
            else:
                work = vote_by_api(port, [row["token"] for row in invited], seconds)
            started = time.perf_counter()
            times, done = asyncio.run(work)
            spent = time.perf_counter() - started
        finally:
            server.send_signal(signal.SIGKILL)  # no chance to tidy up: what was acknowledged must be there
            server.wait()
        with Tournament.open(store, "bench") as cup:
            told = {
                f"1.{k}" for (k,) in cup.store.read(lambda tx: tx.all("SELECT k FROM verdict WHERE became = 'counted'"))
            }
            held = {row[0] for row in cup.store.read(lambda tx: tx.all("SELECT held FROM web_voter"))}
        lost = len(done - told - held)
    times.sort()
    return {
        "what": what,
        "clients": clients,
        "votes": len(times),
        "votes_per_second": round(len(times) / spent),
        "median_ms": round(1000 * statistics.median(times), 1),
        "p99_ms": round(1000 * times[int(0.99 * len(times))], 1),
        "slowest_ms": round(1000 * times[-1], 1),
        "lost": lost,
    }


def fsyncs(folder: str) -> float:
    """Return how many small durable writes a second the disk does, one after another: the floor of it all."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        count, started = 0, time.perf_counter()
        while time.perf_counter() - started < 1:
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
            count += 1
        return count / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[16, 32])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--store", default=tempfile.gettempdir(), help="folder for the store")
    given = parser.parse_args()
    rows = [measure(what, n, given.seconds, given.store) for what in ("page", "api") for n in given.clients]
    title = f"votes behind one server; {fsyncs(given.store):.0f} fsyncs a second, load {os.getloadavg()[0]:.1f}"
    report("web", title, rows)
    if any(row["lost"] for row in rows):
        sys.exit("acknowledged votes were lost")


if __name__ == "__main__":
    main()
