"""Logs of clicks, counted out of core: verdicts per pair of the open round, each partition under a key of its own."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

from roundel._check import whole
from roundel._textfile import text_lines
from roundel.errors import DataError, InputError, MissingExtraError, VerdictError
from roundel.judges.records import Field, Row, field_of
from roundel.plan import Ints
from roundel.tournament import Tournament
from roundel.tournament.texts import canonical, check_name, sha256

VERDICTS = ("first", "second", "tie")
NUMBERS = (
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "UHUGEINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL",
)
MEMORY = "1GB"
FILE = "file of roundel"  # the column that says where a row stands
MOST_CELLS = 10_000_000  # of the table of counts
ATTEMPTS = 5  # to fit counts into a round that others fill at the same time

NOTHING: Row = (0, 0, 0)
Cells = Mapping[tuple[str, str, str], int]  # (first, second, verdict) -> how often


@dataclass(frozen=True, slots=True)
class LogColumns:
    """Which columns of a log hold what.

    `verdict` says first, second or tie, or names the option; or `clicks_first` and `clicks_second` hold the clicks on
    the results of each (more clicks win, as many are a tie). `time` bounds what is counted, with `since` and `until`.
    """

    first: str = "first"
    second: str = "second"
    verdict: str | None = "verdict"
    clicks_first: str | None = None
    clicks_second: str | None = None
    time: str | None = None

    def __post_init__(self) -> None:
        if (self.clicks_first is None) != (self.clicks_second is None):
            raise InputError("name both columns of clicks, clicks_first and clicks_second, or neither")
        named = [name for name in asdict(self).values() if name is not None]
        if len(set(named)) < len(named):
            raise InputError(f"the columns are {', '.join(named)}: name different ones")

    @classmethod
    def parse(cls, text: str) -> LogColumns:
        """Read "first=ranker_a,second=ranker_b,verdict=winner"."""
        given: dict[str, str] = {}
        for part in text.split(","):
            name, equals, column = part.partition("=")
            name, column = name.strip(), column.strip()
            if not equals or not column or name not in cls.__dataclass_fields__ or name in given:
                known = ", ".join(cls.__dataclass_fields__)
                raise InputError(f"columns are {text!r}: write name=column, separated by commas; the names are {known}")
            given[name] = column
        return cls(**given)


@dataclass(slots=True)
class Told:
    """What became of a log."""

    source: str
    window: str
    rows: int = 0  # with a verdict
    other: int = 0  # of those, between options that the open round does not compare
    counted: int = 0  # verdicts that the round took
    full: int = 0  # verdicts of its pairs that it had no room for
    late: int = 0  # verdicts in partitions that an earlier round has counted
    receipts: dict[str, dict[str, Any]] = field(default_factory=dict)  # by partition

    def to_json(self) -> dict[str, Any]:
        """Return what became of the log as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        parts = [f"{self.source}: {self.counted:,} of {self.rows:,} verdicts counted"]
        if self.other:
            parts.append(f"{self.other:,} of other pairs")
        if self.full:
            parts.append(f"{self.full:,} more than the round asks for")
        if self.late:
            parts.append(f"{self.late:,} left out: an earlier round has counted them (give new data a new window)")
        return ", ".join(parts)


# counting -----------------------------------------------------------------------------------------------------


def count_log(
    pattern: str | Iterable[str],
    columns: LogColumns | None = None,
    *,
    since: str | None = None,
    until: str | None = None,
    memory: str = MEMORY,
    threads: int | None = None,
) -> dict[str, dict[tuple[str, str, str], int]]:
    """Count the verdicts in Parquet, CSV or JSON Lines files: full path -> (first, second, verdict) -> how often.

    `pattern`: paths with `*` and `**`, or addresses that DuckDB reads (s3://, https://). Rows with `time` from `since`
    on and before `until` count. The memory is bounded by `memory`; what does not fit goes to temporary files.
    """
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("counting click logs", "clicks") from None
    wanted = columns or LogColumns()
    files = _files([pattern] if isinstance(pattern, str) else list(pattern))
    if (since or until) and wanted.time is None:
        raise InputError("since and until need the column that holds the time: columns time=...")
    with tempfile.TemporaryDirectory(prefix="roundel-") as spill, duckdb.connect(":memory:") as db:
        try:
            db.execute("SET memory_limit = ?", [memory])
            db.execute("SET temp_directory = ?", [spill])
            db.execute("SET preserve_insertion_order = false")
            db.execute("SET enable_progress_bar = false")
            if threads is not None:
                db.execute("SET threads = ?", [whole("threads", threads, least=1)])
            return _count(db, files, wanted, since, until)
        except duckdb.Error as error:
            lines = str(error).strip().splitlines()
            raise DataError(f"{files[0]}{' and others' if len(files) > 1 else ''}: {lines[0]}") from None


