"""The server in front of PostgreSQL: the same pages, the same promises."""

from __future__ import annotations

from typing import Any

import pytest

from roundel.errors import ConflictError
from roundel.tournament import Tournament
from serving import OWNER, Served, counted


def test_voters_and_programs_finish_a_tournament_in_postgres(server: Any) -> None:
    url = server.fresh()
    Tournament.create(url, "tone", ["a", "b", "c"], horizon=30, rounds=2).disconnect()
    served = Served(url)
    try:
        owner = served.client().tournament(1)
        bot = served.client(owner.invite("judge", "bot")["token"]).tournament(1)
        with pytest.raises(ConflictError):
            owner.invite("voter", "bot")
        voter = served.voter("Anna")
        for _ in range(3):
            voter.answer("first")
            for duel in bot.lease(2):
                bot.tell(duel, "first")
        voter.press("undo")
        while voter.stage == "pair":
            voter.answer("tie")
        assert voter.stage == "finished"
        owner.revoke(owner.invitations()[1]["id"])
        assert voter.press("next").status_code == 404
        browser = served.browser()
        assert "tone" in browser.get("/", params={"token": OWNER}).text
        assert "bot" in browser.get("/t/1").text
    finally:
        served.stop()
    rows = counted(url)
    assert len([row for row in rows if row[3] == "counted"]) == 30
    assert [row[2] for row in rows if row[1] == "Anna"][:3] == ["first", "first", "tie"]
    with Tournament.open(url) as cup:
        cup.verify()
