"""The commands of durable tournaments: JSON Lines in and out, so that any program can be a judge."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundel.cli.judging import tell_log_or_counts
from roundel.cli.output import AsJson, print_json, print_table
from roundel.errors import InputError, RoundelError, VerifyError

if TYPE_CHECKING:
    from roundel.tournament import Status, Tournament
    from roundel.tournament.certificate import Report

STORE = Annotated[str, typer.Argument(metavar="STORE", help="A path (SQLite) or a postgresql:// URL.")]
NAME = Annotated[str, typer.Argument(metavar="NAME", help="The tournament's name.")]
ANY_NAME = Annotated[str | None, typer.Argument(metavar="[NAME]", help="The tournament's name; default: all of them.")]
OUT = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write to a file; default: print.")]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    for command in (new, lease, tell, close, status, certificate, verify, export):
        app.command(rich_help_panel="Tournaments")(command)
    app.command("import", rich_help_panel="Tournaments")(import_)


def new(
    store: STORE,
    name: NAME,
    options: Annotated[Path, typer.Option("--options", metavar="FILE", help="YAML, JSON, JSON Lines or CSV.")],
    policy: Annotated[
        str | None, typer.Option(metavar="P", help="Default: c2b-kl:defeat=majority,fallback=true.")
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(metavar="T", help="Duels to spend; default: 100 K ceil(log2 K).")
    ] = None,
    rounds: Annotated[int | None, typer.Option(metavar="B", help="Most rounds to take; default: floor(ln T).")] = None,
    seed: Annotated[int | None, typer.Option(metavar="S", help="Default: 0.")] = None,
    overlap: Annotated[int | None, typer.Option(metavar="N", help="Verdicts a duel, by different judges.")] = None,
    deadline: Annotated[float | None, typer.Option(metavar="SECONDS", help="Seconds that a round may take.")] = None,
    question: Annotated[str | None, typer.Option(metavar="TEXT", help="What judges are asked.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a tournament and plan its first round."""
    from roundel.tournament import Tournament

    with Tournament.from_file(
        store,
        name,
        options,
        policy=policy,
        horizon=horizon,
        rounds=rounds,
        seed=seed,
        overlap=overlap,
        deadline=deadline,
        question=question,
    ) as cup:
        _print_status(cup.status, as_json)


def lease(
    store: STORE,
    name: NAME,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="At most so many duels.")] = 1,
    judge: Annotated[str | None, typer.Option(metavar="WHO", help="Who will judge them.")] = None,
    ttl: Annotated[float, typer.Option(metavar="SECONDS", help="How long they are held.")] = 900.0,
) -> None:
    """Print duels to judge, one line of JSON each. Add "verdict": "first", "second" or "tie" and `tell` them."""
    with _open(store, name) as cup:
        duels = cup.lease(limit, judge, ttl)
        for duel in duels:
            typer.echo(_line(duel.to_json()))
        if not duels:
            status = cup.status
            held = f"all open duels are held by judges ({status.leased})" if status.is_open else str(status.outcome)
            typer.echo(f"nothing to judge: {held}", err=True)


def tell(
    store: STORE,
    name: NAME,
    file: Annotated[str, typer.Argument(metavar="[FILE|-]", help="JSON Lines; default: standard input.")] = "-",
    judge: Annotated[str | None, typer.Option(metavar="WHO", help="Who judged, where a line does not say.")] = None,
    log: Annotated[
        str | None, typer.Option(metavar="FILES", help="Count a click log instead, as 'clicks/*.parquet'.")
    ] = None,
    counts: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Take counts per pair, from another engine.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="MAP", help="Of a log: first=...,second=...,verdict=...")
    ] = None,
    source: Annotated[str, typer.Option(metavar="WORD", help="Of a log or counts: what delivers it.")] = "log",
    window: Annotated[
        str | None, typer.Option(metavar="WORD", help="Of a log or counts: delivered again, it replaces.")
    ] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Of a log: leave out what is older.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Of a log: leave out what is not older.")] = None,
    as_json: AsJson = False,
) -> None:
    """Take verdicts: the lines of `lease`, with "verdict" added. Null is no verdict: offer the duel again."""
    for option, value in (("--columns", columns), ("--since", since), ("--until", until)):
        if log is None and value is not None:
            raise InputError(f"{option} is {value!r}: it says how a log is counted; give --log with it")
    if log is not None or counts is not None:
        if file != "-":
            raise InputError(f"FILE is {file!r}: it holds verdicts, not a log or counts; leave out one of the two")
        told = tell_log_or_counts(store, name, log, counts, columns, source, window, since, until, judge)
        typer.echo(_line(told.to_json()) if as_json else str(told))
        return
    failed: list[str] = []
    became: dict[str, int] = {}
    with _open(store, name) as cup, ExitStack() as stack:
        for number, line in enumerate(_lines(file, stack), 1):
            if not line.strip():
                continue
            try:
                receipt = _tell(cup, line, judge)
            except RoundelError as error:
                failed.append(f"line {number}: {error}")
                typer.echo(f"roundel: {failed[-1]}", err=True)
                continue
            became[receipt["became"]] = became.get(receipt["became"], 0) + 1
            if as_json:
                typer.echo(_line(receipt))
    if not as_json:
        typer.echo(", ".join(f"{count} {word}" for word, count in became.items()) or "no verdicts")
    if failed:
        lines = len(failed) + sum(became.values())
        raise InputError(f"{len(failed)} of {lines} lines were not taken: {failed[0]}")