def _files(patterns: list[str]) -> list[str]:
    found: list[str] = []
    for pattern in patterns:
        if "://" in pattern:
            found.append(pattern)
        else:
            matched = sorted(glob(pattern, recursive=True))
            if not matched:
                raise DataError(
                    f"{pattern}: no such files; check the path, and quote it so that the shell leaves the *"
                )
            found += matched
    kinds = {_kind(name) for name in found}
    if len(kinds) != 1:
        raise DataError(f"{found[0]} and others: files of one kind are counted at a time: .parquet, .csv or .jsonl")
    return list(dict.fromkeys(found))


def _kind(name: str) -> str:
    stem = name.lower().removesuffix(".gz").removesuffix(".zst")
    for suffix, kind in (
        (".parquet", "parquet"),
        (".csv", "csv"),
        (".tsv", "csv"),
        (".jsonl", "json"),
        (".ndjson", "json"),
    ):
        if stem.endswith(suffix):
            return kind
    raise DataError(f"{name}: logs are .parquet, .csv, .tsv or .jsonl files; rename or convert it")


def partition_of(name: str | Path) -> str:
    """Name a file by its full path: the same in every delivery, whatever else is delivered with it."""
    return str(name) if "://" in str(name) else Path(os.path.abspath(name)).as_posix()


def _literal(name: str) -> str:
    """Return a file's name so that DuckDB, which takes each name as a pattern, finds this file only."""
    return name if "://" in name else re.sub(r"[*?[]", r"[\g<0>]", name)


def _count(
    db: Any, files: list[str], columns: LogColumns, since: str | None, until: str | None
) -> dict[str, dict[tuple[str, str, str], int]]:
    kind = _kind(files[0])
    reader = {"parquet": "read_parquet", "csv": "read_csv", "json": "read_json"}[kind]
    source = f"{reader}(?, filename = '{FILE}', union_by_name = true)"
    paths = [_literal(name) for name in files]
    described = db.execute(f"DESCRIBE SELECT * FROM {source}", [paths]).fetchall()
    have = {str(row[0]): str(row[1]) for row in described}
    numeric = columns.clicks_first is not None
    for role, name in asdict(columns).items():
        if name is not None and name not in have and not (role == "verdict" and numeric):
            known = ", ".join(column for column in have if column != FILE)
            raise DataError(f"{files[0]}: there is no column {name!r} for {role}, only {known}; name yours (--columns)")
    source = f"{source.removesuffix(')')}{_types(kind, columns, have)})"
    first, second = _quoted(columns.first), _quoted(columns.second)
    if numeric:
        one, other = _quoted(columns.clicks_first or ""), _quoted(columns.clicks_second or "")
        for name in (columns.clicks_first or "", columns.clicks_second or ""):
            if not have[name].startswith(NUMBERS):  # as text, 10 would be less than 9
                raise DataError(f"{files[0]}: the column {name!r} holds {have[name]}: numbers of clicks were expected")
        known = f"NOT isnan(CAST({one} AS DOUBLE)) AND NOT isnan(CAST({other} AS DOUBLE))"
        more = f"WHEN {one} > {other} THEN 'first' WHEN {one} < {other} THEN 'second' WHEN {one} = {other} THEN 'tie'"
        verdict = f"CASE WHEN {known} THEN CASE {more} END END"
    else:
        verdict = _quoted(columns.verdict or "")
    where, values = [], [paths]
    for bound, sign in ((since, ">="), (until, "<")):
        if bound is not None:
            where.append(f"{_quoted(columns.time or '')} {sign} CAST(? AS {have[columns.time or '']})")
            values.append(bound)  # type: ignore[arg-type]
    condition = f"WHERE {' AND '.join(where)}" if where else ""
    # Aggregation by what stands in the columns: the few distinct words are read and checked afterwards.
    rows = db.execute(
        f'SELECT "{FILE}", {first}, {second}, {verdict}, COUNT(*) FROM {source} {condition} '
        f"GROUP BY ALL LIMIT {MOST_CELLS}",
        values,
    ).fetchall()
    if len(rows) == MOST_CELLS:
        raise DataError(f"{files[0]}: more than {MOST_CELLS:,} different rows: do the columns hold names of options?")
    counts: dict[str, dict[tuple[str, str, str], int]] = {partition_of(name): {} for name in files}
    for file, one, other, word, times in rows:
        place = partition_of(str(file))
        cell = (_name(place, one, times), _name(place, other, times), "")
        if cell[0] == cell[1]:
            raise DataError(f"{place}: {times:,} rows compare {one!r} with itself: leave them out of the log")
        found = _word(place, word, cell[0], cell[1], times)
        cell = (cell[0], cell[1], found)
        partition = counts.setdefault(place, {})
        partition[cell] = partition.get(cell, 0) + int(times)
    return counts


