"""The server as a process: killed in the middle of votes, stopped with a signal, and what it says and keeps secret."""

from __future__ import annotations

import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from roundel.errors import AccessError
from roundel.tournament import Tournament
from roundel.web import Client
from roundel.web.keys import Keys
from serving import OWNER, SAME, Process, counted

Make = Callable[..., Path]


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(make: Make) -> None:
    """Three times: 8 voters and 4 programs answer as fast as they can, and the server is killed among them."""
    store = make(options=[f"o{n}" for n in range(8)], horizon=50_000, rounds=2)
    given: dict[str, str] = {}  # duel -> verdict, as acknowledged
    lock = threading.Lock()
    port = 0
    for life in range(3):
        server = Process(store, port)
        port = server.port
        cup = Client(server.url, OWNER).tournament(1)
        invited = [cup.invite("voter", f"voter {life}.{n}")["path"] for n in range(8)]
        tokens = [cup.invite("judge", f"judge {life}.{n}")["token"] for n in range(4)]
        acknowledged, goal = threading.Event(), 150 * (life + 1)

        def vote(path: str, url: str, enough: threading.Event, goal: int) -> None:
            with httpx.Client(base_url=url, headers={**SAME, "X-Fragment": "1"}) as http:
                try:
                    http.post(path)
                    page = http.post("/vote/1/next").text
                    while True:
                        duel = re.search(r'name="duel" value="([0-9.]+)"', page)
                        assert duel
                        verdict = ("first", "second", "tie")[len(duel[1]) % 3]
                        answer = http.post("/vote/1/answer", data={"duel": duel[1], "verdict": verdict})
                        if answer.status_code == 429:
                            time.sleep(0.3)
                            continue
                        page = answer.raise_for_status().text
                        with lock:
                            given[duel[1]] = verdict
                            if len(given) > goal:
                                enough.set()
                except httpx.TransportError:
                    return

        def judge(token: str, url: str, enough: threading.Event, goal: int) -> None:
            with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}) as http:
                try:
                    duels = http.post("/api/tournaments/1/lease", json={"limit": 2}).json()["duels"]
                    while True:
                        lines = [{"duel": d["duel"], "token": d["token"], "verdict": "tie"} for d in duels]
                        told = http.post("/api/tournaments/1/tell", json={"verdicts": lines, "lease": 2})
                        duels = told.raise_for_status().json()["duels"]
                        with lock:
                            given.update({line["duel"]: "tie" for line in lines})
                            if len(given) > goal:
                                enough.set()
                except httpx.TransportError:
                    return

        threads = [threading.Thread(target=vote, args=(path, server.url, acknowledged, goal)) for path in invited]
        threads += [threading.Thread(target=judge, args=(token, server.url, acknowledged, goal)) for token in tokens]
        for thread in threads:
            thread.start()
        assert acknowledged.wait(60)
        server.kill()
        for thread in threads:
            thread.join()
    with Tournament.open(store) as cup:
        report = cup.verify()
        rows = cup.store.read(
            lambda tx: tx.all(
                "SELECT r.n, v.k, v.verdict FROM verdict v JOIN round r ON r.id = v.round WHERE v.became = 'counted'"
            )
        )
        held = cup.store.read(lambda tx: tx.all("SELECT held, verdict FROM web_voter WHERE held IS NOT NULL"))
    found = {f"{n}.{k}": verdict for n, k, verdict in rows} | dict(held)
    assert len(given) > 450
    assert {duel: found.get(duel) for duel in given} == given
    assert report.head


def test_what_was_held_when_the_server_died_is_told_by_the_next_one(make: Make, serve: Callable[..., Any]) -> None:
    store = make("first")
    server = Process(store)
    with httpx.Client(base_url=server.url, headers=SAME, follow_redirects=True) as http:
        page = http.post(Client(server.url, OWNER).tournament(1).invite("voter", "Anna")["path"]).text
        duel = re.search(r'name="duel" value="([0-9.]+)"', page)
        assert duel
        http.post("/vote/1/answer", data={"duel": duel[1], "verdict": "second"})
    server.kill()
    assert counted(store) == []
    served = serve("second")
    served.ahead = 120
    for _ in range(200):
        if counted_of(store, "first"):
            break
        time.sleep(0.05)
    assert counted_of(store, "first") == [("Anna", "second", "counted")]


def counted_of(store: Path, name: str) -> list[tuple[Any, ...]]:
    with Tournament.open(store, name) as cup:
        return cup.store.read(
            lambda tx: tx.all("SELECT judge, verdict, became FROM verdict WHERE tournament = ?", cup.number)
        )


def test_links_outlive_the_server_and_its_owner_token_does_not_have_to(make: Make) -> None:
    store = make()
    server = Process(store)
    path = Client(server.url, OWNER).tournament(1).invite("voter", "Anna")["path"]
    server.stop()
    again = Process(store, ROUNDEL_OWNER_TOKEN="another-token-of-the-owner")
    assert httpx.get(again.url + path).status_code == 200
    with pytest.raises(AccessError):
        Client(again.url, OWNER).tournaments()
    again.stop()


# secrets ----------------------------------------------------------------------------------------------------

SENTINEL = "SENTINEL-5e7c1f-do-not-leak"


