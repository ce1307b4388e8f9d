"""What all tests share: the raw data beside the repository, places for stores, and hypothesis profiles."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from own_postgres import Server, own_server

settings.register_profile(
    "default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], max_examples=100
)
settings.register_profile("nightly", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the raw data that may not be committed."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the raw data is missing: put it into {folder.name!r} of a 'shared' folder beside the repository")
    return folder


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A private PostgreSQL server."""
    with own_server() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The place of an empty store: once a path, once a URL."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    url: str = request.getfixturevalue("server").fresh()
    return url


@pytest.fixture(scope="session")
def statistics_seed() -> int:
    """The seed of the statistical tests: any must pass; another than the default comes from the environment."""
    return int(os.environ.get("STATISTICS_SEED", "0"))