def _types(kind: str, columns: LogColumns, have: Mapping[str, str]) -> str:
    """Return the option that makes DuckDB leave names as they are written: in text, 1.10 or 2026-11-01 is one too."""
    words = (columns.first, columns.second, None if columns.clicks_first is not None else columns.verdict)
    if kind == "csv":
        types = dict.fromkeys((name for name in words if name is not None), "VARCHAR")
    elif kind == "json" and any(have[name].startswith(("DATE", "TIME")) for name in words if name is not None):
        types = {name: have[name] for name in asdict(columns).values() if name in have}
        types |= {name: "VARCHAR" for name in words if name is not None and types[name].startswith(("DATE", "TIME"))}
    else:
        return ""
    pairs = ", ".join(f"{_quoted(name)}: " + "'" + sort.replace("'", "''") + "'" for name, sort in types.items())
    return f", {'types' if kind == 'csv' else 'columns'} = {{{pairs}}}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _name(place: str, value: Any, times: int) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
        raise DataError(f"{place}: {times:,} rows name the option {value!r}: a name was expected; leave them out")
    return str(value)


def _word(place: str, value: Any, first: str, second: str, times: int) -> str:
    text = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    if text in VERDICTS and text not in (first, second):
        return text
    if text in (first, second):
        return "first" if text == first else "second"
    raise DataError(
        f"{place}: {times:,} rows between {first!r} and {second!r} have the verdict {value!r}: first, second, tie, or "
        "the name of one of the two was expected; leave rows without a verdict out"
    )


# telling ------------------------------------------------------------------------------------------------------


def tell_log(
    cup: Tournament,
    pattern: str | Iterable[str],
    columns: LogColumns | None = None,
    *,
    source: str = "log",
    window: str | None = None,
    since: str | None = None,
    until: str | None = None,
    judge: str | None = None,
    memory: str = MEMORY,
    threads: int | None = None,
) -> Told:
    """Count a log and tell the open round; each file is a partition.

    What is told stands under (source, full path, window): delivering a file again replaces what it said, as long as
    the round is open. A pair takes at most the verdicts that the round plans for it, drawn without looking at them.
    """
    counts = count_log(pattern, columns, since=since, until=until, memory=memory, threads=threads)
    span = window or (f"{since or ''}/{until or ''}" if since or until else "all")
    return tell_cells(cup, counts, source=source, window=span, judge=judge or source)


