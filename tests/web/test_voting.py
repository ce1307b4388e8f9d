"""The voting page without JavaScript: forms, redirects, and what they do to the record."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from roundel.tournament import Tournament
from serving import OWNER, Voter, counted

Serve = Callable[..., Any]


def dump(store: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of every table."""
    with Tournament.open(store) as cup:

        def work(tx: Any) -> dict[str, list[tuple[Any, ...]]]:
            names = [row[0] for row in tx.all("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
            return {name: tx.all(f"SELECT * FROM {name} ORDER BY 1, 2") for name in names}

        return cup.store.read(work)


def test_a_voter_finishes_a_tournament_with_forms_alone(serve: Serve) -> None:
    served = serve()
    voter = served.voter("Anna")
    for n in range(30):
        assert voter.stage == "pair"
        assert voter.answered == n
        voter.answer(("first", "second", "tie")[n % 3])
    assert voter.stage == "finished"
    assert "Your 30 answers are kept" in voter.page.text
    rows = counted(served.store)
    assert [row[1:] for row in rows] == [("Anna", ("first", "second", "tie")[n % 3], "counted") for n in range(30)]
    with Tournament.open(served.store) as cup:
        cup.verify()
        assert not cup.is_open


def test_the_page_shows_the_options_and_the_context_but_never_a_name(serve: Serve) -> None:
    options = [{"name": "alpha-name", "text": "first text"}, {"name": "beta-name", "text": "second text"}]
    served = serve(
        "secret title", options, contexts=[{"name": "context-name", "text": "a question"}], horizon=4, rounds=1
    )
    voter = served.voter("Anna")
    for shown in ("first text", "second text", "a question", "Which one is better?"):
        assert shown in voter.page.text
    for hidden in ("alpha-name", "beta-name", "secret title", "context-name", "Anna"):
        assert hidden not in voter.page.text


def test_reloading_repeats_nothing(serve: Serve) -> None:
    served = serve()
    voter = served.voter("Anna")
    voter.answer()
    duel = voter.duel
    before = dump(served.store)
    for _ in range(3):
        voter.page = voter.http.get("/vote/1")
    assert voter.duel == duel
    assert dump(served.store) == before


def test_looking_at_every_page_changes_nothing(serve: Serve) -> None:
    """Mail programs and browsers fetch links before anybody clicks."""
    served = serve()
    voter = served.voter("Anna")
    voter.answer()
    served.client().tournament(1).invite("voter", "Ben")
    owner = served.browser()
    owner.get("/", params={"token": OWNER})
    before = dump(served.store)
    paths = [voter.invited["path"], "/vote/1", "/vote/1/thanks", "/", "/t/1", "/t/1/live", "/t/1/certificate"]
    paths += [
        "/t/1/invite",
        "/t/1/revoke",
        "/t/1/close",
        "/vote/1/answer",
        "/vote/1/next",
        "/vote/1/undo",
        "/vote/1/leave",
    ]
    paths += [f"/api/tournaments{rest}" for rest in ("", "/1/status", "/1/plan", "/1/certificate", "/1/invitations")]
    paths += [f"/api/tournaments/1/{verb}" for verb in ("lease", "tell", "close")]
    statuses = []
    for path in [*paths, *(served.client().tournament(1).invitations()[1]["path"],)]:
        for http in (voter.http, owner):
            for method in ("GET", "HEAD"):
                headers = {"Purpose": "prefetch", "Sec-Purpose": "prefetch", "Authorization": f"Bearer {OWNER}"}
                statuses.append(http.request(method, path, headers=headers).status_code)
    assert dump(served.store) == before
    assert statuses.count(200) > 20  # they were really there to be looked at


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "null"}, True),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "none"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "{url}"}, False),
        ({"Origin": "{url}"}, True),
        ({"Origin": "https://elsewhere.example"}, False),
        ({"Origin": "{url}.elsewhere.example"}, False),
        ({"Origin": "null"}, False),
        ({}, False),
        ({"Referer": "{url}/vote/1"}, False),
    ],
)
def test_forms_from_elsewhere_are_refused(serve: Serve, headers: dict[str, str], allowed: bool) -> None:
    served = serve()
    voter = served.voter("Anna")
    owner = served.browser()
    owner.get("/", params={"token": OWNER})
    before = dump(served.store)
    sent = {name: value.format(url=served.url) for name, value in headers.items()}
    with httpx.Client(base_url=served.url, cookies={**voter.http.cookies, **owner.cookies}) as http:
        answers = [
            http.post("/vote/1/answer", data={"duel": voter.duel, "verdict": "tie"}, headers=sent),
            http.post("/vote/1/undo", headers=sent),
            http.post("/vote/1/next", headers=sent),
            http.post("/t/1/invite", data={"labels": "Eve"}, headers=sent),
            http.post(voter.invited["path"], headers=sent),
        ]
    if allowed:
        assert {answer.status_code for answer in answers} == {303}
        assert dump(served.store) != before
    else:
        assert {answer.status_code for answer in answers} == {403}
        assert dump(served.store) == before


