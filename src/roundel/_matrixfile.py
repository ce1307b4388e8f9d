"""Matrices in files: CSV, whitespace text and NPZ, with labels where the file has them."""

from __future__ import annotations

import csv
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundel._textfile import broken, check_file, text_lines, unreadable, write_text
from roundel.errors import DataError

Floats = NDArray[np.float64]

_BROKEN_ARCHIVE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, RuntimeError),  # the archive
    *(ValueError, SyntaxError, EOFError, KeyError, OverflowError),  # an array in it
)
MOST_ARMS = 10_000  # a matrix of that many arms fills 0.8 GB
_ARM = re.compile(r"#\s*arm\s+([0-9]{1,9})\s*:\s*(.*\S)")  # how the text format names an arm


class _Row(NamedTuple):
    line: int
    head: str  # the first cell: a number, or a label
    tail: Floats | None  # the other cells, or None where they are not numbers (a header)
    cells: list[str]  # kept for the first row only


def read_matrix(path: str | os.PathLike[str]) -> tuple[Floats, tuple[str, ...] | None]:
    """Return (matrix, labels or None) of a .npz, .csv, .tsv or text file.

    NPZ: an array `matrix`, maybe an array `labels`. CSV: commas, semicolons or tabs, maybe a header row, maybe
    a first column of labels. Text: numbers between white space; `# arm 0: name` in a comment names an arm.
    """
    place = Path(path)
    if place.suffix.lower() == ".npz":
        return _read_npz(place)
    named: dict[int, tuple[int, str]] = {}  # arm -> (line, label)
    rows = _rows(place, named)
    matrix, labels = _assemble(place, rows)
    if named:
        if labels is not None:
            raise DataError(f"{place}: arms are named in comments and in the table; name them in one of the two")
        labels = _named_labels(place, named, len(matrix))
    return matrix, labels


def write_matrix(
    path: str | os.PathLike[str], matrix: Floats, labels: Sequence[str], about: Iterable[str] = ()
) -> Path:
    """Write the text format: comments, labels, and every number to its last digit."""
    head = [f"# {line}".rstrip() for line in about]
    arms = [f"# arm {i}: {' '.join(label.split())}" for i, label in enumerate(labels)]
    rows = [" ".join(map(repr, row)) for row in matrix.tolist()]
    return write_text(path, "\n".join([*head, *arms, *rows, ""]))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def likely_delimiter(line: str) -> str | None:
    """Return which of comma, semicolon and tab stands most often outside quotes, or None: white space."""
    bare = re.sub(r'"[^"]*"', "", line)
    best = max(",;\t", key=bare.count)
    return best if best in bare else None


def _cells(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return line.split()
    if '"' in line:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, strict=True))]
    return [cell.strip() for cell in line.split(delimiter)]


def _rows(path: Path, named: dict[int, tuple[int, str]]) -> list[_Row]:
    rows: list[_Row] = []
    delimiter: str | None = None
    width = 0
    for number, line in text_lines(path):
        if line.lstrip().startswith("#"):
            if match := _ARM.fullmatch(line.strip()):
                named[int(match[1])] = (number, match[2])
            continue
        if not line.strip():
            continue
        if not rows:
            delimiter = likely_delimiter(line)
        try:
            cells = _cells(line, delimiter)
        except csv.Error as error:
            raise broken(path, number, f"{error}; the quotes do not close") from None
        if not rows:
            width = len(cells)
            if width > MOST_ARMS + 1:
                size = width * width * 8 / 1e9
                raise broken(path, number, f"{width:,} columns: such a matrix fills {size:,.1f} GB; {_limit()}")
        elif len(cells) != width:
            raise broken(path, number, f"{len(cells)} cells where the first row has {width}; give each row as many")
        try:
            tail = np.array(cells[1:], np.float64)
        except ValueError:
            if rows:
                column = next(c for c, cell in enumerate(cells[1:], 2) if _number(cell) is None)
                problem = f"column {column} is {cells[column - 1]!r}: a number was expected"
                raise broken(path, number, problem) from None
            tail = None
        rows.append(_Row(number, cells[0], tail, [] if rows else cells))
        if len(rows) > width + 1:
            raise broken(path, number, f"a row too many: {width} columns need {width} rows; the matrix must be square")
    if not rows:
        raise DataError(f"{path}: the file holds no numbers; give K rows of K numbers")
    return rows


