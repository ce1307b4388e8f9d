"""The HTTP API: lease, tell, status, plan, certificate, invitations; with a bearer's token for each role."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response

from roundel.errors import (
    AccessError,
    ConflictError,
    InputError,
    LeaseError,
    RoundelError,
    StoreError,
)
from roundel.tournament import Duel, rounds
from roundel.tournament.leases import parse_duel_name
from roundel.tournament.store import Transaction
from roundel.tournament.tournament import DEFAULT_LEASE
from roundel.web import insight, invitations, seats
from roundel.web.desk import Desk, Hall
from roundel.web.invitations import Invitation
from roundel.web.shield import Buckets

MOST_DUELS = 1000  # leased or told in one request
MOST_OUT = {"judge": 1000, "voter": 5}  # leases that one token may hold

T = TypeVar("T")
Body = TypeVar("Body", bound=BaseModel)


class HttpError(RoundelError):
    """An answer that is a refusal."""

    def __init__(self, status: int, why: str, wait: int | None = None) -> None:
        """Refuse with `status` and say why."""
        super().__init__(why)
        self.status, self.why, self.wait = status, why, wait


def too_fast(what: str, wait: float) -> HttpError:
    """Return the refusal of who must wait; in whole seconds, as Retry-After has it."""
    seconds = max(1, math.ceil(wait))
    return HttpError(429, f"{what}: wait {seconds} s", seconds)


UNKNOWN = HttpError(404, "there is no such tournament, or this token is not for it")
WHO = HttpError(401, "who are you? send a token: Authorization: Bearer TOKEN")


# what travels -----------------------------------------------------------------------------------------------


class LeaseAsk(BaseModel):
    """How many duels are wanted, and for how long."""

    model_config = ConfigDict(extra="forbid", strict=True)
    limit: int = Field(1, ge=1, le=MOST_DUELS)
    seconds: float = Field(DEFAULT_LEASE, gt=0, le=86_400, allow_inf_nan=False)


class Line(BaseModel):
    """A duel that was leased, with the verdict on it; whatever else stands in the line is passed over."""

    model_config = ConfigDict(extra="ignore", strict=True)
    duel: str | None = Field(None, max_length=40, description="The duel's name, as lease gave it.")
    token: str | None = Field(None, max_length=200, description="The lease's token, as lease gave it.")
    verdict: Literal["first", "second", "tie"] | None = Field(
        description="null: no verdict; the duel is offered again."
    )
    cost: float | None = Field(None, ge=0, lt=1e15, allow_inf_nan=False)
    note: str | None = Field(None, max_length=10_000)
    body: str | None = Field(None, max_length=500_000, description="The raw answer, kept as it is.")
    judge: str | None = Field(None, max_length=200, description="Owner only: on whose behalf.")
    key: str | None = Field(None, max_length=500, description="Owner only: for a verdict without a lease.")


class TellAsk(BaseModel):
    """Verdicts, all of which are taken or none; and how many new duels to lease in the same breath."""

    model_config = ConfigDict(extra="forbid", strict=True)
    verdicts: list[Line] = Field(min_length=1, max_length=MOST_DUELS)
    lease: int = Field(0, ge=0, le=MOST_DUELS)
    seconds: float = Field(DEFAULT_LEASE, gt=0, le=86_400, allow_inf_nan=False)


class CloseAsk(BaseModel):
    """How to close the open round."""

    model_config = ConfigDict(extra="forbid", strict=True)
    end: bool = Field(False, description="End the whole tournament with it.")
    empty: bool = Field(False, description="Close it even without a verdict.")


class InviteAsk(BaseModel):
    """Whom to invite."""

    model_config = ConfigDict(extra="forbid", strict=True)
    role: Literal["voter", "judge"]
    label: str = Field(min_length=1, max_length=invitations.MOST_LABELS, description="Names the judge in the record.")
    voters: int = Field(1, ge=1, le=invitations.MOST_VOTERS, description="How many may share the link.")
    most: int | None = Field(None, ge=1, le=10**9, description="Verdicts that each of them may give.")


class Refusal(BaseModel):
    """Why a request was refused: the value, the rule and the remedy."""

    error: str


_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refusal, "description": text}
    for status, text in {
        400: "The request is not well-formed.",
        401: "No token, or none that is good.",
        403: "The token is good, but not for this.",
        404: "No such tournament, duel or invitation, or not for this token.",
        405: "No such method.",
        408: "The body took too long.",
        409: "The same key with another content, or a name that is taken.",
        413: "The body is too large.",
        414: "The address is too long.",
        422: "A value breaks a rule.",
        429: "Too many requests.",
        503: "The server is busy or shutting down, or the store cannot be written.",
    }.items()
}


def _takes(model: type[BaseModel]) -> dict[str, Any]:
    """Declare a body that the endpoint reads itself, which is faster than having it unpacked."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": _inlined(schema)}}}}


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    known = schema.pop("$defs", {})

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            if "$ref" in value:
                return walk(known[value["$ref"].rpartition("/")[2]])
            return {key: walk(item) for key, item in value.items()}
        return [walk(item) for item in value] if isinstance(value, list) else value

    return dict(walk(schema))


