"""What a judge says of a duel, and how it says that it cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roundel.errors import JudgeError
from roundel.tournament.deliveries import Delivery

SWAPPED = {"first": "second", "second": "first", "tie": "tie"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for a duel; without a verdict the duel is passed on to other judges."""

    verdict: str | None  # first, second, tie; None: no verdict
    cost: float | None = None
    note: str | None = None
    body: str | None = None  # the raw answer
    key: str | None = None  # the same key counts once
    judge: str | None = None  # who judged, where that is not the judge of the session
    flipped: bool = False  # the other order gave the other verdict
    known: bool = False  # nothing new was asked: the answer was on record

    @classmethod
    def of(cls, value: Any) -> Answer:
        """Read what a judge returned: a verdict, an `Answer`, a mapping with "verdict", or None for a pass."""
        if isinstance(value, Answer):
            given = value
        elif isinstance(value, Mapping):
            given = cls(value.get("verdict"), value.get("cost"), value.get("note"), judge=value.get("judge"))
        else:
            given = cls(value)
        Delivery.checked(  # raises for what the store would refuse later
            given.verdict,
            given.key,
            given.judge,
            given.cost,
            given.note,
            given.body,
            rejected=given.verdict is None,
        )
        return given


class TryAgain(JudgeError):  # noqa: N818 - what a judge asks for
    """Raised by a judge that was not paid and may be asked again, after some seconds if it says so."""

    def __init__(self, why: str = "try again", after: float | None = None) -> None:
        super().__init__(why)
        self.after = after


class StopJudging(JudgeError):  # noqa: N818 - what a judge asks for
    """Raised by a judge that must not be asked anything more."""


class CapReached(StopJudging):
    """Raised where a judge would spend more than it may: a good end, as far as it goes."""
