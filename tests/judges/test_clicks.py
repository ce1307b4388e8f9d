"""Logs of clicks: counted out of core, delivered by partition, the same with Spark."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundel.errors import DataError, InputError, VerdictError
from roundel.judges import LogColumns, count_log, tell_counts, tell_log
from roundel.judges.clicks import draw
from roundel.tournament import Tournament

NAMES = ["a", "b", "c"]
COLUMNS = LogColumns("ranker_a", "ranker_b", "winner")


def new(folder: Path, **changes: Any) -> Tournament:
    return Tournament.create(folder / "t.db", "t", NAMES, **{"horizon": 900, "rounds": 2, "seed": 1, **changes})


def parquet(path: Path, rows: list[tuple[Any, ...]], columns: str = "ranker_a, ranker_b, winner") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    values = ", ".join("(" + ", ".join("NULL" if v is None else repr(v) for v in row) + ")" for row in rows)
    with duckdb.connect() as db:
        db.execute(f"COPY (SELECT * FROM (VALUES {values}) v({columns})) TO '{path}' (FORMAT parquet)")
    return path


def counts(cup: Tournament) -> dict[str, tuple[int, int]]:
    """Half-wins and duels of each pair so far."""
    tally = cup.store.read(cup.state).tally
    return {
        f"{NAMES[i]}{NAMES[j]}": (int(tally.points[i, j]), int(tally.counts[i, j]))
        for i in range(3)
        for j in range(i + 1, 3)
    }


def test_a_log_is_counted_by_pair_and_verdict(tmp_path: Path) -> None:
    parquet(tmp_path / "l" / "1.parquet", [("a", "b", "first")] * 5 + [("b", "a", "first")] * 2 + [("a", "c", "tie")])
    parquet(tmp_path / "l" / "2.parquet", [("b", "a", "a"), ("x", "y", "second")])
    found = count_log(str(tmp_path / "l" / "*.parquet"), COLUMNS)
    assert found == {
        str(tmp_path / "l" / "1.parquet"): {("a", "b", "first"): 5, ("b", "a", "first"): 2, ("a", "c", "tie"): 1},
        str(tmp_path / "l" / "2.parquet"): {("b", "a", "second"): 1, ("x", "y", "second"): 1},
    }
    with new(tmp_path) as cup:
        told = tell_log(cup, str(tmp_path / "l" / "*.parquet"), COLUMNS)
        assert (told.rows, told.other, told.counted, told.full) == (10, 1, 9, 0)
        assert counts(cup) == {"ab": (12, 8), "ac": (1, 1), "bc": (0, 0)}
        cup.verify()


def test_a_log_may_have_a_column_called_filename(tmp_path: Path) -> None:
    log = parquet(tmp_path / "l.parquet", [("a", "b", "first", "x")] * 2, "first, second, verdict, filename")
    assert count_log(str(log)) == {str(log): {("a", "b", "first"): 2}}


def test_csv_json_lines_and_clicks(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("first,second,clicks_a,clicks_b\na,b,2,1\na,b,0,0\nb,c,0,3\n")
    clicks = LogColumns(clicks_first="clicks_a", clicks_second="clicks_b")
    wanted = {("a", "b", "first"): 1, ("a", "b", "tie"): 1, ("b", "c", "second"): 1}
    assert count_log(str(tmp_path / "l.csv"), clicks) == {str(tmp_path / "l.csv"): wanted}
    rows = [{"first": a, "second": b, "verdict": v} for (a, b, v), n in wanted.items() for _ in range(n)]
    (tmp_path / "l.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert count_log(str(tmp_path / "l.jsonl")) == {str(tmp_path / "l.jsonl"): wanted}


@pytest.mark.parametrize("pair", [("001", "1"), ("1.1", "1.10"), ("2026-11-01", "2026-11-02"), ("true", "false")])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_names_are_taken_as_they_are_written(tmp_path: Path, pair: tuple[str, str], kind: str) -> None:
    log = tmp_path / f"l.{kind}"
    columns = ("when it's", "first", "second", "verdict")
    rows = [("2026-11-19", *pair, pair[1]), ("2026-11-20", *pair[::-1], "tie")]
    objects = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
    log.write_text("\n".join(objects if kind == "jsonl" else [",".join(row) for row in (columns, *rows)]))
    timed = LogColumns(time="when it's")
    assert count_log(str(log), timed, since="2026-11-19") == {str(log): {(*pair, "second"): 1, (*pair[::-1], "tie"): 1}}
    counted = tmp_path / "counts.csv"
    counted.write_text(f"first,second,wins,losses\n{pair[0]},c,2,0\n{pair[1]},c,0,1\n")
    with Tournament.create(tmp_path / "t.db", "t", [*pair, "c"], horizon=900, rounds=2) as cup:
        tell_counts(cup, counted)
        assert cup.store.read(cup.state).tally.points[:, 2].tolist() == [4, 0, 0]


def test_an_empty_verdict_is_no_option_called_none(tmp_path: Path) -> None:
    log = parquet(tmp_path / "l.parquet", [("None", "b", None), ("None", "b", "first")])
    with pytest.raises(DataError, match="verdict None"):
        count_log(str(log), COLUMNS)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("jsonl", '{"first": "a", "second": "b", "x": "10", "y": "9"}', "'x' holds VARCHAR"),
        ("csv", "first,second,x,y\na,b,10,9\na,b,many,few\n", "'x' holds VARCHAR"),
        ("csv", "first,second,x,y\na,b,true,false\n", "'x' holds BOOLEAN"),
        ("csv", "first,second,x,y\na,b,nan,1\n", "verdict None"),
        ("csv", "first,second,x,y\na,b,1,2\na,b,,2\n", "verdict None"),
    ],
)
def test_clicks_that_are_no_numbers(tmp_path: Path, kind: str, text: str, message: str) -> None:
    (tmp_path / f"l.{kind}").write_text(text)
    with pytest.raises(DataError, match=message):
        count_log(str(tmp_path / f"l.{kind}"), LogColumns(clicks_first="x", clicks_second="y"))


def test_a_time_span_is_a_window(tmp_path: Path) -> None:
    days = [(f"2026-11-{day:02} 12:00:00", "a", "b", "first") for day in range(1, 11)]
    parquet(tmp_path / "l.parquet", days, "moment, first, second, verdict")
    timed = LogColumns.parse("time=moment")
    log = str(tmp_path / "l.parquet")
    with new(tmp_path) as cup:
        assert tell_log(cup, log, timed, since="2026-11-03", until="2026-11-06").counted == 3
        assert tell_log(cup, log, timed, since="2026-11-06", until="2026-11-08").counted == 2
        assert counts(cup)["ab"] == (10, 5)
    with pytest.raises(InputError, match="column that holds the time"):
        count_log(log, since="2026-11-03")


def test_a_partition_delivered_again_replaces_itself(tmp_path: Path) -> None:
    log = tmp_path / "l" / "1.parquet"
    pattern = str(tmp_path / "l" / "*.parquet")
    parquet(log, [("a", "b", "first")] * 5 + [("a", "c", "first")] * 3)
    parquet(tmp_path / "l" / "2.parquet", [("a", "b", "second")] * 4)
    with new(tmp_path) as cup:
        tell_log(cup, pattern, COLUMNS)
        assert counts(cup) == {"ab": (10, 9), "ac": (6, 3), "bc": (0, 0)}
        head = cup.status.head
        assert tell_log(cup, pattern, COLUMNS).receipts == {}
        assert cup.status.head == head  # nothing new, nothing written
        parquet(log, [("a", "b", "first")] * 2 + [("b", "c", "tie")])  # some rows were spam
        tell_log(cup, pattern, COLUMNS)
        assert counts(cup) == {"ab": (4, 6), "ac": (0, 0), "bc": (1, 1)}
        tell_log(cup, str(log), COLUMNS, window="tonight")  # the negative control: another window adds up
        assert counts(cup) == {"ab": (8, 8), "ac": (0, 0), "bc": (2, 2)}
        cup.verify()


def test_a_file_keeps_its_name_whatever_is_delivered_with_it(tmp_path: Path) -> None:
    """Engines call the files of every day alike: a day is neither counted twice nor taken for another."""
    first = parquet(tmp_path / "l" / "day1" / "part-0.parquet", [("a", "b", "first")] * 5)
    pattern = str(tmp_path / "l" / "*" / "*.parquet")
    with new(tmp_path) as cup:
        tell_log(cup, pattern, COLUMNS)
        second = parquet(tmp_path / "l" / "day2" / "part-0.parquet", [("a", "b", "second")] * 2)
        tell_log(cup, pattern, COLUMNS)
        assert counts(cup)["ab"] == (10, 7)
        for log in (second, first):
            assert tell_log(cup, str(log), COLUMNS).receipts == {}
        assert counts(cup)["ab"] == (10, 7)


def test_a_file_name_is_no_pattern(tmp_path: Path) -> None:
    """DuckDB takes the names that it is given as patterns: none may stand for other files, or for itself and others."""
    names = {"a1.parquet": 1, "a[1].parquet": 2, "b*.parquet": 3, "bb.parquet": 4, "b?.parquet": 5, "'\";--.parquet": 6}
    for name, times in names.items():
        parquet(tmp_path / "log", [("a", "b", "first")] * times).rename(tmp_path / name)
    found = count_log(str(tmp_path / "*.parquet"), COLUMNS)
    assert found == {str(tmp_path / name): {("a", "b", "first"): times} for name, times in names.items()}


def test_partitions_may_change_places_in_a_full_round(tmp_path: Path) -> None:
    """One gives room back in one pair and takes it in another, where the other does the opposite."""
    pattern = str(tmp_path / "l" / "*.parquet")
    with new(tmp_path) as cup:
        room = cup.status.asked // 3
        one, other = [("a", "b", "first")] * room, [("a", "c", "second")] * room
        parquet(tmp_path / "l" / "1.parquet", one)
        parquet(tmp_path / "l" / "2.parquet", other)
        tell_log(cup, pattern, COLUMNS)
        assert counts(cup) == {"ab": (2 * room, room), "ac": (0, room), "bc": (0, 0)}
        parquet(tmp_path / "l" / "1.parquet", other)
        parquet(tmp_path / "l" / "2.parquet", one)
        tell_log(cup, pattern, COLUMNS)
        assert counts(cup) == {"ab": (2 * room, room), "ac": (0, room), "bc": (0, 0)}
        cup.verify()


def test_a_round_takes_what_it_planned_and_the_next_does_not_take_it_again(tmp_path: Path) -> None:
    rows = [(x, y, "first") for x, y in (("a", "b"), ("a", "c"), ("b", "c")) for _ in range(400)]
    rows += [(x, y, "second") for x, y, _ in rows[:600]]
    log = str(parquet(tmp_path / "l.parquet", rows))
    with new(tmp_path) as cup:
        asked = cup.status.asked
        told = tell_log(cup, log, COLUMNS)
        assert (told.counted, told.full) == (asked, 1800 - asked)
        assert cup.status.round == 2  # the first is full
        again = tell_log(cup, log, COLUMNS)
        assert (again.counted, again.late) == (0, 1800)
        assert tell_log(cup, log, COLUMNS, window="new").counted > 0
        cup.verify()


def test_what_is_taken_is_drawn_without_looking() -> None:
    """2,000 draws of 30 from 60 wins, 30 losses, 10 ties: the mean of wins is 18, its standard error below 0.05.

    |z| > 4.5 happens by chance once in 147,000 runs.
    """
    cells = np.array([60, 30, 10])
    drawn = np.array([draw(cells, 30, "seed", number) for number in range(2_000)])
    assert (drawn.sum(axis=1) == 30).all()
    assert (drawn <= cells).all()
    for column, share in enumerate((0.6, 0.3, 0.1)):
        error = (30 * share * (1 - share) * (70 / 99) / 2_000) ** 0.5
        assert abs(drawn[:, column].mean() - 30 * share) < 4.5 * error
    first = np.minimum(cells, 30)  # the negative control: taking the first thirty is far outside
    assert abs(first[0] - 18) > 4.5 * (30 * 0.24 * (70 / 99) / 2_000) ** 0.5


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.data())
def test_draws_are_part_of_what_there_is(cells: list[int], data: Any) -> None:
    wanted = data.draw(st.integers(0, sum(cells)))
    drawn = draw(np.array(cells), wanted, 1, "x")
    assert drawn.sum() == wanted
    assert (drawn >= 0).all()
    assert (drawn <= np.array(cells)).all()
    assert (drawn == draw(np.array(cells), wanted, 1, "x")).all()


def test_draws_from_more_than_numpy_takes() -> None:
    drawn = draw(np.array([3 * 10**9, 10**9]), 4_000, "big")
    assert drawn.sum() == 4_000
    assert abs(drawn[0] - 3_000) < 4.5 * (4_000 * 0.75 * 0.25) ** 0.5


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "b", "left")], "verdict 'left'"),
        ([("a", "b", None)], "verdict None"),
        ([("a", None, "first")], "names the option|name the option None"),
        ([("a", "a", "tie")], "'a' with itself"),
        ([(" ", "a", "tie")], "name the option ' '"),
    ],
)
def test_rows_that_can_mean_nothing(tmp_path: Path, rows: list[tuple[Any, ...]], message: str) -> None:
    good = [("a", "b", "first")] * 3
    log = parquet(tmp_path / "l.parquet", good + rows)
    with new(tmp_path) as cup:
        with pytest.raises(DataError, match=message):
            tell_log(cup, str(log), COLUMNS)
        assert cup.status.verdicts["counted"] == 0


def test_files_and_columns_that_are_not_there(tmp_path: Path) -> None:
    log = str(parquet(tmp_path / "l.parquet", [("a", "b", "first")]))
    with pytest.raises(DataError, match="no such files"):
        count_log(str(tmp_path / "*.csv"))
    with pytest.raises(DataError, match=r"no column 'first'.*only ranker_a, ranker_b, winner"):
        count_log(log)
    (tmp_path / "l.txt").write_text("x")
    with pytest.raises(DataError, match=r"logs are \.parquet"):
        count_log(str(tmp_path / "l.txt"))
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(DataError, match=r"broken\.parquet"):
        count_log(str(tmp_path / "broken.parquet"))
    evil = LogColumns('ranker_a" FROM x; --', "ranker_b", "winner")
    with pytest.raises(DataError, match="no column"):
        count_log(log, evil)
    with new(tmp_path) as cup, pytest.raises(VerdictError, match="'x' is no option"):
        tell_log(cup, str(parquet(tmp_path / "other.parquet", [("x", "y", "first")])), COLUMNS)


@pytest.mark.parametrize("text", ["first", "first=", "who=a", "first=a,first=b", "first=a,second=a", "clicks_first=a"])
def test_columns_that_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        LogColumns.parse(text)


def test_memory_is_bounded(tmp_path: Path) -> None:
    """Three million rows in 64 MB of DuckDB's memory; the counts are exact."""
    with duckdb.connect() as db:
        db.execute(
            f"COPY (SELECT 'a' AS first, 'b' AS second, CASE WHEN i % 3 = 0 THEN 'first' ELSE 'second' END AS verdict "
            f"FROM range(3_000_000) t(i)) TO '{tmp_path / 'big.parquet'}' (FORMAT parquet)"
        )
    found = count_log(str(tmp_path / "big.parquet"), memory="64MB", threads=2)
    assert found[str(tmp_path / "big.parquet")] == {("a", "b", "first"): 1_000_000, ("a", "b", "second"): 2_000_000}


