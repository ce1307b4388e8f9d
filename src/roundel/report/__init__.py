"""The report: one HTML file that says what was asked, how it went, who won and how sure that is."""

from __future__ import annotations

from pathlib import Path

from roundel._textfile import write_text
from roundel.report.facts import facts_of
from roundel.report.page import page
from roundel.tournament import Tournament

__all__ = ["report_html", "write_report"]


def report_html(cup: Tournament) -> str:
    """Return the report of a tournament as one HTML document that loads nothing from elsewhere."""
    return page(facts_of(cup))


def write_report(cup: Tournament, path: str | Path) -> Path:
    """Write the report of a tournament to a file, whole or not at all."""
    return write_text(path, report_html(cup))
