"""Text files, read line by line, with errors that name the file and the line; and written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from roundel.errors import DataError

LONGEST_LINE = 64 * 2**20  # bytes; beyond it a file is not lines of text
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK = b"\xef\xbb\xbf"


def broken(path: str | os.PathLike[str], line: int, problem: str) -> DataError:
    """Return the error for a broken line."""
    return DataError(f"{os.fspath(path)}, line {line}: {problem}")


def unreadable(path: str | os.PathLike[str], error: OSError) -> DataError:
    """Return the error for a file that the system does not let us read or write."""
    name = os.fspath(path)
    if isinstance(error, FileNotFoundError):
        return DataError(f"{name}: there is no such file; check the path")
    if isinstance(error, (IsADirectoryError, NotADirectoryError)):
        return DataError(f"{name}: this is not a file; give the path of a file in it")
    if isinstance(error, PermissionError):
        return DataError(f"{name}: this file may not be opened; check its permissions")
    return DataError(f"{name}: {error.strerror or error}")


def check_file(path: str | os.PathLike[str]) -> Path:
    """Return `path` if there is a file that holds something."""
    place = Path(path)
    try:
        if place.is_dir():
            raise IsADirectoryError
        if place.stat().st_size == 0:
            raise DataError(f"{place}: the file is empty")
    except OSError as error:
        raise unreadable(place, error) from None
    return place


def byte_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line without its end), holding one line at a time."""
    place = check_file(path)
    number, blank = 0, True
    try:
        with place.open("rb", buffering=2**20) as file:
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    size = place.stat().st_size
                    raise broken(place, number, f"longer than 64 MiB (the file has {size:,} bytes): not lines of text")
                if number == 1:
                    if line.startswith(_UTF16):
                        raise broken(place, 1, "the text is UTF-16; save it as UTF-8")
                    line = line.removeprefix(_UTF8_MARK)
                if b"\0" in line:
                    raise broken(place, number, "holds a zero byte: this is a binary file; text was expected")
                line = line.rstrip(b"\r\n")
                blank = blank and not line.strip()
                yield number, line
    except OSError as error:
        raise unreadable(place, error) from None
    if blank:
        raise DataError(f"{place}: the file holds nothing but blank lines")


def text_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line without its end) of a UTF-8 text."""
    for number, line in byte_lines(path):
        try:
            yield number, line.decode()
        except UnicodeDecodeError as error:
            byte = line[error.start]
            raise broken(path, number, f"byte 0x{byte:02x} is not UTF-8; save the file as UTF-8") from None


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a whole file or nothing: a reader sees the old one or the new one, never a part."""
    return write_bytes(path, text.encode())


def write_bytes(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write a whole file or nothing, as `write_text` does."""
    place = Path(path)
    draft = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            with draft.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(place)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise unreadable(place, error) from None
    return place
