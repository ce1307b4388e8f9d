"""Where a language model answers: a small protocol, and the official client behind it, kept on a short lead."""

from __future__ import annotations

import ipaddress
import os
import socket
import threading
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, urlsplit

from roundel.errors import InputError, JudgeError, MissingExtraError
from roundel.judges.answers import StopJudging
from roundel.judges.calls import Exchange

if TYPE_CHECKING:
    import httpx2

OPENAI = "https://api.openai.com/v1"
LONGEST_ANSWER = 8 * 2**20  # bytes of one response
LONGEST_HOLD = 3600.0  # seconds that a server may ask to wait
_BUSY = frozenset({408, 409, 425, 429})
_HOPELESS = frozenset({401, 402, 403, 404, 405})

Message = dict[str, Any]


class ChatModel(Protocol):
    """A language model: one method, which makes one call and tells what became of it. It never raises for a failure
    of the call (`StopJudging` when no call can succeed)."""

    def complete(self, messages: list[Message], key: str) -> Exchange:
        """Make one call; the same `key` names the same call."""


def read_key(names: tuple[str, ...], file: str | Path | None = None) -> str | None:
    """Return an API key from a file, or from the first of some environment variables that is set."""
    if file is not None:
        try:
            key = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise JudgeError(
                f"the key file {str(file)!r} cannot be read ({type(error).__name__}): check the path"
            ) from None
        if not key:
            raise JudgeError(f"the key file {str(file)!r} is empty: put the API key into it")
        return _checked_key(key, f"the key in {str(file)!r}")
    for name in names:
        if key := os.environ.get(name, "").strip():
            return _checked_key(key, f"the key in {name}")
    return None


def _checked_key(key: str, what: str) -> str:
    if not key.isascii() or not key.isprintable() or " " in key:
        raise JudgeError(f"{what} is no API key: it must be one visible ASCII word")
    return key


