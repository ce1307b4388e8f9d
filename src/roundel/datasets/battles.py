"""Battle logs: one comparison a row, as CSV, JSON Lines or Parquet, read as a stream."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from roundel._matrixfile import likely_delimiter
from roundel._textfile import broken, check_file, text_lines, unreadable
from roundel.datasets.counted import Counted
from roundel.errors import DataError, InputError, MissingExtraError
from roundel.tally import Tally

Verdict = Literal["first", "second", "tie"]
Record = dict[str, Any]  # a row: column -> value

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
MOST_OPTIONS = 10_000  # the tally of that many fills 0.8 GB
_TIES = frozenset({"tie", "tie (bothbad)", "bothbad", "both_bad", "both bad", "draw", "both"})
_FIRST = frozenset({"first", "a", "left"})
_SECOND = frozenset({"second", "b", "right"})


class Battle(NamedTuple):
    """One comparison: who stood first, who second, and the verdict."""

    first: str
    second: str
    verdict: Verdict


class Columns(NamedTuple):
    """Which columns hold the two options and the verdict; without `verdict`, `first` beat `second`."""

    first: str
    second: str
    verdict: str | None


KNOWN_COLUMNS = (
    Columns("model_a", "model_b", "winner"),
    Columns("left", "right", "winner"),
    Columns("first", "second", "verdict"),
    Columns("winner", "loser", None),
)


def read_battles(
    path: str | os.PathLike[str], *, first: str = "", second: str = "", verdict: str = ""
) -> Iterator[Battle]:
    """Yield the battles of a log, in its order; one row is held at a time.

    Known columns: model_a, model_b, winner; left, right, winner; first, second, verdict; winner, loser. Else
    name yours: `first` and `second` hold the options, `verdict` which of them won (without it, `first` won).
    A verdict is the word first, a or left, second, b or right, the name of the column, the name of the option,
    or tie, "tie (bothbad)", both_bad, draw.
    """
    given = _given(first, second, verdict)
    place = Path(path)
    reader = _READERS.get(place.suffix.lower())
    if reader is None:
        raise DataError(f"{place}: battle logs are {', '.join(SUFFIXES)} files; rename or convert it")
    return _battles(place, reader, given)


def count_battles(path: str | os.PathLike[str], *, first: str = "", second: str = "", verdict: str = "") -> Counted:
    """Count the battles of a log between each two options, in the order in which the options appear."""
    return tally_battles(read_battles(path, first=first, second=second, verdict=verdict))


def tally_battles(battles: Iterable[Battle]) -> Counted:
    """Count battles between each two options, in the order in which the options appear."""
    arms: dict[str, int] = {}
    counts: dict[tuple[int, int], int] = {}  # ordered pair -> points
    for one, other, verdict in battles:
        i, j = arms.setdefault(one, len(arms)), arms.setdefault(other, len(arms))
        mine = {"first": 2, "second": 0, "tie": 1}[verdict]
        counts[i, j] = counts.get((i, j), 0) + mine
        counts[j, i] = counts.get((j, i), 0) + 2 - mine
        if len(arms) > MOST_OPTIONS:
            raise DataError(
                f"more than {MOST_OPTIONS:,} options, {other!r} the last: is that column the option's name?"
            )
    if not arms:
        raise DataError("there are no battles to count")
    points = np.zeros((len(arms),) * 2, np.int64)
    for pair, total in counts.items():
        points[pair] = total
    return Counted(tuple(arms), (points.sum(0) + points.sum(1)) // 2, Tally(points))


def known_columns(names: Iterable[str]) -> Columns | None:
    """Return the known layout that these column names hold, if there is one."""
    have = set(names)
    return next((c for c in KNOWN_COLUMNS if {n for n in c if n is not None} <= have), None)


def looks_like_battles(path: str | os.PathLike[str]) -> bool:
    """Whether a CSV file starts with a header of a known layout (else it may be a matrix)."""
    place = Path(path)
    for _, line in text_lines(place):
        if line.strip():
            return known_columns(_split(place, 1, line, _delimiter(place, line))) is not None
    return False


def _given(first: str, second: str, verdict: str) -> Columns | None:
    if not (first or second or verdict):
        return None
    if not (first and second):
        raise InputError("name both columns of options: first=... and second=... (and verdict=..., if first may lose)")
    if len({first, second, verdict}) < 3:
        raise InputError(f"columns {first!r}, {second!r}, {verdict!r}: name three different ones")
    return Columns(first, second, verdict or None)


def _battles(path: Path, reader: _Reader, given: Columns | None) -> Iterator[Battle]:
    none = True
    for number, row, columns in reader(path, given):
        none = False
        yield _battle(path, number, row, columns)
    if none:
        raise DataError(f"{path}: the file holds no battles")


def _choose(path: Path, names: Iterable[str], given: Columns | None) -> Columns:
    have = list(names)
    if given is not None:
        for name in given:
            if name is not None and name not in have:
                raise DataError(f"{path}: there is no column {name!r}, only {', '.join(have)}")
        return given
    columns = known_columns(have)
    if columns is None:
        known = "; ".join(", ".join(n for n in c if n) for c in KNOWN_COLUMNS)
        raise DataError(
            f"{path}: the columns are {', '.join(have)}: expected were {known}; "
            "for other names give first=..., second=... and verdict=..."
        )
    return columns


def _battle(path: Path, number: int, row: Record, columns: Columns) -> Battle:
    first, second = _text(path, number, row, columns.first), _text(path, number, row, columns.second)
    if first == second:
        raise broken(path, number, f"{first!r} against itself; remove the line")
    if columns.verdict is None:
        return Battle(first, second, "first")
    text = _text(path, number, row, columns.verdict)
    word = text.lower()
    if word in _TIES and text not in (first, second):
        return Battle(first, second, "tie")
    says_first = text == columns.first or word in _FIRST or text == first
    says_second = text == columns.second or word in _SECOND or text == second
    if says_first == says_second or (word in _TIES):
        rule = f"{columns.first}, {columns.second}, tie, or the name of one of the two, was expected"
        what = "could mean either" if says_first or word in _TIES else "names neither"
        raise broken(path, number, f"{columns.verdict} is {text!r}, which {what}: {rule}")
    return Battle(first, second, "first" if says_first else "second")


def _text(path: Path, number: int, row: Record, column: str) -> str:
    value = row.get(column)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        what = "missing" if value is None else f"{value!r}"
        raise broken(path, number, f"{column} is {what}: a name was expected")
    text = str(value).strip()
    if not text:
        raise broken(path, number, f"{column} is empty: a name was expected")
    return text


_Reader = Callable[[Path, Columns | None], Iterator[tuple[int, Record, Columns]]]


def _delimiter(path: Path, header: str) -> str:
    if path.suffix.lower() == ".tsv":
        return "\t"
    return likely_delimiter(header) or ","


def _split(path: Path, number: int, line: str, delimiter: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, strict=True))]
    except csv.Error as error:
        raise broken(path, number, str(error)) from None


def _read_csv(path: Path, given: Columns | None) -> Iterator[tuple[int, Record, Columns]]:
    lines = text_lines(path)
    number, header = next((n, line) for n, line in lines if line.strip())
    delimiter = _delimiter(path, header)
    names = _split(path, number, header, delimiter)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise broken(path, number, f"two columns are called {twice!r}; rename one")
    columns = _choose(path, names, given)
    start = number  # of the record, which may span lines when a quoted cell does

    def rest() -> Iterator[str]:
        nonlocal number
        for number, line in lines:  # noqa: B007 - the record's number is read outside
            yield line + "\n"

    records = csv.reader(rest(), delimiter=delimiter, strict=True)
    while True:
        start = number + 1
        try:
            cells = next(records, None)
        except csv.Error as error:
            remedy = "; write long texts as JSON Lines, or drop that column" if "limit" in str(error) else ""
            raise broken(path, start, f"{error}{remedy}") from None
        if cells is None:
            return
        if not cells or (len(cells) == 1 and not cells[0].strip()):
            continue
        if len(cells) != len(names):
            raise broken(path, start, f"{len(cells)} cells where the header has {len(names)}: {', '.join(names)}")
        yield start, dict(zip(names, cells, strict=True)), columns


def _read_json_lines(path: Path, given: Columns | None) -> Iterator[tuple[int, Record, Columns]]:
    columns: Columns | None = None
    for number, line in text_lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            detail = getattr(error, "msg", str(error))
            raise broken(path, number, f"not JSON ({detail}): one object a line was expected") from None
        if not isinstance(row, dict):
            kind = "a list" if isinstance(row, list) else f"{row!r}"[:40]
            raise broken(path, number, f'{kind}: one object a line, like {{"model_a": ...}}, was expected')
        if columns is None:
            columns = _choose(path, row, given)
        yield number, row, columns


def _read_parquet(path: Path, given: Columns | None) -> Iterator[tuple[int, Record, Columns]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("reading Parquet", "sim") from None
    check_file(path)
    number = 0
    try:
        with pq.ParquetFile(path) as file:
            columns = _choose(path, file.schema_arrow.names, given)
            wanted = [name for name in columns if name is not None]
            for batch in file.iter_batches(batch_size=65_536, columns=wanted):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row, columns
    except OSError as error:  # pyarrow's own errors of reading are OSErrors without a number
        if error.errno is not None:
            raise unreadable(path, error) from None
        raise DataError(f"{path}: this is not a whole Parquet file after row {number} ({error})") from None
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise DataError(f"{path}: this is not a whole Parquet file after row {number} ({error})") from None


_READERS: dict[str, _Reader] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".parquet": _read_parquet,
}
