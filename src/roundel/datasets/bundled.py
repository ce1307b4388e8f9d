"""The bundled problems: small text files that carry their source and derivation in their own comments."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from roundel._matrixfile import read_matrix
from roundel.preferences import Preferences

NAMES = ("six_rankers", "sushi", "irish_meath", "irish_dublin", "arithmetic", "cyclic", "nocw5")

_FIELD = re.compile(r"# (description|source|derivation): (.*)")


class About(NamedTuple):
    """What a bundled file says of itself."""

    description: str
    source: str
    derivation: str

    def lines(self) -> list[str]:
        """The comment lines that carry it."""
        return [f"{key}: {value}" for key, value in zip(self._fields, self, strict=True)]


@cache
def about(name: str) -> About:
    """Return what the bundled file `name` says of itself."""
    text = _file(name).read_text(encoding="utf-8")
    found = {match[1]: match[2] for match in map(_FIELD.fullmatch, text.splitlines()) if match}
    return About(**found)


@cache
def bundled(name: str) -> Preferences:
    """Return the bundled problem `name`."""
    with as_file(_file(name)) as path:
        matrix, labels = read_matrix(path)
    return Preferences(matrix, labels, name)


def _file(name: str) -> Traversable:
    return files("roundel.datasets") / "bundled" / f"{name}.txt"
