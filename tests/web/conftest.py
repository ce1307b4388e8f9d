"""Fixtures: a server in front of a store of its own, and a real browser."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import serving
from roundel.tournament import Tournament

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    """Make a tournament in a store of its own, or in the same one."""

    def make(name: str = "tone", options: Any = ("plain", "warm", "short"), **more: Any) -> Path:
        store = tmp_path / "store.db"
        Tournament.create(store, name, list(options), **{"horizon": 30, "rounds": 2} | more).disconnect()
        return store

    return make


@pytest.fixture
def serve(make: Callable[..., Path]) -> Iterator[Callable[..., Any]]:
    """Make a tournament and serve it."""
    running: list[Any] = []

    def serve(*names: Any, limits: dict[str, tuple[float, float]] | None = None, **more: Any) -> Any:
        store = make(*names, **more)
        running.append(serving.Served(store, **(limits or {})))
        return running[-1]

    yield serve
    for served in running:
        served.stop()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A headless Chromium, driven by Playwright."""
    if not CHROMIUM.exists():
        if os.environ.get("ROUNDEL_NO_BROWSER"):
            pytest.skip("ROUNDEL_NO_BROWSER is set: the pages were not tried in a browser")
        pytest.fail(
            f"{CHROMIUM} is missing, and the pages must be tried in a real browser: apt-get install chromium "
            "(or set ROUNDEL_NO_BROWSER=1 where that is impossible)"
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()
