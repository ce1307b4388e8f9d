"""The pages in a real headless browser: by keys, by clicks, on a phone, without JavaScript, with a bad connection."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from roundel.web.content import show
from serving import OWNER, Served, counted

Serve = Callable[..., Any]


class Watched:
    """A page that notes whatever a good page never does: dialogs, foreign requests, errors, refused content."""

    def __init__(self, browser: Any, served: Served, **options: Any) -> None:
        self.context = browser.new_context(base_url=served.url, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(10_000)
        self.wrong: list[str] = []
        self.requests: list[str] = []
        self.page.on("dialog", lambda dialog: (self.wrong.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.on("console", lambda line: line.type == "error" and self.wrong.append(line.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def start(self, path: str) -> Any:
        self.page.goto(path)
        self.page.get_by_role("button", name="Start").click()
        self.page.wait_for_selector("#stage")
        return self.page

    def is_clean(self, served: Served) -> None:
        assert self.wrong == []
        assert [url for url in self.requests if not url.startswith(f"{served.url}/")] == []


@pytest.fixture
def watch(chromium: Any) -> Iterator[Callable[..., Watched]]:
    opened: list[Watched] = []

    def watch(served: Served, **options: Any) -> Watched:
        opened.append(Watched(chromium, served, **options))
        return opened[-1]

    yield watch
    for watched in opened:
        watched.context.close()


def invite(served: Served, label: str = "Anna", **more: Any) -> str:
    return str(served.client().tournament(1).invite("voter", label, **more)["path"])


def verdicts(served: Served) -> list[str]:
    return [row[2] for row in counted(served.store)]


def settled(page: Any, answered: int) -> None:
    page.wait_for_selector(f"#stage[data-answered='{answered}']:not([aria-busy])")


def test_a_whole_tournament_by_keys(serve: Serve, watch: Callable[..., Watched]) -> None:
    served = serve()
    watched = watch(served)
    page = watched.start(invite(served))
    page.evaluate("window.kept = true")
    keys = {"ArrowLeft": "first", "ArrowRight": "second", "Space": "tie", "ArrowDown": "tie"}
    pressed = [list(keys)[n % 4] for n in range(30)]
    for n, key in enumerate(pressed):
        page.keyboard.press(key)
        settled(page, n + 1)
    assert page.get_by_role("heading", name="Thank you!").is_visible()
    assert page.evaluate("window.kept") is True  # all of it without loading the page again
    assert verdicts(served) == [keys[key] for key in pressed]
    watched.is_clean(served)


def test_a_whole_tournament_by_clicks_on_a_phone(serve: Serve, watch: Callable[..., Watched]) -> None:
    long = "A rather long answer that takes more room than a phone has. " * 12
    served = serve(options=[{"name": n, "text": f"{n}: {long}"} for n in "abc"], horizon=12, rounds=1)
    watched = watch(served, viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True)
    page = watched.start(invite(served))
    names = ["A is better", "Tie", "B is better"]
    asked = served.client().tournament(1).status["asked"]
    for n in range(asked):
        first, second = (page.locator(f"#side-{letter}").bounding_box() for letter in "AB")
        assert first["y"] + first["height"] <= second["y"]  # one above the other
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        button = page.get_by_role("button", name=names[n % 3])
        box = button.bounding_box()
        assert 0 <= box["y"] <= 640 - box["height"]  # in reach without scrolling
        assert box["height"] >= 44
        button.tap()
        settled(page, n + 1)
    assert page.get_by_role("heading", name="Thank you!").is_visible()
    assert verdicts(served) == [("first", "tie", "second")[n % 3] for n in range(asked)]
    watched.is_clean(served)


def test_without_javascript(serve: Serve, watch: Callable[..., Watched]) -> None:
    served = serve(options=["a", "b"], horizon=5, rounds=1)
    watched = watch(served, java_script_enabled=False)
    page = watched.start(invite(served))
    page.get_by_role("button", name="A is better").click()
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="B is better").click()
    for _ in range(4):
        page.get_by_role("button", name="Tie").click()
    assert page.get_by_role("heading", name="Thank you!").is_visible()
    page.reload()
    assert page.get_by_role("heading", name="Thank you!").is_visible()
    assert verdicts(served) == ["second", "tie", "tie", "tie", "tie"]


def test_undo_by_key(serve: Serve, watch: Callable[..., Watched]) -> None:
    served = serve()
    page = watch(served).start(invite(served))
    before = page.locator("[name=duel]").input_value()
    page.keyboard.press("ArrowLeft")
    settled(page, 1)
    page.keyboard.press("u")
    settled(page, 0)
    assert page.locator("[name=duel]").input_value() == before
    assert page.get_by_role("button", name="Undo").is_disabled()
    page.keyboard.press("ArrowRight")
    settled(page, 1)
    page.get_by_role("button", name="Finish").click()
    page.wait_for_selector(".thanks")
    assert verdicts(served)[0] == "second"


def test_a_double_click_is_one_answer(serve: Serve, watch: Callable[..., Watched]) -> None:
    served = serve()
    page = watch(served).start(invite(served))
    box = page.get_by_role("button", name="A is better").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    for n in (1, 2):
        page.mouse.down(click_count=n)
        page.mouse.up(click_count=n)
        settled(page, 1)
    page.wait_for_timeout(300)
    settled(page, 1)
    page.get_by_role("button", name="A is better").click()
    settled(page, 2)


def test_two_voters_at_once_and_the_wait_for_each_other(serve: Serve, watch: Callable[..., Watched]) -> None:
    served = serve(options=["a", "b"], horizon=2, rounds=1)
    one, two = watch(served), watch(served)
    anna, ben = one.start(invite(served, "Anna")), two.start(invite(served, "Ben"))
    assert anna.locator("[name=duel]").input_value() != ben.locator("[name=duel]").input_value()
    anna.keyboard.press("ArrowLeft")
    anna.get_by_role("heading", name="One moment").wait_for()
    ben.keyboard.press("ArrowLeft")
    ben.get_by_role("heading", name="Thank you!").wait_for()
    anna.get_by_role("heading", name="Thank you!").wait_for()  # by itself
    assert sorted(row[1] for row in counted(served.store)) == ["Anna", "Ben"]
    one.is_clean(served)


def test_who_waits_keeps_the_focus_and_is_told_what_is_true(serve: Serve, watch: Callable[..., Watched]) -> None:
    served = serve(options=["a", "b"], horizon=1, rounds=1)
    served.voter("Ben")  # holds the only pair
    watched = watch(served)
    page = watched.start(invite(served))
    page.get_by_role("heading", name="One moment").wait_for()
    page.get_by_role("button", name="Finish").focus()
    page.evaluate("document.getElementById('stage').classList.add('old')")
    page.wait_for_selector("#stage:not(.old)")  # it has looked again by itself
    assert page.evaluate("document.activeElement.innerText") == "Finish"
    watched.context.set_offline(True)
    page.get_by_role("alert").filter(has_text="No connection").wait_for()
    assert "answer" not in page.locator("#connection").inner_text()  # there is none that could be lost


def test_an_expired_lease_and_a_closed_round(serve: Serve, watch: Callable[..., Watched]) -> None:
    served = serve()
    watched = watch(served)
    page = watched.start(invite(served))
    served.ahead = 3600
    page.keyboard.press("ArrowLeft")
    settled(page, 1)
    assert page.locator(".notice").count() == 0
    assert [row[3] for row in counted(served.store)] == ["counted"]
    assert served.client().tournament(1).close() == 1
    page.keyboard.press("ArrowLeft")
    settled(page, 2)
    assert "does not count" in page.locator(".notice").inner_text()
    assert [row[3] for row in counted(served.store)] == ["counted", "late"]
    page.keyboard.press("ArrowLeft")
    settled(page, 3)
    assert page.locator(".notice").count() == 0
    watched.is_clean(served)


def test_a_lost_connection_loses_no_answer(serve: Serve, watch: Callable[..., Watched]) -> None:
    served = serve()
    watched = watch(served)
    page = watched.start(invite(served))
    watched.context.set_offline(True)
    page.keyboard.press("ArrowRight")
    page.get_by_role("alert").filter(has_text="No connection. Your answer is not saved yet").wait_for()
    page.keyboard.press("ArrowLeft")  # nothing else is taken until it is saved
    watched.context.set_offline(False)
    settled(page, 1)
    assert not page.locator("#connection").is_visible()
    page.get_by_role("button", name="Finish").click()
    page.wait_for_selector(".thanks")
    assert verdicts(served)[0] == "second"


def test_an_answer_whose_reply_was_lost_counts_once(serve: Serve, watch: Callable[..., Watched]) -> None:
    served = serve()
    watched = watch(served)
    page = watched.start(invite(served))
    lost: list[int] = []

    def lose(route: Any) -> None:
        if not lost:
            lost.append(route.fetch().status)  # the server gets it, the browser never hears of it
            route.abort()
        else:
            route.continue_()

    page.route("**/answer", lose)
    page.keyboard.press("ArrowRight")
    settled(page, 1)
    assert lost == [200]
    page.get_by_role("button", name="Finish").click()
    page.wait_for_selector(".thanks")
    assert verdicts(served)[0] == "second"
    assert [row[3] for row in counted(served.store)] == ["counted", "rejected"]


# accessibility ----------------------------------------------------------------------------------------------

CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (text) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = rgb(getComputedStyle(node).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const poor = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    const text = texts.currentNode.data.trim();
    if (!text || !node.checkVisibility({ opacityProperty: true }) || node.closest(":disabled")) continue;
    const style = getComputedStyle(node);
    let front = rgb(style.color), back = behind(node), opacity = 1;
    for (let at = node; at; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
    front = front.map((v, i) => i < 3 ? v * opacity + back[i] * (1 - opacity) : v);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 700;
    const need = size >= 24 || (bold && size >= 18.66) ? 3 : 4.5;
    const have = (a + 0.05) / (b + 0.05);
    if (have < need) poor.push(`${node.tagName}.${node.className} ${text.slice(0, 30)}: ${have.toFixed(2)}`);
  }
  return poor;
}"""

