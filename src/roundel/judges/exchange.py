"""Duels as files for other tools, and their results back: blinded manifests, Label Studio, battle logs."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from roundel._textfile import broken, check_file, text_lines, unreadable, write_bytes, write_text
from roundel.datasets.battles import read_battles
from roundel.errors import ConflictError, DataError, InputError
from roundel.judges.clicks import Told, partition_of, tell_cells
from roundel.judges.media import data_uri, picture
from roundel.judges.records import offered
from roundel.tournament import Duel, Shown, Tournament
from roundel.tournament.deliveries import check_cost
from roundel.tournament.files import parse_json
from roundel.tournament.texts import check_name, check_text, sha256

A_WEEK = 7 * 24 * 3600.0
MOST_DUELS = 1_000_000
MOST_BYTES = 2**30  # of a JSON file that is read whole
WORDS = {
    **dict.fromkeys(("first", "response_1", "1", "a", "left"), "first"),
    **dict.fromkeys(("second", "response_2", "2", "b", "right"), "second"),
    **dict.fromkeys(("tie", "draw", "both", "equal", "0"), "tie"),
}
ANSWER_COLUMNS = ("verdict", "preference", "winner", "choice", "answer")

LABEL_STUDIO = """\
<View>
  <Header value="$question"/>
  {context}
  <Pairwise name="better" toName="first,second"/>
  <View style="display: grid; grid-template-columns: 1fr 1fr; gap: 1em">
    <{first} name="first" value="$first"/>
    <{first} name="second" value="$second"/>
  </View>
  <Choices name="tie" toName="first" choice="single" required="false">
    <Choice value="tie" hint="Neither is better"/>
  </Choices>
</View>
"""


@dataclass(slots=True)
class Imported:
    """What became of the rows of a file."""

    file: str
    rows: int = 0
    became: dict[str, int] = field(default_factory=dict)  # counted, late, surplus
    skipped: int = 0  # rows that hold no answer

    def to_json(self) -> dict[str, Any]:
        """Return what became of the rows as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        what = ", ".join(f"{count:,} {word}" for word, count in self.became.items()) or "no verdicts"
        return f"{self.file}: {what}" + (f", {self.skipped:,} without an answer" if self.skipped else "")


class _Row(NamedTuple):
    """A verdict as a file has it, checked."""

    duel: str
    verdict: str
    judge: str | None
    cost: float | None
    note: str | None


# out ----------------------------------------------------------------------------------------------------------


def export_manifest(
    cup: Tournament, path: str | Path, *, judge: str = "manifest", limit: int | None = None, lease: float = A_WEEK
) -> int:
    """Write the open duels as a blinded manifest: `case_id, task_input, response_1, response_2`, a line each.

    The duels are leased to `judge` for `lease` seconds, so that nobody else gets them; names are not in the file.
    Returns how many duels were written.
    """
    place = Path(path)
    with _held(cup, judge, limit, lease) as duels:
        lines = [
            json.dumps(
                {
                    "case_id": case_id(cup, duel.id),
                    "task_input": _task_input(duel, place),
                    "response_1": _beside(duel.first, place),
                    "response_2": _beside(duel.second, place),
                },
                ensure_ascii=False,
            )
            for duel in duels
        ]
        write_text(path, "".join(f"{line}\n" for line in lines))
    return len(duels)


def export_label_studio(
    cup: Tournament, path: str | Path, *, judge: str = "label-studio", limit: int | None = None, lease: float = A_WEEK
) -> Path:
    """Write the open duels as a Label Studio task file; return the path of the labelling configuration beside it.

    The duels are leased as in `export_manifest`. Pictures are carried inside the tasks.
    """
    with _held(cup, judge, limit, lease) as duels:
        images = bool(duels) and all("image" in side.content for duel in duels for side in (duel.first, duel.second))
        tasks = [
            {
                "data": {
                    "case_id": case_id(cup, duel.id),
                    "question": duel.question,
                    "context": "" if duel.context is None else _for_page(duel.context),
                    "first": _for_page(duel.first),
                    "second": _for_page(duel.second),
                }
            }
            for duel in duels
        ]
        write_text(path, json.dumps(tasks, ensure_ascii=False, indent=1) + "\n")
        pictured = any("image" in case.content for case in cup.spec.contexts)
        context = "" if not cup.spec.contexts else _CONTEXT_IMAGE if pictured else _CONTEXT_TEXT
        place = Path(path)
        config = place.with_name(f"{place.stem}.xml")
        return write_text(config, LABEL_STUDIO.format(first="Image" if images else "Text", context=context))


