"""The owner's pages: the tournaments, how each goes, and who is invited."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from roundel.errors import RoundelError
from roundel.tournament.certificate import certificate_text
from roundel.tournament.store import Transaction
from roundel.web import html, invitations
from roundel.web.api import HttpError, refusal
from roundel.web.desk import Desk, Hall, whole_field
from roundel.web.insight import Insight
from roundel.web.keys import SESSION

GONE = HttpError(404, "There is no such tournament in this store.")


class Dashboard:
    """The routes of the owner."""

    def __init__(self, desk: Desk) -> None:
        """Serve `desk`'s tournaments."""
        self.desk = desk
        self.cookie = desk.keys.cookie("owner")

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/", self.home, methods=["GET"]),
            Route("/sign-in", self.sign_in, methods=["POST"]),
            Route("/sign-out", self.sign_out, methods=["POST"]),
            Route("/t/{number:int}", self.show, methods=["GET"]),
            Route("/t/{number:int}/live", self.live, methods=["GET"]),
            Route("/t/{number:int}/certificate", self.certificate, methods=["GET"]),
            Route("/t/{number:int}/invite", self.invite, methods=["POST"]),
            Route("/t/{number:int}/revoke", self.revoke, methods=["POST"]),
            Route("/t/{number:int}/close", self.close, methods=["POST"]),
        ]

    # signing in ---------------------------------------------------------------------------------------------

    async def home(self, request: Request) -> Response:
        """List the tournaments; `?token=` signs in, and disappears from the address."""
        token = request.query_params.get("token")
        if token is not None:
            return self._signed_in(request, token)
        if not self._is_owner(request):
            return html.page("sign_in.html", 401, wrong=False)
        rows = []
        for number, _ in await asyncio.to_thread(self.desk.names):
            hall = self.desk.hall(number)
            if hall is not None:
                rows.append((hall, await hall.insight()))
        return html.page("home.html", rows=rows, store=self.desk.store.url)

    async def sign_in(self, request: Request) -> Response:
        """Sign in with the token."""
        return self._signed_in(request, (await html.form(request)).get("token", "").strip())

    def _signed_in(self, request: Request, token: str) -> Response:
        if not self.desk.keys.owns(token):
            return html.page("sign_in.html", 401, wrong=True)
        response = html.see("/")
        html.set_cookie(request, response, self.cookie, self.desk.keys.session(), SESSION / 86400)
        return response

    async def sign_out(self, request: Request) -> Response:
        """Sign out."""
        await html.form(request)
        response = html.see("/")
        response.delete_cookie(self.cookie, path="/")
        return response

    def _is_owner(self, request: Request) -> bool:
        cookie = request.cookies.get(self.cookie)
        return cookie is not None and self.desk.keys.is_session(cookie)

    def _hall(self, request: Request) -> Hall:
        if not self._is_owner(request):
            raise HttpError(401, "sign in first")
        hall = self.desk.hall(request.path_params["number"])
        if hall is None:
            raise GONE
        return hall

    # one tournament -----------------------------------------------------------------------------------------

    async def show(self, request: Request) -> Response:
        """Show how it goes."""
        return await self._page(request, self._hall(request))

    async def _page(
        self,
        request: Request,
        hall: Hall,
        status: int = 200,
        problem: str | None = None,
        typed: Mapping[str, str] = MappingProxyType({}),
    ) -> Response:
        """Return the dashboard; with what was `typed` under Invite, where that was refused."""
        found = await hall.insight()
        return html.page("dashboard.html", status, problem=problem, typed=typed, **self._values(request, hall, found))

    async def live(self, request: Request) -> Response:
        """Return the part of the page that changes, if it has."""
        hall = self._hall(request)
        found = await hall.insight()
        tag = {"etag": f'"{found.version}"'}
        if request.headers.get("if-none-match") == tag["etag"]:
            return Response(status_code=304, headers=tag)
        return html.page("live.html", 200, tag, **self._values(request, hall, found))

    def _values(self, request: Request, hall: Hall, found: Insight) -> dict[str, Any]:
        base = f"{request.url.scheme}://{request.url.netloc}"
        links = {
            invitation.id: f"{base}/v/{self.desk.token(invitation)}"
            if invitation.role == "voter"
            else self.desk.token(invitation)
            for invitation, _, _ in found.invitations
        }
        standings = found.status.standings
        low, high = min(s.low for s in standings), max(s.high for s in standings)
        return {
            "hall": hall,
            "spec": hall.cup.spec,
            "number": hall.number,
            "insight": found,
            "status": found.status,
            "links": links,
            "scale": lambda rating: round(200 * (rating - low) / max(1e-9, high - low), 1),
        }

    async def certificate(self, request: Request) -> Response:
        """Download the certificate."""
        hall = self._hall(request)
        text = certificate_text(await asyncio.to_thread(hall.snapshot.certificate))
        name = quote(f"{hall.cup.name}.certificate.json", safe="")
        return Response(
            text.encode(), 200, {"content-disposition": f"attachment; filename*=UTF-8''{name}"}, "application/json"
        )

    async def invite(self, request: Request) -> Response:
        """Make invitations: one for each name, or some that are numbered, or one link for many."""
        hall = self._hall(request)
        fields = await html.form(request)
        try:
            role: invitations.Role = "judge" if fields.get("role") == "judge" else "voter"
            labels = [line.strip() for line in fields.get("labels", "").splitlines() if line.strip()]
            voters = whole_field("voters", fields.get("voters", ""))
            most = whole_field("verdicts each", text) if (text := fields.get("most", "").strip()) else None
            count = whole_field("how many", fields.get("count", ""))
            await self.desk.invite(hall.number, role, labels, count, voters, most)
        except RoundelError as error:
            return await self._page(request, hall, refusal(error)[0], str(error), fields)
        hall.forget_insight()
        return html.see(f"/t/{hall.number}#invitations")

    async def revoke(self, request: Request) -> Response:
        """Revoke an invitation."""
        hall = self._hall(request)
        id = (await html.form(request)).get("invitation", "")

        def work(tx: Transaction) -> None:
            invitations.revoke(tx, hall.number, id, self.desk.clock())

        await self.desk.commit(work)
        hall.forget_insight()
        return html.see(f"/t/{hall.number}#invitations")

    async def close(self, request: Request) -> Response:
        """Close the open round with what it has; or end the tournament."""
        hall = self._hall(request)
        end = (await html.form(request)).get("end") == "yes"
        try:
            await self.desk.close_round(hall, end=end, empty=False)
        except RoundelError as error:
            return await self._page(request, hall, refusal(error)[0], str(error))
        return html.see(f"/t/{hall.number}")
