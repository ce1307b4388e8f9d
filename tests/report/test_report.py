"""The report: right numbers, nothing loaded, nothing executed, whatever the options hold."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from roundel.judges import Answer, judge_with
from roundel.report import report_html, write_report
from roundel.report.page import _probability
from roundel.tournament import Duel, Tournament
from roundel.tournament.certificate import parse_certificate, verify_certificate

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "![beacon](https://evil.example/x.png) [link](javascript:alert(1)) <https://evil.example>",
    "</style><style>@import url(https://evil.example/x.css);</style>",
    "<svg onload=alert(1)>",
    "&lt;b&gt; ' \" ` ${x}",
]


class Page(HTMLParser):
    """Tags, attributes and the text of a document."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._skip = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._skip = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._skip = False

    def handle_data(self, data: str) -> None:
        if not self._skip:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def right(duel: Duel) -> Answer:
    return Answer("first" if duel.first.name < duel.second.name else "second", cost=0.25)


def played(folder: Path, options: Any, limit: int | None = None, **changes: Any) -> Tournament:
    cup = Tournament.create(
        folder / "t.db", "t", options, folder=folder, **{"horizon": 400, "rounds": 3, "seed": 2, **changes}
    )
    if limit != 0:
        judge_with(cup, right, "me", limit=limit)
    return cup


def test_it_says_what_happened(tmp_path: Path) -> None:
    with played(tmp_path, ["a", "b", "c", "d"], question="Which slogan?") as cup:
        page = Page(report_html(cup))
        status = cup.status
        certificate = cup.certificate()
    assert "Which slogan?" in page.text
    assert "Winner a Every other option was eliminated" in page.text
    assert f"{status.spent:,}" in page.text
    assert f"{status.cost:,.2f}" in page.text
    for row in certificate["rounds"]:
        assert f"{sum(row['played']):,} of {sum(times for _, _, times in row['plan']):,}" in page.text
    for e in certificate["eliminations"]:
        assert f"out in {e['round']}, by {e['by']}" in page.text
    assert certificate["digest"] in page.text
    assert status.head in page.text
    assert "me" in page.text.split()


def test_the_certificate_inside_verifies(tmp_path: Path) -> None:
    with played(tmp_path, ["a", "b", "c"]) as cup:
        html = report_html(cup)
    (data,) = re.findall(r'download="certificate.json" href="data:application/json;base64,([^"]+)"', html)
    certificate = parse_certificate(base64.b64decode(data).decode())
    assert verify_certificate(certificate).holds
    certificate["outcome"]["winner"] = "c"
    with pytest.raises(Exception, match="digest"):
        verify_certificate(certificate)


@pytest.mark.parametrize("limit", [0, 5, None])
def test_open_and_finished_tournaments_have_reports(tmp_path: Path, limit: int | None) -> None:
    with played(tmp_path, ["a", "b", "c", "d"], limit=limit) as cup:
        text = Page(report_html(cup)).text
    assert ("Still open" in text) == (limit is not None)
    assert ("Still open; the leader is" in text) == (limit == 5)
    assert ("being played" in text) == (limit is not None)


@pytest.mark.parametrize("end", [False, True])
def test_without_verdicts_nobody_leads(tmp_path: Path, end: bool) -> None:
    with played(tmp_path, ["a", "b", "c"], limit=0) as cup:
        if end:
            cup.close(end=True, empty=True)
        text = Page(report_html(cup)).text
    assert ("Undecided No verdicts" if end else "Still open No verdicts yet") in text
    assert "leader is" not in text
    assert "leads" not in text
    assert "No option has been eliminated" in text
    assert "with a probability" not in text


@pytest.mark.parametrize(
    ("bound", "text"),
    [(0.0641, "6.5%"), (0.25, "25.0%"), (0.00101, "0.2%"), (0.0006, "0.1%"), (1.2e-7, "2e-7")],
)
def test_a_bound_is_never_rounded_down(bound: float, text: str) -> None:
    assert _probability(bound) == text


def test_ended_by_hand_is_undecided(tmp_path: Path) -> None:
    with played(tmp_path, ["a", "b", "c", "d"], limit=9) as cup:
        cup.close(end=True)
        assert "Undecided; the leader is" in Page(report_html(cup)).text


def test_a_cycle_is_shown(tmp_path: Path) -> None:
    beats = {("a", "b"), ("b", "c"), ("c", "a")}
    with Tournament.create(tmp_path / "t.db", "t", ["a", "b", "c"], horizon=3_000, rounds=3) as cup:
        judge_with(cup, lambda d: "first" if (d.first.name, d.second.name) in beats else "second", "me")
        assert cup.outcome.word == "no Condorcet winner"
        assert "No option beats all others" in Page(report_html(cup)).text


