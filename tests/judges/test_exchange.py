"""Files for other tools: out, blinded; back, checked to the last line before anything is told."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from roundel.errors import ConflictError, DataError, InputError, VerdictError
from roundel.judges import (
    export_label_studio,
    export_manifest,
    import_battles,
    import_label_studio,
    import_verdicts,
    judge_with,
)
from roundel.tournament import Tournament

OPTIONS = {"anna": "alpha text", "bert": "beta text", "carl": "gamma text"}
BEST = list(OPTIONS.values())


def new(folder: Path, **changes: Any) -> Tournament:
    return Tournament.create(folder / "t.db", "t", OPTIONS, **{"horizon": 90, "rounds": 2, "seed": 1, **changes})


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def better(row: dict[str, Any]) -> str:
    return "response_1" if BEST.index(row["response_1"]) < BEST.index(row["response_2"]) else "response_2"


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_round_goes_out_blinded_and_comes_back(tmp_path: Path) -> None:
    with new(tmp_path, contexts={"case 1": "a question"}) as cup:
        count = export_manifest(cup, tmp_path / "m.jsonl")
        rows = lines(tmp_path / "m.jsonl")
        assert len(rows) == count == cup.status.asked == cup.status.leased
        assert {tuple(row) for row in rows} == {("case_id", "task_input", "response_1", "response_2")}
        assert rows[0]["task_input"] == "Which one is better?\n\na question"
        text = (tmp_path / "m.jsonl").read_text()
        assert not any(name in text for name in OPTIONS)
        assert cup.lease(5) == []  # held for whoever has the file
        back = write(
            tmp_path / "r.jsonl", [{"case_id": row["case_id"], "preference": better(row), "cost": 0.5} for row in rows]
        )
        told = import_verdicts(cup, back)
        assert told.became == {"counted": count}
        assert cup.outcome.winner == "anna"
        assert cup.status.cost == pytest.approx(0.5 * count)
        assert import_verdicts(cup, back).became == {"counted": count}  # the same receipts: nothing counts twice
        assert cup.status.verdicts["counted"] == count
        assert all(one.losses == 0 for one in cup.outcome.standings if one.name == "anna")
        cup.verify()


def test_results_as_csv_with_a_column_of_ones_own(tmp_path: Path) -> None:
    with new(tmp_path) as cup:
        export_manifest(cup, tmp_path / "m.jsonl", limit=4)
        rows = lines(tmp_path / "m.jsonl")
        assert len(rows) == 4
        with (tmp_path / "r.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["case_id", "pick", "judge", "note"])
            for row, pick in zip(rows, ["1", "2", "tie", ""], strict=True):
                writer.writerow([row["case_id"], pick, "zoe", "so, so" if pick == "tie" else ""])
        told = import_verdicts(cup, tmp_path / "r.csv", column="pick")
        assert (told.became, told.skipped) == ({"counted": 3}, 1)
        assert cup.status.judges == {"zoe": 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdict": "left-ish"}, r"line 2: verdict is 'left-ish': write first, second or tie"),
        ({"verdict": True}, "line 2: verdict is True"),
        ({"case_id": "123-1.1"}, "line 2: .* is not of 't'"),
        ({"case_id": None}, "line 2: case_id is None"),
        ({"case_id": 7}, "line 2: case_id is 7"),
        ({"cost": "a lot"}, "line 2: the cost is 'a lot'"),
        ({"cost": -1}, "line 2: the cost is -1"),
        ({"judge": "two\nlines"}, "line 2: judge"),
        ({"note": 7}, "line 2: note"),
        ({"case_id": "same"}, "stands in line 1 already"),
        ({"case_id": "unknown"}, "line 2: .*no such duel"),
    ],
)
def test_one_bad_line_and_nothing_is_told(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with new(tmp_path) as cup:
        export_manifest(cup, tmp_path / "m.jsonl", limit=3)
        rows = [{"case_id": row["case_id"], "verdict": "first"} for row in lines(tmp_path / "m.jsonl")]
        if change.get("case_id") == "same":
            change = {"case_id": rows[0]["case_id"]}
        elif change.get("case_id") == "unknown":
            change = {"case_id": rows[0]["case_id"].partition("-")[0] + "-7.7"}
        rows[1] |= change
        with pytest.raises(DataError, match=message):
            import_verdicts(cup, write(tmp_path / "r.jsonl", rows))
        assert cup.status.verdicts["counted"] == 0


def test_another_answer_to_the_same_case_is_refused(tmp_path: Path) -> None:
    with new(tmp_path) as cup:
        export_manifest(cup, tmp_path / "m.jsonl", limit=2)
        row, new_one = lines(tmp_path / "m.jsonl")
        answer = {"case_id": row["case_id"], "verdict": "first"}
        import_verdicts(cup, write(tmp_path / "r.jsonl", [answer]))
        more = {"case_id": new_one["case_id"], "verdict": "tie"}
        for change in ({"verdict": "second"}, {"cost": 1.0}, {"note": "hm"}):
            with pytest.raises(ConflictError, match="the first one stays"):
                import_verdicts(cup, write(tmp_path / "r.jsonl", [more, answer | change]))
        assert cup.status.verdicts["counted"] == 1  # of the file with the other answer, nothing was told
        twice = [more, more | {"verdict": "first", "judge": "manifest"}]  # "manifest" judges where a row names nobody
        with pytest.raises(DataError, match="two answers of 'manifest'"):
            import_verdicts(cup, write(tmp_path / "r.jsonl", twice))
        assert cup.status.verdicts["counted"] == 1
        assert import_verdicts(cup, write(tmp_path / "r.jsonl", [answer, more])).became == {"counted": 2}


def test_nothing_to_export(tmp_path: Path) -> None:
    with new(tmp_path) as cup:
        export_manifest(cup, tmp_path / "m.jsonl")
        with pytest.raises(InputError, match="held by judges"):
            export_manifest(cup, tmp_path / "n.jsonl")
    assert not (tmp_path / "n.jsonl").exists()


@pytest.mark.parametrize("export", [export_manifest, export_label_studio])
def test_a_file_that_is_not_written_holds_no_duels(tmp_path: Path, export: Any) -> None:
    (tmp_path / "file").write_text("not a folder")
    with new(tmp_path) as cup:
        with pytest.raises(DataError):
            export(cup, tmp_path / "file" / "out.json")
        assert cup.status.leased == 0
        assert export_manifest(cup, tmp_path / "m.jsonl") == cup.status.asked
        cup.verify()


def annotated(task: dict[str, Any], verdict: str | None, who: Any = 1, cancelled: bool = False) -> dict[str, Any]:
    """A task as Label Studio exports it."""
    result: list[dict[str, Any]] = []
    if verdict in ("left", "right"):
        result.append(
            {"from_name": "better", "to_name": "first,second", "type": "pairwise", "value": {"selected": verdict}}
        )
    elif verdict == "tie":
        result.append({"from_name": "tie", "to_name": "first", "type": "choices", "value": {"choices": ["tie"]}})
    annotation = {"id": 1, "completed_by": who, "was_cancelled": cancelled, "result": result}
    return {"id": 7, "data": task["data"], "annotations": [annotation]}


def test_label_studio_and_back(tmp_path: Path) -> None:
    with new(tmp_path) as cup:
        config = export_label_studio(cup, tmp_path / "tasks.json", limit=5)
        tasks = json.loads((tmp_path / "tasks.json").read_text())
        assert len(tasks) == 5
        assert not any(name in (tmp_path / "tasks.json").read_text() for name in OPTIONS)
        text = config.read_text()
        assert '<Pairwise name="better" toName="first,second"/>' in text
        for name in tasks[0]["data"].keys() - {"case_id", "context"}:
            assert f'value="${name}"' in text
        answers: list[tuple[str | None, Any, bool]] = [
            ("left", 1, False),
            ("right", {"id": 2, "email": "zoe@example.org"}, False),
            ("tie", 1, False),
            ("left", 1, True),
            (None, 1, False),
        ]
        done = [annotated(task, *answer) for task, answer in zip(tasks, answers, strict=True)]
        (tmp_path / "done.json").write_text(json.dumps(done))
        told = import_label_studio(cup, tmp_path / "done.json")
        assert (told.became, told.skipped) == ({"counted": 3}, 2)
        assert cup.status.judges == {"label-studio:1": 2, "label-studio:zoe@example.org": 1}
        assert import_label_studio(cup, tmp_path / "done.json").became == {"counted": 3}
        assert cup.status.verdicts["counted"] == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "not a list of tasks"),
        ("[1]", "not a list of tasks"),
        ("[{}]", "task 1: not as roundel's"),
        (
            '[{"data": {"case_id": "x-1.1"}, "annotations": [{"result": [{"type": "pairwise", "value": {}}]}]}]',
            "task 1",
        ),
        ("[", "not JSON"),
    ],
)
def test_exports_of_another_kind(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with new(tmp_path) as cup, pytest.raises(DataError, match=message):
        import_label_studio(cup, tmp_path / "x.json")


def test_pictures_stand_beside_a_manifest_under_blind_names(tmp_path: Path) -> None:
    from PIL import Image

    for name, colour in (("secret x", "red"), ("secret y", "blue")):
        Image.new("RGB", (8, 8), colour).save(tmp_path / f"{name}.png")
    options = [{"name": name, "image": f"secret {name}.png"} for name in ("x", "y")]
    with Tournament.create(tmp_path / "i.db", "i", options, folder=tmp_path, horizon=20, rounds=2) as cup:
        export_manifest(cup, tmp_path / "out" / "duels.jsonl", limit=2)
    text = (tmp_path / "out" / "duels.jsonl").read_text()
    assert "secret" not in text
    shown = [json.loads(line)[side] for line in text.splitlines() for side in ("response_1", "response_2")]
    copies = {(tmp_path / "out" / path).read_bytes() for path in shown}
    assert copies == {(tmp_path / f"secret {name}.png").read_bytes() for name in ("x", "y")}


def test_pictures_travel_inside_the_tasks(tmp_path: Path) -> None:
    from PIL import Image

    for name, colour in (("x", "red"), ("y", "blue")):
        Image.new("RGB", (8, 8), colour).save(tmp_path / f"{name}.png")
    options = [{"name": name, "image": f"{name}.png"} for name in ("x", "y")]
    with Tournament.create(tmp_path / "i.db", "i", options, folder=tmp_path, horizon=20, rounds=2) as cup:
        config = export_label_studio(cup, tmp_path / "tasks.json", limit=1)
        (task,) = json.loads((tmp_path / "tasks.json").read_text())
        assert task["data"]["first"].startswith("data:image/png;base64,")
        assert '<Image name="first" value="$first"/>' in config.read_text()
        (tmp_path / "x.png").write_bytes((tmp_path / "y.png").read_bytes())
        with pytest.raises(DataError, match="not the one that the tournament began with"):
            export_label_studio(cup, tmp_path / "more.json", limit=1)


def test_battles_of_a_log_fill_the_round(tmp_path: Path) -> None:
    with new(tmp_path, horizon=200, rounds=2) as cup:
        asked = cup.status.asked
        rows = ["best,other,outcome"]
        rows += ["anna,bert,anna"] * 40 + ["bert,anna,tie"] * 4 + ["bert,anna,bert"] * 6 + ["carl,anna,anna"] * 3
        (tmp_path / "log.csv").write_text("\n".join(rows) + "\n")
        names = {"first": "best", "second": "other", "verdict": "outcome"}
        told = import_battles(cup, tmp_path / "log.csv", **names)
        tally = cup.store.read(cup.state).tally
        planned = asked // 3
        assert tally.counts[0, 1] == min(50, planned)
        assert (tally.counts[0, 2], tally.points[2, 0]) == (3, 0)
        assert told.counted == tally.duels
        assert told.full == max(0, 50 - planned)
        before = cup.status.head
        import_battles(cup, tmp_path / "log.csv", **names)
        assert cup.status.head == before  # the same log again changes nothing
        (tmp_path / "day2").mkdir()
        (tmp_path / "day2" / "log.csv").write_text("first,second,verdict\nbert,carl,first\n")
        import_battles(cup, tmp_path / "day2" / "log.csv")  # another file of that name is another partition
        assert cup.store.read(cup.state).tally.duels == tally.duels + 1
        (tmp_path / "other.csv").write_text("first,second,verdict\nxaver,yves,first\n")
        with pytest.raises(VerdictError, match="'xaver' is no option"):
            import_battles(cup, tmp_path / "other.csv")
        judge_with(cup, lambda duel: "first")
        cup.verify()
