"""The HTTP API: roles, leases, verdicts, and a client for it."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from roundel.errors import AccessError, ConflictError, InputError, LeaseError, RoundelError
from roundel.tournament import Tournament
from roundel.tournament.certificate import verify_certificate
from roundel.web import Client
from serving import OWNER, Served, counted

Serve = Callable[..., Any]


@pytest.fixture
def served(serve: Serve) -> Served:
    return serve()  # type: ignore[no-any-return]


def judge(served: Served, label: str = "bot", role: str = "judge", **more: Any) -> Any:
    invited = served.client().tournament(1).invite(role, label, **more)
    return served.client(invited["token"]).tournament(1)


def test_a_program_judges_a_whole_tournament(served: Served) -> None:
    bot = judge(served)
    for duel in bot.duels(limit=4, pause=0.01):
        assert duel["first"]["name"] != duel["second"]["name"]
        assert bot.tell(duel, "first", cost=0.01)["became"] == "counted"
    status = served.client().tournament("tone").status
    assert status["open"] is False
    assert status["judges"] == {"bot": 30}
    assert status["cost"] == pytest.approx(0.3)
    certificate = served.client().tournament(1).certificate()
    verify_certificate(certificate)
    assert certificate["outcome"]["outcome"] == status["outcome"]


def test_tell_and_lease_in_one_breath(served: Served) -> None:
    bot = judge(served)
    duels = bot.lease(2)
    following = bot.tell_all([{**duel, "verdict": "tie"} for duel in duels], lease=2)
    assert len(following) == 2
    assert len(counted(served.store)) == 2


def test_the_plan_is_that_of_the_open_round(served: Served) -> None:
    plan = judge(served).plan
    assert plan["round"] == 1
    assert {(row["first"], row["second"]) for row in plan["pairs"]} == {
        ("plain", "warm"),
        ("plain", "short"),
        ("warm", "short"),
    }
    assert sum(row["times"] for row in plan["pairs"]) == served.client().tournament(1).status["asked"]


# replay -----------------------------------------------------------------------------------------------------


def test_fifty_concurrent_copies_of_a_verdict_count_once(served: Served) -> None:
    token = served.client().tournament(1).invite("judge", "bot")["token"]
    duel = served.client(token).tournament(1).lease()[0]
    line = {"duel": duel["duel"], "token": duel["token"], "verdict": "first"}
    start = threading.Barrier(50)

    def copy(_: int) -> httpx.Response:
        with httpx.Client(base_url=served.url, headers={"Authorization": f"Bearer {token}"}) as http:
            start.wait()
            return http.post("/api/tournaments/1/tell", json={"verdicts": [line]})

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(copy, range(50)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1  # the same receipt for all
    assert len(counted(served.store)) == 1
    with pytest.raises(ConflictError, match="another verdict"):
        served.client(token).tournament(1).tell(duel, "second")


def test_fifty_concurrent_copies_of_an_answer_on_the_page_count_once(served: Served) -> None:
    voter = served.voter("Anna")
    fields, start = {"duel": voter.duel, "verdict": "first"}, threading.Barrier(50)

    def copy(_: int) -> int:
        with httpx.Client(base_url=served.url, cookies=voter.http.cookies, headers=voter.http.headers) as http:
            start.wait()
            return http.post("/vote/1/answer", data=fields).status_code

    with ThreadPoolExecutor(50) as pool:
        assert set(pool.map(copy, range(50))) == {303}
    voter.page = voter.http.get("/vote/1")
    assert voter.answered == 1
    voter.press("leave")
    assert [row[3] for row in counted(served.store)] == ["counted", "rejected"]


# bad input --------------------------------------------------------------------------------------------------


def test_a_batch_with_one_bad_line_counts_nothing(served: Served) -> None:
    bot = judge(served)
    good, other = bot.lease(2)
    with pytest.raises(LeaseError, match="under this token"):
        bot.tell_all([{**good, "verdict": "first"}, {**other, "token": "forged", "verdict": "first"}])
    assert counted(served.store) == []
    assert bot.tell(good, "first")["became"] == "counted"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"[]", 422),
        (b"null", 422),
        (b'{"verdicts": []}', 422),
        (b'{"verdicts": [{}]}', 422),
        (b'{"verdicts": [{"verdict": "first"}]}', 404),
        (b'{"verdicts": [{"duel": "1.0", "verdict": "first"}]}', 422),
        (b'{"verdicts": [{"duel": "nonsense", "token": "x", "verdict": "first"}]}', 404),
        (b'{"verdicts": [{"duel": "1.0", "token": "x", "verdict": "FIRST"}]}', 422),
        (b'{"verdicts": [{"duel": "1.0", "token": "x", "verdict": true}]}', 422),
        (b'{"verdicts": [{"duel": "1.0", "token": "x", "verdict": "tie", "cost": NaN}]}', 422),
        (b'{"verdicts": [{"duel": "1.0", "token": "x", "verdict": "tie", "cost": -1}]}', 422),
        (b'{"verdicts": [{"duel": "1.0", "token": "\\ud800", "verdict": "tie"}]}', 422),
        (b'{"verdicts": [{"duel": "1.0", "token": "x", "verdict": "tie"}], "lease": -1}', 422),
        (b'{"verdicts": [{"duel": "1.0", "token": "x", "verdict": "tie"}], "other": 1}', 422),
        (b"\xff\xfe", 422),
        (b"[" * 100_000, 422),
        (b'{"verdicts":' * 50_000, 422),
    ],
)
def test_bad_bodies_are_refused_in_clear_words(served: Served, body: bytes, status: int) -> None:
    headers = {"Authorization": f"Bearer {OWNER}", "Content-Type": "application/json"}
    answer = httpx.post(f"{served.url}/api/tournaments/1/tell", content=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error"}
    assert counted(served.store) == []


# roles ------------------------------------------------------------------------------------------------------

MATRIX = {
    ("GET", ""): {"owner": 200, "judge": 200, "voter": 200},
    ("POST", "/lease"): {"owner": 200, "judge": 200, "voter": 200},
    ("GET", "/status"): {"owner": 200, "judge": 200, "voter": 200},
    ("GET", "/plan"): {"owner": 200, "judge": 200, "voter": 403},
    ("GET", "/certificate"): {"owner": 200, "judge": 403, "voter": 403},
    ("GET", "/invitations"): {"owner": 200, "judge": 403, "voter": 403},
    ("POST", "/invitations"): {"owner": 200, "judge": 403, "voter": 403},
    ("POST", "/close"): {"owner": 422, "judge": 403, "voter": 403},  # no verdict yet
    ("DELETE", "/invitations/x"): {"owner": 404, "judge": 403, "voter": 403},
}


def test_each_role_may_do_what_it_may(serve: Serve, make: Callable[..., Path]) -> None:
    make("other")
    served = serve("tone")
    owner = served.client().tournament("tone")
    assert owner.number == 2
    tokens = {"owner": OWNER} | {role: owner.invite(role, role)["token"] for role in ("judge", "voter")}
    foreign = {role: served.client().tournament(1).invite(role, role)["token"] for role in ("judge", "voter")}
    revoked = owner.invite("judge", "gone")
    owner.revoke(revoked["id"])

    def ask(method: str, rest: str, token: str | None, number: int = 2) -> httpx.Response:
        headers = {} if token is None else {"Authorization": f"Bearer {token}".encode()}
        path = f"/api/tournaments/{number}{rest}" if rest else "/api/tournaments"
        body = {"role": "judge", "label": "x"} if rest == "/invitations" else {}
        return httpx.request(method, served.url + path, headers=headers, json=body if method == "POST" else None)

    for (method, rest), allowed in MATRIX.items():
        for role, status in allowed.items():
            answer = ask(method, rest, tokens[role])
            assert answer.status_code == status, (method, rest, role, answer.text)
        for bad in (
            None,
            "x",
            "x.y",
            tokens["judge"][:-1],
            tokens["judge"] + "A",
            revoked["token"],
            OWNER[:-1],
            "ü" * 9,
        ):
            assert ask(method, rest, bad).status_code == 401, (method, rest, bad)
        if rest:  # foreign and unknown are the same
            for role, token in foreign.items():
                answers = [ask(method, rest, token, number) for number in (2, 3, 999_999)]
                assert {answer.status_code for answer in answers} == {404}, (method, rest, role)
                assert len({answer.text for answer in answers}) == 1
    assert ask("GET", "", foreign["judge"]).json()["tournaments"] == [{"number": 1, "name": "other"}]


def test_a_token_of_one_tournament_opens_nothing_of_another(serve: Serve, make: Callable[..., Path]) -> None:
    make("other")
    served = serve("tone")
    mine, other = served.client().tournament("tone"), served.client().tournament("other")
    bot = served.client(mine.invite("judge", "bot")["token"])
    duel = bot.tournament(2).lease()[0]
    stranger = served.client(other.invite("judge", "stranger")["token"])
    for call in (
        lambda: stranger.tournament(2).tell(duel, "first"),
        lambda: stranger.tournament(1).tell(duel, "first"),
    ):
        with pytest.raises(LeaseError):
            call()
    voter = served.voter("Anna", 2)
    foreign = served.voter("Ben", 1)
    one, two = (served.desk.keys.cookie(f"seat{number}") for number in (1, 2))
    voter.http.cookies.set(one, voter.http.cookies[two])
    foreign.http.cookies.set(two, foreign.http.cookies[one])
    unknown = voter.http.get("/vote/3")
    for answer in (
        voter.http.get("/vote/1"),
        foreign.http.get("/vote/2"),
        foreign.http.post("/vote/2/answer", data={"duel": voter.duel, "verdict": "first"}),
    ):
        assert (answer.status_code, answer.text) == (404, unknown.text)
    revoking = httpx.delete(
        f"{served.url}/api/tournaments/1/invitations/{voter.invited['id']}",
        headers={"Authorization": f"Bearer {OWNER}"},
    )
    assert revoking.status_code == 404
    voter.page = voter.http.get("/vote/2")
    assert voter.stage == "pair"


def test_voters_see_no_names_and_hold_few_duels(served: Served) -> None:
    voter = judge(served, "Anna", "voter")
    duels = voter.lease(50)
    assert len(duels) == 5
    assert all("name" not in duel[side] for duel in duels for side in ("first", "second"))
    assert set(voter.status) == {"open", "round", "rounds", "asked", "done"}
    with pytest.raises(AccessError, match="5 duels are out"):
        voter.lease()
    voter.tell(duels[0], "first")
    assert len(voter.lease()) == 1


def test_the_cap_of_an_invitation_holds_for_programs_too(served: Served) -> None:
    bot = judge(served, most=3)
    duels = bot.lease(10)
    assert len(duels) == 3
    for duel in duels:
        bot.tell(duel, "first")
        bot.tell(duel, "first")  # once more: the same receipt, and it does not count against the cap
    with pytest.raises(AccessError, match="all of them are given"):
        bot.lease()


def test_the_owner_sees_how_often_each_invitation_has_answered(served: Served) -> None:
    free, capped = judge(served, "free"), judge(served, "capped", most=9)
    free.tell_all([{**duel, "verdict": "first"} for duel in free.lease(3)])
    free.tell(free.lease()[0], None)
    capped.tell(capped.lease()[0], "tie")
    rows = served.client().tournament(1).invitations()
    assert {row["label"]: row["answered"] for row in rows} == {"free": 3, "capped": 1}
    owner = served.browser()
    owner.get("/", params={"token": OWNER})
    page = owner.get("/t/1").text
    assert re.search(r'free</th>.*?</td>\s*<td class="num">3</td>', page[page.index('id="invitations"') :], re.DOTALL)


def test_only_the_owner_speaks_for_others_or_without_a_lease(served: Served) -> None:
    bot, owner = judge(served), served.client().tournament(1)
    first, second = bot.lease(2)
    bot.tell(first, "first", judge="Anna")
    with pytest.raises(AccessError, match="only the owner"):
        bot.tell({"duel": second["duel"]}, "first", key="k")
    owner.tell({"duel": second["duel"]}, "tie", key="k", judge="Anna")
    assert [row[:3] for row in counted(served.store)][1:] == [("k", "Anna", "tie")]
    assert counted(served.store)[0][1] == "bot"


def test_nobody_is_invited_under_the_name_of_the_owner(served: Served) -> None:
    with pytest.raises(InputError, match="stands for you in the record"):
        served.client().tournament(1).invite("judge", "Owner")


def test_shared_links_are_for_browsers(served: Served) -> None:
    with pytest.raises(AccessError, match="browsers only"):
        judge(served, "team", "voter", voters=5).lease()


def test_a_verdict_of_null_gives_the_duel_back(served: Served) -> None:
    bot = judge(served)
    duel = bot.lease()[0]
    assert bot.tell(duel, None, note="unreadable")["became"] == "rejected"
    assert bot.lease()[0]["duel"] == duel["duel"]


def test_too_many_calls_are_slowed_down(serve: Serve) -> None:
    served = serve(limits={"calls": (0.01, 3)})
    bot = served.client().tournament(1).invite("judge", "bot")["token"]
    headers = {"Authorization": f"Bearer {bot}"}
    statuses = [httpx.get(f"{served.url}/api/tournaments/1/plan", headers=headers).status_code for _ in range(5)]
    assert statuses == [200] * 3 + [429] * 2


def test_pictures_travel_by_an_address_that_tells_nothing(serve: Serve, tmp_path: Path) -> None:
    from PIL import Image

    for name, colour in (("a", "red"), ("b", "blue")):
        Image.new("RGB", (8, 8), colour).save(tmp_path / f"{name}.png")
    served = serve(options=[{"name": n, "image": f"{n}.png"} for n in "ab"], folder=tmp_path, horizon=4, rounds=1)
    duel = judge(served).lease()[0]
    assert set(duel["first"]) == {"name", "image"}
    assert re.fullmatch(r"/media/[0-9a-f]{32}", duel["first"]["image"])
    answer = httpx.get(served.url + duel["first"]["image"])
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["x-content-type-options"] == "nosniff"


# the client and the documentation ---------------------------------------------------------------------------


def test_the_client_says_what_is_wrong(served: Served) -> None:
    with pytest.raises(InputError, match="begins with http"):
        Client("127.0.0.1:8000", OWNER)
    with pytest.raises(InputError, match="not the name of one tournament"):
        served.client().tournament("tune")
    with pytest.raises(AccessError, match="who are you"):
        served.client("wrong").tournaments()
    judge(served)
    with pytest.raises(ConflictError, match="already"):
        judge(served)
    assert OWNER not in repr(served.client())


@contextlib.contextmanager
def cuts_off(*answers: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that says what it is told, and hangs up; yields its address and what it heard."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            for said in answers:
                connection, _ = listening.accept()
                with connection:
                    heard.append(connection.recv(65536))
                    connection.sendall(said)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", heard
        thread.join(5)


HALF = b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"to'
WHOLE = b'HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n{"tournaments":[]}'


def test_a_call_whose_answer_breaks_off_is_made_again() -> None:
    with cuts_off(HALF, b"nonsense\r\n", WHOLE) as (url, heard):
        assert Client(url, "token", patience=5).tournaments() == []
    assert len(heard) == 3


@pytest.mark.parametrize("what", [lambda cup: cup.close(), lambda cup: cup.invite("judge", "bot")])
@pytest.mark.parametrize("answer", [HALF, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"])
def test_what_would_be_done_twice_is_not_made_again(what: Callable[[Any], Any], answer: bytes) -> None:
    with cuts_off(answer) as (url, heard), pytest.raises(RoundelError, match=r"may have been done|503"):
        what(Client(url, "token", patience=5).tournament(1))
    assert len(heard) == 1


def test_the_curl_example_of_the_documentation_works(served: Served, tmp_path: Path) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("curl is not installed: the example was not tried")
    text = (Path(__file__).parents[2] / "docs" / "web.md").read_text(encoding="utf-8")
    block = next(part for part in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if "curl" in part)
    token = served.client().tournament(1).invite("judge", "bot")["token"]
    script = block.replace("http://127.0.0.1:8000", served.url)
    done = subprocess.run(
        ["sh", "-eu", "-c", script], env={"PATH": "/usr/bin:/bin:/usr/local/bin", "TOKEN": token},
        capture_output=True, text=True, timeout=30, cwd=tmp_path, check=True,
    )  # fmt: skip
    receipt = json.loads(done.stdout.strip().splitlines()[-1])["receipts"][0]
    assert receipt["became"] == "counted"
    assert [row[1:] for row in counted(served.store)] == [("bot", "first", "counted")]


def test_the_openapi_document_knows_every_route_of_the_api(served: Served) -> None:
    paths = httpx.get(f"{served.url}/api/openapi.json").json()["paths"]
    verbs = ("lease", "tell", "status", "plan", "certificate", "close", "invitations", "invitations/{invitation}")
    assert set(paths) == {"/api/tournaments", *(f"/api/tournaments/{{number}}/{verb}" for verb in verbs)}


def test_a_tournament_made_while_the_server_runs_is_served(served: Served) -> None:
    Tournament.create(served.store, "late", ["x", "y"], horizon=2, rounds=1).disconnect()
    assert served.client().tournament("late").status["open"] is True