def tell_counts(
    cup: Tournament, path: str | Path, *, source: str = "log", window: str = "all", judge: str | None = None
) -> Told:
    """Tell counts that another engine made: JSON Lines, CSV or Parquet with first, second, wins, losses, ties.

    A column `partition_name` tells partitions apart; without it the file is one, known by its full path.
    """
    place = Path(path)
    partitions: dict[str, dict[tuple[str, str, str], int]] = {}
    for number, row in _count_rows(place):
        what = f"{place}, row {number}"
        try:
            first, second = (_option(what, row[side]) for side in ("first", "second"))
            values = [row["wins"], row["losses"], row.get("ties", 0)]
        except KeyError as error:
            raise DataError(
                f"{what}: no {error.args[0]!r}: first, second, wins, losses and ties were expected"
            ) from None
        if first == second:
            raise DataError(f"{what}: {first!r} is compared with itself: leave it out")
        cells = partitions.setdefault(str(row.get("partition_name", partition_of(place))), {})
        for word, column, value in zip(VERDICTS, ("wins", "losses", "ties"), values, strict=True):
            try:
                times = whole(f"{what}: {column}", _int(value), most=10**15)
            except InputError as error:
                raise DataError(str(error)) from None
            cells[first, second, word] = cells.get((first, second, word), 0) + times
    return tell_cells(cup, partitions, source=source, window=window, judge=judge or source)