def test_cookies_are_out_of_reach_for_scripts_and_other_sites(serve: Serve) -> None:
    served = serve()
    voter = served.voter("Anna")
    cookie = voter.page.history[0].headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    owner = httpx.get(f"{served.url}/", params={"token": OWNER})
    assert owner.status_code == 303
    assert owner.headers["location"] == "/"  # the token leaves the address
    assert OWNER not in owner.headers["set-cookie"]


@pytest.mark.parametrize("believed", [True, False])
def test_behind_a_proxy_with_tls_links_and_cookies_are_for_tls(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, believed: bool
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "127.0.0.1" if believed else "192.0.2.1")
    served = serve()
    path = served.client().tournament(1).invite("voter", "Anna")["path"]
    headers = {"X-Forwarded-Proto": "https", "Host": "vote.example", "Origin": "https://vote.example"}
    with httpx.Client(base_url=served.url, headers=headers) as http:
        answers = [http.post(path), http.get("/", params={"token": OWNER})]
        assert [answer.status_code for answer in answers] == [303, 303]
        assert [("Secure" in answer.headers["set-cookie"]) for answer in answers] == [believed] * 2
        cookie = answers[1].headers["set-cookie"].partition(";")[0]
        page = http.get("/t/1", headers={"Cookie": cookie}).text
    assert f'value="{"https" if believed else "http"}://vote.example{path}"' in page


# undo -------------------------------------------------------------------------------------------------------


def test_the_last_answer_can_be_undone_and_nothing_before_it(serve: Serve) -> None:
    served = serve()
    voter = served.voter("Anna")
    first = voter.duel
    voter.answer("first")
    second = voter.duel
    voter.answer("first")
    assert voter.duel not in (first, second)
    third = voter.duel
    voter.press("undo")
    assert voter.duel == second
    assert voter.answered == 1
    assert voter.notice == "Undone. Here is the pair again."
    voter.press("undo")
    assert voter.duel == second
    assert "nothing to undo" in (voter.notice or "")
    voter.answer("second")
    assert voter.duel == third  # back where the voter was
    voter.answer("tie")
    rows = counted(served.store)
    assert [row[2] for row in rows] == ["first", "second"]  # the tie is held
    voter.press("leave")
    given_back = (None, "rejected")  # the pair that was left open: others need not wait for it
    expected = [("first", "counted"), ("second", "counted"), ("tie", "counted"), given_back]
    assert [row[2:] for row in counted(served.store)] == expected


def test_an_answer_counts_by_itself_after_a_minute(serve: Serve) -> None:
    served = serve()
    voter = served.voter("Anna")
    voter.answer("second")
    assert counted(served.store) == []
    served.ahead = 61
    _until(lambda: len(counted(served.store)) == 1)
    voter.press("undo")
    assert "counted" in (voter.notice or "")
    assert voter.answered == 1


def test_the_answer_that_a_round_waits_for_is_not_held(serve: Serve) -> None:
    served = serve(options=["a", "b"], horizon=1, rounds=1)
    voter = served.voter("Anna")
    voter.answer("first")
    assert voter.stage == "finished"
    assert len(counted(served.store)) == 1


# others -----------------------------------------------------------------------------------------------------


def test_two_voters_never_get_the_same_pair_at_once(serve: Serve) -> None:
    served = serve()
    voters = [served.voter(name) for name in ("Anna", "Ben")]
    asked: list[str] = []
    while any(voter.stage == "pair" for voter in voters):
        for voter in voters:
            if voter.stage == "pair":
                assert voter.duel is not None
                asked.append(voter.duel)
                voter.answer()
            elif voter.stage == "waiting":
                voter.press("next")
    assert len(asked) == len(set(asked)) == 30
    assert {voter.press("next") and voter.stage for voter in voters} == {"finished"}
    assert len(counted(served.store)) == 30


