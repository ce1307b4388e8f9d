"""What stands before every request: limits on size, time and rate, and the headers that every answer carries."""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY = 1 << 20  # bytes of a request to the API
FORM = 64 << 10  # bytes of a form
BODY_SECONDS = 10.0  # until a body must be there
SECONDS = 60.0  # until a request must be done
URL = 4096

HEADERS = (
    (
        b"content-security-policy",
        (
            b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
            b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        ),
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # not no-referrer: that would make the Origin of our own forms "null"
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
NO_STORE = (b"cache-control", b"no-store")


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """A request that is turned away before the application has seen all of it."""

    def __init__(self, status: int, why: str) -> None:
        """Turn it away with `status`, and say why."""
        super().__init__(why)
        self.status, self.why = status, why


class Shield:
    """An ASGI layer around the whole application."""

    def __init__(self, app: App, body_seconds: float = BODY_SECONDS, seconds: float = SECONDS) -> None:
        """Guard `app`."""
        self.app = app
        self.body_seconds = body_seconds
        self.seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = [*message.get("headers", ()), *HEADERS]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append(NO_STORE)
                message["headers"] = headers
            await send(message)

        try:
            await self._guarded(scope, receive, sending)
        except Refused as refused:
            if not started:
                await _refuse(scope, sending, refused)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = BODY if scope["path"].startswith("/api/") else FORM
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > URL:
            raise Refused(414, f"the address is longer than {URL:,} bytes: put it into the body")
        announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if announced.isdigit() and int(announced[:20]) > limit:
            raise Refused(413, f"the body is larger than {limit:,} bytes: send it in parts")  # before it is read
        got, complete = 0, False
        try:
            async with asyncio.timeout(self.body_seconds) as clock:

                async def receiving() -> Message:
                    nonlocal got, complete
                    message = await receive()
                    got += len(message.get("body", b""))
                    if got > limit:
                        raise Refused(413, f"the body is larger than {limit:,} bytes: send it in parts")
                    if not complete and not message.get("more_body", False):
                        complete = True
                        clock.reschedule(asyncio.get_running_loop().time() + self.seconds)
                    return message

                if scope["method"] in ("GET", "HEAD"):
                    clock.reschedule(asyncio.get_running_loop().time() + self.seconds)
                await self.app(scope, receiving, send)
        except TimeoutError:
            if complete or scope["method"] in ("GET", "HEAD"):
                raise Refused(503, f"this took longer than {self.seconds:g} s: try again later") from None
            raise Refused(408, f"the body took longer than {self.body_seconds:g} s: send it again") from None


async def _refuse(scope: Scope, send: Send, refused: Refused) -> None:
    api = scope["path"].startswith("/api/")
    body = json.dumps({"error": refused.why}).encode() if api else refused.why.encode()
    kind = b"application/json" if api else b"text/plain; charset=utf-8"
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Buckets:
    """Rate limits: everybody may do `burst` things at once and `rate` a second."""

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic, most: int = 50_000
    ) -> None:
        """Start with full buckets; the `most` last seen are remembered."""
        self.rate, self.burst, self._clock, self._most = rate, burst, clock, most
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str) -> float:
        """Take one; return 0, or the seconds to wait until there is one again."""
        now = self._clock()
        level, at = self._levels.pop(who, (self.burst, now))
        level = min(self.burst, level + (now - at) * self.rate)
        wait = 0.0 if level >= 1 else (1 - level) / self.rate
        self._levels[who] = (level - 1 if not wait else level, now)
        while len(self._levels) > self._most:
            self._levels.popitem(last=False)
        return wait


def same_origin(headers: Callable[[str], str | None]) -> bool:
    """Whether a request comes from our own page: browsers say so, and pages cannot lie about it."""
    site = headers("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin, host = headers("origin"), headers("host")
    return origin is not None and host is not None and origin.partition("://")[2] == host
