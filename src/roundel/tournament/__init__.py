"""Durable tournaments: rounds in a database, leases, verdicts, outcome and certificate."""

from __future__ import annotations

from roundel.tournament.deliveries import Count, Receipt
from roundel.tournament.files import read_spec
from roundel.tournament.intents import Intent
from roundel.tournament.leases import Duel, Shown
from roundel.tournament.outcome import Outcome
from roundel.tournament.spec import Context, Option, Spec
from roundel.tournament.standings import Standing
from roundel.tournament.store import Store, open_store
from roundel.tournament.tournament import Status, Tournament
from roundel.tournament.writer import Writer

__all__ = [
    "Context",
    "Count",
    "Duel",
    "Intent",
    "Option",
    "Outcome",
    "Receipt",
    "Shown",
    "Spec",
    "Standing",
    "Status",
    "Store",
    "Tournament",
    "Writer",
    "open_store",
    "read_spec",
]