def test_a_voter_waits_while_the_others_hold_the_rest(serve: Serve) -> None:
    served = serve(options=["a", "b"], horizon=2, rounds=1)
    anna, ben = served.voter("Anna"), served.voter("Ben")
    anna.answer()
    assert anna.stage == "waiting"
    ben.answer()
    assert ben.stage == "finished"
    anna.press("next")
    assert anna.stage == "finished"


def test_who_comes_back_after_the_lease_expired_still_counts(serve: Serve) -> None:
    served = serve()
    voter = served.voter("Anna")
    served.ahead = 3600
    voter.page = voter.http.get("/vote/1")
    assert voter.stage == "pair"
    voter.answer("second")
    assert [row[1:] for row in counted(served.store)] == [("Anna", "second", "counted")]  # at once: others may have it
    assert voter.notice is None


def test_who_comes_back_too_late_is_told_so(serve: Serve) -> None:
    served = serve(options=["a", "b"], horizon=2, rounds=1)
    anna = served.voter("Anna")
    served.ahead = 3600
    ben = served.voter("Ben")
    while ben.stage == "pair":
        ben.answer()
    anna.answer()
    assert anna.stage == "finished"
    assert [row[1:] for row in counted(served.store)] == [("Ben", "first", "counted")] * 2 + [("Anna", "first", "late")]


def test_a_round_closed_by_the_owner_counts_what_was_held(serve: Serve) -> None:
    served = serve()
    anna = served.voter("Anna")
    anna.answer("first")
    pair = anna.duel
    assert served.client().tournament(1).close() == 1
    assert [row[3] for row in counted(served.store)] == ["counted"]
    anna.answer("first", pair)
    assert "does not count" in (anna.notice or "")
    assert anna.duel.startswith("2.")  # type: ignore[union-attr]
    assert [row[3] for row in counted(served.store)] == ["counted", "late"]


def test_who_leaves_gives_the_pair_back_at_once(serve: Serve) -> None:
    served = serve(options=["a", "b"], horizon=1, rounds=1)
    anna, ben = served.voter("Anna"), served.voter("Ben")
    assert ben.stage == "waiting"
    anna.press("leave")
    assert "Thank you" in anna.page.text
    ben.press("next")
    assert ben.stage == "pair"
    ben.answer()
    assert ben.stage == "finished"


def test_the_way_back_after_finish_leads_on(serve: Serve) -> None:
    served = serve()
    voter = served.voter("Anna")
    old = voter.duel
    voter.press("leave")
    voter.answer(duel=old)  # the browser's back button shows the old pair once more
    assert voter.stage == "pair"
    assert "Here is the next one" in (voter.notice or "")
    voter.answer("second")
    assert voter.answered == 1


def test_who_comes_after_the_end_is_not_asked_to_come_back(serve: Serve) -> None:
    served = serve()
    served.client().tournament(1).close(end=True, empty=True)
    voter = served.voter("Anna")
    assert voter.stage == "finished"
    assert "The comparison is complete" in voter.page.text
    assert "Come back" not in voter.page.text


@pytest.mark.parametrize(("most", "words"), [(1, "1 pair at most"), (30, "30 pairs at most")])
def test_an_invitation_says_how_many_pairs_it_is_for(serve: Serve, most: int, words: str) -> None:
    served = serve()
    invited = served.client().tournament(1).invite("voter", "Anna", most=most)
    assert words in served.browser().get(invited["path"]).text


# invitations ------------------------------------------------------------------------------------------------


def test_a_personal_link_is_one_voter_on_any_device(serve: Serve) -> None:
    served = serve()
    phone = served.voter("Anna")
    phone.answer()
    laptop = Voter(served, phone.invited)
    assert laptop.duel == phone.duel
    assert laptop.answered == 1


def test_a_shared_link_seats_so_many_and_no_more(serve: Serve) -> None:
    served = serve()
    invited = served.client().tournament(1).invite("voter", "team", voters=2)
    voters = [Voter(served, invited) for _ in range(3)]
    assert [voter.stage for voter in voters] == ["pair", "pair", "status 403"]
    again = Voter(served, invited)
    assert again.page.status_code == 403
    voters[0].page = voters[0].http.post(invited["path"])  # the same browser keeps its seat
    assert voters[0].stage == "pair"
    for voter in voters[:2]:
        voter.answer()
        voter.press("leave")
    assert sorted(row[1] for row in counted(served.store) if row[3] == "counted") == ["team #1", "team #2"]


