"""Templates, static files and cookies: what the pages of voters and of the owner share."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from roundel.web import insight
from roundel.web.api import HttpError
from roundel.web.shield import same_origin

TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
FOREVER = {"cache-control": "public, max-age=31536000, immutable"}
FRAGMENT = "x-fragment"  # the header by which our script asks for the part of a page that changes


@dataclass(frozen=True, slots=True)
class Static:
    """A file that the pages load."""

    type: str
    data: bytes
    path: str


@cache
def static() -> dict[str, Static]:
    """Return the static files by path; a path holds the digest of its content, and may be cached for ever."""
    found = {}
    for file in resources.files("roundel.web").joinpath("static").iterdir():
        suffix = file.name[file.name.rfind(".") :]
        if suffix in TYPES:
            data = file.read_bytes()
            path = f"/static/{hashlib.sha256(data).hexdigest()[:12]}/{file.name}"
            found[path] = Static(TYPES[suffix], data, path)
    return found


@cache
def _address(name: str) -> str:
    return next(path for path in static() if path.endswith(f"/{name}"))


@cache
def templates() -> Environment:
    """Return the templates; whatever goes into them is escaped, and a name that is missing is an error."""
    environment = Environment(
        loader=PackageLoader("roundel.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals["static"] = _address
    environment.filters["percent"] = insight.percent
    environment.filters["thousands"] = lambda number: f"{number:,}".replace(",", "\u202f")
    return environment


def page(name: str, status: int = 200, headers: dict[str, str] | None = None, /, **values: Any) -> Response:
    """Return a page."""
    text = templates().get_template(name).render(**values)
    return Response(text.encode("utf-8", "replace"), status, headers, "text/html")


def see(path: str) -> RedirectResponse:
    """Send the browser on to a page by GET, so that reloading it repeats nothing."""
    return RedirectResponse(path, 303)


def is_fragment(request: Request) -> bool:
    """Whether our script asks, which swaps a part of the page."""
    return FRAGMENT in request.headers


async def form(request: Request) -> dict[str, str]:
    """Read a form of our own page; one from elsewhere is refused."""
    if not same_origin(request.headers.get):
        raise HttpError(403, "this form does not come from our own page: go back, reload, and try again")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/x-www-form-urlencoded", ""):
        raise HttpError(422, "send the form as application/x-www-form-urlencoded")
    try:
        text = (await request.body()).decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text), max_num_fields=50, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise HttpError(422, "the form cannot be read: go back, reload, and try again") from None
    return dict(pairs)


def set_cookie(
    request: Request, response: Response, name: str, value: str, days: float, *, strict: bool = False
) -> None:
    """Set a cookie that scripts cannot read and other sites cannot send."""
    response.set_cookie(
        name,
        value,
        max_age=int(days * 86400),
        httponly=True,
        secure=request.url.scheme == "https",
        samesite="strict" if strict else "lax",
        path="/",
    )
