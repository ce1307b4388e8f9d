"""The command line: thin; it parses, calls and prints."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from roundel.errors import RoundelError

app = typer.Typer(
    name="roundel",
    help="Find the best of K options from noisy pairwise comparisons, in a handful of parallel rounds.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@app.command()
def policies(as_json: AsJson = False) -> None:
    """List the policies: parameters, paper, assumption, bound on rounds."""
    from roundel.policies import policies as registered

    rows = [policy.describe() for policy in registered().values()]
    if as_json:
        print_json(rows)
        return
    table = [
        [
            row["name"],
            row["summary"],
            row["assumption"],
            row["bound"],
            "\n".join(f"{p['name']}={p['default']}" + _choices(p) for p in row["parameters"]),
        ]
        for row in rows
    ]
    print_table(["policy", "what it does", "assumes", "rounds", "parameters"], table)


def _choices(parameter: dict[str, Any]) -> str:
    return f" ({'|'.join(parameter['choices'])})" if parameter["choices"] else ""


@app.command()
def info(as_json: AsJson = False) -> None:
    """Show versions, which optional parts are installed, and which SQLite runs."""
    from roundel.info import describe

    facts = describe()
    if as_json:
        print_json(facts)
    else:
        print_table(
            ["part", "version", "what for"], [[f["part"], f["version"] or "not installed", f["use"]] for f in facts]
        )


def print_json(value: Any) -> None:
    """Print `value` as one JSON document."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def print_table(header: list[str], rows: list[list[Any]], title: str | None = None) -> None:
    """Print a table that fits the terminal; in a pipe, at its natural width."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    for column, name in enumerate(header):
        numeric = all(isinstance(row[column], (int, float)) for row in rows)
        table.add_column(name, justify="right" if numeric and rows else "left", overflow="fold")
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console = Console(markup=False, highlight=False, width=200)
    console.print(table)


def main() -> None:
    """Run the command line; exit status 0 done, 1 a clear error, 2 usage."""
    try:
        app()
    except RoundelError as error:
        typer.echo(f"roundel: {error}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone (as in `| head`): not an error worth a word
        sys.exit(0)


if __name__ == "__main__":
    main()