async def read(request: Request, model: type[Body]) -> Body:
    """Read a JSON body."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/json", ""):
        raise HttpError(422, f"the body is {kind[:60]!r}: send application/json")
    try:
        return model.model_validate_json(await request.body() or b"{}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise HttpError(422, f"{where or 'the body'}: {first['msg']}") from None


def reply(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return JSON."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "backslashreplace"), status, headers, "application/json")


def refusal(error: Exception) -> tuple[int, str]:
    """Return status and words for an error of ours."""
    if isinstance(error, HttpError):
        return error.status, error.why
    for kind, status in (
        (AccessError, 403),
        (LeaseError, 404),
        (ConflictError, 409),
        (InputError, 422),
        (StoreError, 503),
    ):
        if isinstance(error, kind):
            return status, str(error)
    return 503, f"the tournament cannot go on: {error}"


# who asks ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Caller:
    """Who stands behind a request."""

    token: str
    is_owner: bool


def caller(desk: Desk, request: Request) -> Caller:
    """Return who asks, as far as the token tells without the database."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    token = token.strip()
    if kind.lower() != "bearer" or not token:
        raise WHO
    owner = desk.keys.owns(token)
    if not owner and desk.claim(token, "judge") is None and desk.claim(token, "voter") is None:
        raise WHO
    return Caller(token, owner)


def guest(desk: Desk, tx: Transaction, who: Caller, number: int) -> Invitation | None:
    """Return the invitation behind a caller, None for the owner."""
    if who.is_owner:
        return None
    found = desk.invited(tx, who.token)
    if found is None:
        raise WHO  # revoked
    if found.tournament != number:
        raise UNKNOWN
    return found


Number = Annotated[int, Path(ge=1, le=2**53, description="The tournament's number.")]


Endpoint = Callable[[Request, int], Awaitable[Response]]