def _option(what: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
        raise DataError(f"{what}: the option is {value!r}: a name was expected; leave the row out")
    return str(value)


def _int(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return value
    return value


def _count_rows(place: Path) -> Iterable[tuple[int, Mapping[str, Any]]]:
    if place.suffix.lower() in (".csv", ".tsv", ".parquet"):
        from roundel._textfile import check_file

        check_file(place)
        try:
            import pyarrow as pa
            import pyarrow.csv as pc
            import pyarrow.parquet as pq
        except ImportError:
            raise MissingExtraError("reading counts from CSV or Parquet", "clicks") from None
        try:
            if place.suffix.lower() == ".parquet":
                table = pq.read_table(place)
            else:
                options = pc.ParseOptions(delimiter="\t" if place.suffix.lower() == ".tsv" else ",")
                names = dict.fromkeys(("first", "second", "partition_name"), pa.string())  # 1.10 is not 1.1
                table = pc.read_csv(place, parse_options=options, convert_options=pc.ConvertOptions(column_types=names))
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{place}: cannot be read ({error})") from None
        return enumerate(table.to_pylist(), 1)
    rows = []
    for number, line in text_lines(place):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{place}, line {number}: not JSON ({error}): one object a line was expected") from None
        if not isinstance(row, dict):
            raise DataError(f"{place}, line {number}: not an object: first, second, wins, losses, ties were expected")
        rows.append((number, row))
    return rows


def tell_cells(cup: Tournament, counts: Mapping[str, Cells], *, source: str, window: str, judge: str) -> Told:
    """Tell counted verdicts by partition; see `tell_log`."""
    check_name("source", source)
    check_name("window", window)
    keys = {partition: _key(source, partition, window) for partition in counts}
    for attempt in range(ATTEMPTS):
        field = field_of(cup, list(keys.values()))
        if field is None:
            raise VerdictError(f"{cup.name!r} has finished: there is no round to tell counts for")
        told = Told(source, window)
        fresh = {partition: cells for partition, cells in counts.items() if keys[partition] not in field.closed}
        told.late = sum(sum(cells.values()) for partition, cells in counts.items() if partition not in fresh)
        shares = _share(cup, field, fresh, told)
        try:
            for step in _steps(field, keys, shares):
                for partition, rows in step.items():
                    receipt = cup.tell_counts(_counts(field, rows), key=keys[partition], judge=judge)
                    told.receipts[partition] = receipt.to_json()
        except VerdictError:
            after = field_of(cup, list(keys.values()))
            if attempt + 1 == ATTEMPTS or after is None or after == field:
                raise  # nobody else filled the round meanwhile
            continue
        told.counted = sum(played for rows in shares.values() for _, _, played in rows.values())
        return told
    raise AssertionError  # the last attempt returns or raises


def _key(source: str, partition: str, window: str) -> str:
    key = f"log:{canonical([source, partition, window])}"
    return key if len(key) <= 400 else f"log:{sha256(key)}"


def _steps(
    field: Field, keys: Mapping[str, str], shares: Mapping[str, dict[int, Row]]
) -> tuple[dict[str, dict[int, Row]], dict[str, dict[int, Row]]]:
    """Return what is told first and what then: whoever gives room back goes before whoever takes it."""
    give: dict[str, dict[int, Row]] = {}
    for partition, rows in shares.items():
        old = field.told.get(keys[partition], {})
        if any(rows.get(p, NOTHING)[2] < row[2] for p, row in old.items()):
            give[partition] = {p: min(row, rows.get(p, NOTHING), key=lambda r: r[2]) for p, row in old.items()}
    take: dict[str, dict[int, Row]] = {}
    for partition, rows in shares.items():
        before = give.get(partition, field.told.get(keys[partition], {}))
        if rows != {p: row for p, row in before.items() if row[2]}:
            take[partition] = rows
    return give, take


def _counts(field: Field, rows: Mapping[int, Row]) -> list[tuple[str, str, int, int, int]]:
    names = {pair.p: (pair.first, pair.second) for pair in field.pairs}
    return [(*names[p], wins, played - wins - ties, ties) for p, (wins, ties, played) in sorted(rows.items())]


def _share(cup: Tournament, field: Field, counts: Mapping[str, Cells], told: Told) -> dict[str, dict[int, Row]]:
    """Return for each partition what the round has room for, drawn at random where there is not enough."""
    place = {(pair.first, pair.second): number for number, pair in enumerate(field.pairs)}
    place |= {(pair.second, pair.first): number for number, pair in enumerate(field.pairs)}
    table = np.zeros((len(field.pairs), len(counts), 3), np.int64)  # first wins, first loses, ties
    strangers: set[str] = set()
    for column, partition in enumerate(counts):
        for (first, second, verdict), times in counts[partition].items():
            told.rows += times
            number = place.get((first, second))
            if number is None:
                told.other += times
                strangers |= {first, second} - set(cup.spec.names)
                continue
            turned = field.pairs[number].first != first
            table[number, column, 2 if verdict == "tie" else int((verdict == "second") != turned)] += times
    if told.rows and not table.any():
        hint = f"; {min(strangers)!r} is no option of it" if strangers else ""
        raise VerdictError(
            f"none of the {told.rows:,} verdicts is between two options that round {field.n} compares{hint}: "
            "nothing was counted"
        )
    for number, pair in enumerate(field.pairs):
        total = int(table[number].sum())
        if total > pair.free:
            told.full += total - pair.free
            drawn = draw(table[number].ravel(), pair.free, cup.digest, field.n, pair.first, pair.second)
            table[number] = drawn.reshape(-1, 3)
    return {
        partition: {
            pair.p: (int(table[number, column, 0]), int(table[number, column, 2]), int(table[number, column].sum()))
            for number, pair in enumerate(field.pairs)
            if table[number, column].any()
        }
        for column, partition in enumerate(counts)
    }


def draw(cells: Ints, wanted: int, *seed: Any) -> Ints:
    """Draw `wanted` of the verdicts that `cells` counts, without replacement: the same ones for the same seed."""
    entropy = int(sha256(canonical(list(seed))), 16)
    rng = np.random.Generator(np.random.PCG64(entropy))
    # One cell after the other by its hypergeometric share of what is left; numpy's own limit is 10^9 a side.
    left, rest = wanted, int(cells.sum())
    out = np.zeros_like(cells)
    for number, count in enumerate(cells.tolist()):
        rest -= count
        out[number] = _hypergeometric(rng, count, rest, left)
        left -= int(out[number])
    return out


def _hypergeometric(rng: np.random.Generator, good: int, bad: int, sample: int) -> int:
    if sample == 0 or good == 0:
        return 0
    if bad == 0:
        return sample
    if good < 10**9 and bad < 10**9:
        return int(rng.hypergeometric(good, bad, sample))
    drawn = 0  # one at a time: samples are the size of a round, populations that of a log
    for _ in range(sample):
        if rng.integers(good + bad) < good:
            good, drawn = good - 1, drawn + 1
        else:
            bad -= 1
    return drawn
