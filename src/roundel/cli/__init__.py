"""The command line: thin; it parses, calls and prints. What each family of commands needs loads when it runs."""

from __future__ import annotations

import sys
import warnings

import typer

from roundel.cli import about, judging, research, serve, tournament
from roundel.errors import RoundelError

app = typer.Typer(
    name="roundel",
    help="Find the best of K options from noisy pairwise comparisons, in a handful of parallel rounds.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for family in (tournament, judging, serve, research, about):
    family.register(app)


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
