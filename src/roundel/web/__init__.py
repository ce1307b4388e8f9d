"""The voting page, the dashboard and the HTTP API: one server process in front of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roundel.web.app import create_app
    from roundel.web.client import Client
    from roundel.web.server import serve

__all__ = ["Client", "create_app", "serve"]

_HOMES = {"create_app": "app", "serve": "server", "Client": "client"}


def __getattr__(name: str) -> Any:
    """Load what is asked for: the client needs none of the server's parts."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