_CONTEXT_TEXT = '<Text name="context" value="$context"/>'
_CONTEXT_IMAGE = '<Image name="context" value="$context"/>'


def case_id(cup: Tournament, duel: str) -> str:
    """Return the name of a duel in files: it also names the tournament, so that results do not go astray."""
    return f"{cup.digest[:12]}-{duel}"


@contextmanager
def _held(cup: Tournament, judge: str, limit: int | None, seconds: float) -> Iterator[list[Duel]]:
    """Lease duels for a file, and give them back if it is not written: nobody else could judge them for a week."""
    duels = _lease(cup, judge, limit, seconds)
    try:
        yield duels
    except BaseException:
        for duel in duels:
            cup.reject(duel, judge=judge, note="given back: the file was not written")
        raise


def _lease(cup: Tournament, judge: str, limit: int | None, seconds: float) -> list[Duel]:
    most = MOST_DUELS if limit is None else limit
    found: list[Duel] = []
    while len(found) < most:
        some = cup.lease(min(10_000, most - len(found)), judge, seconds)
        found += some
        if not some:
            break
    if not found:
        raise InputError(f"{cup.name!r} has no duel to export: {_why_none(cup)}")
    return found


def _why_none(cup: Tournament) -> str:
    status = cup.status
    return f"{status.leased} are held by judges" if status.is_open else str(status.outcome)


def _task_input(duel: Duel, place: Path) -> str:
    return duel.question if duel.context is None else f"{duel.question}\n\n{_beside(duel.context, place)}"


def _as_text(content: Mapping[str, Any]) -> str:
    if "data" in content:
        return json.dumps(content["data"], ensure_ascii=False)
    return str(content["text"] if "text" in content else content["markdown"])


def _for_page(side: Shown) -> str:
    """Return what is shown for a side as text; a picture inside it."""
    return data_uri(side.content) if "image" in side.content else _as_text(side.content)


def _beside(side: Shown, place: Path) -> str:
    """Return what is shown for a side as text; a picture as the path of a copy, for its own may tell whose it is."""
    if "image" not in side.content:
        return _as_text(side.content)
    data, kind = picture(side.content)
    folder = place.with_name(f"{place.stem}.pictures")
    copy = folder / f"{hashlib.sha256(data).hexdigest()[:16]}.{kind.rpartition('/')[2]}"
    if not copy.exists():
        write_bytes(copy, data)
    return f"{folder.name}/{copy.name}"


# in -----------------------------------------------------------------------------------------------------------


def import_verdicts(
    cup: Tournament, path: str | Path, *, column: str | None = None, judge: str = "manifest"
) -> Imported:
    """Tell the verdicts of a manifest's results: JSON Lines or CSV with `case_id` and an answer.

    The answer stands in `column`, by default the first of verdict, preference, winner, choice, answer: first, second
    or tie (or response_1, 1, a, left and the like); empty is no answer. `judge`, `cost` and `note` are taken where a
    row has them. The whole file is checked before anything is told; told again, it counts once.
    """
    place = Path(path)
    checked = list(_rows(cup, place, _records(place), column))
    return _tell_rows(cup, place, checked, judge)


