"""`roundel judge`, `report`, `replay`, `send` and `fetch`: verdicts from programs, models, files and logs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundel.cli.output import AsJson, print_json
from roundel.errors import InputError

if TYPE_CHECKING:
    from roundel.judges import Summary
    from roundel.judges.clicks import Told
    from roundel.tournament import Tournament

STORE = Annotated[str, typer.Argument(metavar="STORE", help="A path (SQLite) or a postgresql:// URL.")]
NAME = Annotated[str, typer.Argument(metavar="NAME", help="The tournament's name.")]
KINDS = ("manifest", "label-studio")


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (judge, report, replay, send, fetch):
        app.command(rich_help_panel="Judges")(command)


def judge(
    store: STORE,
    name: NAME,
    command: Annotated[
        str | None, typer.Option(metavar="CMD", help="A program: JSON Lines on its standard input and output.")
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="A language model.")] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings of the model, as TOML; options given here win.")
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option(metavar="URL", help="OpenAI-compatible; default: $OPENAI_BASE_URL, or OpenAI's.")
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="The endpoint's name may stand for a private address.")
    ] = False,
    criterion: Annotated[str | None, typer.Option(metavar="TEXT", help="Default: the tournament's question.")] = None,
    orders: Annotated[
        str | None, typer.Option(metavar="ORDERS", help="both (a contradiction is a tie) or one.")
    ] = None,
    prices: Annotated[
        str | None, typer.Option(metavar="IN,OUT", help="Of a million tokens: of the prompt, of the answer.")
    ] = None,
    cap: Annotated[
        float | None, typer.Option(metavar="MONEY", help="Spend no more than this on the tournament.")
    ] = None,
    most_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Of one answer, reasoning included; default 2048.")
    ] = None,
    rate: Annotated[float | None, typer.Option(metavar="N", help="At most so many calls a minute.")] = None,
    who: Annotated[str | None, typer.Option("--judge", metavar="WHO", help="The judge's name.")] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Duels at once; default: 1 a process, or 8 of a model.")
    ] = None,
    processes: Annotated[int, typer.Option(metavar="N", help="Copies of the program.")] = 1,
    timeout: Annotated[float | None, typer.Option(metavar="SECONDS", help="For one answer; default 60.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", metavar="N", help="At most so many duels.")] = None,
    wait: Annotated[float, typer.Option(metavar="SECONDS", help="Wait for duels that others hold.")] = 0.0,
    lease: Annotated[float, typer.Option(metavar="SECONDS", help="How long duels are held.")] = 900.0,
    paid: Annotated[bool, typer.Option("--paid", help="The program costs money: never ask it twice.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Ask again where an answer was lost that may have been paid for.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Let a program or a language model judge what is open. Ctrl-C stops cleanly."""
    if (command is None) == (model is None and config is None):
        raise typer.BadParameter("give either --command or --model (or --config)")
    session: dict[str, Any] = {"limit": limit, "wait": wait, "lease": lease, "again": again, "say": _say}
    if workers is not None:
        session["workers"] = workers
    with _open(store, name) as cup, _progress(as_json) as progress:
        session["progress"] = progress
        if command is not None:
            from roundel.judges import judge_by_command

            summary = judge_by_command(
                cup, command, who, processes=processes, timeout=timeout or 60.0, paid=paid, rate=rate, **session
            )
        else:
            summary = _by_model(
                cup,
                config,
                {
                    "model": model,
                    "endpoint": endpoint,
                    "private": private or None,
                    "criterion": criterion,
                    "orders": orders,
                    "cap": cap,
                    "most_tokens": most_tokens,
                    "rate": rate,
                    "name": who,
                    "timeout": timeout,
                    **_prices(prices),
                },
                session,
            )
    if as_json:
        print_json(summary.to_json())
    else:
        typer.echo(str(summary))
    if summary.stopped.startswith("interrupted"):
        raise typer.Exit(130)
    if summary.failed:
        raise typer.Exit(1)


def _by_model(cup: Tournament, config: Path | None, given: dict[str, Any], session: dict[str, Any]) -> Summary:
    from roundel.judges import ModelSettings, judge_by_model

    named = {key: value for key, value in given.items() if value is not None}
    settings = ModelSettings(**named) if config is None else ModelSettings.from_file(config, **named)
    return judge_by_model(cup, settings, **session)


def _prices(text: str | None) -> dict[str, float]:
    if text is None:
        return {}
    try:
        into, out = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"prices are {text!r}: give two numbers, as 0.25,2 for a million tokens in and out") from None
    return {"price_in": into, "price_out": out}


def report(
    store: STORE,
    name: NAME,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Default: NAME.html.")] = None,
) -> None:
    """Write a report, one HTML file with its pictures inside. Send it to whoever asked."""
    from roundel.report import write_report

    with _open(store, name) as cup:
        typer.echo(f"written: {write_report(cup, out or Path(f'{_file_name(cup.name)}.html'))}")


def _file_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in " ._-" else "_" for c in name).strip(". ") or "report"