NAMELESS = """() => {
  const fields = "input:not([type=hidden]), select, textarea, progress";
  const parts = `img, button, a, ${fields}, [role=region], [role=group], summary`;
  const named = (node) => node.ariaLabel || node.alt || node.getAttribute("aria-labelledby");
  const label = (node) => named(node) || (node.labels && node.labels.length);
  return [...document.querySelectorAll(parts)]
    .filter((node) => node.checkVisibility() && !(node.innerText || "").trim() && !label(node))
    .map((node) => node.outerHTML.slice(0, 100));
}"""

MARKDOWN = """# Title

Text with `code`, **bold** and a [link](https://example.org).

> quote

```
code
```
"""

CONTENT = [
    {
        "name": "a",
        "markdown": MARKDOWN,
    },
    {"name": "b", "data": {"key": [1, 2, 3]}},
    {"name": "c", "text": "plain"},
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_readable_and_everything_has_a_name(
    serve: Serve, watch: Callable[..., Watched], scheme: str
) -> None:
    served = serve(options=CONTENT, horizon=60, rounds=2, contexts=[{"name": "x", "text": "a context"}])
    bot = served.client(served.client().tournament(1).invite("judge", "bot")["token"]).tournament(1)
    bot.tell_all([{**duel, "verdict": "first"} for duel in bot.lease(20)])
    watched = watch(served, color_scheme=scheme, reduced_motion="reduce")
    page, pages = watched.page, []

    def look(what: str) -> None:
        pages.append(what)
        assert page.evaluate(CONTRAST) == [], what
        assert page.evaluate(NAMELESS) == [], what
        assert page.locator("h1").count() == 1, what
        assert page.locator("html[lang]").count() == 1
        assert page.locator("main").count() == 1

    page.goto(invite(served))
    look("welcome")
    page.get_by_role("button", name="Start").click()
    page.wait_for_selector("#answer")
    for n in range(4):
        look(f"pair {n}")
        page.keyboard.press("ArrowLeft")
        settled(page, n + 1)
        assert page.evaluate("document.activeElement.id") == "question"  # a screen reader goes on from there
        assert f"{n + 1} answered" in page.locator("#say").inner_text()
    page.get_by_role("button", name="Finish").click()
    page.wait_for_selector(".thanks")
    look("thanks")
    page.goto("/")
    look("sign in")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("#wrong")
    look("wrong token")
    page.get_by_label("Token").fill(OWNER)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector(".cards")
    look("home")
    page.get_by_role("link", name="tone").click()
    page.wait_for_selector("#live")
    look("dashboard")
    page.goto("/v/nothing")
    look("error")
    assert len(pages) == 11


def test_a_picture_is_there_for_a_screen_reader_and_missed_where_it_does_not_load(
    serve: Serve, watch: Callable[..., Watched], tmp_path: Path
) -> None:
    for name, colour in (("a", "red"), ("b", "blue")):
        Image.new("RGB", (80, 60), colour).save(tmp_path / f"{name}.png")
    served = serve(options=[{"name": n, "image": f"{n}.png"} for n in "ab"], folder=tmp_path, horizon=4, rounds=1)
    (tmp_path / "b.png").unlink()
    page = watch(served).start(invite(served))
    assert page.evaluate(NAMELESS) == []
    for letter in "AB":
        assert page.get_by_role("region", name=f"Option {letter}").get_by_role("img", name="picture").is_visible()


def test_the_measure_of_contrast_finds_poor_contrast(serve: Serve, watch: Callable[..., Watched]) -> None:
    """The control: grey on white must be found, and a button without a name."""
    served = serve()
    page = watch(served, bypass_csp=True).start(invite(served))
    page.evaluate("document.querySelector('h1').style.color = '#bbb'")
    page.evaluate("document.querySelector('main').appendChild(document.createElement('button')).style.width = '50px'")
    assert any(line.startswith("H1") for line in page.evaluate(CONTRAST))
    assert len(page.evaluate(NAMELESS)) == 1


def test_everything_can_be_reached_by_tab(serve: Serve, watch: Callable[..., Watched]) -> None:
    served = serve()
    page = watch(served).start(invite(served))
    reached = []
    for _ in range(5):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.innerText").replace("\n", " "))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    text = " ".join(reached)
    assert re.search(r"Skip.*Finish.*A is better.*Tie.*B is better", text)


# the dashboard ----------------------------------------------------------------------------------------------


def test_the_dashboard_follows_by_itself_and_makes_invitations(serve: Serve, watch: Callable[..., Watched]) -> None:
    served = serve()
    watched = watch(served)
    page = watched.page
    page.goto(f"/?token={OWNER}")
    assert OWNER not in page.url
    page.get_by_role("link", name="tone").click()
    page.get_by_label("Names, one a line").fill("Anna\nBen")
    page.get_by_role("button", name="Make invitations").click()
    link = page.get_by_label("Link for Anna").input_value()
    assert link.startswith(f"{served.url}/v/")
    page.evaluate("window.kept = true")
    bot = served.client(served.client().tournament(1).invite("judge", "bot")["token"]).tournament(1)
    for duel in bot.duels(limit=5, pause=0.05):
        bot.tell(duel, "first")
    page.locator(".pill.done").wait_for()
    assert page.evaluate("window.kept") is True
    judges = page.get_by_role("region", name="Judges")
    judges.get_by_text("bot").wait_for()
    assert "30" in judges.inner_text()
    with page.expect_download() as download:
        page.get_by_role("link", name="Certificate").click()
    assert download.value.suggested_filename == "tone.certificate.json"
    page.get_by_role("row", name="Ben").get_by_text("Revoke …").click()
    page.get_by_role("button", name="Revoke Ben").click()
    page.wait_for_selector("tr.out >> text=revoked")
    rows = {row["label"]: row["revoked"] for row in served.client().tournament(1).invitations()}
    assert rows == {"Anna": False, "Ben": True, "bot": False}
    watched.is_clean(served)


def test_the_dashboard_on_a_phone(serve: Serve, watch: Callable[..., Watched]) -> None:
    names = [f"a name that is rather long {n}" for n in range(6)]
    served = serve(options=names, horizon=200, rounds=2)
    owner = served.client().tournament(1)
    owner.tell_all([{**duel, "verdict": "first"} for duel in owner.lease(30)])
    page = watch(served, viewport={"width": 375, "height": 700}, has_touch=True, is_mobile=True).page
    page.goto(f"/?token={OWNER}")
    page.goto("/t/1")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    pairs = page.get_by_role("region", name="Who beats whom")
    box = pairs.get_by_role("columnheader", name="4", exact=True).bounding_box()
    assert box["x"] + box["width"] <= 375  # there is more to see than names
    dot = page.locator(".interval .dot").first
    assert dot.evaluate("node => getComputedStyle(node).vectorEffect") == "non-scaling-stroke"  # round at any width


def test_the_dashboard_says_when_it_is_stale(serve: Serve, watch: Callable[..., Watched]) -> None:
    served = serve()
    watched = watch(served)
    page = watched.page
    page.goto(f"/?token={OWNER}")
    page.goto("/t/1")
    assert not page.locator("#connection").is_visible()
    page.route("**/live", lambda route: route.fulfill(status=503, body="busy"))
    page.get_by_role("alert").filter(has_text="does not answer. This is how it stood at").wait_for()
    page.unroute("**/live")
    page.locator("#connection").wait_for(state="hidden")


def test_an_alarm_is_read_out_once_and_not_at_every_refresh(serve: Serve, watch: Callable[..., Watched]) -> None:
    served = serve(options=["good", "bad"], horizon=200, rounds=1)
    cup = served.client().tournament(1)
    bots = [served.client(cup.invite("judge", name)["token"]).tournament(1) for name in ("fair", "foul")]
    watched = watch(served)
    page = watched.page
    page.goto(f"/?token={OWNER}")
    page.goto("/t/1")
    for bot, wanted, limit in ((bots[0], "good", 4), (bots[1], "bad", 9)):
        bot.tell_all(
            [{**d, "verdict": "first" if d["first"]["name"] == wanted else "second"} for d in bot.lease(limit)]
        )
    page.locator("#say").filter(has_text="Without the verdicts of foul, good would lead, not bad").wait_for()
    page.evaluate("document.getElementById('say').textContent = ''")
    bots[1].tell_all([{**duel, "verdict": "tie"} for duel in bots[1].lease(1)])
    page.get_by_role("row", name="foul").first.filter(has_text="10").wait_for()
    assert page.locator("#say").inner_text() == ""
    assert page.locator("#live [role=alert]").count() == 0


# scripts in options -----------------------------------------------------------------------------------------

PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<iframe srcdoc='<script>parent.alert(1)</script>'></iframe>",
    "<iframe src=javascript:alert(1)>",
    "<body onload=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<video><source onerror=alert(1)>",
    "<a href='javascript:alert(1)' autofocus onfocus=alert(1)>x</a>",
    "<form action=https://evil.example><button>go</button></form>",
    "<style>@import 'https://evil.example/x.css'; * { background: url(https://evil.example/x) }</style>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<base href=https://evil.example/>",
    "<object data=https://evil.example></object><embed src=https://evil.example>",
    "</div></section></form><script>alert(1)</script>",
    "\"><script>alert(1)</script>",
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }}{% raw %}<script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[x](vbscript:msgbox(1))",
    "![x](https://evil.example/pixel.png)",
    "![x](javascript:alert(1))",
    "![x\" onerror=\"alert(1)](x)",
    "<https://evil.example/auto>",
    "[x]: javascript:alert(1)\n\n[x]",
    "[x](https://ok.example \"a\\\" onmouseover=alert(1)\")",
    "```html\n<script>alert(1)</script>\n```",
    "`<script>alert(1)</script>`",
    "```\" onmouseover=\"alert(1)\nx\n```",
    "<!--><script>alert(1)</script>-->",
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
    "\u202e<script>alert(1)</script>",
    "<scr\u0000ipt>alert(1)</script>".replace("\u0000", ""),
    "<xmp><script>alert(1)</script></xmp><plaintext>",
    "| a | b |\n|---|---|\n| <img src=x onerror=alert(1)> | [x](javascript:alert(1)) |",
]  # fmt: skip


