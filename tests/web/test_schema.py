"""The API against its own OpenAPI document, in-process: no 5xx, no status that is not declared."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    status_code_conformance,
    unsupported_method,
)

from roundel.tournament import Tournament
from roundel.web.app import create_app
from roundel.web.keys import Keys
from roundel.web.shield import Receive, Scope, Send, Shield
from serving import NO_LIMIT, OWNER, SECRET

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, unsupported_method, ignored_auth]


@pytest.fixture(scope="module")
def api() -> Iterator[Any]:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "s.db"
        Tournament.create(store, "t", ["a", "b", "c"], horizon=500, rounds=2).disconnect()
        app = create_app(str(store), Keys(SECRET, OWNER), votes=NO_LIMIT, calls=NO_LIMIT)

        async def whole(scope: Scope, receive: Receive, send: Send) -> None:
            # FastAPI's lifespan: the in-process client would end ours, and the store with it, after each call.
            await Shield(app.site.api if scope["type"] == "lifespan" else app.site)(scope, receive, send)

        yield schemathesis.openapi.from_asgi("/api/openapi.json", whole)
        app.desk.close()


OPERATIONS = [
    ("GET", "/api/tournaments"),
    ("POST", "/api/tournaments/{number}/lease"),
    ("POST", "/api/tournaments/{number}/tell"),
    ("GET", "/api/tournaments/{number}/status"),
    ("GET", "/api/tournaments/{number}/plan"),
    ("GET", "/api/tournaments/{number}/certificate"),
    ("POST", "/api/tournaments/{number}/close"),
    ("GET", "/api/tournaments/{number}/invitations"),
    ("POST", "/api/tournaments/{number}/invitations"),
    ("DELETE", "/api/tournaments/{number}/invitations/{invitation}"),
]


def test_the_list_of_operations_is_complete(api: Any) -> None:
    found = {(o.ok().method.upper(), o.ok().path) for o in api.get_all_operations()}
    assert found == set(OPERATIONS)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_answer_is_declared(api: Any, method: str, path: str, mode: GenerationMode) -> None:
    operation = api[path][method]
    seen: set[int] = set()

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    def try_it(case: Any) -> None:
        if mode is GenerationMode.POSITIVE and "number" in case.path_parameters:
            case.path_parameters["number"] = 1  # else nearly all of them ask for tournaments that are not there
        answer = case.call_and_validate(headers={"Authorization": f"Bearer {OWNER}"}, checks=CHECKS)
        seen.add(answer.status_code)

    try:
        try_it()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE  # nothing about this operation can be wrong
    assert not seen or max(seen) < 500