def _tell(cup: Tournament, line: str, judge: str | None) -> dict[str, Any]:
    from roundel.tournament.files import parse_json

    try:
        row = parse_json(line)
    except ValueError as error:
        raise InputError(f"not JSON: {error}") from None
    if not isinstance(row, dict):
        raise InputError('not an object: send back the line that lease printed, with "verdict" added')
    who = row.get("judge", judge)
    if "counts" in row:
        if not isinstance(row["counts"], list):
            raise InputError('"counts" is a list of [first, second, wins, losses, ties]')
        told = cup.tell_counts(
            row["counts"], key=row.get("key", ""), judge=who, cost=row.get("cost"), note=row.get("note")
        )
    elif "verdict" in row and row["verdict"] is None:
        fields = {field: row.get(field) for field in ("key", "cost", "note", "body")}
        told = cup.reject(row, judge=who, **fields)
    else:
        told = cup.tell(row, judge=who)
    return told.to_json()


def close(
    store: STORE,
    name: NAME,
    end: Annotated[bool, typer.Option("--end", help="End the whole tournament with it.")] = False,
    empty: Annotated[bool, typer.Option("--empty", help="Even if the round has no verdict yet.")] = False,
    as_json: AsJson = False,
) -> None:
    """Close the open round with the verdicts that are in. The next one is planned."""
    with _open(store, name) as cup:
        cup.close(end=end, empty=empty)
        _print_status(cup.status, as_json)


def status(store: STORE, name: ANY_NAME = None, as_json: AsJson = False) -> None:
    """Show round, verdicts, leader, who is out, and the cost."""
    from roundel.tournament import Tournament, open_store

    with open_store(store) as opened:
        names = Tournament.names(opened) if name is None else [name]
        found = [Tournament.open(opened, each).status for each in names]
    if as_json and name is None:
        print_json([one.to_json() for one in found])
        return
    for one in found:
        _print_status(one, as_json)
    if not found:
        typer.echo(f"{store} holds no tournament yet: make one with 'roundel new'")


def certificate(store: STORE, name: NAME, out: OUT = None) -> None:
    """Print the proof of the outcome. It is JSON that `verify` checks with nothing but arithmetic."""
    from roundel.tournament.certificate import certificate_text

    with _open(store, name) as cup:
        _write([certificate_text(cup.certificate())], out)


