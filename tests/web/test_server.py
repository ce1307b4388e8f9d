"""An address that cannot be listened at is refused before anything is written."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from roundel.errors import InputError
from roundel.tournament import Tournament
from roundel.web.server import serve


@pytest.fixture
def store(tmp_path: Path) -> Path:
    Tournament.create(tmp_path / "s.db", "cup", ["a", "b"], horizon=4, rounds=1).disconnect()
    return tmp_path / "s.db"


def test_a_port_that_is_taken(store: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=rf"127.0.0.1:{port}: Address already in use; choose another --port"):
            serve(str(store), port=port)
    assert not store.with_name("s.db.secret").exists()


@pytest.mark.parametrize(
    ("host", "message"), [("nowhere.invalid", "host is 'nowhere.invalid'"), ("192.0.2.1", "--host")]
)
def test_a_host_that_is_not_this_machine(store: Path, host: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        serve(str(store), host)
    assert not store.with_name("s.db.secret").exists()
