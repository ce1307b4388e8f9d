"""Agreement, sides, and who moves the result: worked examples, and sybils."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import exp
from typing import Any

import numpy as np
import pytest

from roundel.tally import Tally
from roundel.web.insight import cells, judge_rows
from serving import Voter

NAMES = ("a", "b", "c")


def rows(votes: list[tuple[str, int, int, str, int]], shared: set[str] = set()) -> dict[str, Any]:  # noqa: B006
    return {row.name: row for row in judge_rows(votes, NAMES, shared)[0]}


def test_agreement_is_the_chance_of_the_same_verdict() -> None:
    # On (a, b): Anna says a 3 times and b once; Ben a once, tie once. A random verdict of Ben is a with 1/2.
    found = rows(
        [("Anna", 0, 1, "first", 3), ("Anna", 1, 0, "first", 1), ("Ben", 0, 1, "first", 1), ("Ben", 0, 1, "tie", 1)]
    )
    assert found["Anna"].agreement == pytest.approx((3 * 0.5 + 1 * 0) / 4)
    assert found["Ben"].agreement == pytest.approx((1 * 0.75 + 1 * 0) / 2)
    assert (found["Anna"].verdicts, found["Anna"].compared, found["Ben"].ties) == (4, 4, 1)


def test_ties_agree_with_ties() -> None:
    found = rows([("Anna", 0, 1, "tie", 2), ("Ben", 1, 0, "tie", 3)])
    assert found["Anna"].agreement == found["Ben"].agreement == 1.0
    assert found["Anna"].verdicts == 2


def test_who_judged_alone_is_compared_with_nobody() -> None:
    found = rows([("Anna", 0, 1, "first", 5), ("Ben", 0, 2, "first", 5)])
    assert found["Anna"].agreement is None
    assert found["Anna"].compared == 0


def test_a_preference_for_a_side_needs_more_than_chance() -> None:
    votes = [
        ("even", 0, 1, "first", 60),
        ("even", 0, 1, "second", 40),
        ("left", 0, 1, "first", 70),
        ("left", 0, 1, "second", 30),
    ]
    found = rows(votes)
    assert found["left"].first_share == 0.7
    assert not found["even"].leans  # two standard errors
    assert found["left"].leans  # four
    assert not rows([("few", 0, 1, "first", 20)])["few"].leans


def test_the_table_of_pairs() -> None:
    tally = Tally(np.array([[0, 6, 0], [2, 0, 0], [0, 0, 0]]))
    table = cells(tally, NAMES, [0, 1, 2])
    assert table[0][1][0] is None
    assert (table[0][1][1].duels, table[0][1][1].share, table[0][1][1].shade) == (4, 0.75, 8)  # type: ignore[union-attr]
    assert (table[0][1][2].duels, table[0][1][2].share) == (0, None)  # type: ignore[union-attr]


def crowd(seed: int, strengths: tuple[float, ...], voters: int, each: int) -> list[tuple[str, int, int, str, int]]:
    """Honest voters: a beats b with the chance that Bradley and Terry give."""
    draw = random.Random(seed)
    votes = []
    for voter in range(voters):
        for _ in range(each):
            first, second = draw.sample(range(3), 2)
            wins = draw.random() < 1 / (1 + exp(strengths[second] - strengths[first]))
            votes.append((f"honest {voter}", first, second, "first" if wins else "second", 1))
    return votes


@pytest.mark.parametrize("seed", range(10))
def test_a_thousand_sybils_do_not_win_in_silence(seed: int) -> None:
    """Sybils for c, who come by one shared link, against 20 honest voters for a: the winner stands, or an alarm."""
    honest = crowd(seed, (1.0, 0.0, -1.0), voters=20, each=60)
    for each in (1, 3):
        sybils = [(f"link #{n}", 2, n % 2, "first", each) for n in range(1000)]
        found, leads = judge_rows(honest + sybils, NAMES, {"link"})
        alarms = [row for row in found if row.without is not None]
        assert leads == "a" or [(row.name, row.without) for row in alarms] == [("link (all who share the link)", "a")]
    assert leads == "c"  # 3,000 of them do win: then it is the alarm that is left


@pytest.mark.parametrize("seed", range(10))
def test_an_honest_crowd_raises_no_alarm(seed: int) -> None:
    """The control. a leads b by a strength of 1 over 1,200 verdicts: no single voter of 60 can turn that around."""
    found, leads = judge_rows(crowd(seed, (1.0, 0.0, -1.0), voters=20, each=60), NAMES, set())
    assert leads == "a"
    assert all(row.without is None for row in found)


def test_sybils_at_the_page_raise_the_alarm_on_the_dashboard(serve: Callable[..., Any]) -> None:
    served = serve(options=list(NAMES), horizon=200, rounds=1)
    cup = served.client().tournament(1)
    honest = [served.client(cup.invite("judge", f"honest {n}")["token"]).tournament(1) for n in range(3)]
    asked = cup.status["asked"]
    for n in range(asked // 4):
        duel = honest[n % 3].lease()[0]
        best = min(("first", "second"), key=lambda side: duel[side]["name"])
        honest[n % 3].tell(duel, best)
    link = cup.invite("voter", "link", voters=50)
    text = {name: f">{name}</div>" for name in NAMES}
    for _ in range(50):
        sybil = Voter(served, link)
        for _ in range(asked // 50 + 1):
            if sybil.stage != "pair":
                break
            left, right = sybil.page.text.split('id="side-B"')
            sybil.answer("first" if text["c"] in left else "second" if text["c"] in right else "tie")
        sybil.press("leave")
    owner = served.browser()
    from serving import OWNER

    owner.get("/", params={"token": OWNER})
    page = owner.get("/t/1").text
    assert (
        "Without the verdicts of <strong>link (all who share the link)</strong>, <strong>a</strong> would lead, not c"
        in page
    )
