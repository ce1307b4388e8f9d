"""`roundel policies` and `roundel info`: what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from roundel.cli.output import AsJson, print_json, print_table
from roundel.policies.registry import word

if TYPE_CHECKING:
    from roundel.policies.registry import Parameter


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command(rich_help_panel="About")(policies)
    app.command(rich_help_panel="About")(info)


def policies(as_json: AsJson = False) -> None:
    """List the policies and their parameters. With paper, assumption and bound on rounds."""
    from roundel.policies import policies as registered

    found = registered().values()
    if as_json:
        print_json([policy.describe() for policy in found])
        return
    print_table(
        ["policy", "what it does", "paper", "assumes", "rounds", "parameters"],
        [[p.name, p.summary, p.paper, p.assumption, p.bound, "\n".join(map(_parameter, p.parameters))] for p in found],
    )


def _parameter(parameter: Parameter) -> str:
    """Write a parameter as it is written after the name of its policy, and what it may be."""
    kind = "|".join(parameter.choices) or parameter.type.__name__
    return f"{parameter.name}={word(parameter.default)} ({kind}{' or none' if parameter.optional else ''})"


def info(as_json: AsJson = False) -> None:
    """Show versions and which optional parts are installed. And which SQLite runs."""
    from roundel.info import describe

    facts = describe()
    if as_json:
        print_json(facts)
    else:
        print_table(
            ["part", "version", "what for"], [[f["part"], f["version"] or "not installed", f["use"]] for f in facts]
        )
