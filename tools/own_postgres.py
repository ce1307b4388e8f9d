"""A private PostgreSQL server in a temporary folder, for tests and benchmarks."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path


@dataclass
class Server:
    """A PostgreSQL server of our own, in a folder of its own, reached through a socket in it."""

    folder: Path
    binaries: Path
    user: str | None  # whom to run it as; None: as ourselves
    _databases: Iterator[int] = field(default_factory=count)

    def run(self, program: str, *arguments: str) -> None:
        command = [str(self.binaries / program), *arguments]
        if self.user is not None:
            command = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups", *command]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        )
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"

    def initialise(self) -> None:
        self.run(
            "initdb", "-D", str(self.folder / "data"), "-U", "roundel", "--auth=trust", "--encoding=UTF8", "--no-sync"
        )

    def start(self) -> None:
        settings = (
            f"-k {self.folder} -c listen_addresses='' -c max_connections=80 -c shared_buffers=32MB -c fsync=on "
            "-c max_wal_size=256MB"
        )
        log = str(self.folder / "log")
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-l", log, "-o", settings, "-w", "-t", "60", "start")

    def stop(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", mode, "-w", "-t", "60", "stop")

    def url(self, database: str) -> str:
        return f"postgresql://roundel@/{database}?host={self.folder}"

    def fresh(self) -> str:
        """Make an empty database and return its URL."""
        import psycopg

        name = f"own{next(self._databases)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)


def server_binaries() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    if not found and (program := shutil.which("initdb")):
        found = [Path(program)]
    if not found:
        raise FileNotFoundError("PostgreSQL's server is missing: run tools/system_packages.sh")
    return found[-1].parent


@contextmanager
def own_server() -> Iterator[Server]:
    """Make, start and in the end remove a server."""
    folder = Path(tempfile.mkdtemp(prefix="roundel-pg-"))  # short: a socket's path has at most 107 bytes
    user = None
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        names = {entry.pw_name for entry in pwd.getpwall()}
        user = "postgres" if "postgres" in names else "nobody"
        entry = pwd.getpwnam(user)
        user = str(entry.pw_uid)
        os.chown(folder, entry.pw_uid, entry.pw_gid)
    running = Server(folder, server_binaries(), user)
    try:
        running.initialise()
        running.start()
        yield running
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            running.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)