def test_an_invitation_may_limit_the_answers(serve: Serve) -> None:
    voter = serve().voter("Anna", most=3)
    for _ in range(3):
        assert voter.stage == "pair"
        voter.answer()
    assert voter.stage == "enough"
    voter.answer(duel="1.9")
    assert voter.answered == 3


def test_a_revoked_invitation_is_as_good_as_none(serve: Serve) -> None:
    served = serve()
    voter = served.voter("Anna")
    voter.answer()
    served.client().tournament(1).revoke(voter.invited["id"])
    pages = [voter.answer(), voter.http.get("/vote/1"), voter.http.get(voter.invited["path"])]
    pages += [voter.http.get("/vote/2"), voter.http.get("/v/forged"), voter.http.get("/vote/1/thanks")]
    assert {page.status_code for page in pages} == {404}
    assert len({page.text for page in pages}) == 1
    served.ahead = 61
    _until(lambda: len(counted(served.store)) == 1)  # but what was acknowledged counts


@pytest.mark.parametrize(
    ("typed", "status"),
    [({"labels": "Ben\nAnna"}, 409), ({"voters": "0"}, 403), ({"count": "0"}, 403), ({"most": "0"}, 403)],
)
def test_a_form_that_is_refused_keeps_what_was_typed(serve: Serve, typed: dict[str, str], status: int) -> None:
    served = serve()
    served.voter("Anna")
    owner = served.browser()
    owner.get("/", params={"token": OWNER})
    before = dump(served.store)
    page = owner.post("/t/1/invite", data={"labels": "", "voters": "1", "count": "1", "most": ""} | typed)
    assert page.status_code == status
    assert dump(served.store) == before
    for name, text in typed.items():
        assert re.search(rf'name="{name}"[^>]*(value="|>){text}["<]', page.text), name


def test_bad_answers_change_nothing(serve: Serve) -> None:
    served = serve()
    voter = served.voter("Anna")
    before = dump(served.store)
    for fields, status in (
        ({"duel": voter.duel, "verdict": "both"}, 422),
        ({"duel": voter.duel}, 422),
        ({"duel": "1.99", "verdict": "first"}, 200),
        ({"duel": "9.9", "verdict": "first"}, 200),
        ({"duel": "' OR 1=1", "verdict": "first"}, 200),
        ({}, 422),
    ):
        assert voter.http.post("/vote/1/answer", data=fields).status_code == status
    assert voter.http.post("/vote/1/answer", json={"duel": voter.duel, "verdict": "first"}).status_code == 422
    assert (
        voter.http.post(
            "/vote/1/answer", content=b"\xff\xfe=1", headers={"Content-Type": "application/x-www-form-urlencoded"}
        ).status_code
        == 422
    )
    assert dump(served.store) == before


def test_a_voter_who_is_too_fast_is_slowed_down(serve: Serve) -> None:
    served = serve(limits={"votes": (0.1, 5)})
    voter = served.voter("Anna")
    statuses = [voter.answer().status_code for _ in range(7)]
    assert statuses == [200] * 5 + [429] * 2
    wait = voter.page.headers["retry-after"]
    assert int(wait) >= 1
    assert f"wait {wait} s" in voter.page.text


def test_nobody_is_told_to_wait_no_time_at_all(serve: Serve) -> None:
    served = serve(limits={"votes": (4.0, 1)})
    voter = served.voter("Anna")
    voter.answer()
    assert "wait 1 s" in voter.answer().text
    assert voter.page.headers["retry-after"] == "1"


def test_the_first_paint_is_small_and_loads_nothing_from_elsewhere(serve: Serve) -> None:
    served = serve()
    voter = served.voter("Anna")
    loaded = [
        voter.page.text,
        *(voter.http.get(path).text for path in re.findall(r'(?:href|src)="(/static/[^"]+)"', voter.page.text)),
    ]
    assert len(loaded) == 4
    assert sum(len(part.encode()) for part in loaded) < 50_000
    for part in loaded:
        assert not re.findall(r"(?:https?:)?//(?!www\.w3\.org)[a-z]", part.replace("// ", ""))
    policy = voter.page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert not re.search(r"<script(?! src)|<style|\sstyle=|\son\w+=", voter.page.text)


def _until(holds: Callable[[], bool]) -> None:
    """Wait for the server's clockwork."""
    for _ in range(400):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen within 20 seconds")
