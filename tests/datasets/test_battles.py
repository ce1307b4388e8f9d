"""Battle logs: layouts, words, streams, and broken rows."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundel.datasets import Battle, count_battles, load_problem, read_battles, tally_battles
from roundel.errors import DataError, InputError

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

LAYOUTS = {
    "model_a,model_b,winner": ["a,b,model_a", "a,b,model_b", "b,c,tie", "c,a,tie (bothbad)"],
    "left,right,winner": ["a,b,left", "a,b,right", "b,c,tie", "c,a,Both_Bad"],
    "first,second,verdict": ["a,b,first", "a,b,second", "b,c,tie", "c,a,draw"],
    "id,winner,model_b,model_a": ["1,A,b,a", "2,B,b,a", "3,tie,c,b", "4,tie,a,c"],
}
EXPECTED = [Battle("a", "b", "first"), Battle("a", "b", "second"), Battle("b", "c", "tie"), Battle("c", "a", "tie")]


def as_files(folder, header, rows):
    names = header.split(",")
    records = [dict(zip(names, row.split(","), strict=True)) for row in rows]
    (folder / "log.csv").write_text("\n".join([header, *rows]))
    (folder / "log.tsv").write_text("\r\n".join([header, *rows, ""]).replace(",", "\t"), newline="")
    (folder / "log.jsonl").write_text("".join(json.dumps(r) + "\n\n" for r in records))
    pq.write_table(pa.Table.from_pylist(records), folder / "log.parquet")
    return [folder / f"log.{suffix}" for suffix in ("csv", "tsv", "jsonl", "parquet")]


@pytest.mark.parametrize("header", LAYOUTS)
def test_known_layouts_in_every_format(tmp_path, header):
    for path in as_files(tmp_path, header, LAYOUTS[header]):
        assert list(read_battles(path)) == EXPECTED


def test_winner_and_loser(tmp_path):
    for path in as_files(tmp_path, "loser,winner", ["b,a", "c,b"]):
        assert list(read_battles(path)) == [Battle("a", "b", "first"), Battle("b", "c", "first")]


def test_columns_of_your_own_and_names_as_verdicts(tmp_path):
    for path in as_files(tmp_path, "x,y,best", ["a,b,b", "b,a,x", "a,b,tie"]):
        got = list(read_battles(path, first="x", second="y", verdict="best"))
        assert got == [Battle("a", "b", "second"), Battle("b", "a", "first"), Battle("a", "b", "tie")]
        assert next(read_battles(path, first="y", second="x")) == Battle("b", "a", "first")


def test_counts_by_hand(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("model_a,model_b,winner\na,b,model_a\nb,a,model_b\na,b,model_b\na,b,tie\nc,a,model_a\n")
    counted = count_battles(path)
    assert counted.labels == ("a", "b", "c")
    assert counted.tally.points.tolist() == [[0, 5, 0], [3, 0, 0], [2, 0, 0]]
    assert counted.seen.tolist() == [5, 4, 1]
    assert load_problem(path, top=2).matrix.tolist() == [[0.5, 0.625], [0.375, 0.5]]


names = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8)
WORDS = {"a", "b", "left", "right", "first", "second", "tie", "draw", "both", "bothbad", "both_bad"}


@given(
    rows=st.lists(
        st.tuples(names, names, st.sampled_from(["first", "second", "tie"])).filter(lambda r: r[0] != r[1]),
        min_size=1,
        max_size=8,
    )
)
def test_every_format_gives_the_same_battles(rows, tmp_path_factory):
    import csv

    folder = tmp_path_factory.mktemp("logs")
    word = {"first": "model_a", "second": "model_b", "tie": "tie (bothbad)"}
    rows = [r for r in rows if not {r[0].lower(), r[1].lower()} & WORDS]
    if not rows:
        return
    records = [{"model_a": a, "text": "1,\n2", "model_b": b, "winner": word[v]} for a, b, v in rows]
    with (folder / "log.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, records)))
    pq.write_table(pa.Table.from_pylist(records), folder / "log.parquet")
    for suffix in ("csv", "jsonl", "parquet"):
        got = list(read_battles(folder / f"log.{suffix}"))
        assert got == [Battle(*row) for row in rows]
        points = tally_battles(got).tally.points
        assert points.sum() == 2 * len(rows)


def test_rows_are_streamed(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("winner,loser\na,b\nb,c\nc\n")
    rows = read_battles(path)
    assert [next(rows), next(rows)] == [Battle("a", "b", "first"), Battle("b", "c", "first")]
    with pytest.raises(DataError, match=r"log.csv, line 4: 1 cells where the header has 2: winner, loser"):
        next(rows)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,b", r"line 3: 2 cells where the header has 3"),
        ("a,b,c,d", r"line 3: 4 cells where the header has 3"),
        ("a,b,c", r"line 3: winner is 'c', which names neither: model_a, model_b, tie"),
        ("a,b,", r"line 3: winner is empty"),
        ("a, ,model_a", r"line 3: model_b is empty"),
        ("a,a,tie", r"line 3: 'a' against itself"),
        ("right,left,left", r"line 3: winner is 'left', which could mean either"),
        ("tie,b,tie", r"line 3: winner is 'tie', which could mean either"),
        ('a,"b,tie', r"line 3: unexpected end of data"),
        ('a,"b"x,tie', r"line 3: ',' expected after"),
        (f"a,{'b' * 200_000},tie", r"line 3: field larger than field limit .*JSON Lines"),
    ],
)
def test_broken_csv_rows(tmp_path, row, message):
    path = tmp_path / "log.csv"
    path.write_text(f"model_a,model_b,winner\na,b,tie\n{row}\n")
    with pytest.raises(DataError, match=rf"log.csv, {message}"):
        count_battles(path)


def test_the_line_of_a_row_after_one_that_spans_lines(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text('model_a,model_b,winner\na,"b\nb",tie\nc,d,e\n')
    with pytest.raises(DataError, match=r"line 4: winner is 'e'"):
        count_battles(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"model_a": "a"', r"line 2: not JSON \(.*\): one object a line"),
        ("[1, 2]", r"line 2: a list: one object a line"),
        ("5", r"line 2: 5: one object a line"),
        ('{"model_a": "a", "winner": "tie"}', r"line 2: model_b is missing"),
        ('{"model_a": "a", "model_b": 1.5, "winner": "tie"}', r"line 2: model_b is 1.5: a name"),
        ('{"model_a": "a", "model_b": true, "winner": "tie"}', r"line 2: model_b is True"),
        ("[" * 100_000, r"line 2: not JSON"),
    ],
)
def test_broken_json_lines(tmp_path, line, message):
    path = tmp_path / "log.jsonl"
    path.write_text(f'{{"model_a": "a", "model_b": "b", "winner": "tie"}}\n{line}\n')
    with pytest.raises(DataError, match=rf"log.jsonl, {message}"):
        count_battles(path)


def test_broken_parquet(tmp_path):
    path = as_files(tmp_path, "model_a,model_b,winner", ["a,b,tie", "a,b,c"])[-1]
    with pytest.raises(DataError, match=r"log.parquet, line 2: winner is 'c'"):
        count_battles(path)
    whole = path.read_bytes()
    for part in (whole[: len(whole) // 2], whole[:-1], b"PAR1", whole[:40] + b"\0" * 60 + whole[100:]):
        path.write_bytes(part)
        with pytest.raises(DataError, match=r"log.parquet"):
            count_battles(path)
    pq.write_table(pa.table({"model_a": ["a", None], "model_b": ["b", "c"], "winner": ["tie", "tie"]}), path)
    with pytest.raises(DataError, match=r"line 2: model_a is missing"):
        count_battles(path)
    pq.write_table(pa.table({"winner": ["longname"], "loser": ["b"]}), path, compression="none", use_dictionary=False)
    path.write_bytes(path.read_bytes().replace(b"longname", b"longna\xffe"))
    with pytest.raises(DataError, match=r"log.parquet: this is not a whole Parquet file after row 0 .*utf-8"):
        count_battles(path)
    pq.write_table(pa.table({"model_a": ["a"], "b": ["c"]}), path)
    with pytest.raises(DataError, match=r"the columns are model_a, b: expected were model_a, model_b, winner"):
        count_battles(path)


def test_parquet_is_read_in_batches(tmp_path):
    n = 150_000
    odd = np.arange(n) % 2
    table = pa.table({"winner": np.array(["a", "b"])[odd], "loser": np.array(["b", "a"])[odd]})
    pq.write_table(table, tmp_path / "log.parquet")
    assert count_battles(tmp_path / "log.parquet").tally.points.tolist() == [[0, n], [n, 0]]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("log.csv", "a,b,c\n1,2,3\n", r"the columns are a, b, c: expected were .*first=..., second=... and verdict="),
        ("log.csv", "winner,loser,winner\n", r"line 1: two columns are called 'winner'"),
        ("log.csv", "winner,loser\n", r"the file holds no battles"),
        ("log.csv", "\n\n", r"nothing but blank lines"),
        ("log.csv", "", r"the file is empty"),
        ("log.jsonl", "\ufeff\n \n", r"nothing but blank lines"),
        ("log.xlsx", "x", r"battle logs are .csv, .tsv, .jsonl, .ndjson, .parquet files"),
    ],
)
def test_broken_logs(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        count_battles(path)


def test_bad_columns(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("x,y,z\na,b,x\n")
    with pytest.raises(DataError, match=r"no column 'q', only x, y, z"):
        count_battles(path, first="x", second="q")
    with pytest.raises(InputError, match=r"name both columns"):
        read_battles(path, first="x", verdict="z")
    with pytest.raises(InputError, match=r"name three different ones"):
        read_battles(path, first="x", second="x", verdict="z")
    with pytest.raises(DataError, match=r"no battles to count"):
        tally_battles([])
