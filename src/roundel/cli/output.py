"""How commands print: JSON for programs, a readable table for people."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def print_json(value: Any) -> None:
    """Print `value` as one JSON document."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def print_table(header: list[str], rows: list[list[Any]], title: str | None = None) -> None:
    """Print a table that fits the terminal; in a pipe, wide enough not to be cut."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    for column, name in enumerate(header):
        numeric = bool(rows) and all(isinstance(row[column], (int, float)) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(number(cell) for cell in row))
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console = Console(markup=False, highlight=False, width=200)
    console.print(table)


def number(cell: Any) -> str:
    """Write a cell: whole numbers with thousands, others with four digits, nothing for None."""
    if cell is None:
        return ""
    if isinstance(cell, bool) or not isinstance(cell, (int, float)):
        return str(cell)
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.4g}"


def share(part: float) -> str:
    """Write a share as a percentage: 0% is none and 100% is all, never nearly so."""
    return "<1%" if 0 < part < 0.01 else ">99%" if 0.99 < part < 1 else f"{part:.0%}"


def without_nan(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Replace what is not a number (the error of a single repeat) by null, which JSON has."""
    return [{key: None if value != value else value for key, value in row.items()} for row in rows]
