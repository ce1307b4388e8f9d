"""A clock that tests turn."""

from __future__ import annotations

import pytest


class Clock:
    """A clock that tests turn."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now

    def ahead(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()