def replay(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A log of battles: CSV, JSON Lines or Parquet.")],
    policy: Annotated[str | None, typer.Option(metavar="P", help="Default: that of `roundel new`.")] = None,
    horizon: Annotated[int | None, typer.Option(metavar="T", help="Default: the number of votes in the log.")] = None,
    rounds: Annotated[int | None, typer.Option(metavar="B", help="Most rounds to take; default: floor(ln T).")] = None,
    repeats: Annotated[int, typer.Option(metavar="R", help="Replays.")] = 100,
    seed: Annotated[int, typer.Option(metavar="S", help="Of the votes drawn and the policy; default: 0.")] = 0,
    top: Annotated[int | None, typer.Option(metavar="K", help="Keep the options that were seen most.")] = None,
    first: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the first option.")] = "",
    second: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the second.")] = "",
    verdict: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the verdict.")] = "",
    as_json: AsJson = False,
) -> None:
    """Estimate how many of your past votes were needed. A tournament asks for fewer."""
    from roundel.judges import replay_log

    estimate = replay_log(
        log,
        policy=policy,
        horizon=horizon,
        rounds=rounds,
        repeats=repeats,
        seed=seed,
        top=top,
        first=first,
        second=second,
        verdict=verdict,
    )
    if as_json:
        print_json(estimate.to_json())
    else:
        typer.echo(str(estimate))


def send(
    store: STORE,
    name: NAME,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.")],
    kind: Annotated[str, typer.Option("--as", metavar="KIND", help="manifest or label-studio.")] = "manifest",
    limit: Annotated[int | None, typer.Option("--limit", "-n", metavar="N", help="At most so many duels.")] = None,
    lease: Annotated[float, typer.Option(metavar="SECONDS", help="How long they are held.")] = 7 * 24 * 3600.0,
    who: Annotated[str | None, typer.Option("--judge", metavar="WHO", help="Who will judge them.")] = None,
) -> None:
    """Write the open duels to a file for another tool, blinded. They are held until its results are fetched."""
    from roundel.judges import export_label_studio, export_manifest

    given: dict[str, Any] = {"limit": limit, "lease": lease, "judge": who or _kind(kind)}
    with _open(store, name) as cup:
        if kind == "manifest":
            typer.echo(f"written: {out}, {export_manifest(cup, out, **given):,} duels")
        else:
            typer.echo(f"written: {out}, and the labelling configuration {export_label_studio(cup, out, **given)}")


def fetch(
    store: STORE,
    name: NAME,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What the other tool gave back.")],
    kind: Annotated[str, typer.Option("--as", metavar="KIND", help="manifest, label-studio or battles.")] = "manifest",
    column: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of the answer (manifest).")] = None,
    first: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the first option (battles).")] = "",
    second: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the second (battles).")] = "",
    verdict: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the verdict (battles).")] = "",
    window: Annotated[str, typer.Option(metavar="NAME", help="Which stretch of time this is (battles).")] = "all",
    who: Annotated[str | None, typer.Option("--judge", metavar="WHO", help="Who judged.")] = None,
    as_json: AsJson = False,
) -> None:
    """Tell the verdicts in a file from another tool. It may be a log of battles."""
    from roundel.judges import import_battles, import_label_studio, import_verdicts

    with _open(store, name) as cup:
        if kind == "battles":
            told: Any = import_battles(
                cup, file, first=first, second=second, verdict=verdict, window=window, source=who or "battles"
            )
        elif _kind(kind) == "manifest":
            told = import_verdicts(cup, file, column=column, judge=who or "manifest")
        else:
            told = import_label_studio(cup, file, judge=who or "label-studio")
    if as_json:
        print_json(told.to_json())
    else:
        typer.echo(str(told))


def tell_log_or_counts(
    store: str,
    name: str,
    log: str | None,
    counts: Path | None,
    columns: str | None = None,
    source: str = "log",
    window: str | None = None,
    since: str | None = None,
    until: str | None = None,
    judge: str | None = None,
) -> Told:
    """Do what `roundel tell --log` and `--counts` ask for."""
    from roundel.judges import LogColumns, tell_counts, tell_log

    if (log is None) == (counts is None):
        raise InputError("give either --log or --counts")
    with _open(store, name) as cup:
        if counts is not None:
            return tell_counts(cup, counts, source=source, window=window or "all", judge=judge)
        return tell_log(
            cup,
            log or "",
            None if columns is None else LogColumns.parse(columns),
            source=source,
            window=window,
            since=since,
            until=until,
            judge=judge,
        )


# on the terminal ----------------------------------------------------------------------------------------------


def _kind(kind: str) -> str:
    if kind not in KINDS:
        raise InputError(f"--as is {kind!r}: it must be one of {', '.join(KINDS)}")
    return kind


def _open(store: str, name: str) -> Tournament:
    from roundel.tournament import Tournament

    return Tournament.open(store, name)


def _say(line: str) -> None:
    typer.echo(f"roundel: {line}", err=True)


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[Summary], None]]:
    """Show progress on a terminal; say nothing in a pipe."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("judging", total=None)

        def show(summary: Summary) -> None:
            text = f"{summary.judge}, {summary.passed} passed" if summary.passed else summary.judge
            bar.update(task, description=text, completed=summary.duels)

        yield show