def test_nothing_in_an_option_runs_or_loads(serve: Serve, watch: Callable[..., Watched]) -> None:
    options: list[dict[str, Any]] = []
    for n, payload in enumerate(PAYLOADS):
        options.append(
            {
                "name": f"{n}: {payload}".replace("\n", " ").replace("\t", " ").replace("\u202e", "")[:190],
                ("text", "markdown", "data")[n % 3]: payload,
            }
        )
        options.append({"name": f"md {n}", "markdown": payload})
    served = serve(
        "<script>alert(1)</script>",
        options,
        question=PAYLOADS[1],
        contexts=[{"name": "c", "markdown": PAYLOADS[27]}],
        horizon=9000,
        rounds=2,
    )
    watched = watch(served)
    page = watched.start(invite(served))
    for _ in range(3):  # as voters get them
        page.keyboard.press("ArrowLeft")
        page.wait_for_timeout(200)
    hall = served.desk.hall(1)  # and all of them in one page
    shown = "".join(f"<section>{show(option.content, str)}</section>" for option in hall.cup.spec.options)
    page.route("**/vote/1", lambda route: _with(route, shown))
    page.goto("/vote/1")
    page.wait_for_timeout(300)
    assert page.locator("#corpus > section > section").count() == len(options)
    active = ("script", "img", "iframe", "form", "style", "svg", "base", "link", "meta", "object", "embed", "video")
    assert page.locator(", ".join(f"#corpus {tag}" for tag in active)).count() == 0
    links = page.eval_on_selector_all("#corpus a", "links => links.map(link => [link.protocol, link.rel, link.target])")
    assert links
    assert {tuple(link) for link in links} <= {
        (protocol, "noopener noreferrer nofollow", "_blank") for protocol in ("http:", "https:", "mailto:", ":")
    }
    names = page.eval_on_selector_all("#corpus *", "all => all.flatMap(node => node.getAttributeNames())")
    handlers = [name for name in names if name.startswith("on") or name in ("style", "id")]
    assert handlers == []
    page.unroute("**/vote/1")
    page.goto(f"/?token={OWNER}")
    page.goto("/t/1")
    page.wait_for_timeout(300)
    assert page.locator("main script, main img").count() == 0
    watched.is_clean(served)


def _with(route: Any, shown: str) -> None:
    """Put the whole corpus into the page that the server sends, its policy untouched."""
    answer = route.fetch()
    body = answer.text().replace(
        '<div class="sides">', f'<div id="corpus"><section>{shown}</section></div><div class="sides">'
    )
    route.fulfill(response=answer, body=body)


def test_the_policy_stops_what_gets_through(serve: Serve, watch: Callable[..., Watched]) -> None:
    """The control: were a payload to get into the page, the browser would report it, and not run it."""
    served = serve()
    watched = watch(served)
    page = watched.start(invite(served))
    page.route("**/vote/1", lambda route: _with(route, "".join(PAYLOADS[:3])))
    page.goto("/vote/1")
    page.wait_for_timeout(300)
    assert any("Content Security Policy" in line for line in watched.wrong)
    assert not any(line.startswith("dialog") for line in watched.wrong)
