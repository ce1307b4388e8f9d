"""Running the server: one process, one writer; slow and excess clients are cut off."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from roundel.errors import InputError, StoreError
from roundel.web.app import create_app
from roundel.web.keys import OWNER, Keys

HEADER_SECONDS = 10.0  # until the head of a request must be complete
CONNECTIONS = 1000


class PatientProtocol(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, to clients that finish their headers in time: others would hold a place for ever."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock."""
        super().connection_made(transport)
        self._expect_headers()

    def on_message_begin(self) -> None:
        """Start the clock for another request on the same connection."""
        super().on_message_begin()
        if self._late is None:
            self._expect_headers()

    def on_headers_complete(self) -> None:
        """Stop the clock: from here the application looks after time."""
        self._stop()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop()
        super().connection_lost(exc)

    def _expect_headers(self) -> None:
        self._late = self.loop.call_later(HEADER_SECONDS, self._hang_up)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _hang_up(self) -> None:
        self._late = None
        if not self.transport.is_closing():
            self.transport.close()


def configure(app: Any, host: str, port: int, **changes: Any) -> uvicorn.Config:
    """Return how uvicorn runs the application."""
    settings: dict[str, Any] = {
        "host": host,
        "port": port,
        "http": PatientProtocol,
        "ws": "none",
        "loop": "auto",
        "lifespan": "on",
        "access_log": False,  # addresses of invitations are secrets
        "log_level": "warning",
        "server_header": False,
        "limit_concurrency": CONNECTIONS,
        "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": 10,
        **changes,
    }
    return uvicorn.Config(app, **settings)


def serve(store: str, host: str = "127.0.0.1", port: int = 8000, **limits: tuple[float, float]) -> None:
    """Serve a store until interrupted; the owner's address is printed. `limits` are those of `create_app`."""
    if "://" not in store and not Path(store).exists():
        raise StoreError(f"{store}: there is no store; make one with 'roundel new'")
    with _listening(host, port) as listening:  # first: where this fails nothing has been written
        keys, owner = Keys.find(store)
        server = Server(configure(create_app(store, keys, **limits), host, port), owner)
        gc.collect()
        gc.freeze()  # what is loaded by now stays: walking it again and again would stop the world for 30 ms each time
        server.run([listening])


def _listening(host: str, port: int) -> socket.socket:
    """Listen, or refuse the address: uvicorn would end the process with a status of its own."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.getaddrinfo(host or None, port, family)  # `create_server` does not say that a name is unknown
        return socket.create_server((host, port), family=family)
    except socket.gaierror as error:
        raise InputError(f"host is {host!r}: {error.strerror}; give an address of this machine") from None
    except OSError as error:
        what = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(f"{host}:{port}: {what}; choose another --port or --host") from None


class Server(uvicorn.Server):
    """Uvicorn, saying where it is."""

    def __init__(self, config: uvicorn.Config, owner: str) -> None:
        """Announce `owner`, the owner's token, unless it was given from outside."""
        super().__init__(config)
        self._owner = owner

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening, and say where."""
        await super().startup(sockets)
        if not self.should_exit:
            await self._announce()

    async def _announce(self) -> None:
        port = self.servers[0].sockets[0].getsockname()[1]
        host = self.config.host
        everywhere = host in ("0.0.0.0", "::")
        shown = "127.0.0.1" if everywhere else f"[{host}]" if ":" in host else host
        where = f"http://{shown}:{port}"
        desk = self.config.app.desk  # type: ignore[union-attr]
        known = bool(os.environ.get(OWNER))
        print(f"roundel serves {desk.store.url}", flush=True)
        print(f"  your dashboard: {where}/{'' if known else f'?token={self._owner}'}", flush=True)
        if everywhere:
            print("  others reach it, too, and without encryption: put a proxy with TLS in front of it", flush=True)
        if known:
            print(f"  sign in with the token in {OWNER}", flush=True)
        for problem in await asyncio.to_thread(desk.gallery.missing):
            print(f"  warning: {problem}", file=sys.stderr, flush=True)
