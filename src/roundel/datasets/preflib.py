"""PrefLib: ballots as strict or weak, complete or incomplete orders (.soc .soi .toc .toi)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from roundel._textfile import broken, text_lines
from roundel.datasets.counted import Counted
from roundel.errors import DataError, InputError
from roundel.plan import Ints
from roundel.tally import Tally

Unranked = Literal["ignored", "last"]

SUFFIXES = (".soc", ".soi", ".toc", ".toi")
_GROUP = re.compile(r"\s*(?:\{([\d,\s]*)\}|(\d+))\s*(,|$)", re.ASCII)
_DIGITS = 15  # of a number; no count of voters has more, and sums stay exact
_CHUNK = 4096  # ballots counted at a time
MOST_ALTERNATIVES = 10_000  # the tally of that many fills 0.8 GB
MOST_VOTERS = 10**15  # twice that many points between two alternatives are still counted exactly


@dataclass(slots=True)
class _Header:
    """What the comment lines declare; each number with the line it stands on."""

    path: Path
    kind: str
    alternatives: int = 0
    voters: int | None = None
    orders: int | None = None
    names: dict[int, str] = field(default_factory=dict)

    def take(self, number: int, line: str) -> None:
        words, colon, value = (piece.strip() for piece in line.removeprefix("#").partition(":"))
        if not colon:
            return  # a remark
        key = words.upper()
        if key == "DATA TYPE":
            if f".{value.lower()}" not in SUFFIXES:
                raise broken(self.path, number, f"data type {value!r}: one of soc, soi, toc, toi was expected")
            self.kind = value.lower()
        elif key == "NUMBER ALTERNATIVES":
            if self.alternatives:
                raise broken(self.path, number, "declares the number of alternatives a second time; declare it once")
            self.alternatives = _count(self.path, number, value, "the number of alternatives")
            if self.alternatives > MOST_ALTERNATIVES:
                rule = f"the most is {MOST_ALTERNATIVES:,}; leave out those that few voters rank"
                raise broken(self.path, number, f"{self.alternatives:,} alternatives: {rule}")
        elif key == "NUMBER VOTERS":
            self.voters = _count(self.path, number, value, "the number of voters")
        elif key == "NUMBER UNIQUE ORDERS":
            self.orders = _count(self.path, number, value, "the number of unique orders")
        elif key.startswith("ALTERNATIVE NAME"):
            which = _count(self.path, number, words[len("ALTERNATIVE NAME") :].strip(), "an alternative's number")
            if which in self.names:
                raise broken(self.path, number, f"names alternative {which} a second time; name it once")
            self.names[which] = value

    def labels(self) -> tuple[str, ...]:
        """The names, or the numbers of those that have none; a name that two share gets its number."""
        numbers = range(1, self.alternatives + 1)
        names = [self.names.get(a) or str(a) for a in numbers]
        return tuple(n if names.count(n) == 1 else f"{n} ({a})" for a, n in zip(numbers, names, strict=True))


def read_preflib(path: str | os.PathLike[str], *, unranked: Unranked = "ignored") -> Counted:
    """Count who is ranked before whom; alternatives that share a place are tied, half a win each.

    `unranked`: "ignored", where a ballot says nothing of what it does not rank (it was not on offer), or "last",
    where what it does not rank shares the last place (as on a ballot of an election).
    """
    if unranked not in ("ignored", "last"):
        raise InputError(f"unranked is {unranked!r}: it must be 'ignored' or 'last'")
    place = Path(path)
    header = _Header(place, place.suffix.lower().removeprefix("."))
    points = seen = None
    for votes, ranks in _chunks(place, header):
        if points is None or seen is None:
            points = np.zeros((header.alternatives,) * 2, np.int64)
            seen = np.zeros(header.alternatives, np.int64)
        ranked = ranks > 0
        seen += votes @ ranked
        if unranked == "last":
            ranks = np.where(ranked, ranks, header.alternatives + 1)
            ranked = np.ones_like(ranked)
        for i in range(header.alternatives):
            both = ranked & ranked[:, i, None]
            mine = ranks[:, i, None]
            points[i] += votes @ (both * (2 * (mine < ranks).astype(np.int64) + (mine == ranks)))
    if points is None or seen is None:
        raise DataError(f"{place}: the file holds no ballots; lines like '3: 1,2,4' were expected")
    np.fill_diagonal(points, 0)
    return Counted(header.labels(), seen, Tally(points))


def _count(path: Path, line: int, text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS and int(text) > 0):
        raise broken(path, line, f"{what} is {text!r}: a whole number from 1 was expected")
    return int(text)


def _chunks(path: Path, header: _Header) -> Iterator[tuple[Ints, Ints]]:
    """Yield (votes, ranks): ranks[b, a] is the place, from 1, of alternative a on ballot b, 0 if it has none."""
    votes: list[int] = []
    ranks: list[list[int]] = []
    voters = orders = 0
    for number, line in text_lines(path):
        if not line.strip():
            continue
        if line.startswith("#"):
            header.take(number, line)
            continue
        if not orders:
            _check_header(path, number, header)
        count, order = _ballot(path, number, line, header)
        voters, orders = voters + count, orders + 1
        if voters > MOST_VOTERS:
            raise broken(path, number, f"{voters:,} voters so far: no more than {MOST_VOTERS:,} are counted exactly")
        votes.append(count)
        ranks.append(order)
        if len(votes) == _CHUNK:
            yield np.array(votes, np.int64), np.array(ranks, np.int64)
            votes, ranks = [], []
    if votes:
        yield np.array(votes, np.int64), np.array(ranks, np.int64)
    for what, have, declared in (("voters", voters, header.voters), ("orders", orders, header.orders)):
        if orders and declared is not None and have != declared:
            raise DataError(
                f"{path}: {have} {what} where the header declares {declared}; the file is cut off or edited"
            )


def _check_header(path: Path, number: int, header: _Header) -> None:
    if not header.alternatives:
        problem = "a ballot before '# NUMBER ALTERNATIVES: n'; files from before 2022 lack it: fetch the current one"
        raise broken(path, number, problem)
    if f".{header.kind}" not in SUFFIXES:
        raise broken(path, number, "a ballot before '# DATA TYPE: soc', soi, toc or toi; give it, or use such a suffix")
    if header.names and max(header.names) > header.alternatives:
        worst = max(header.names)
        raise DataError(f"{path}: alternative {worst} has a name, but the header declares {header.alternatives}")


def _ballot(path: Path, number: int, line: str, header: _Header) -> tuple[int, list[int]]:
    head, colon, order = line.partition(":")
    if not colon:
        raise broken(path, number, f"{line[:40]!r} has no colon: 'votes: order', like '3: 1,2,4', was expected")
    votes = _count(path, number, head.strip(), "the number of votes")
    ranks = [0] * header.alternatives
    at, place, more = 0, 0, True
    while more:
        group = _GROUP.match(order, at)
        if group is None:
            piece = order[at : at + 20].strip()
            raise broken(path, number, f"{piece!r}: alternatives between commas, ties in braces, were expected")
        place += 1
        tied = [group[2]] if group[2] else group[1].split(",")
        if len(tied) > 1 and header.kind in ("soc", "soi"):
            raise broken(path, number, f"a tie, but the data type is {header.kind}, a strict order; use toc or toi")
        for text in tied:
            which = text.strip()
            if not which.isdigit() or len(which) > _DIGITS or not 1 <= int(which) <= header.alternatives:
                rule = f"alternatives go from 1 to {header.alternatives}"
                raise broken(path, number, f"{which!r} is no alternative: {rule}")
            if ranks[int(which) - 1]:
                raise broken(path, number, f"alternative {which} stands twice; rank each once")
            ranks[int(which) - 1] = place
        at, more = group.end(), group[3] == ","
    if header.kind in ("soc", "toc") and 0 in ranks:
        missing = ranks.index(0) + 1
        raise broken(
            path, number, f"alternative {missing} is missing, but {header.kind} is a complete order; use soi or toi"
        )
    return votes, ranks
