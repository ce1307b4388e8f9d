"""Options from files: YAML, JSON, JSON Lines or CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from roundel.errors import SpecError
from roundel.tournament.spec import KINDS
from roundel.tournament.texts import check_text

MOST_BYTES = 256 * 2**20
FIELDS = ("options", "contexts", "question", "policy", "horizon", "rounds", "seed", "overlap", "deadline")


def read_spec(path: str | Path) -> dict[str, Any]:
    """Read a file of options into the arguments of `Tournament.create`.

    A list (or JSON Lines, or CSV) holds options; a mapping may hold every field of a tournament.
    """
    place = Path(path)
    readers: dict[str, Callable[[str, Path], Any]] = {
        ".yaml": _yaml,
        ".yml": _yaml,
        ".json": _json,
        ".jsonl": _json_lines,
        ".ndjson": _json_lines,
        ".csv": _csv,
    }
    reader = readers.get(place.suffix.lower())
    if reader is None:
        raise SpecError(f"{place}: options are read from {', '.join(readers)} files; rename or convert it")
    value = reader(_text(place), place)
    if value is None:
        raise SpecError(f"{place}: the file is empty: write a list of options, or a mapping with 'options'")
    if isinstance(value, dict) and (typo := [k for k, v in value.items() if isinstance(v, list) and k not in FIELDS]):
        raise SpecError(f"{place}: unknown field {typo[0]!r}: the fields are {', '.join(FIELDS)}")
    fields = value if isinstance(value, dict) and "options" in value else {"options": value}
    if unknown := [key for key in fields if key not in FIELDS]:
        raise SpecError(f"{place}: unknown field {unknown[0]!r}: the fields are {', '.join(FIELDS)}")
    return {**fields, "folder": place.parent}


def _text(place: Path) -> str:
    try:
        size = place.stat().st_size
        if size > MOST_BYTES:
            raise SpecError(f"{place} has {size:,} bytes: options of at most {MOST_BYTES:,} bytes are read")
        return place.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SpecError(f"{place}: {error.strerror or error}: check the path") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{place}: byte {error.start} is not UTF-8; save the file as UTF-8") from None


def refuse_constant(word: str) -> Any:
    """Refuse NaN and infinity, which are not JSON."""
    raise ValueError(f"{word} is not a finite number")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object with a key that stands twice, of which JSON would keep the last."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {key!r} stands twice")
        found[key] = value
    return found


def parse_json(text: str) -> Any:
    """Parse JSON strictly: no NaN, no infinity, no key twice; ValueError says what is wrong."""
    try:
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=unique_keys)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _json(text: str, place: Path) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise SpecError(f"{place}: not JSON: {error}") from None


def _json_lines(text: str, place: Path) -> Any:
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            rows.append(parse_json(line))
        except ValueError as error:
            raise SpecError(f"{place}, line {number}: not JSON: {error}") from None
    return rows


def _yaml(text: str, place: Path) -> Any:
    import yaml

    check_text(str(place), text, SpecError, longest=MOST_BYTES)
    try:
        value = yaml.load(text, Loader=_strict_loader(yaml))
    except (yaml.YAMLError, RecursionError) as error:
        raise SpecError(f"{place}: not YAML: {' '.join(str(error).split())}") from None
    return value


def _strict_loader(yaml: Any) -> Any:
    """Return PyYAML's safe loader that refuses a key that stands twice (it would keep the last one silently)."""

    class Strict(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
        pass

    def mapping(loader: Any, node: Any) -> dict[Any, Any]:
        keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if not isinstance(key, (str, int, float, bool)) or keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", node.start_mark)
        return dict(zip(keys, (loader.construct_object(value, deep=True) for _, value in node.value), strict=True))

    Strict.add_constructor("tag:yaml.org,2002:map", mapping)
    return Strict


def _csv(text: str, place: Path) -> Any:
    """Read columns name and text, markdown, image or data; with a column context, a row an option and context."""
    rows = csv.reader(text.splitlines(keepends=True), strict=True)
    try:
        header = [column.strip().lower() for column in next(rows, [])]
        kinds = [column for column in header if column in KINDS]
        if "name" not in header or len(set(header)) < len(header):
            raise SpecError(f"{place}: the first line names the columns: 'name' once, and one of {', '.join(KINDS)}")
        if unknown := [column for column in header if column not in (*KINDS, "name", "context")]:
            raise SpecError(
                f"{place}: unknown column {unknown[0]!r}: the columns are name, context, {', '.join(KINDS)}"
            )
        found = []
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(header):
                raise SpecError(f"{place}, line {rows.line_num}: {len(row)} cells for {len(header)} columns")
            cells = dict(zip(header, row, strict=True))
            content: dict[str, Any] = {kind: cells[kind] for kind in kinds if cells[kind]}
            if "data" in content:
                content["data"] = _json(content["data"], place)
            found.append((cells["name"], cells.get("context"), content))
    except csv.Error as error:
        raise SpecError(f"{place}, line {rows.line_num}: not CSV: {error}") from None
    return _by_context(found, place) if "context" in header else [{"name": n, **c} for n, _, c in found]


def _by_context(rows: Iterable[tuple[str, str | None, dict[str, Any]]], place: Path) -> dict[str, Any]:
    options: dict[str, dict[str, Any]] = {}
    contexts: dict[str, None] = {}
    for name, context, content in rows:
        if not context:
            raise SpecError(f"{place}: option {name!r} has a row without a context: fill the column, or drop it")
        contents = options.setdefault(name, {})
        if context in contents:
            raise SpecError(f"{place}: option {name!r} has two rows for context {context!r}: keep one")
        contents[context] = content
        contexts[context] = None
    return {
        "options": [{"name": name, "contents": contents} for name, contents in options.items()],
        "contexts": [{"name": name} for name in contexts],
    }
