"""What all tests share: the raw data beside the repository, and hypothesis profiles."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

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


def _share(name: str) -> None:
    """Make tests/<name>.py importable as `name` from every test, whatever the import mode."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


for _helper in ("instances", "playing", "sampling", "stepping"):
    _share(_helper)


@pytest.fixture(scope="session")
def statistics_seed() -> int:
    """The seed of the statistical tests: any must pass; another than the default comes from the environment."""
    return int(os.environ.get("STATISTICS_SEED", "0"))