@pytest.mark.parametrize("kind", ["text", "markdown", "data"])
def test_nothing_loads_and_nothing_runs(tmp_path: Path, kind: str) -> None:
    options = [{"name": f"{n} {text}"[:60].strip(), kind: text} for n, text in enumerate(HOSTILE)]
    with played(tmp_path, options, limit=30, question=HOSTILE[0], contexts=[HOSTILE[1]]) as cup:
        html = report_html(cup)
    page = Page(html)
    allowed = {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "header",
        "section",
        "article",
        "footer",
        "div",
    }
    allowed |= {"p", "b", "h1", "h2", "h3", "dl", "dt", "dd", "span", "table", "thead", "tbody", "tr", "th", "td", "br"}
    allowed |= {
        "svg",
        "line",
        "circle",
        "a",
        "img",
        "pre",
        "code",
        "em",
        "strong",
        "ul",
        "ol",
        "li",
        "blockquote",
        "hr",
    }
    assert {tag for tag, _ in page.tags} <= allowed
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        for name in ("src", "href", "srcset", "action", "xlink:href"):
            value = attributes.get(name)
            assert value is None or value.startswith("data:"), (tag, attributes)
    assert "default-src 'none'" in html
    assert "@import" not in html.partition("</style>")[0]
    for text in HOSTILE[:2]:
        assert text in page.text  # shown as what it is


def test_pictures_are_inside(tmp_path: Path) -> None:
    for name in ("x", "y"):
        Image.new("RGB", (40, 30), "red").save(tmp_path / f"{name}.png")
    with played(tmp_path, [{"name": n, "image": f"{n}.png"} for n in ("x", "y")]) as cup:
        html = report_html(cup)
        assert html.count('src="data:image/png;base64,') == 2
        (tmp_path / "y.png").unlink()
        assert "The picture cannot be shown" in report_html(cup)
        (tmp_path / "x.png").write_text("<svg onload=alert(1)>")
        assert "<svg onload" not in report_html(cup)


def test_a_hundred_options_and_names_of_any_length(tmp_path: Path) -> None:
    names = [f"{n:03} {'long ' * 30}".strip() for n in range(100)]
    with played(tmp_path, names, limit=50, horizon=20_000) as cup:
        html = report_html(cup)
    assert html.count("<article>") == 60
    assert "40 more options are not shown" in html
    assert "matrix'" not in html.partition("</style>")[2]


def test_it_is_written_whole(tmp_path: Path) -> None:
    with played(tmp_path, ["a", "b"]) as cup:
        path = write_report(cup, tmp_path / "out" / "r.html")
    text = path.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert text.rstrip().endswith("</html>")


def test_a_browser_shows_it_without_a_complaint(tmp_path: Path) -> None:
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("there is no chromium: install Debian's package chromium")
    options = [{"name": f"o{n}", "markdown": text} for n, text in enumerate(HOSTILE)]
    with played(tmp_path, options, limit=30) as cup:
        path = write_report(cup, tmp_path / "r.html")
    line = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run(
        [*line, "--enable-logging=stderr", "--v=0", "--dump-dom", f"file://{path}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Standings" in done.stdout
    assert "CONSOLE" not in done.stderr  # neither an error nor a report of the security policy
    shot = tmp_path / "r.png"
    subprocess.run(
        [*line, "--window-size=1000,1400", f"--screenshot={shot}", f"file://{path}"],
        capture_output=True,
        timeout=60,
        check=True,
    )
    with Image.open(shot) as image:
        assert len(image.convert("RGB").getcolors(2**24) or ()) > 50  # it is not an empty page


def test_long_names_leave_room_for_the_tables(tmp_path: Path) -> None:
    browser = shutil.which("chromium")
    api = pytest.importorskip("playwright.sync_api")
    if browser is None:
        pytest.skip("there is no chromium: install Debian's package chromium")
    with played(tmp_path, ["x" * 200, "y " * 90 + "y", "z"]) as cup:
        path = write_report(cup, tmp_path / "r.html")
    with api.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1100, "height": 800})
        page.goto(f"file://{path}")
        wide = page.eval_on_selector_all(
            ".scroll", "all => all.filter(e => e.scrollWidth > e.clientWidth).map(e => e.firstChild.className)"
        )
        chromium.close()
    assert wide == []


def test_the_numbers_of_judges(tmp_path: Path) -> None:
    with Tournament.create(tmp_path / "t.db", "t", ["a", "b", "c"], horizon=60, rounds=2) as cup:
        judge_with(cup, right, "cheap", limit=4)
        judge_with(cup, right, "paid", paid=True, limit=3)
        cup.tell_counts([("a", "b", 2, 1, 0)], key="log:1", judge="log")
        cup.tell_counts([("a", "b", 1, 1, 0)], key="log:1", judge="log")
        rows = re.findall(r"<tr><th scope=row>(cheap|paid|log)</th>(.*?)</tr>", report_html(cup))
        numbers = {name: re.findall(r">([^<]+)</td>", cells) for name, cells in rows}
        assert json.dumps(numbers)
        assert numbers["cheap"] == ["4", "0", "0", "1.0000"]
        assert numbers["paid"] == ["3", "0", "3", "0.7500"]
        assert numbers["log"][0] == "2"
        assert cup.status.cost == pytest.approx(1.75)
