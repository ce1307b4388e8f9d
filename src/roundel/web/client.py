"""A client of the HTTP API that needs nothing but Python."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from roundel.errors import AccessError, ConflictError, InputError, LeaseError, RoundelError

_ERRORS: dict[int, type[RoundelError]] = {401: AccessError, 403: AccessError, 404: LeaseError, 409: ConflictError}
_AGAIN = {408, 429, 503}
_UNTOUCHED = {429}  # refused before anything was done
PATIENCE = 60.0  # seconds that a call is tried again while the server is away or busy


class Client:
    """A server, seen with one token."""

    def __init__(self, url: str, token: str, patience: float = PATIENCE) -> None:
        """Talk to the server at `url`; a call is tried again for `patience` seconds while it does not answer."""
        if not url.startswith(("http://", "https://")):
            raise InputError(f"{url!r} is no address of a server: it begins with http:// or https://")
        self.url, self._token, self.patience = url.rstrip("/"), token, patience
        # No redirects: a token is sent to the server it is for, and to nobody else.
        self._opener = urllib.request.build_opener(_NoRedirect)

    def __repr__(self) -> str:
        return f"<Client of {self.url}>"

    def tournaments(self) -> list[dict[str, Any]]:
        """Return number and name of each tournament that the token is for."""
        return list(self.call("GET", "/api/tournaments")["tournaments"])

    def tournament(self, which: int | str | None = None) -> RemoteTournament:
        """Return a tournament by number or name; without either, the only one."""
        if isinstance(which, int):
            return RemoteTournament(self, which)
        rows = self.tournaments()
        found = [row for row in rows if which is None or row["name"] == which]
        if len(found) != 1:
            names = ", ".join(repr(row["name"]) for row in rows) or "none"
            raise InputError(f"{which!r} is not the name of one tournament: this token is for {names}")
        return RemoteTournament(self, int(found[0]["number"]))

    def call(self, method: str, path: str, body: Any = None, *, again: bool = True) -> Any:
        """Make one call; one whose answer is lost is made again, unless `again` says that it would do more."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        request.add_header("Authorization", f"Bearer {self._token}")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        until, pause = time.monotonic() + self.patience, 0.1
        while True:
            try:
                with self._opener.open(request, timeout=max(1.0, self.patience)) as answer:
                    return json.loads(answer.read())
            except urllib.error.HTTPError as error:
                with error:
                    why = _why(error)
                if error.code not in (_AGAIN if again else _UNTOUCHED) or time.monotonic() + pause > until:
                    raise _ERRORS.get(error.code, InputError if error.code < 500 else RoundelError)(
                        f"{self.url}: {why}"
                    ) from None
                pause = max(pause, _seconds(error.headers.get("Retry-After")))
            except (OSError, ValueError, http.client.HTTPException) as error:
                if not again and not isinstance(getattr(error, "reason", error), ConnectionRefusedError):
                    raise RoundelError(
                        f"{self.url}: the answer was lost ({error}), and the call may have been done: look before you "
                        "make it again"
                    ) from None
                if time.monotonic() + pause > until:
                    raise RoundelError(f"{self.url}: no answer ({error}): is the server running?") from None
            time.sleep(pause)
            pause = min(5.0, 2 * pause)


class RemoteTournament:
    """A tournament behind a server: lease and tell, as on the spot."""

    def __init__(self, client: Client, number: int) -> None:
        """Talk about tournament `number` with `client`."""
        self._client, self.number = client, number
        self._path = f"/api/tournaments/{number}"
        self.is_open = True  # as the last lease had it

    def lease(self, limit: int = 1, seconds: float = 900.0) -> list[dict[str, Any]]:
        """Lease up to `limit` duels; none: there is nothing to do now, or, if `is_open` is false, for good."""
        return self._leased(self._client.call("POST", f"{self._path}/lease", {"limit": limit, "seconds": seconds}))

    def tell(self, duel: Mapping[str, Any], verdict: str | None, **more: Any) -> dict[str, Any]:
        """Deliver a verdict: "first", "second", "tie", or None for an answer that holds none; return its receipt."""
        line = {key: duel[key] for key in ("duel", "token") if key in duel} | {"verdict": verdict, **more}
        return dict(self._client.call("POST", f"{self._path}/tell", {"verdicts": [line]})["receipts"][0])

    def tell_all(self, lines: Iterable[Mapping[str, Any]], lease: int = 0) -> list[dict[str, Any]]:
        """Deliver lines that have a "verdict", all or none, and lease the next duels with the same call."""
        keep = ("duel", "token", "verdict", "cost", "note", "body", "judge", "key")
        slim = [{key: line[key] for key in keep if key in line} for line in lines]
        return self._leased(self._client.call("POST", f"{self._path}/tell", {"verdicts": slim, "lease": lease}))

    def duels(self, limit: int = 1, pause: float = 1.0) -> Iterator[dict[str, Any]]:
        """Yield duels until the tournament has ended; wait where none is free."""
        while True:
            found = self.lease(limit)
            yield from found
            if not found:
                if not self.is_open:
                    return
                time.sleep(pause)

    def _leased(self, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
        self.is_open = bool(answer.get("open", self.is_open))
        return list(answer.get("duels", ()))

    @property
    def status(self) -> dict[str, Any]:
        """Where it stands."""
        return dict(self._client.call("GET", f"{self._path}/status"))

    @property
    def plan(self) -> dict[str, Any]:
        """The plan of the open round."""
        return dict(self._client.call("GET", f"{self._path}/plan"))

    def certificate(self) -> dict[str, Any]:
        """Return the proof of the outcome; `roundel verify` checks it."""
        return dict(self._client.call("GET", f"{self._path}/certificate"))

    def close(self, *, end: bool = False, empty: bool = False) -> int:
        """Close the open round with what it has; return its number."""
        body = {"end": end, "empty": empty}  # once more, and the next round would be closed, too
        return int(self._client.call("POST", f"{self._path}/close", body, again=False)["closed"])

    def invitations(self) -> list[dict[str, Any]]:
        """Return the invitations."""
        return list(self._client.call("GET", f"{self._path}/invitations")["invitations"])

    def invite(self, role: str, label: str, voters: int = 1, most: int | None = None) -> dict[str, Any]:
        """Make an invitation for a "voter" or a "judge"; it comes with its token."""
        body = {"role": role, "label": label, "voters": voters, "most": most}
        return dict(self._client.call("POST", f"{self._path}/invitations", body, again=False))

    def revoke(self, invitation: str) -> None:
        """Revoke an invitation by its id."""
        self._client.call("DELETE", f"{self._path}/invitations/{invitation}")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow nothing."""
        return


def _why(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read())["error"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"status {error.code}"


def _seconds(text: str | None) -> float:
    return float(text) if text is not None and text.isdigit() else 0.0