def build(desk: Desk, buckets: Buckets) -> tuple[APIRouter, dict[str, Endpoint]]:
    """Return the routes of the API, and once more the two that are called again and again, by their verb."""
    router = APIRouter(prefix="/api", responses=_REFUSALS, default_response_class=Response)

    def entry(request: Request, number: int) -> tuple[Caller, Hall]:
        who = caller(desk, request)
        if not who.is_owner and (wait := buckets.take(who.token)):
            raise too_fast("too many requests", wait)
        hall = desk.hall(number)
        if hall is None:
            raise UNKNOWN
        return who, hall

    def owner(request: Request, number: int) -> Hall:
        who, hall = entry(request, number)
        if not who.is_owner:
            invitation = desk.store.reader.read(lambda tx: guest(desk, tx, who, number))
            if invitation is not None:
                raise HttpError(403, f"a {invitation.role}'s token may not do this: use the owner's")
        return hall

    @router.get("/tournaments", summary="The tournaments that this token is for", response_model=None)
    async def tournaments(request: Request) -> Response:
        who = caller(desk, request)
        invitation = None if who.is_owner else desk.store.reader.read(lambda tx: desk.invited(tx, who.token))
        if not who.is_owner and invitation is None:
            raise WHO
        rows = desk.names()
        return reply(
            {
                "tournaments": [
                    {"number": number, "name": name}
                    for number, name in rows
                    if invitation is None or invitation.tournament == number
                ]
            }
        )

    @router.post(
        "/tournaments/{number}/lease", summary="Lease duels", openapi_extra=_takes(LeaseAsk), response_model=None
    )
    async def lease(request: Request, number: Number) -> Response:
        who, hall = entry(request, number)
        ask = await read(request, LeaseAsk)

        def work(tx: Transaction) -> dict[str, Any]:
            return _leased(desk, hall, tx, guest(desk, tx, who, number), ask.limit, ask.seconds)

        return reply(await desk.commit(work))

    @router.post(
        "/tournaments/{number}/tell", summary="Deliver verdicts", openapi_extra=_takes(TellAsk), response_model=None
    )
    async def tell(request: Request, number: Number) -> Response:
        who, hall = entry(request, number)
        ask = await read(request, TellAsk)

        def work(tx: Transaction) -> dict[str, Any]:
            invitation = guest(desk, tx, who, number)
            found: dict[str, Any] = {"receipts": _told(desk, hall, tx, invitation, ask.verdicts)}
            if ask.lease:
                found |= _leased(desk, hall, tx, invitation, ask.lease, ask.seconds)
            return found

        return reply(await desk.commit(work))

    @router.get("/tournaments/{number}/status", summary="Where it stands", response_model=None)
    async def status(request: Request, number: Number) -> Response:
        who, hall = entry(request, number)
        invitation = desk.store.reader.read(lambda tx: guest(desk, tx, who, number))
        progress = await hall.progress()
        still = desk.store.reader.read(lambda tx: rounds.current(tx, number)) is not None
        if invitation is not None and invitation.role == "voter":  # who leads would sway them
            return reply(
                {
                    "open": still,
                    "round": progress.round,
                    "rounds": progress.rounds,
                    "asked": progress.asked,
                    "done": progress.done,
                }
            )
        found = await hall.insight()
        more = insight.plain(found) if invitation is None else {}
        return reply({"open": found.status.is_open, **found.status.to_json(), **more})

    @router.get("/tournaments/{number}/plan", summary="The plan of the open round", response_model=None)
    async def plan(request: Request, number: Number) -> Response:
        who, hall = entry(request, number)

        def work(tx: Transaction) -> dict[str, Any]:
            invitation = guest(desk, tx, who, number)
            if invitation is not None and invitation.role == "voter":
                raise AccessError("a voter's token may not see the plan: use a judge's, or the owner's")
            current = rounds.current(tx, number)
            row = None if current is None else rounds.numbered(tx, number, current.n)
            if row is None:
                return {"round": None, "digest": None, "pairs": []}
            names, planned = hall.cup.spec.names, rounds.plan_of(row)
            pairs = [{"first": names[a], "second": names[b], "times": times} for a, b, times in planned]
            return {"round": row.n, "digest": row.plan_digest, "pairs": pairs}

        return reply(await _aside(desk, work))

    @router.get("/tournaments/{number}/certificate", summary="The proof of the outcome", response_model=None)
    async def certificate(request: Request, number: Number) -> Response:
        hall = owner(request, number)
        return reply(await asyncio.to_thread(hall.snapshot.certificate))

    @router.post(
        "/tournaments/{number}/close",
        summary="Close the open round",
        openapi_extra=_takes(CloseAsk),
        response_model=None,
    )
    async def close(request: Request, number: Number) -> Response:
        hall = owner(request, number)
        ask = await read(request, CloseAsk)
        return reply({"closed": await desk.close_round(hall, end=ask.end, empty=ask.empty)})

    @router.get("/tournaments/{number}/invitations", summary="The invitations", response_model=None)
    async def invited(request: Request, number: Number) -> Response:
        owner(request, number)
        rows = await _aside(desk, lambda tx: invitations.with_programs(tx, number, invitations.listed(tx, number)))
        return reply({"invitations": [_invitation(desk, *row) for row in rows]})

    @router.post(
        "/tournaments/{number}/invitations", summary="Invite", openapi_extra=_takes(InviteAsk), response_model=None
    )
    async def invite(request: Request, number: Number) -> Response:
        owner(request, number)
        ask = await read(request, InviteAsk)
        made = await desk.invite(number, ask.role, [ask.label], 1, ask.voters, ask.most)
        return reply(_invitation(desk, made[0], 0, 0))

    @router.delete("/tournaments/{number}/invitations/{invitation}", summary="Revoke", response_model=None)
    async def revoke(
        request: Request, number: Number, invitation: Annotated[str, Path(min_length=1, max_length=64)]
    ) -> Response:
        owner(request, number)

        def work(tx: Transaction) -> None:
            try:
                invitations.revoke(tx, number, invitation, desk.clock())
            except AccessError as error:
                raise HttpError(404, str(error)) from None

        await desk.commit(work)
        return reply({"revoked": invitation})

    return router, {"lease": lease, "tell": tell}


# the parts --------------------------------------------------------------------------------------------------


def _aside(desk: Desk, work: Callable[[Transaction], T]) -> Awaitable[T]:
    """Read a snapshot outside of the event loop."""
    return asyncio.to_thread(lambda: desk.archive.read(work))


