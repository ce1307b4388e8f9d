"""Texts and JSON that last: checked on the way in, and written in one way only so that digests can cover them."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from typing import Any

from roundel.errors import InputError

LONGEST_NAME = 200
LONGEST_TEXT = 16 * 2**20  # bytes of one content, note or body
DEEPEST_JSON = 100
_OVERRIDES = set("‪‫‬‭‮⁦⁧⁨⁩")  # they reorder whatever is printed after them
_encode = json.JSONEncoder(ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def canonical(value: Any) -> str:
    """Return `value` as JSON, the same text for equal values."""
    return _encode(value)


def sha256(text: str) -> str:
    """Return the SHA-256 of `text` as hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def counted(count: int, what: str) -> str:
    """Write a number of things: "1 round", "2 rounds"."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def check_text(what: str, value: Any, error: type[InputError] = InputError, longest: int = LONGEST_TEXT) -> str:
    """Return `value` if it is a text that every database and every page can hold."""
    if not isinstance(value, str):
        raise error(f"{what} is {_short(value)}: it must be text; write it in quotes")
    if "\0" in value:
        raise error(f"{what} holds a zero character (at {value.index(chr(0))}): databases refuse it; remove it")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as bad:
        raise error(
            f"{what} holds half a character (U+{ord(value[bad.start]):04X} at {bad.start}): it is not valid text; "
            "read the file as UTF-8"
        ) from None
    if size > longest:
        raise error(f"{what} has {size:,} bytes: at most {longest:,} are kept; shorten it")
    return value


def check_name(what: str, value: Any, error: type[InputError] = InputError) -> str:
    """Return `value` in its composed form (NFC) if it can stand in a table: short, visible, on one line."""
    name = unicodedata.normalize("NFC", check_text(what, value, error))
    if not name.strip():
        raise error(f"{what} is {value!r}: it must have at least one visible character")
    if name != name.strip():
        raise error(f"{what} is {value!r}: remove the space at its ends")
    if len(name) > LONGEST_NAME:
        raise error(
            f"{what} has {len(name)} characters: at most {LONGEST_NAME}; shorten it, and put the rest into text"
        )
    for character in name:
        if unicodedata.category(character) in ("Cc", "Zl", "Zp") or character in _OVERRIDES:
            raise error(
                f"{what} is {name!r}: U+{ord(character):04X} is a control character; names are one visible line"
            )
    return name


def check_json(what: str, value: Any, error: type[InputError] = InputError, depth: int = 0) -> Any:
    """Return `value` if it can be written as JSON and read again without loss."""
    if depth > DEEPEST_JSON:
        raise error(f"{what} is nested more than {DEEPEST_JSON} levels deep: flatten it")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return check_text(what, value, error)
    if isinstance(value, int):
        if abs(value) >= 2**63:
            raise error(f"{what} holds {_short(value)}: whole numbers below 2**63 survive JSON; give it as text")
        return value
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise error(f"{what} holds {value}: JSON has finite numbers only; leave it out or give null")
        return value
    if isinstance(value, (list, tuple)):
        return [check_json(what, item, error, depth + 1) for item in value]
    if isinstance(value, dict):
        return {
            check_text(f"a key of {what}", key, error): check_json(what, item, error, depth + 1)
            for key, item in value.items()
        }
    raise error(f"{what} holds a {type(value).__name__}: give text, numbers, true, false, null, lists or mappings")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