def _assemble(path: Path, rows: list[_Row]) -> tuple[Floats, tuple[str, ...] | None]:
    """Tell header and label column from numbers: by what the cells are and by how many rows and columns there are."""
    first, height, width = rows[0], len(rows), len(rows[0].cells)
    header = first.tail is None or height == width + 1 or (height == width > 1 and _number(first.head) is None)
    body = rows[1:] if header else rows
    heads = [row.head for row in body]
    named = all(_number(head) is None for head in heads)
    # Numbers that count up are no first column of preferences, which has 0.5 on top; other numbers may be,
    # of a file that is cut off.
    label_column = len(body) == width - 1 and (named or _counts_up(heads))
    if not label_column and len(body) != width:
        last = rows[-1].line
        raise broken(path, last, f"the last of {len(body)} rows of {width} numbers: the matrix must be square")
    if header and "" in first.cells[label_column:]:
        column = first.cells.index("", int(label_column)) + 1
        raise broken(path, first.line, f"column {column} of the header is empty; name every arm")
    labels: tuple[str, ...] | None = None
    if label_column:
        matrix = np.array([row.tail for row in body])
        labels = tuple(heads)
        if header:
            top = tuple(first.cells[1:])
            if top != labels and not _counts_up(heads):
                at = next(i for i in range(len(top)) if top[i] != labels[i])
                problem = f"row {labels[at]!r} where the header has {top[at]!r}: rows and columns need the same order"
                raise broken(path, body[at].line, problem)
            labels = top
        return matrix, labels
    matrix = np.empty((width, width))
    for i, row in enumerate(body):
        head = _number(row.head)
        if head is None:
            raise broken(path, row.line, f"column 1 is {row.head!r}: a number was expected")
        matrix[i, 0] = head
        matrix[i, 1:] = row.tail
    return matrix, tuple(first.cells) if header else None


def _counts_up(heads: list[str]) -> bool:
    """Whether these are row numbers, from 0 or 1, rather than names."""
    return any(heads == [str(start + i) for i in range(len(heads))] for start in (0, 1))


def _named_labels(path: Path, named: dict[int, tuple[int, str]], arms: int) -> tuple[str, ...]:
    for arm, (line, _) in named.items():
        if arm >= arms:
            raise broken(path, line, f"names arm {arm}, but the matrix has arms 0 to {arms - 1}")
    for arm in range(arms):
        if arm not in named:
            raise DataError(f"{path}: arm {arm} has no line '# arm {arm}: name'; name every arm or none")
    return tuple(named[arm][1] for arm in range(arms))


def _read_npz(path: Path) -> tuple[Floats, tuple[str, ...] | None]:
    check_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            for item in archive.infolist():
                if item.file_size > MOST_ARMS**2 * 16:
                    raise DataError(f"{path}: {item.filename} has {item.file_size:,} bytes; {_limit()}")
        with np.load(path, allow_pickle=False) as arrays:
            if "matrix" not in arrays:
                have = ", ".join(arrays.files) or "nothing"
                raise DataError(f"{path}: there is no array 'matrix' in it, only {have}; save it under that name")
            raw = arrays["matrix"]
            names = arrays.get("labels")
    except DataError:
        raise
    except OSError as error:
        raise unreadable(path, error) from None
    except MemoryError:
        raise DataError(f"{path}: {path.stat().st_size:,} bytes unpack to more than the memory holds") from None
    except _BROKEN_ARCHIVE as error:
        raise DataError(
            f"{path}: this is not an NPZ file of plain arrays ({error}); write it with numpy.savez"
        ) from None
    if raw.dtype.kind not in "iuf" or raw.ndim != 2 or raw.shape[0] != raw.shape[1]:
        problem = f"'matrix' has shape {raw.shape} and type {raw.dtype}: it must be square and of numbers"
        raise DataError(f"{path}: {problem}")
    if names is not None and (names.ndim != 1 or names.dtype.kind not in "US" or len(names) != len(raw)):
        problem = f"'labels' has shape {names.shape} and type {names.dtype}: it must be {len(raw)} texts"
        raise DataError(f"{path}: {problem}")
    if names is not None and names.dtype.kind == "S":
        try:
            names = np.char.decode(names, "utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{path}: 'labels' is not UTF-8; save the labels as text") from None
    return raw.astype(np.float64), None if names is None else tuple(map(str, names.tolist()))


def _limit() -> str:
    return f"the most is {MOST_ARMS:,} arms"
