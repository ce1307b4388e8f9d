"""The voting page: an invitation, pairs, a thank-you. Forms without JavaScript; with it, the same in one piece."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from roundel.tournament.spec import Content
from roundel.tournament.store import Transaction
from roundel.web import content, html, invitations, seats
from roundel.web.api import HttpError, too_fast
from roundel.web.desk import Desk, Hall
from roundel.web.invitations import Invitation
from roundel.web.seats import Seat, View
from roundel.web.shield import Buckets

COOKIE_DAYS = 90

NOTICES = {
    "answered already": "That pair had been answered already. Here is the next one.",
    "too late": "Somebody else had settled that pair in the meantime. Your answer is kept, but does not count.",
    "nothing to undo": "There is nothing to undo any more: the answer has been counted.",
    "undone": "Undone. Here is the pair again.",
}


class Voting:
    """The routes of voters."""

    def __init__(self, desk: Desk, buckets: Buckets) -> None:
        """Serve `desk`'s tournaments; `buckets` limit how fast one voter may answer."""
        self.desk, self.buckets = desk, buckets

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/v/{token}", self.welcome, methods=["GET"]),
            Route("/v/{token}", self.start, methods=["POST"]),
            Route("/vote/{number:int}", self.show, methods=["GET"]),
            Route("/vote/{number:int}/answer", self.answer, methods=["POST"]),
            Route("/vote/{number:int}/next", self.next, methods=["POST"]),
            Route("/vote/{number:int}/undo", self.undo, methods=["POST"]),
            Route("/vote/{number:int}/leave", self.leave, methods=["POST"]),
            Route("/vote/{number:int}/thanks", self.thanks, methods=["GET"]),
            Route("/media/{name}", self.picture, methods=["GET"]),
        ]

    # the invitation -----------------------------------------------------------------------------------------

    async def welcome(self, request: Request) -> Response:
        """Show what the invitation is for. Opening a link changes nothing: mail programs open links, too."""
        token = request.path_params["token"]
        invitation = self.desk.store.reader.read(lambda tx: self._behind(tx, token))
        hall = self.desk.hall(invitation.tournament)
        if hall is None:
            raise _nothing()
        return html.page("welcome.html", spec=hall.cup.spec, invitation=invitation, token=token)

    async def start(self, request: Request) -> Response:
        """Seat the voter."""
        await html.form(request)
        token = request.path_params["token"]

        def work(tx: Transaction) -> tuple[Invitation, int]:
            invitation = self._behind(tx, token)
            mine = self._claim(request, invitation.tournament)
            n = mine[1] if mine is not None and mine[0] == invitation.id else None
            if n is None or seats.load(tx, invitation, n) is None:
                n = seats.join(tx, invitation, self.desk.clock())
            seat = seats.load(tx, invitation, n)
            hall = self.desk.hall(invitation.tournament)
            if hall is None or seat is None:
                raise _nothing()
            hall.table.sit(tx, seat)
            return invitation, n

        invitation, n = await self.desk.commit(work)
        response = html.see(f"/vote/{invitation.tournament}")
        value = self.desk.keys.sign("seat", [invitation.id, n])
        html.set_cookie(request, response, self._cookie(invitation.tournament), value, COOKIE_DAYS)
        return response

    def _behind(self, tx: Transaction, token: str) -> Invitation:
        invitation = invitations.find(tx, self.desk.claim(token, "voter"))
        if invitation is None or invitation.role != "voter":
            raise _nothing()
        return invitation

    # the pairs ----------------------------------------------------------------------------------------------

    async def show(self, request: Request) -> Response:
        """Show the pair in front of the voter."""
        hall = self._hall(request)
        if hall is None:
            raise _nothing()

        def work(tx: Transaction) -> View:
            return hall.table.view(tx, self._seat(request, tx, hall))

        # The seat may have been written a moment ago: WAL readers see every commit that was acknowledged.
        view = self.desk.store.reader.read(work)
        return await self._page(request, hall, view)

    async def answer(self, request: Request) -> Response:
        """Take an answer."""
        fields = await html.form(request)
        duel, verdict = fields.get("duel", ""), fields.get("verdict", "")
        return await self._act(request, lambda hall, tx, seat: hall.table.answer(tx, seat, duel, verdict))

    async def next(self, request: Request) -> Response:
        """Look for a pair, after there was none."""
        await html.form(request)
        return await self._act(request, lambda hall, tx, seat: hall.table.sit(tx, seat))

    async def undo(self, request: Request) -> Response:
        """Take the last answer back."""
        await html.form(request)
        return await self._act(request, lambda hall, tx, seat: hall.table.undo(tx, seat))

    async def leave(self, request: Request) -> Response:
        """Leave for now."""
        await html.form(request)
        hall = self._hall(request)
        if hall is None:
            raise _nothing()
        await self.desk.commit(lambda tx: hall.table.leave(tx, self._seat(request, tx, hall)))
        return html.see(f"/vote/{hall.number}/thanks")

    async def thanks(self, request: Request) -> Response:
        """Thank who leaves."""
        hall = self._hall(request)
        if hall is None:
            raise _nothing()
        seat = self.desk.store.reader.read(lambda tx: self._seat(request, tx, hall))
        return html.page("thanks.html", spec=hall.cup.spec, number=hall.number, answered=seat.answered)

    async def _act(self, request: Request, what: Callable[[Hall, Transaction, Seat], View]) -> Response:
        hall = self._hall(request)
        claim = None if hall is None else self._claim(request, hall.number)
        if hall is None or claim is None:
            raise _nothing()
        if wait := self.buckets.take(f"{claim[0]} {claim[1]}"):
            raise too_fast("that was faster than anybody reads", wait)
        view = await self.desk.commit(lambda tx: what(hall, tx, self._seat(request, tx, hall)))
        if html.is_fragment(request):
            return await self._page(request, hall, view)
        note = f"?note={view.notice.replace(' ', '-')}" if view.notice else ""
        return RedirectResponse(f"/vote/{hall.number}{note}", 303)

    def _hall(self, request: Request) -> Hall | None:
        """Return the tournament, but only to who has a seat in it: a stranger learns nothing."""
        number = request.path_params["number"]
        return self.desk.hall(number) if self._claim(request, number) is not None else None

    def _cookie(self, number: int) -> str:
        return self.desk.keys.cookie(f"seat{number}")

    def _claim(self, request: Request, number: int) -> tuple[str, int] | None:
        cookie = request.cookies.get(self._cookie(number))
        value = self.desk.keys.read("seat", cookie) if cookie else None
        return (str(value[0]), int(value[1])) if isinstance(value, list) and len(value) == 2 else None

    def _seat(self, request: Request, tx: Transaction, hall: Hall) -> Seat:
        claim = self._claim(request, hall.number)
        if claim is None:
            raise _nothing()
        seat = seats.occupied(tx, *claim, hall.number)
        if seat is None:
            raise _nothing()
        return seat

    async def _page(self, request: Request, hall: Hall, view: View) -> Response:
        spec, pair = hall.cup.spec, view.pair
        shown: dict[str, Any] = {"context": None, "sides": ()}
        if pair is not None:
            options = spec.options[pair.first], spec.options[pair.second]
            shown["sides"] = [await self.render(option.shown(pair.context)) for option in options]
            if pair.context is not None:
                shown["context"] = await self.render(spec.contexts[pair.context].content)
        note = request.query_params.get("note", "").replace("-", " ")
        return html.page(
            "stage.html" if html.is_fragment(request) else "vote.html",
            spec=spec,
            number=hall.number,
            view=view,
            progress=await hall.progress(),
            notice=NOTICES.get(view.notice or note),
            **shown,
        )

    async def render(self, shown: Content) -> Markup:
        """Return the HTML of a content; Markdown may take seconds, and nobody else waits for it."""

        def work() -> Markup:
            return content.show(shown, lambda image: f"/media/{self.desk.gallery.name(image)}")

        return await asyncio.to_thread(work) if "markdown" in shown else work()

    # pictures -----------------------------------------------------------------------------------------------

    async def picture(self, request: Request) -> Response:
        """Return a picture by its name, which only this server can make up."""
        found = await asyncio.to_thread(self.desk.gallery.get, request.path_params["name"])
        if found is None:
            raise _nothing()
        # Private: a cache between here and the voter has no business with what they vote on.
        return Response(found.data, 200, {"cache-control": "private, max-age=604800, immutable"}, found.type)


def _nothing() -> HttpError:
    """Return the one refusal for everything that is unknown, foreign, revoked or forged."""
    return HttpError(404, "Voting pages open by an invitation link. If you came by one, it may have been revoked.")
