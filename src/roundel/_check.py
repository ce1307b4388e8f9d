"""Checks of users' arguments, shared by every door."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roundel.errors import InputError, MissingExtraError


def whole(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """Return `value` as an int if it is a whole number within [least, most]; booleans are not numbers here."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        if not (isinstance(value, (float, np.floating)) and float(value).is_integer()):
            raise InputError(f"{name} is {value!r}: it must be a whole number; give an int") from None
        number = int(value)  # 1e6 is how people write a million
    if number < least:
        raise InputError(f"{name} is {number}: it must be at least {least}")
    if most is not None and number > most:
        raise InputError(f"{name} is {number}: it must be at most {most}")
    return number


def whole_array(name: str, values: ArrayLike, error: type[InputError]) -> NDArray[np.int64]:
    """Return `values` as a new array of 64-bit integers, or raise `error` where one is not a whole number."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise error(f"{name} is ragged: give one number an entry") from None
    if array.size == 0:
        return np.zeros(array.shape, np.int64)
    if array.dtype.kind == "f":
        bad = ~np.isfinite(array) | (array != np.floor(array)) | (np.abs(array) >= 2.0**63)
        if bad.any():
            raise error(f"{name} holds {array[bad].flat[0]!s}: counts are whole numbers below 2**63")
    elif array.dtype.kind == "u":
        if (array > np.uint64(2**63 - 1)).any():
            raise error(f"{name} holds {array.max()}: counts are whole numbers below 2**63")
    elif array.dtype.kind != "i":
        example = array.flat[0].item() if isinstance(array.flat[0], np.generic) else array.flat[0]
        raise error(f"{name} holds {example!r}: counts are whole numbers below 2**63; give integers")
    return array.astype(np.int64)


def file_to_write(path: str | os.PathLike[str], what: str, endings: Sequence[str]) -> Path:
    """Return `path` if `what` can be written there: asked before the work, not found out after it."""
    target = Path(path)
    if target.suffix not in endings:
        raise InputError(f"{target}: {what} is saved as {' or '.join(endings)}; choose one of these endings")
    if obstacle := _obstacle(target):
        raise InputError(f"{str(target)!r}: {obstacle}")
    return target


def _obstacle(target: Path) -> str | None:
    if "\0" in str(target):
        return "the name of a file holds no zero byte; choose another"
    try:
        if not target.parent.is_dir():
            return f"the folder {target.parent} does not exist; make it first"
        if target.is_dir():
            return "this is a folder; choose a file"
        if not os.access(target if target.exists() else target.parent, os.W_OK):
            return "this may not be written; choose another file"
    except OSError as error:  # a name that is too long
        return f"{error.strerror}; choose another file"
    return None


def need(parts: Sequence[str], what: str, extra: str) -> None:
    """Refuse `what` now, before any work, if one of the optional `parts` that it needs is not installed."""
    if any(find_spec(part) is None for part in parts):
        raise MissingExtraError(what, extra)


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return a hint at the one of `known` that comes nearest to `name`; none if none is near."""
    close = get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"did you mean {close[0]}? " if close else ""