def verify(
    what: Annotated[str, typer.Argument(metavar="FILE|STORE", help="A certificate, an export, or a store.")],
    name: ANY_NAME = None,
    expect: Annotated[str | None, typer.Option(metavar="HEAD", help="A head noted earlier (status shows it).")] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute everything and say what holds. Or the first thing that does not."""
    report = _verify(what, name, expect)
    _print_report(report, as_json)


def _verify(what: str, name: str | None, expect: str | None) -> Report:
    from roundel.tournament.certificate import read_certificate, verify_certificate
    from roundel.tournament.store import open_store
    from roundel.tournament.transfer import import_lines
    from roundel.tournament.verify import verify_store

    start = b""
    if "://" not in what:
        try:
            with open(what, "rb") as file:
                start = file.read(200)
        except OSError as error:
            raise InputError(f"{what}: {error.strerror}: give a certificate, an export, or a store") from None
    if not start.lstrip().startswith(b"{"):
        return verify_store(what, name, expect)
    if b'"is":"tournament"' in start:
        with tempfile.TemporaryDirectory() as folder, open_store(Path(folder, "copy.db"), create=True) as store:
            store.url = what  # what people gave, not the copy, is what reports and errors speak of
            with open(what, encoding="utf-8", errors="strict", newline="\n") as lines:
                report = import_lines(store, _decoded(lines, what))
            return report if name is None and expect is None else verify_store(store, name, expect)
    if expect is not None:
        raise InputError("a noted head is looked for in a store or an export: a certificate holds the rounds only")
    report = verify_certificate(what)
    if name is not None and name != (held := read_certificate(what)["spec"]["name"]):
        raise VerifyError(f"{what} is the certificate of {held!r}, not of {name!r}: give the other file, or no name")
    return report


def export(store: STORE, name: NAME, out: OUT = None) -> None:
    """Print a tournament as JSON Lines, every row of it. Tokens appear as hashes."""
    with _open(store, name) as cup:
        _write((f"{line}\n" for line in cup.export()), out)


def import_(
    store: STORE,
    file: Annotated[str, typer.Argument(metavar="[FILE|-]", help="What export wrote; default: standard input.")] = "-",
    as_json: AsJson = False,
) -> None:
    """Read an exported tournament into a store. All of it or nothing; it is verified."""
    from roundel.tournament.transfer import import_lines

    with ExitStack() as stack:
        report = import_lines(store, _lines(file, stack))
    _print_report(report, as_json)


# printing and reading -----------------------------------------------------------------------------------------


def _open(store: str, name: str) -> Tournament:
    from roundel.tournament import Tournament

    return Tournament.open(store, name)


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _lines(file: str, stack: ExitStack) -> Iterator[str]:
    if file == "-":
        return _decoded(sys.stdin, "standard input")
    try:
        return _decoded(stack.enter_context(open(file, encoding="utf-8", newline="\n")), file)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}: check the path") from None


def _decoded(lines: Iterable[str], name: str) -> Iterator[str]:
    try:
        yield from lines
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: byte {error.start} of a block is not UTF-8: save it as UTF-8") from None


def _write(parts: Iterable[str], out: Path | None) -> None:
    if out is None:
        for part in parts:
            typer.echo(part, nl=False)
        return
    from roundel._textfile import write_text

    write_text(out, "".join(parts))
    typer.echo(f"written: {out}", err=True)


def _print_report(report: Report, as_json: bool) -> None:
    if as_json:
        print_json(report.to_json())
    else:
        typer.echo(str(report))


def _print_status(status: Status, as_json: bool) -> None:
    if as_json:
        print_json(status.to_json())
        return
    typer.echo(f"{status.name}: {status.outcome}")
    facts = [f"round {status.round} of at most {status.rounds:,}"]
    if status.is_open:
        facts.append(f"{status.done:,} of {status.asked:,} verdicts in")
        if status.leased:
            facts.append(f"{status.leased:,} with judges")
        if status.deadline is not None:
            facts.append(f"closes {datetime.fromtimestamp(status.deadline).astimezone():%Y-%m-%d %H:%M}")
    facts.append(f"{status.spent:,} of {status.horizon:,} duels spent")
    facts += [f"{count:,} {word}" for word, count in status.verdicts.items() if count and word != "counted"]
    if status.cost:
        facts.append(f"cost {status.cost:,.2f}")
    typer.echo(", ".join(facts))
    word = "winner" if status.outcome.word == "winner" else "leader"
    rows = [
        [
            one.name,
            f"{one.rating:.0f} ({one.low:.0f} to {one.high:.0f})",
            f"{one.wins:,}-{one.losses:,}-{one.ties:,}",
            "" if one.win_rate is None else f"{one.win_rate:.0%}",
            f"out in round {one.out}, by {one.by}" if one.out is not None else word if n == 0 else "in play",
        ]
        for n, one in enumerate(status.standings)
    ]
    print_table(["option", "rating (95%)", "won-lost-tied", "win rate", "state"], rows)
    outcome = status.outcome
    if outcome.copeland:
        typer.echo(f"Copeland: {', '.join(outcome.copeland)}; Borda: {outcome.borda}")
    if outcome.not_separable:
        typer.echo(f"may be as good as {outcome.leader}: {', '.join(outcome.not_separable)}")
    typer.echo(f"head {status.head}")
