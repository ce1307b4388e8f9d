"""The application: voting page, dashboard and API in front of one store."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import AsyncIterator

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router

import roundel
from roundel.errors import RoundelError, StoreError
from roundel.web import api, html
from roundel.web.api import refusal, reply
from roundel.web.dashboard import Dashboard
from roundel.web.desk import Desk
from roundel.web.keys import Keys
from roundel.web.shield import Buckets, Message, Receive, Refused, Scope, Send, Shield
from roundel.web.voting import Voting

VOTES = (4.0, 40.0)  # a second, and at once: of one voter at the page
CALLS = (200.0, 1000.0)  # the same of one token at the API

_OFTEN = re.compile(r"/api/tournaments/([1-9][0-9]{0,14})/(lease|tell)")

log = logging.getLogger("roundel.web")


class Site:
    """Sends each request to the pages or to the API, and answers what goes wrong in either.

    The API is FastAPI's, whose layers cost as much as a verdict does. The pages are plain routes, and what judges call
    again and again is reached without the layers, too.
    """

    def __init__(self, desk: Desk, votes: tuple[float, float], calls: tuple[float, float]) -> None:
        """Serve `desk`."""
        self.desk = desk
        router, self.often = api.build(desk, Buckets(*calls))
        self.api = _api(router)
        self.pages = Router(
            [
                *Voting(desk, Buckets(*votes)).routes(),
                *Dashboard(desk).routes(),
                Route("/static/{digest}/{name}", _static, methods=["GET"]),
                Route("/robots.txt", _robots, methods=["GET"]),
            ],
            redirect_slashes=False,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or the life of the server."""
        if scope["type"] == "lifespan":
            await Starlette(lifespan=self._lifespan)(scope, receive, send)
            return
        often = _OFTEN.fullmatch(scope["path"]) if scope["method"] == "POST" else None
        if often is None and scope["path"].startswith("/api/"):
            await self.api(scope, receive, send)
            return
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            scope["app"] = self
            if often is None:
                await self.pages(scope, receive, sending)
            else:
                answer = await self.often[often[2]](Request(scope, receive), int(often[1]))
                await answer(scope, receive, sending)
        except (RoundelError, HTTPException) as error:
            if started:
                raise
            await _refuse(Request(scope), error)(scope, receive, send)
        except (Refused, TimeoutError):
            raise
        except Exception:
            log.exception("%s %s failed", scope["method"], _public(scope["path"]))
            if started:
                raise
            await _crash(Request(scope))(scope, receive, send)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        async with self.desk.open():
            yield


class App(Shield):
    """The whole: the site behind its shield."""

    def __init__(self, desk: Desk, votes: tuple[float, float], calls: tuple[float, float]) -> None:
        """Serve `desk`."""
        self.site = Site(desk, votes, calls)
        self.desk = desk
        super().__init__(self.site)


def create_app(
    store: str, keys: Keys, *, votes: tuple[float, float] = VOTES, calls: tuple[float, float] = CALLS
) -> App:
    """Return the ASGI application that serves `store`; `votes` and `calls` are limits (a second, at once)."""
    return App(Desk(store, keys), votes, calls)


def _api(router: APIRouter) -> FastAPI:
    app = FastAPI(
        title="roundel",
        version=roundel.__version__,
        summary="Find the best of K options from noisy pairwise comparisons.",
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
        openapi_url="/api/openapi.json",
        redirect_slashes=False,
    )
    app.include_router(router)

    async def refuse(request: Request, error: Exception) -> Response:
        return _refuse(request, error)

    async def crash(request: Request, _: Exception) -> Response:
        return _crash(request)

    for kind in (RoundelError, RequestValidationError, HTTPException, Refused):
        app.add_exception_handler(kind, refuse)
    app.add_exception_handler(Exception, crash)
    return app


async def _static(request: Request) -> Response:
    found = html.static().get(request.url.path)
    if found is None:
        raise HTTPException(404)
    return Response(found.data, 200, html.FOREVER, found.type)


async def _robots(_: Request) -> Response:
    return PlainTextResponse("User-agent: *\nDisallow: /\n")


def _public(path: str) -> str:
    """Return a path as it may stand in a log: an invitation's token is a secret."""
    return "/v/..." if path.startswith("/v/") else path


def _refuse(request: Request, error: Exception) -> Response:
    """Answer what went wrong: JSON for programs, a page for people."""
    headers: dict[str, str] = {}
    if isinstance(error, HTTPException):
        status, why = error.status_code, str(error.detail)
        headers |= dict(error.headers or {})
        if status == 404:
            why = "there is no such page: the address may be mistyped"
        elif status == 400:
            why = "the body cannot be read: send JSON"
    elif isinstance(error, Refused):
        status, why = error.status, error.why
        headers["connection"] = "close"
    elif isinstance(error, RequestValidationError):
        first = error.errors()[0]
        status, why = 422, f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    else:
        status, why = refusal(error)
        if isinstance(error, StoreError):
            log.error("%s", error)
    wait = getattr(error, "wait", None)
    if wait is not None:
        headers["retry-after"] = str(wait)
    if request.url.path.startswith("/api/"):
        if status == 401:
            headers["www-authenticate"] = "Bearer"
        return reply({"error": why}, status, headers)
    if html.is_fragment(request):
        return PlainTextResponse(why, status, headers)
    if status == 401:
        return html.page("sign_in.html", 401, headers, wrong=False)
    return html.page("error.html", status, headers, code=status, why=why[:1].upper() + why[1:])


def _crash(request: Request) -> Response:
    """Answer an error that is ours, without its details; they stand in the log."""
    why = "something went wrong here; nothing was lost. The server's log says what it was"
    if request.url.path.startswith("/api/"):
        return reply({"error": why}, 500)
    return html.page("error.html", 500, code=500, why=why[:1].upper() + why[1:])
