"""The fake model, importable by its name; and the places of stores that the tests of tournaments know."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def _load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


_load("fake_model", Path(__file__).with_name("fake_model.py"))
_stores = _load("places_of_stores", Path(__file__).parents[1] / "tournament" / "conftest.py")
server, where = _stores.server, _stores.where  # fixtures: a SQLite file and a private PostgreSQL server