def _invitation(desk: Desk, invitation: Invitation, joined: int, answered: int) -> dict[str, Any]:
    token = desk.token(invitation)
    return {
        "id": invitation.id,
        "role": invitation.role,
        "label": invitation.label,
        "voters": invitation.voters,
        "most": invitation.most,
        "revoked": invitation.revoked is not None,
        "joined": joined,
        "answered": answered,
        "token": token,
        "path": f"/v/{token}" if invitation.role == "voter" else None,
    }


def _leased(
    desk: Desk, hall: Hall, tx: Transaction, invitation: Invitation | None, limit: int, seconds: float
) -> dict[str, Any]:
    judge = invitations.OWNER
    if invitation is not None:
        if invitation.voters > 1:
            raise AccessError("a shared link works in browsers only: ask for an invitation of your own")
        judge = invitation.judge()
        limit = min(limit, _room(hall, tx, invitation, judge, desk.clock()))
    duels = hall.cup.lease(limit, judge=judge, ttl=seconds) if limit > 0 else []
    blind = invitation is not None and invitation.role == "voter"
    still = bool(duels) or hall.cup.is_open
    return {"duels": [_line(desk, duel, blind) for duel in duels], "open": still}


def _room(hall: Hall, tx: Transaction, invitation: Invitation, judge: str, now: float) -> int:
    """Return how many more duels a token may lease: no token keeps a whole round from the others."""
    out = tx.one(
        "SELECT COUNT(*) FROM round r JOIN duel d ON d.round = r.id "
        "JOIN lease l ON l.round = d.round AND l.k = d.k AND l.epoch = d.epoch "
        "WHERE r.tournament = ? AND r.reason IS NULL AND d.state <> 'done' AND d.expires > ? AND l.judge = ?",
        hall.number,
        now,
        judge,
    )
    room = MOST_OUT[invitation.role] - int(out[0] if out else 0)
    if room <= 0:
        raise AccessError(f"{MOST_OUT[invitation.role]} duels are out under this token: tell their verdicts first")
    if invitation.most is not None:
        seat = seats.load(tx, invitation, 1)
        room = min(room, invitation.most - (seat.answered if seat else 0))
        if room <= 0:
            raise AccessError(f"this invitation is for {invitation.most} verdicts, and all of them are given")
    return room


def _line(desk: Desk, duel: Duel, blind: bool) -> dict[str, Any]:
    """Return a duel as it travels: pictures by their address here, for voters without the names."""
    line = duel.to_json()
    for side in ("first", "second", "context"):
        shown = line[side]
        if shown is None:
            continue
        if "image" in shown:
            shown["image"] = f"/media/{desk.gallery.name(shown)}"
            del shown["sha256"]
        if blind and side != "context":
            del shown["name"]
    return line


def _told(
    desk: Desk, hall: Hall, tx: Transaction, invitation: Invitation | None, lines: list[Line]
) -> list[dict[str, Any]]:
    counted = invitation is not None and (invitation.role == "voter" or invitation.most is not None)
    before = rounds.head(tx, hall.number, hall.cup.digest)[0] if counted else 0
    receipts = [_receipt(hall, invitation, line) for line in lines]
    if invitation is not None and counted:
        seat = seats.load(tx, invitation, 1)
        fresh = sum(receipt["seq"] > before for receipt in receipts)
        answered = (seat.answered if seat else 0) + fresh
        if invitation.most is not None and fresh and answered > invitation.most:
            raise AccessError(
                f"this invitation is for {invitation.most} verdicts: no more are taken; nothing was counted"
            )
        if seat is None:
            tx.run("INSERT INTO web_voter (invitation, n, joined) VALUES (?, ?, ?)", invitation.id, 1, desk.clock())
        tx.run("UPDATE web_voter SET answered = ? WHERE invitation = ? AND n = 1", answered, invitation.id)
    return receipts


def _receipt(hall: Hall, invitation: Invitation | None, line: Line) -> dict[str, Any]:
    judge, key = line.judge, line.key
    if invitation is not None:
        if line.token is None or key is not None:
            raise AccessError("only the owner may tell a verdict without a lease: send back the token of the lease")
        judge = invitation.judge()
    if line.duel is None and line.token is None:
        raise LeaseError('there is no "duel" and no "token" in a line: send back the line that lease gave')
    if line.duel is not None:
        parse_duel_name(line.duel)
    parts = {"duel": line.duel, "token": line.token}
    more: dict[str, Any] = {"key": key, "judge": judge, "cost": line.cost, "note": line.note, "body": line.body}
    if line.verdict is None:
        return hall.cup.reject(parts, **more).to_json()
    return hall.cup.tell(parts, line.verdict, **more).to_json()
