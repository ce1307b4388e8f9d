"""`roundel policies` and `roundel info`: what there is."""

from __future__ import annotations

from typing import Any

import typer

from roundel.cli.output import AsJson, print_json, print_table


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command()(policies)
    app.command()(info)


def policies(as_json: AsJson = False) -> None:
    """List the policies: parameters, paper, assumption, bound on rounds."""
    from roundel.policies import policies as registered

    rows = [policy.describe() for policy in registered().values()]
    if as_json:
        print_json(rows)
        return
    print_table(
        ["policy", "what it does", "assumes", "rounds", "parameters"],
        [
            [
                row["name"],
                row["summary"],
                row["assumption"],
                row["bound"],
                "\n".join(map(_parameter, row["parameters"])),
            ]
            for row in rows
        ],
    )


def _parameter(parameter: dict[str, Any]) -> str:
    choices = f" ({'|'.join(parameter['choices'])})" if parameter["choices"] else ""
    return f"{parameter['name']}={parameter['default']}{choices}"


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