# the same count elsewhere ---------------------------------------------------------------------------------------


def statement() -> str:
    """The SQL of the documentation, as it stands there."""
    page = Path(__file__).parents[2] / "docs" / "clicks.md"
    (found,) = re.findall(r"```sql\n(.*?)```", page.read_text(), re.DOTALL)
    return str(found)


def impressions() -> list[tuple[str, str, str, str]]:
    rng = np.random.default_rng(7)
    pairs = [("a", "b"), ("b", "a"), ("c", "a"), ("b", "c")]
    words = ("first", "second", "tie")
    return [
        (f"2026-11-{1 + int(day):02}", *pairs[int(pair)], words[int(word)])
        for day, pair, word in zip(
            rng.integers(0, 3, 3_000), rng.integers(0, 4, 3_000), rng.choice(3, 3_000, p=(0.5, 0.3, 0.2)), strict=True
        )
    ]


def by_hand(rows: list[tuple[str, str, str, str]]) -> set[tuple[Any, ...]]:
    found: Counter[tuple[str, str, str, str]] = Counter(rows)
    return {
        (day, one, other, *(found[day, one, other, word] for word in ("first", "second", "tie")))
        for day, one, other, _ in found
    }


def test_the_documented_sql_on_duckdb_and_its_counts_told(tmp_path: Path) -> None:
    rows = impressions()
    parquet(tmp_path / "clicks.parquet", rows, "day, ranker_a, ranker_b, winner")
    with duckdb.connect() as db:
        db.execute(f"CREATE VIEW clicks AS SELECT * FROM '{tmp_path / 'clicks.parquet'}'")
        assert set(db.execute(statement()).fetchall()) == by_hand(rows)
        db.execute(f"COPY ({statement()}) TO '{tmp_path / 'counts.csv'}' (HEADER)")
        db.execute(f"COPY ({statement()}) TO '{tmp_path / 'counts.parquet'}' (FORMAT parquet)")
        db.execute(f"COPY ({statement()}) TO '{tmp_path / 'counts.jsonl'}' (FORMAT json)")
    with new(tmp_path, horizon=10**8) as cup:
        for kind in ("csv", "parquet", "jsonl"):  # the same counts: told once, whatever the file
            told = tell_counts(cup, tmp_path / f"counts.{kind}")
            assert told.counted == 3_000
        tally = cup.store.read(cup.state).tally
        assert tally.duels == 3_000
        straight = tell_log(cup, str(tmp_path / "clicks.parquet"), COLUMNS, source="straight")
        assert straight.counted == 3_000
        after = cup.store.read(cup.state).tally
        assert (after.points == 2 * tally.points).all()  # both ways of counting agree


