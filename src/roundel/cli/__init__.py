"""The command line: thin; it parses, calls and prints. What each family of commands needs loads when it runs."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from roundel import __version__
from roundel.cli import about, judging, research, serve, tournament
from roundel.errors import RoundelError


class Panels(TyperGroup):
    """Help that lists commands by what people want to do, and loads nothing for it."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each panel."""
        panels: dict[str, list[tuple[str, str]]] = {}
        width = max(map(len, self.commands))
        for name, command in self.commands.items():
            row = name.ljust(width), command.get_short_help_str(formatter.width - 6 - width)
            panels.setdefault(str(getattr(command, "rich_help_panel", "")), []).append(row)
        for title, rows in panels.items():
            with formatter.section(title):
                formatter.write_dl(rows)


app = typer.Typer(
    name="roundel",
    cls=Panels,
    help="Find the best of K options from noisy pairwise comparisons, in a handful of parallel rounds.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for family in (tournament, judging, serve, research, about):
    family.register(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"roundel {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; exit status 0 done, 1 a clear error, 2 usage."""
    warnings.formatwarning = lambda message, *_, **__: f"roundel: {message}\n"  # no path, no line of code
    try:
        app()
    except RoundelError as error:
        typer.echo(f"roundel: {error}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone (as in `| head`): not an error worth a word
        sys.exit(0)
    except OSError as error:  # a full disk, a file that may not be written
        where = f"{error.filename}: " if error.filename else ""
        typer.echo(f"roundel: {where}{error.strerror or error}", err=True)
        sys.exit(1)
    except MemoryError as error:
        typer.echo(f"roundel: not enough memory: {error}", err=True)
        sys.exit(1)