class Redactor:
    """Removes a secret from whatever is stored or shown."""

    def __init__(self, secret: str | None) -> None:
        self._forms = [] if not secret else sorted({secret, quote(secret, safe="")}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """Return `text` without the secret."""
        for form in self._forms:
            text = text.replace(form, "[key]")
        return text


def check_endpoint(url: str) -> str:
    """Return an endpoint's URL if it is one that calls may go to."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise JudgeError(f"the endpoint {url!r} is no URL ({error}): give one like {OPENAI}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise JudgeError(f"the endpoint {url!r} is no http or https URL: give one like {OPENAI}")
    if parts.username or parts.password:
        raise JudgeError("the endpoint holds a user or a password: keys come from the environment or a file")
    if parts.query or parts.fragment:
        raise JudgeError(f"the endpoint {url!r} has a query or a fragment: give the address only")
    if port == 0:
        raise JudgeError(f"the endpoint {url!r} has port 0: give the port that the server listens on")
    return url.rstrip("/")


class OpenAIChat:
    """A model behind any OpenAI-compatible endpoint, called through the official client.

    The client's own retries are off, since each attempt is noted before it is made; redirects are not followed;
    the endpoint's name is resolved once, so that it cannot become another machine in the middle of a session.
    """

    def __init__(
        self,
        model: str,
        endpoint: str = OPENAI,
        key: str | None = None,
        *,
        timeout: float = 60.0,
        request: Mapping[str, Any] | None = None,
        private: bool = False,
        proxy: str | None = None,
    ) -> None:
        """`request`: more fields of each request; `private`: the endpoint's name may stand for a private address."""
        try:
            import httpx2
            import openai
        except ImportError:
            raise MissingExtraError("a language model as judge", "model") from None
        self.model = model
        self.endpoint = check_endpoint(endpoint)
        self.redact = Redactor(key)
        self._request = dict(request or {})
        self._errors = openai
        transport = (
            httpx2.HTTPTransport(proxy=proxy)
            if proxy
            else pinned_transport(urlsplit(self.endpoint).hostname or "", private)
        )
        self._http = httpx2.Client(
            transport=transport,
            follow_redirects=False,
            trust_env=False,
            timeout=httpx2.Timeout(timeout, connect=min(timeout, 10.0)),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
        )
        self._client = openai.OpenAI(
            api_key=key or "none",  # local servers take any
            base_url=self.endpoint,
            timeout=timeout,
            max_retries=0,
            http_client=self._http,
        )

    def complete(self, messages: list[Message], key: str) -> Exchange:
        """Make one call."""
        errors = self._errors
        try:
            raw = self._client.chat.completions.with_raw_response.create(
                model=self.model,
                messages=messages,  # type: ignore[arg-type]  # plain mappings of the same shape
                extra_body=self._request,
                extra_headers={"Idempotency-Key": key},
            )
            body = raw.http_response.text
        except JudgeError as error:  # from the transport: this endpoint is not one that calls may go to
            raise StopJudging(str(error)) from None
        except errors.APIStatusError as error:
            return self._failed(error.status_code, error.response)
        except errors.APIConnectionError as error:
            return self._unreached(error)
        except (errors.OpenAIError, ValueError) as error:
            return Exchange("lost", self.redact(f"{type(error).__name__}: {error}"))
        return Exchange("answer", self.redact(body[:LONGEST_ANSWER]), status=raw.http_response.status_code)

    def _failed(self, status: int, response: Any) -> Exchange:
        body = self.redact(response.text[:LONGEST_ANSWER])
        if 300 <= status < 400:
            raise StopJudging(
                f"{self.endpoint} answered with a redirect ({status}): redirects are not followed; "
                "configure the address that is meant"
            )
        if status in _BUSY or status >= 500:
            return Exchange("unpaid", body, 0.0, status, retry_after(response.headers))
        if status in _HOPELESS:
            raise StopJudging(
                f"{self.endpoint} refuses {self.model!r} (status {status}): check key, model and endpoint; "
                f"it says: {' '.join(body.split())[:300]}"
            )
        return Exchange("refused", body, 0.0, status)

    def _unreached(self, error: Exception) -> Exchange:
        """Tell a connection that was never made, which costs nothing, from one that broke, which may."""
        import httpx2

        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)):
                return Exchange("unpaid", self.redact(f"{type(cause).__name__}: {cause}"), 0.0)
            cause = cause.__cause__
        return Exchange("lost", self.redact(f"{type(error).__name__}: {error}"))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the seconds that a server asks to wait, from Retry-After (seconds or a date) or Retry-After-Ms."""
    seconds: float | None = None
    try:
        if (value := headers.get("retry-after-ms")) is not None:
            seconds = float(value) / 1000
        elif (value := headers.get("retry-after")) is not None:
            try:
                seconds = float(value)
            except ValueError:
                seconds = parsedate_to_datetime(value).timestamp() - (time() if now is None else now)
    except (ValueError, TypeError, OverflowError):
        return None
    if seconds is None or not 0 <= seconds < float("inf"):
        return None
    return min(seconds, LONGEST_HOLD)


# where a connection may go ------------------------------------------------------------------------------------


def resolve(host: str, private: bool) -> list[str]:
    """Return the addresses of a host that calls may go to; a public name must not stand for a private address."""
    name = host.strip("[]").lower()
    try:
        return [str(ipaddress.ip_address(name))]  # the operator gave the address itself
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise InputError(f"{host!r} cannot be resolved ({error}): check the endpoint") from None
    addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
    local = name == "localhost" or name.endswith(".localhost")
    for address in addresses:
        kind = ipaddress.ip_address(address.partition("%")[0])
        if local and kind.is_loopback:
            continue
        if kind.is_link_local or kind.is_multicast or kind.is_unspecified:
            raise JudgeError(f"{host!r} stands for {address}, where no model answers: check the endpoint")
        if not kind.is_global and not private:
            raise JudgeError(
                f"{host!r} stands for the private address {address}: allow that with private = true (--private), "
                "or give the address itself"
            )
    return addresses


def pinned_transport(host: str, private: bool) -> httpx2.BaseTransport:
    """Return a transport that connects to one host only, at the addresses that its name had at first."""
    import httpx2

    class Pinned(httpx2.BaseTransport):
        def __init__(self) -> None:
            self._inner = httpx2.HTTPTransport(
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100)
            )
            self._addresses: list[str] | None = None
            self._lock = threading.Lock()

        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            if request.url.host.strip("[]").lower() != host.strip("[]").lower():
                raise JudgeError(f"a call to {request.url.host!r} was stopped: calls go to {host!r} only")
            with self._lock:
                if self._addresses is None:
                    try:
                        self._addresses = resolve(host, private)
                    except InputError as error:  # not resolved now: it may be later
                        raise httpx2.ConnectError(str(error), request=request) from None
            url = request.url
            extensions = {**request.extensions, "sni_hostname": host}
            failure: Exception | None = None
            for address in self._addresses:
                moved = httpx2.Request(
                    request.method,
                    url.copy_with(host=address),
                    headers=request.headers,  # with the Host that was asked for
                    stream=request.stream,
                    extensions=extensions,
                )
                try:
                    return self._inner.handle_request(moved)
                except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                    failure = error
            raise failure or httpx2.ConnectError(f"{host!r} has no address", request=request)

        def close(self) -> None:
            self._inner.close()

    return Pinned()