def _records(place: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    suffix = place.suffix.lower()
    if suffix in (".jsonl", ".ndjson"):
        for number, line in text_lines(place):
            if line.strip():
                try:
                    row = parse_json(line)
                except ValueError as error:
                    raise broken(place, number, f"not JSON ({error}): one object a line was expected") from None
                if not isinstance(row, dict):
                    raise broken(place, number, "not an object: one object a line was expected")
                yield number, row
    elif suffix in (".csv", ".tsv"):
        lines = (f"{line}\n" for _, line in text_lines(place))
        reader = csv.DictReader(lines, delimiter="\t" if suffix == ".tsv" else ",", strict=True)
        try:
            for row in reader:
                if None in row or None in row.values():
                    raise broken(place, reader.line_num, "it has not as many cells as the header")
                yield reader.line_num, row
        except csv.Error as error:
            raise broken(place, reader.line_num, str(error)) from None
    else:
        raise DataError(f"{place}: results are .jsonl, .csv or .tsv files; rename or convert it")


def _rows(
    cup: Tournament, place: Path, records: Iterable[tuple[int, Mapping[str, Any]]], column: str | None
) -> Iterator[_Row | None]:
    """Check each record against the tournament; None stands for one without an answer."""
    known = offered(cup)
    seen: dict[tuple[str, str | None], int] = {}
    for number, record in records:
        name = column or next((c for c in ANSWER_COLUMNS if c in record), None)
        if name is None or name not in record:
            wanted = column or ", ".join(ANSWER_COLUMNS)
            raise broken(place, number, f"no answer: a column {wanted} was expected; name yours (column=...)")
        duel = _duel_of(cup, place, number, record.get("case_id"), known)
        answer = record[name]
        if answer is None or answer == "":
            yield None
            continue
        word = WORDS.get(str(answer).strip().lower()) if isinstance(answer, (str, int)) else None
        if word is None or isinstance(answer, bool):
            raise broken(place, number, f"{name} is {answer!r}: write first, second or tie; nothing was told")
        try:
            row = _Row(
                duel,
                word,
                check_name("judge", str(record["judge"])) if record.get("judge") not in (None, "") else None,
                check_cost(_number(record.get("cost"))),
                check_text("note", record["note"]) if record.get("note") not in (None, "") else None,
            )
        except InputError as error:
            raise broken(place, number, f"{error}; nothing was told") from None
        if (duel, row.judge) in seen:
            raise broken(
                place,
                number,
                f"case {record['case_id']} stands in line {seen[duel, row.judge]} already: keep one answer of a judge",
            )
        seen[duel, row.judge] = number
        yield row


def _number(value: Any) -> Any:
    if isinstance(value, str):
        if not value.strip():
            return None
        try:
            return float(value)
        except ValueError:
            return value  # refused where costs are checked
    return value


def _duel_of(cup: Tournament, place: Path, number: int, case: Any, known: Mapping[str, tuple[Duel, str]]) -> str:
    if not isinstance(case, str) or not case:
        raise broken(place, number, f"case_id is {case!r}: give back the case_id of the manifest")
    digest, dash, duel = case.partition("-")
    if not dash or digest != cup.digest[:12]:
        raise broken(place, number, f"case {case!r} is not of {cup.name!r}: import it into the tournament it came from")
    if duel not in known:
        raise broken(place, number, f"case {case!r}: no such duel was ever handed out; nothing was told")
    return duel


def _tell_rows(cup: Tournament, place: Path, rows: list[_Row | None], judge: str) -> Imported:
    result = Imported(str(place), len(rows))
    named = [row._replace(judge=row.judge or judge) for row in rows if row is not None]
    result.skipped = len(rows) - len(named)
    keys = [f"file:{sha256(f'{cup.digest} {row.duel} {row.judge}')}" for row in named]
    _agree(cup, place, named, keys)
    for key, row in zip(keys, named, strict=True):
        receipt = cup.tell(row.duel, row.verdict, key=key, judge=row.judge, cost=row.cost, note=row.note)
        result.became[receipt.became] = result.became.get(receipt.became, 0) + 1
    return result


def _agree(cup: Tournament, place: Path, rows: list[_Row], keys: list[str]) -> None:
    """Refuse a file, before anything is told, where a judge has two answers to a case, here or in an earlier file."""

    def work(tx: Any) -> dict[str, tuple[Any, ...]]:
        sql = "SELECT verdict, cost, note FROM verdict WHERE tournament = ? AND key = ? AND version = 1"
        return {key: tuple(row) for key in keys if (row := tx.one(sql, cup.number, key)) is not None}

    before = cup.store.read(work)
    here: dict[str, _Row] = {}
    for key, row in zip(keys, rows, strict=True):
        case = f"{place}: case {case_id(cup, row.duel)}"
        if before.get(key, row[1:2] + row[3:]) != row[1:2] + row[3:]:
            raise ConflictError(
                f"{case} was imported before with another answer of {row.judge!r}: the first one stays; "
                "restore it or leave the case out; nothing was told"
            )
        if here.setdefault(key, row) != row:
            raise DataError(f"{case} has two answers of {row.judge!r}: keep one; nothing was told")


def import_label_studio(cup: Tournament, path: str | Path, *, judge: str = "label-studio") -> Imported:
    """Tell the annotations of a Label Studio export ("JSON", not "JSON-MIN"), each under its annotator's name.

    Cancelled annotations, and those that hold neither a choice nor a tie, are no answers. Where several people judged
    one duel, the first to be told counts, unless the tournament asks for several verdicts a duel (overlap).
    """
    place = Path(path)
    check_file(place)
    try:
        if place.stat().st_size > MOST_BYTES:
            raise DataError(f"{place}: larger than {MOST_BYTES:,} bytes: export fewer tasks at a time")
        tasks = parse_json(place.read_text(encoding="utf-8"))
    except OSError as error:
        raise unreadable(place, error) from None
    except UnicodeDecodeError as error:
        raise DataError(f"{place}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except ValueError as error:
        raise DataError(f"{place}: not JSON ({error}): export the project as JSON") from None
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise DataError(f"{place}: not a list of tasks: export the project as JSON, not as JSON-MIN or CSV")
    known = offered(cup)
    rows: list[_Row | None] = []
    for number, task in enumerate(tasks, 1):
        try:
            case = task["data"]["case_id"]
            annotations = task["annotations"]
            found = [_annotation(annotation, judge) for annotation in annotations]
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            what = f"{type(error).__name__}: {error}"
            raise DataError(
                f"{place}, task {number}: not as roundel's labelling configuration makes it ({what}); nothing was told"
            ) from None
        duel = _duel_of(cup, place, number, case, known)
        told: set[str] = set()
        for item in found:
            if item is None or item[1] in told:
                rows.append(None)
                continue
            told.add(item[1])
            rows.append(_Row(duel, item[0], item[1], None, None))
    return _tell_rows(cup, place, rows, judge)


def _annotation(annotation: Mapping[str, Any], judge: str) -> tuple[str, str] | None:
    """Return verdict and judge of an annotation, or None where it gives no verdict."""
    if annotation.get("was_cancelled"):
        return None
    verdict: str | None = None
    for item in annotation["result"]:
        if item["type"] == "choices" and item["from_name"] == "tie" and item["value"]["choices"] == ["tie"]:
            verdict = "tie"
            break
        if item["type"] == "pairwise":
            selected = item["value"]["selected"]
            if selected not in ("left", "right"):
                raise ValueError(f"selected is {selected!r}, not left or right")
            verdict = "first" if selected == "left" else "second"
    if verdict is None:
        return None
    who = annotation.get("completed_by")
    if isinstance(who, Mapping):
        who = who.get("email") or who.get("id")
    return verdict, check_name("judge", judge if who in (None, "") else f"{judge}:{who}")


def import_battles(
    cup: Tournament,
    path: str | Path,
    *,
    first: str = "",
    second: str = "",
    verdict: str = "",
    source: str = "battles",
    window: str = "all",
    judge: str | None = None,
) -> Told:
    """Tell the battles of a log as counts of the open round's pairs; the columns are those of `read_battles`.

    The file, by its full path, is one partition of `source`: told again, or told anew after it has changed, it
    replaces what it said.
    """
    place = Path(path)
    counts: dict[tuple[str, str, str], int] = {}
    for battle in read_battles(place, first=first, second=second, verdict=verdict):
        counts[battle] = counts.get(battle, 0) + 1
    return tell_cells(cup, {partition_of(place): counts}, source=source, window=window, judge=judge or source)
