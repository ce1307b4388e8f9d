"""A server for the tests: the real one, in a thread or as a process, in front of a store of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from roundel.tournament import Tournament
from roundel.web import Client
from roundel.web.app import App, create_app
from roundel.web.keys import Keys
from roundel.web.server import configure

OWNER = "owner-token-of-the-tests"
SECRET = "secret-that-signs-in-the-tests"
NO_LIMIT = (1e9, 1e9)
SAME = {"Sec-Fetch-Site": "same-origin"}


class Served:
    """A server in a thread; its clock can be set forward."""

    def __init__(self, store: Path | str, **limits: tuple[float, float]) -> None:
        self.store, self.ahead = store, 0.0
        self._browsers: list[httpx.Client] = []
        self.app: App = create_app(str(store), Keys(SECRET, OWNER), **{"votes": NO_LIMIT, "calls": NO_LIMIT} | limits)
        self.desk = self.app.desk
        self.desk.clock = self.clock
        for hall in self.desk._halls.values():
            hall.cup._clock = hall.snapshot._clock = hall.table._clock = self.clock
        self.server = uvicorn.Server(configure(self.app, "127.0.0.1", 0))
        self.server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            if not self.thread.is_alive():
                raise RuntimeError("the server did not start")
            time.sleep(0.005)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def clock(self) -> float:
        return time.time() + self.ahead

    def client(self, token: str = OWNER) -> Client:
        return Client(self.url, token, patience=5)

    def browser(self) -> httpx.Client:
        """A browser without JavaScript."""
        self._browsers.append(httpx.Client(base_url=self.url, headers=SAME, follow_redirects=True, timeout=20))
        return self._browsers[-1]

    def voter(self, label: str, number: int = 1, **more: Any) -> Voter:
        """A voter who has opened an invitation and pressed Start."""
        invited = self.client().tournament(number).invite("voter", label, **more)
        return Voter(self, invited, number)

    def stop(self) -> None:
        for browser in self._browsers:
            browser.close()
        self.server.should_exit = True
        self.thread.join()


class Voter:
    """Votes by forms."""

    def __init__(self, served: Served, invited: dict[str, Any], number: int = 1) -> None:
        self.http, self.invited, self.number = served.browser(), invited, number
        self.page = self.http.post(invited["path"])

    @property
    def duel(self) -> str | None:
        found = re.search(r'name="duel" value="([0-9.]+)"', self.page.text)
        return found[1] if found else None

    @property
    def stage(self) -> str:
        found = re.search(r'data-stage="(\w+)"', self.page.text)
        return found[1] if found else f"status {self.page.status_code}"

    @property
    def answered(self) -> int:
        found = re.search(r'data-answered="(\d+)"', self.page.text)
        assert found, self.page.text
        return int(found[1])

    @property
    def notice(self) -> str | None:
        found = re.search(r'class="notice" role="status">([^<]*)', self.page.text)
        return found[1] if found else None

    def answer(self, verdict: str = "first", duel: str | None = None) -> httpx.Response:
        fields = {"duel": duel or self.duel or "", "verdict": verdict}
        self.page = self.http.post(f"/vote/{self.number}/answer", data=fields)
        return self.page

    def press(self, what: str) -> httpx.Response:
        self.page = self.http.post(f"/vote/{self.number}/{what}")
        return self.page


def counted(store: Path | str) -> list[tuple[Any, ...]]:
    """Return (key, judge, verdict, became) of every delivery in a store."""
    with Tournament.open(store) as cup:
        return cup.store.read(lambda tx: tx.all("SELECT key, judge, verdict, became FROM verdict ORDER BY seq"))


class Process:
    """`roundel serve` as a process of its own, to be killed."""

    CODE = "import sys; from roundel.web.server import serve; serve(sys.argv[1], port=int(sys.argv[2]))"

    def __init__(self, store: Path, port: int = 0, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.CODE, str(store), str(port)],
            env={**os.environ, "ROUNDEL_OWNER_TOKEN": OWNER, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            if found := re.search(r"http://[\d.]+:(\d+)/", line):
                self.port = int(found[1])
                break
        else:
            raise RuntimeError(self.process.communicate()[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def stop(self) -> tuple[str, str]:
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=20)
        return "".join(self.said) + out, err
