"""Three voters, a program and a language model finish one tournament together, while the server is killed twice."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

import fake_model
from roundel.judges import ModelSettings, judge_by_command, judge_by_model
from roundel.tournament import Tournament
from roundel.tournament.certificate import verify_certificate
from roundel.web import Client
from serving import OWNER, SAME, Process

PROGRAM = """
import json, sys
for line in sys.stdin:
    duel = json.loads(line)
    first, second = (len(duel[side]["text"]) for side in ("first", "second"))
    print(json.dumps({**duel, "verdict": "first" if first < second else "second"}), flush=True)
"""
TEXTS = {"alpha": "a", "beta": "bb", "gamma": "ccc", "delta": "dddd"}  # the shorter, the better


class Elector(threading.Thread):
    """A voter at the page who tries again for as long as the server is away."""

    def __init__(self, url: str, path: str) -> None:
        super().__init__(daemon=True)
        self.url, self.path = url, path
        self.given: dict[str, str] = {}
        self.last = ""

    def run(self) -> None:
        with httpx.Client(base_url=self.url, headers=SAME, follow_redirects=True, timeout=20) as http:
            page = self.post(http, self.path)
            while "Thank you!" not in page:
                found = re.search(r'name="duel" value="([0-9.]+)"', page)
                if found is None:
                    time.sleep(0.2)
                    page = self.post(http, "/vote/1/next")
                    continue
                first, second = re.findall(r'<div class="plain" dir="auto">(\w+)</div>', page)
                verdict = "first" if len(first) < len(second) else "second"
                time.sleep(0.05)  # people read
                page = self.post(http, "/vote/1/answer", duel=found[1], verdict=verdict)
                self.given[found[1]] = verdict
            self.last = page

    def post(self, http: httpx.Client, path: str, **fields: str) -> str:
        while True:
            try:
                answer = http.post(path, data=fields)
            except httpx.TransportError:
                time.sleep(0.1)
                continue
            if answer.status_code == 200:
                return answer.text
            assert answer.status_code in (429, 503), answer.text
            time.sleep(0.3)


def test_everybody_together(make: Callable[..., Path]) -> None:
    store = make("together", [{"name": n, "text": t} for n, t in TEXTS.items()], horizon=600, rounds=3)
    server = Process(store)
    cup = Client(server.url, OWNER).tournament(1)
    electors = [Elector(server.url, cup.invite("voter", f"voter {n}")["path"]) for n in range(3)]
    failures: list[BaseException] = []

    def beside(judge: Callable[[Tournament], Any]) -> threading.Thread:
        def run() -> None:
            try:
                with Tournament.open(store, "together") as own:
                    judge(own)
            except BaseException as error:
                failures.append(error)

        return threading.Thread(target=run, daemon=True)

    def slow(call: Any, _: int) -> Any:
        return fake_model.Reply(fake_model.shorter(call), sleep=0.05)

    with fake_model.serving(slow) as model:
        settings = ModelSettings("fake", model.url, timeout=5.0, canaries=0, workers=2)
        judges = [
            beside(lambda own: judge_by_model(own, settings)),
            beside(lambda own: judge_by_command(own, [sys.executable, "-c", PROGRAM], "program", limit=60)),
        ]
        judges[0].start()
        _until(lambda: bool(model.calls))  # the slowest to begin: the others would be done before it
        for thread in [*electors, judges[1]]:
            thread.start()
        for goal in (15, 40):
            _until(lambda goal=goal: sum(len(elector.given) for elector in electors) >= goal)
            server.kill()
            time.sleep(0.3)
            server = Process(store, server.port)
        for thread in [*electors, *judges]:
            thread.join(90)
            assert not thread.is_alive()
    status = Client(server.url, OWNER).tournament(1).status
    certificate = Client(server.url, OWNER).tournament(1).certificate()
    server.stop()
    assert failures == []
    assert (status["outcome"], status["winner"]) == ("winner", "alpha")
    verify_certificate(certificate)
    with Tournament.open(store) as own:
        own.verify()
        rows = own.store.read(
            lambda tx: tx.all(
                "SELECT v.judge, r.n, v.k, v.verdict FROM verdict v JOIN round r ON r.id = v.round "
                "WHERE v.verdict IS NOT NULL"
            )
        )
    told = {(judge, f"{n}.{k}"): verdict for judge, n, k, verdict in rows}
    for number, elector in enumerate(electors):
        assert "Thank you!" in elector.last
        for duel, verdict in elector.given.items():
            assert told.get((f"voter {number}", duel)) == verdict  # nothing acknowledged was lost
    assert {judge for judge, *_ in rows} >= {"voter 0", "voter 1", "voter 2", "program"}
    assert len({judge for judge, *_ in rows}) == 5


def _until(holds: Callable[[], bool]) -> None:
    for _ in range(1200):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen within a minute")
