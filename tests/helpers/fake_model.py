"""A server that speaks the chat protocol on a real socket, keeps books, and misbehaves when told to."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BLOCK = re.compile(r"^\[(\w{20}) begin (FIRST|SECOND|CONTEXT)\]\n(.*?)\n\[\1 end \2\]$", re.DOTALL | re.MULTILINE)


@dataclass
class Call:
    """One request as the server saw it."""

    prompt: str  # hash of the messages
    key: str | None
    system: str
    user: Any
    headers: dict[str, str]

    def blocks(self) -> dict[str, str]:
        """What stands between proper fences."""
        text = self.user if isinstance(self.user, str) else "".join(p.get("text", "") for p in self.user)
        return {name: content for _, name, content in BLOCK.findall(text)}

    def outside(self) -> str:
        """What stands outside of them: to a model that respects fences, these are its instructions."""
        return BLOCK.sub("", self.user)


@dataclass
class Reply:
    """What the server does with a request."""

    text: str | None = None  # the answer, billed
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None  # a body of another kind
    sleep: float = 0.0
    reset: bool = False  # break the connection instead of answering
    refusal: str | None = None


Behave = Callable[[Call, int], Reply]


def shorter(call: Call) -> str:
    """Judge honestly: the shorter candidate is better."""
    blocks = call.blocks()
    first, second = len(blocks["FIRST"]), len(blocks["SECOND"])
    return "TIE" if first == second else "FIRST" if first < second else "SECOND"


class FakeModel:
    """A running server; `calls` are the requests, `billed` counts paid answers by prompt."""

    def __init__(self, behave: Behave, address: str = "127.0.0.1", port: int = 0) -> None:
        self.calls: list[Call] = []
        self.billed: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.stop = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                system, user = (message["content"] for message in body["messages"])
                prompt = hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()
                call = Call(
                    prompt,
                    self.headers.get("Idempotency-Key"),
                    system,
                    user,
                    {k.title(): v for k, v in self.headers.items()},
                )
                with outer.lock:
                    outer.calls.append(call)
                    number = len(outer.calls)
                outer.answer(self, behave(call, number), call)

            def do_GET(self) -> None:
                with outer.lock:
                    outer.calls.append(Call("get", None, "", self.path, dict(self.headers)))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_: object) -> None:
                pass  # clients that are killed break connections

        self.server = Server((address, port), Handler)
        self.url = f"http://{address}:{self.server.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    def answer(self, handler: BaseHTTPRequestHandler, reply: Reply, call: Call) -> None:
        if reply.sleep:
            self.stop.wait(reply.sleep)
        if reply.reset:
            linger = struct.pack("ii", 1, 0)
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            handler.close_connection = True
            handler.connection.close()
            return
        body = reply.raw
        if body is None and (reply.text is not None or reply.refusal is not None):
            message = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
            body = json.dumps(
                {
                    "id": "x",
                    "object": "chat.completion",
                    "created": int(time.time()),
                    "model": "fake",
                    "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101},
                }
            ).encode()
            with self.lock:
                self.billed[call.prompt] += 1
        body = body or b"{}"
        handler.send_response(reply.status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    def close(self) -> None:
        self.stop.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@contextmanager
def serving(behave: Behave, address: str = "127.0.0.1", port: int = 0) -> Iterator[FakeModel]:
    fake = FakeModel(behave, address, port)
    try:
        yield fake
    finally:
        fake.close()
