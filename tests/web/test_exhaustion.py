"""Clients that want too much: large, deep, slow, many."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from roundel.web import content, server
from roundel.web.shield import Buckets, Message, Shield
from serving import OWNER, Served

Serve = Callable[..., Any]
AUTH = {"Authorization": f"Bearer {OWNER}"}


@pytest.fixture
def served(serve: Serve) -> Served:
    return serve()  # type: ignore[no-any-return]


def raw(served: Served, *parts: bytes) -> bytes:
    """Send bytes as they are; return all of the answer."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
        try:
            for part in parts:
                connection.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has heard enough
        found = b""
        try:
            while chunk := connection.recv(65536):
                found += chunk
        except ConnectionResetError:
            pass
        return found


def head(path: str, *lines: str, method: str = "POST") -> bytes:
    fields = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {OWNER}", "Connection: close", *lines]
    return "\r\n".join([*fields, "", ""]).encode()


@pytest.mark.parametrize(
    "path", ["/api/tournaments/1/tell", "/api/tournaments/1/invitations", "/sign-in", "/vote/1/answer"]
)
def test_a_hundred_megabytes_are_refused_before_they_are_read(served: Served, path: str) -> None:
    fields = ("Content-Type: application/x-www-form-urlencoded", "Sec-Fetch-Site: same-origin")
    answer = raw(served, head(path, "Content-Length: 104857600", *fields))
    assert answer.startswith(b"HTTP/1.1 413"), answer[:200]


@pytest.mark.parametrize(("path", "limit"), [("/api/tournaments/1/tell", 1 << 20), ("/sign-in", 64 << 10)])
def test_a_body_of_unknown_length_is_cut_off(served: Served, path: str, limit: int) -> None:
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    fields = (
        "Transfer-Encoding: chunked",
        "Content-Type: application/json" if "api" in path else "Content-Type: application/x-www-form-urlencoded",
        "Sec-Fetch-Site: same-origin",
    )
    answer = raw(served, head(path, *fields), *[chunk] * (limit // 65536 + 8))
    assert answer.startswith(b"HTTP/1.1 413"), answer[:200]


def test_long_addresses_and_heads_are_refused(served: Served) -> None:
    assert raw(served, head("/v/" + "x" * 5000, method="GET")).startswith(b"HTTP/1.1 414")
    assert raw(served, head("/" + "x" * 200_000, method="GET")).startswith(b"HTTP/1.1 4")
    assert httpx.get(f"{served.url}/api/tournaments", headers=AUTH).status_code == 200


def test_deep_json_is_refused(served: Served) -> None:
    deep = b'{"verdicts":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    answer = httpx.post(
        f"{served.url}/api/tournaments/1/tell", content=deep, headers=AUTH | {"Content-Type": "application/json"}
    )
    assert answer.status_code == 422


def test_a_form_with_too_many_fields_is_refused(served: Served) -> None:
    body = "&".join(f"a{n}=1" for n in range(5000))
    headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
    assert httpx.post(f"{served.url}/sign-in", content=body, headers=headers).status_code == 422


def test_a_body_that_does_not_come_is_not_waited_for(served: Served) -> None:
    served.app.body_seconds = 0.3
    answer = raw(served, head("/api/tournaments/1/tell", "Content-Length: 100", "Content-Type: application/json"), b"{")
    assert answer.startswith(b"HTTP/1.1 408"), answer[:200]


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_a_head_that_does_not_come_is_not_waited_for(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.3)
    assert raw(serve(), sent) == b""


def test_a_second_head_that_dribbles_in_is_not_waited_for_either(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.3)
    answer = raw(serve(), b"GET /robots.txt HTTP/1.1\r\nHost: x\r\n\r\n", b"GET / HTTP/1.1\r\nX: ")
    assert answer.count(b"HTTP/1.1") == 1
    assert answer.startswith(b"HTTP/1.1 200")


def test_slow_clients_do_not_keep_others_waiting(served: Served) -> None:
    idle = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(200)]
    try:
        for connection in idle:
            connection.sendall(b"POST /sign-in HTTP/1.1\r\nHost: x\r\nContent-Le")
        assert httpx.get(f"{served.url}/api/tournaments", headers=AUTH, timeout=5).status_code == 200
    finally:
        for connection in idle:
            connection.close()


def test_markdown_that_takes_long_keeps_nobody_else_waiting(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    served = serve(options=[{"name": name, "markdown": name} for name in "ab"])
    voter = served.voter("Anna")
    begun, go_on = threading.Event(), threading.Event()

    def slow(*_: Any) -> str:
        begun.set()
        go_on.wait(10)
        return "shown"

    monkeypatch.setattr(content, "show", slow)
    looking = threading.Thread(target=lambda: voter.http.get("/vote/1"))
    looking.start()
    try:
        assert begun.wait(10)
        assert httpx.get(f"{served.url}/robots.txt", timeout=5).status_code == 200
    finally:
        go_on.set()
        looking.join()


def test_more_connections_than_there_is_room_for_are_turned_away(serve: Serve) -> None:
    served = serve()
    served.server.config.limit_concurrency = 20
    idle = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(30)]
    try:
        assert httpx.get(f"{served.url}/robots.txt").status_code == 503
    finally:
        for connection in idle:
            connection.close()


def test_a_request_that_takes_too_long_is_ended() -> None:
    async def for_ever(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await asyncio.sleep(60)

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/x",
        "raw_path": b"/api/x",
        "query_string": b"",
        "headers": [],
    }
    asyncio.run(Shield(for_ever, seconds=0.05)(scope, receive, send))
    assert sent[0]["status"] == 503
    assert b"took longer than 0.05 s" in sent[1]["body"]


def test_a_bucket_fills_up_again() -> None:
    now = [0.0]
    bucket = Buckets(rate=2, burst=3, clock=lambda: now[0], most=2)
    assert [bucket.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    now[0] = 0.5
    assert [bucket.take("a") for _ in range(2)] == [0, 0.5]
    assert bucket.take("b") == 0
    now[0] = 100
    assert [bucket.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
