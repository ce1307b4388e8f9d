"""The report as one HTML document: nothing is loaded, no script runs, every text is escaped."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Context, Decimal
from html import escape
from importlib import resources
from typing import Any

from roundel.errors import DataError
from roundel.judges.media import data_uri
from roundel.report import charts
from roundel.report.facts import Facts
from roundel.tournament import Option, Outcome
from roundel.tournament.certificate import certificate_text

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
LONGEST_SHOWN = 4_000  # characters of one option's text
MOST_SHOWN = 60  # options whose contents are shown
LARGEST_ATTACHED = 4 * 2**20  # bytes of a certificate that the report carries
REASONS = {
    "complete": "",
    "deadline": ", closed at its deadline",
    "hand": ", closed by hand",
    "ended": ", ended by hand",
}


def page(facts: Facts) -> str:
    """Return the document."""
    name = escape(facts.spec.name)
    style = resources.files("roundel.report").joinpath("style.css").read_text(encoding="utf-8")
    sections = [
        _head(facts),
        _section("Standings", _standings(facts), "standings"),
        _section("How it went", _rounds(facts), "rounds"),
        _section("Head to head", _matrix(facts), "matrix"),
        _section("The options", _options(facts), "options"),
        _section("Who judged", _judges(facts), "judges"),
        _section("How sure this is", _certificate(facts), "certificate"),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{name}: {escape(facts.status.outcome.word)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{''.join(sections)}</main>\n{_foot(facts)}</body>\n</html>\n"
    )


def _section(title: str, body: str, anchor: str) -> str:
    if not body:
        return ""
    head = f'<h2 id="{anchor}-title">{title}</h2>'
    return f'<section id="{anchor}" aria-labelledby="{anchor}-title">{head}{body}</section>\n'


def _table(columns: Sequence[str], rows: Sequence[str]) -> str:
    """Return a table; a column whose name begins with + is of numbers."""
    head = "".join(
        f"<th scope=col{' class=n' if name.startswith('+') else ''}>{name.removeprefix('+')}</th>" for name in columns
    )
    body = "".join(rows)
    return f"<div class=scroll><table class=list><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


# the answer first ---------------------------------------------------------------------------------------------


def _head(facts: Facts) -> str:
    status, spec = facts.status, facts.spec
    used = status.spent / spec.horizon
    numbers = [
        (f"{len(spec.options):,}", "options"),
        (f"{status.spent:,}", f"verdicts, {used:.0%} of the budget"),
        (f"{len(facts.rounds):,}", f"rounds of at most {status.rounds:,}"),
        (f"{len(facts.judges):,}", "judges" if len(facts.judges) != 1 else "judge"),
    ]
    if status.cost:
        numbers.append((f"{status.cost:,.2f}", "cost"))
    tiles = "".join(f"<div><dt>{label}</dt><dd>{value}</dd></div>" for value, label in numbers)
    return (
        f'<header><p class="kicker">Tournament <b>{escape(spec.name)}</b></p><h1>{escape(spec.question)}</h1>'
        f'{_verdict(status.outcome, status.spent)}<dl class="numbers">{tiles}</dl></header>\n'
    )


def _verdict(outcome: Outcome, spent: int) -> str:
    why = escape(_sentence(outcome.why))
    leader = escape(outcome.leader)
    if outcome.word == "winner":
        return f'<div class="verdict winner"><p class="word">Winner</p><p class="name">{leader}</p><p>{why}</p></div>'
    if outcome.word == "no Condorcet winner":
        offer = ", ".join(map(escape, outcome.copeland))
        more = f" Beats the most others: {offer}. Wins most often overall: {escape(outcome.borda or '')}."
        return (
            '<div class="verdict cycle"><p class="word">No option beats all others</p>'
            f'<p class="name">{leader}</p><p>{why}{more}</p></div>'
        )
    if not spent:  # somebody stands first in the table, but nobody leads
        word = "Undecided" if outcome.word == "undecided" else "Still open"
        return (
            f'<div class="verdict open"><p class="word">{word}</p><p class="name">No verdicts yet</p><p>{why}</p></div>'
        )
    word = "Undecided; the leader is" if outcome.word == "undecided" else "Still open; the leader is"
    close = ""
    if outcome.not_separable:
        close = f" May be as good: {', '.join(map(escape, outcome.not_separable))}."
    return f'<div class="verdict open"><p class="word">{word}</p><p class="name">{leader}</p><p>{why}{close}</p></div>'


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _standings(facts: Facts) -> str:
    standings = facts.status.standings
    low, high = min(one.low for one in standings), max(one.high for one in standings)
    word = "winner" if facts.status.outcome.word == "winner" else "leads"
    ahead = 1 if facts.status.spent else 0  # the place that stands out; without verdicts none does
    rows = []
    for place, one in enumerate(standings, 1):
        if one.out is not None:
            state = f"out in {one.out}, by {escape(one.by or '')}"
        else:
            state = f"<b>{word}</b>" if place == ahead else "in play"
        rate = "" if one.win_rate is None else f"{one.win_rate:.0%}"
        rows.append(
            f"<tr{' class=first' if place == ahead else ''}><td class=n>{place}</td>"
            f"<th scope=row>{escape(one.name)}</th>"
            f"<td class=n>{one.rating:.0f}</td><td class=chart>{charts.interval(one, low, high)}</td>"
            f"<td class=n>{rate}</td><td class=n>{one.wins:,}&#8211;{one.losses:,}&#8211;{one.ties:,}</td>"
            f"<td>{state}</td></tr>"
        )
    columns = ("+#", "option", "+rating", "95% interval", "+win rate", "+won&#8211;lost&#8211;tied", "round")
    return _table(columns, rows) + (
        "<p class=note>1500 is the average; 400 points more are odds of 10 to 1. The line is the average.</p>"
    )


def _rounds(facts: Facts) -> str:
    rows = []
    for one in facts.rounds:
        out = ", ".join(map(escape, one.out)) or "&#8212;"
        rows.append(
            f"<tr><td class=n>{one.n}</td><td class=n>{one.options:,}</td><td class=n>{one.pairs:,}</td>"
            f"<td class=n>{one.played:,} of {one.asked:,}</td><td>{out}</td>"
            f"<td class=t>{_when(one.closed)}</td><td>{_span(one.closed - one.opened)}{REASONS[one.reason]}</td></tr>"
        )
    status = facts.status
    if status.is_open:
        rows.append(
            f"<tr><td class=n>{status.round}</td><td></td><td></td><td class=n>{status.done:,} of {status.asked:,}</td>"
            "<td>being played</td><td></td><td></td></tr>"
        )
    if not rows:
        return ""
    table = _table(("+round", "+options", "+pairs", "+verdicts", "out", "closed", "took"), rows)
    return charts.survival(status.standings, len(facts.rounds), status.is_open) + table


def _matrix(facts: Facts) -> str:
    drawn = charts.matrix(facts.status.standings, facts.points)
    if not drawn:
        return ""
    return drawn + (
        "<p class=note>Percent of its duels that the option in the row won against the one in the column; "
        "a tie is half a win.</p>"
    )


# what it was about --------------------------------------------------------------------------------------------


def _options(facts: Facts) -> str:
    by_arm = facts.spec.options
    shown = [(place, by_arm[one.arm]) for place, one in enumerate(facts.status.standings, 1)]
    cards = "".join(_card(place, option, facts) for place, option in shown[:MOST_SHOWN])
    more = len(shown) - MOST_SHOWN
    note = f"<p class=note>{more:,} more options are not shown.</p>" if more > 0 else ""
    contexts = len(facts.spec.contexts)
    about = f"<p>They were compared on {contexts:,} test cases.</p>" if contexts else ""
    return f'{about}<div class="cards">{cards}</div>{note}'


def _card(place: int, option: Option, facts: Facts) -> str:
    context = 0 if option.contents is not None else None
    body = _content(option.shown(context), option.name)
    where = ""
    if context is not None:
        where = f"<p class=note>on {escape(facts.spec.contexts[0].name)}, one of {len(facts.spec.contexts):,} cases</p>"
    return f"<article><h3><span>{place}</span>{escape(option.name)}</h3>{where}{body}</article>"


def _content(content: dict[str, Any], name: str) -> str:
    if "image" in content:
        try:
            return f'<img src="{data_uri(content)}" alt="{escape(name, quote=True)}">'
        except DataError as error:
            return f"<p class=note>The picture cannot be shown: {escape(str(error))}</p>"
    if "markdown" in content:
        return f'<div class="prose">{_markdown(_cut(content["markdown"]))}</div>'
    if "data" in content:
        text = json.dumps(content["data"], ensure_ascii=False, indent=2)
        return f"<pre>{escape(_cut(text))}</pre>"
    text = str(content.get("text", ""))
    return "" if text == name else f'<p class="text">{escape(_cut(text))}</p>'


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]} [...]"


def _markdown(text: str) -> str:
    """Render Markdown without HTML, pictures and links: nothing in an option may load or lead anywhere."""
    from markdown_it import MarkdownIt

    return str(MarkdownIt("commonmark", {"html": False}).disable(["image", "link", "autolink"]).render(text))


# who, and how sure --------------------------------------------------------------------------------------------


def _judges(facts: Facts) -> str:
    if not facts.judges:
        return ""
    paid = any(one.calls for one in facts.judges)
    rows = [
        f"<tr><th scope=row>{escape(one.name)}</th><td class=n>{one.counted:,}</td><td class=n>{one.other:,}</td>"
        + (f"<td class=n>{one.calls:,}</td>" if paid else "")
        + f"<td class=n>{f'{one.cost:,.4f}' if one.cost else '&#8212;'}</td></tr>"
        for one in facts.judges
    ]
    columns = ("judge", "+verdicts counted", "+not counted", *(("+paid calls",) if paid else ()), "+cost")
    return _table(columns, rows) + (
        "<p class=note>Not counted: late, surplus, or without a verdict that could be read.</p>"
    )


def _certificate(facts: Facts) -> str:
    certificate = facts.certificate
    spec = facts.spec
    chance = certificate["error_probability"]
    if not certificate["eliminations"]:
        risk = "<p>No option has been eliminated, so none was eliminated by mistake.</p>"
    elif chance["bound"] is None:
        risk = f"<p>{escape(_sentence(chance['rule']))}</p>"
    elif chance["bound"] >= 0.5:
        risk = (
            "<p>The method's general error bound is not informative for a tournament of this size; "
            "the evidence behind each elimination is below.</p>"
        )
    else:
        risk = (
            f"<p>If one option truly beats all others, it was eliminated by mistake with a probability of at most "
            f"<b>{_probability(chance['bound'])}</b> (<span class=note>{escape(chance['rule'])}</span>).</p>"
        )
    rows = [
        f"<tr><th scope=row>{escape(e['option'])}</th><td class=n>{e['round']}</td><td>{escape(e['by'])}</td>"
        f"<td class=n>{e['points_of_by'] / 2:,g} of {e['duels_with_by']:,}</td>"
        f"<td class=n>{e['statistic']:.2f} &gt; {e['threshold']:.2f}</td></tr>"
        for e in certificate["eliminations"]
    ]
    columns = ("eliminated", "+round", "mostly by", "+which took", "+evidence &gt; bound")
    table = _table(columns, rows) if rows else ""
    return (
        f"{risk}{table}<p>Every verdict is on record, and every decision can be recomputed from the record: "
        f"<code>roundel verify</code> does it. Method <code>{escape(_method(facts))}</code>, seed {spec.seed}.</p>"
        f"{_attached(certificate, spec.name)}"
        f"<p class=note>certificate <code>{certificate['digest']}</code><br>"
        f"last delivery <code>{escape(facts.status.head)}</code></p>"
    )


def _method(facts: Facts) -> str:
    given = ",".join(f"{name}={value}" for name, value in facts.spec.parameters.items())
    return f"{facts.spec.policy}:{given}" if given else facts.spec.policy


def _probability(bound: float) -> str:
    """Write a probability that is an upper bound: it is never rounded down."""
    if bound > 5e-4:
        return f"{Decimal(100 * bound).quantize(Decimal('0.1'), ROUND_CEILING)}%"
    return f"{Context(prec=1, rounding=ROUND_CEILING).create_decimal(bound):.0e}"


def _attached(certificate: dict[str, Any], name: str) -> str:
    text = certificate_text(certificate).encode()
    if len(text) > LARGEST_ATTACHED:
        return f"<p>The certificate is too large to attach: <code>roundel certificate STORE {escape(name)}</code>.</p>"
    data = base64.b64encode(text).decode()
    return (
        f'<p class="attached"><a download="certificate.json" href="data:application/json;base64,{data}">'
        f"Save the certificate</a> ({len(text) / 1024:,.0f} KB)</p>"
    )


def _foot(facts: Facts) -> str:
    return f"<footer>Written {_when(facts.written)} by {escape(_version())}</footer>\n"


def _version() -> str:
    import roundel

    return f"roundel {roundel.__version__}"


def _when(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M} UTC"


def _span(seconds: float) -> str:
    steps: Sequence[tuple[float, str]] = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
    for size, word in steps:
        if seconds >= size:
            count = round(seconds / size)
            return f"{count:,} {word}{'s' if count != 1 else ''}"
    return "under a second"