def test_the_documented_sql_on_spark(tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    import shutil

    if shutil.which("java") is None:
        pytest.skip("there is no java: install Debian's default-jre-headless")
    rows = impressions()
    parquet(tmp_path / "clicks.parquet", rows, "day, ranker_a, ranker_b, winner")
    builder = pyspark.SparkSession.builder.master("local[2]").appName("roundel")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        "spark.driver.memory": "512m",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        session.read.parquet(str(tmp_path / "clicks.parquet")).createOrReplaceTempView("clicks")
        found = [tuple(row) for row in session.sql(statement()).collect()]
    finally:
        session.stop()
    assert set(found) == by_hand(rows)
    names = ("partition_name", "first", "second", "wins", "losses", "ties")
    (tmp_path / "counts.jsonl").write_text(
        "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in found)
    )
    with new(tmp_path, horizon=10**8) as cup:
        assert tell_counts(cup, tmp_path / "counts.jsonl").counted == 3_000
        cup.verify()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"first": "a", "second": "b", "wins": 1}, "no 'losses'"),
        ({"first": "a", "second": "b", "wins": 1, "losses": None}, "losses is None"),
        ({"first": "a", "second": None, "wins": 1, "losses": 0}, "the option is None"),
        ({"first": "a", "second": "b", "wins": -1, "losses": 0}, "at least 0"),
        ({"first": "a", "second": "b", "wins": 1.5, "losses": 0}, "whole number"),
        ({"first": "a", "second": "b", "wins": True, "losses": 0}, "whole number"),
        ({"first": "a", "second": "a", "wins": 1, "losses": 0}, "with itself"),
    ],
)
def test_counts_that_are_refused(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    (tmp_path / "c.jsonl").write_text(json.dumps(row) + "\n")
    with new(tmp_path) as cup, pytest.raises(DataError, match=message):
        tell_counts(cup, tmp_path / "c.jsonl")


def test_counts_of_another_file_are_another_partition(tmp_path: Path) -> None:
    with new(tmp_path) as cup:
        for day in ("day1", "day2", "day1"):
            (tmp_path / day).mkdir(exist_ok=True)
            (tmp_path / day / "counts.csv").write_text("first,second,wins,losses\na,b,3,1\n")
            tell_counts(cup, tmp_path / day / "counts.csv")
        assert counts(cup)["ab"] == (12, 8)
