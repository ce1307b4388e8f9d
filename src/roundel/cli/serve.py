"""`roundel serve`: the voting page, the dashboard and the HTTP API."""

from __future__ import annotations

from typing import Annotated

import typer

from roundel.errors import MissingExtraError


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(rich_help_panel="Judges")(serve)


def serve(
    store: Annotated[str, typer.Argument(metavar="STORE", help="A path (SQLite) or a postgresql:// URL.")],
    host: Annotated[
        str, typer.Option(metavar="H", help="The address to listen at; 0.0.0.0: all of them.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="P", min=0, max=65535, help="0: any free one.")] = 8000,
) -> None:
    """Serve the voting page, the dashboard and the HTTP API. The owner's address is printed.

    ROUNDEL_OWNER_TOKEN sets the owner's token (default: a new one at each start), ROUNDEL_SECRET what invitations
    are signed with (default: kept in STORE.secret).
    """
    try:
        from roundel.web.server import serve as run
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] == "roundel":
            raise
        raise MissingExtraError("the server", "web") from None
    run(store, host, port)