def test_secrets_are_nowhere_but_where_they_belong(make: Make, tmp_path: Path) -> None:
    """Searched for everywhere: output, errors, database and its journals, exports, certificate, pages, API."""
    store = make()
    secret, owner = f"{SENTINEL}-signing", f"{SENTINEL}-owner"
    server = Process(store, ROUNDEL_SECRET=secret, ROUNDEL_OWNER_TOKEN=owner)
    cup = Client(server.url, owner).tournament(1)
    voter, bot = cup.invite("voter", "Anna"), cup.invite("judge", "bot")
    headers = {"Authorization": f"Bearer {owner}"}
    pages = []
    with httpx.Client(base_url=server.url, headers=SAME, follow_redirects=True) as http:
        pages += [
            http.get("/", params={"token": owner}),
            http.get("/t/1"),
            http.get("/t/1/live"),
            http.get("/t/1/certificate"),
        ]
        pages += [http.post(voter["path"]), http.get("/vote/1"), http.get(f"/{owner}"), http.get("/v/" + secret)]
        pages += [
            http.get(f"/api/{path}", headers=headers)
            for path in ("tournaments", "tournaments/1/status", "openapi.json", "x")
        ]
        pages += [http.post("/sign-in", data={"token": owner + "x"}), http.get("/", params={"token": owner + "x"})]
        pages += [http.post("/api/tournaments/1/tell", headers=headers, content=b"{" + owner.encode())]
    told = Client(server.url, bot["token"]).tournament(1)
    lease = told.lease()[0]
    told.tell(lease, "first")
    out, err = server.stop()
    with Tournament.open(store) as opened:
        exported = "\n".join(opened.export())
        opened.store.backup(tmp_path / "backup.db")
    files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    texts = {"output": out, "errors": err, "export": exported, "files": files.decode("latin-1")}
    texts |= {f"page {n} {page.url.path}": page.text + str(page.headers) for n, page in enumerate(pages)}
    for where, text in texts.items():
        if "not_found" not in where:
            assert SENTINEL not in text.replace(f"/{owner}", ""), where
    for token in (lease["token"], voter["token"], bot["token"]):
        for where in ("output", "errors", "export", "files"):
            assert token not in texts[where], (where, "a token")
    assert "Anna" in texts["files"]  # the control: what is stored is found


def test_the_sentinel_would_be_found(make: Make) -> None:
    """The control of the search: a secret that is stored is found in the files."""
    store = make()
    with sqlite3.connect(store) as database:
        database.execute("CREATE TABLE web_leak (text)")
        database.execute("INSERT INTO web_leak VALUES (?)", (SENTINEL,))
    database.close()
    assert SENTINEL.encode() in b"".join(path.read_bytes() for path in store.parent.iterdir())


def test_the_secret_file_is_for_its_owner_only_and_stays(tmp_path: Path) -> None:
    keys, owner = Keys.find(str(tmp_path / "s.db"), {})
    file = tmp_path / "s.db.secret"
    assert file.stat().st_mode & 0o777 == 0o600
    again, other = Keys.find(str(tmp_path / "s.db"), {})
    assert again.read("voter", keys.sign("voter", "id")) == "id"
    assert owner != other
    assert keys.owns(owner)
    assert not keys.owns(other)
    assert again.read("judge", keys.sign("voter", "id")) is None  # one role's token is no other's
    assert not again.is_session(keys.session())  # another owner's token signs everybody out
    assert file.read_text().strip() not in repr(keys)


def test_weak_or_missing_secrets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="at least 16"):
        Keys("short", "x" * 20)
    with pytest.raises(AccessError, match="ROUNDEL_OWNER_TOKEN has 6"):
        Keys.find(str(tmp_path / "s.db"), {"ROUNDEL_OWNER_TOKEN": "secret"})
    with pytest.raises(AccessError, match="set ROUNDEL_SECRET"):
        Keys.find("postgresql://host/db", {})
    with pytest.raises(AccessError, match="make the folder writable"):
        Keys.find(str(tmp_path / "none" / "s.db"), {})


def test_two_servers_on_one_host_leave_each_other_s_cookies_alone(make: Make, tmp_path: Path) -> None:
    Tournament.create(tmp_path / "other.db", "other", ["x", "y"], horizon=9, rounds=1).disconnect()
    running = [Process(make()), Process(tmp_path / "other.db")]
    try:
        with httpx.Client(headers=SAME) as browser:  # like all browsers, it does not tell ports apart
            for server in running:
                assert browser.get(f"{server.url}/", params={"token": OWNER}).status_code == 303
                path = Client(server.url, OWNER).tournament(1).invite("voter", "Anna")["path"]
                assert browser.post(f"{server.url}{path}").status_code == 303
            for server in running:
                assert browser.get(f"{server.url}/t/1").status_code == 200
                assert browser.get(f"{server.url}/vote/1").status_code == 200
    finally:
        for server in running:
            server.stop()


@pytest.mark.parametrize("kept", ["", "short\n"])
def test_a_secret_that_was_cut_off_is_named_by_its_file(tmp_path: Path, kept: str) -> None:
    path = tmp_path / "store.db.secret"
    path.write_text(kept)
    with pytest.raises(AccessError, match=r"store\.db\.secret.*delete the file"):
        Keys.find(str(tmp_path / "store.db"), {})


def test_a_port_that_is_taken_is_said_in_one_line(make: Make) -> None:
    store = make()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [sys.executable, "-m", "roundel", "serve", str(store), "--port", str(taken.getsockname()[1])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "choose another --port" in done.stderr


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    code = "import typer; from roundel.cli import serve; app = typer.Typer(); serve.register(app); app()"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "none.db")],
        capture_output=True,
        text=True,
        env=os.environ,
        timeout=60,
    )
    assert done.returncode != 0
    assert "there is no store" in done.stderr
