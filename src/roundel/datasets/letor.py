"""Ranking data in LETOR / SVMlight form: `grade qid:N 1:value 2:value ... # remark`, read query by query."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from roundel._textfile import broken, byte_lines
from roundel.errors import DataError
from roundel.plan import Ints
from roundel.tally import Floats

MOST_GRADE = 4
MOST_FEATURES = 100_000
MOST_DOCUMENTS = 100_000  # of one query
MOST_CELLS = 50_000_000  # documents times features of one query: 0.4 GB

_Line = tuple[int, bytes, bytes]  # number, grade, features


@dataclass(frozen=True, slots=True)
class Query:
    """The documents of one query: their grades of relevance, and `values[d, f]` of feature f + 1."""

    name: str
    grades: Ints
    values: Floats

    def feature(self, numbers: Ints) -> Floats:
        """Return the columns of these features (numbered from 1); what the query does not mention is 0."""
        columns = np.zeros((len(self.grades), len(numbers)))
        known = numbers <= self.values.shape[1]
        columns[:, known] = self.values[:, numbers[known] - 1]
        return columns


@dataclass(frozen=True, slots=True)
class Survey:
    """What a file holds: how many queries, the highest grade, and the features that are not zero everywhere."""

    queries: int
    most_grade: int
    features: Ints


def read_queries(path: str | os.PathLike[str]) -> Iterator[Query]:
    """Yield the queries of a file, one at a time; the lines of a query must stand together."""
    place = Path(path)
    seen: set[bytes] = set()
    name = b""
    lines: list[_Line] = []
    for number, line in byte_lines(place):
        text = line.partition(b"#")[0]
        parts = text.split(None, 2)
        if not parts:
            continue
        if len(parts) < 2 or not parts[1].startswith(b"qid:") or len(parts[1]) == 4:
            raise broken(place, number, f"{_show(line)}: 'grade qid:N 1:value 2:value ...' was expected")
        if parts[1] != name:
            if lines:
                yield _query(place, name, lines)
            name, lines = parts[1], []
            if name in seen:
                problem = (
                    f"query {_show(name[4:])} comes a second time: the lines of a query must stand together; sort them"
                )
                raise broken(place, number, problem)
            seen.add(name)
        if len(lines) == MOST_DOCUMENTS:
            problem = (
                f"query {_show(name[4:])} has more than {MOST_DOCUMENTS:,} documents; are the query numbers right?"
            )
            raise broken(place, number, problem)
        lines.append((number, parts[0], parts[2] if len(parts) == 3 else b""))
    if not lines:
        raise DataError(f"{place}: the file holds no documents; lines 'grade qid:N 1:value ...' were expected")
    yield _query(place, name, lines)


def survey(path: str | os.PathLike[str]) -> Survey:
    """Read a whole file once, for what must be known before the second time."""
    queries = most_grade = 0
    used = np.zeros(0, bool)
    for query in read_queries(path):
        queries += 1
        most_grade = max(most_grade, int(query.grades.max()))
        here = query.values.any(axis=0)
        if here.size > used.size:
            used = np.pad(used, (0, here.size - used.size))
        used[: here.size] |= here
    return Survey(queries, most_grade, np.flatnonzero(used) + 1)


def _query(path: Path, name: bytes, lines: list[_Line]) -> Query:
    """Parse the lines of a query at once; only if that fails, one by one to name the broken one."""
    grades = np.array([_grade(path, number, grade) for number, grade, _ in lines], np.int64)
    block = b" ".join(features for *_, features in lines).strip()
    flat = _numbers(block.replace(b":", b" ")) if _all_pairs(block) else None
    sizes = np.array([features.count(b":") for *_, features in lines], np.int64)
    if flat is None or flat.size != 2 * sizes.sum():
        _blame(path, lines)
    features, values = flat[::2], flat[1::2]
    row = np.repeat(np.arange(len(lines)), sizes)
    rising = np.ones(features.size, bool)
    rising[1:] = (np.diff(features) > 0) | (np.diff(row) > 0)
    fine = (
        rising & (features >= 1) & (features == np.floor(features)) & (features <= MOST_FEATURES) & np.isfinite(values)
    )
    if not fine.all():
        _blame(path, lines)
    width = int(features.max(initial=0))
    if width * len(lines) > MOST_CELLS:
        problem = f"query {_show(name[4:])} has {len(lines):,} documents of {width:,} features, too many for memory"
        raise broken(path, lines[0][0], problem)
    table = np.zeros((len(lines), width))
    table[row, features.astype(np.int64) - 1] = values
    return Query(name[4:].decode("utf-8", "replace"), grades, table)


def _all_pairs(block: bytes) -> bool:
    """Whether every cell between white space is two pieces around one colon."""
    if not block:
        return True
    text = np.frombuffer(block, np.uint8)
    space = text <= ord(" ")
    starts = np.flatnonzero(~space & np.concatenate(([True], space[:-1])))
    colons = np.flatnonzero(text == ord(":"))
    if starts.size != colons.size or block.endswith(b":"):
        return False
    return bool((starts < colons).all() and (colons[:-1] < starts[1:]).all() and not space[colons + 1].any())


def _numbers(text: bytes) -> Floats | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # before numpy 2.3 bad text was a warning
        try:
            return np.fromstring(text.decode("ascii"), np.float64, sep=" ")
        except (ValueError, DeprecationWarning):
            return None


def _grade(path: Path, number: int, text: bytes) -> int:
    if len(text) != 1 or not b"0" <= text <= b"%d" % MOST_GRADE:
        raise broken(path, number, f"grade {_show(text)}: a whole number from 0 to {MOST_GRADE} was expected")
    return text[0] - ord("0")


def _blame(path: Path, lines: list[_Line]) -> NoReturn:
    """Raise the error that names the first broken line and cell."""
    for number, _, features in lines:
        last = 0
        for cell in features.split():
            head, colon, tail = cell.partition(b":")
            value = _numbers(tail)
            if (
                not colon
                or not head.isdigit()
                or len(head) > 15
                or value is None
                or value.size != 1
                or not np.isfinite(value).all()
            ):
                raise broken(path, number, f"{_show(cell)}: 'feature:value', like 12:0.5, was expected")
            feature = int(head)
            if not 1 <= feature <= MOST_FEATURES:
                raise broken(path, number, f"feature {feature}: features go from 1 to {MOST_FEATURES:,}")
            if feature <= last:
                raise broken(path, number, f"feature {feature} after {last}: features must rise within a line")
            last = feature
    raise DataError(f"{path}: lines {lines[0][0]} to {lines[-1][0]} are not 'grade qid:N 1:value 2:value ...'")


def _show(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace"))
