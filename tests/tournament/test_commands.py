"""The command line: JSON Lines in and out, through pipes, with a judge in another language."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

OPTIONS = "question: Which?\nhorizon: 300\nrounds: 4\noptions: [a, b, c]\n"


def roundel(*arguments: str, given: str | None = None, status: int = 0) -> tuple[str, str]:
    command = [sys.executable, "-c", "from roundel.cli import main; main()", *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    return done.stdout, done.stderr


@pytest.fixture
def store(tmp_path: Path) -> str:
    (tmp_path / "o.yaml").write_text(OPTIONS)
    place = str(tmp_path / "s.db")
    out, _ = roundel("new", place, "cup", "--options", str(tmp_path / "o.yaml"), "--seed", "2")
    assert "cup: open: round 1 is being played" in out
    return place


def judge(lines: str) -> str:
    """What awk would do: the earlier name wins."""
    rows = [json.loads(line) for line in lines.splitlines()]
    return "".join(
        json.dumps({**r, "verdict": "first" if r["first"]["name"] < r["second"]["name"] else "second"}) + "\n"
        for r in rows
    )


def test_a_campaign_by_commands_alone(store: str, tmp_path: Path) -> None:
    turns = 0
    while True:
        lines, complaint = roundel("lease", store, "cup", "--limit", "500", "--judge", "awk")
        if not lines:
            assert "nothing to judge: winner: every other option was eliminated" in complaint
            break
        told, _ = roundel("tell", store, "cup", given=judge(lines))
        assert told == f"{len(lines.splitlines())} counted\n"
        turns += 1
    assert 1 < turns <= 4
    out, _ = roundel("status", store)
    assert "cup: winner" in out
    assert "out in round" in out
    status = json.loads(roundel("status", store, "cup", "--json")[0])
    assert status["winner"] == "a"
    assert status["judges"] == {"awk": status["spent"]}

    proof, export = str(tmp_path / "proof.json"), str(tmp_path / "all.jsonl")
    roundel("certificate", store, "cup", "--out", proof)
    assert "2 eliminations follow from the counts; 2 recomputed" in roundel("verify", proof)[0]
    assert "verified" in roundel("verify", store, "--expect", status["head"])[0]
    roundel("export", store, "cup", "--out", export)
    assert "verified" in roundel("verify", export)[0]
    assert "verified" in roundel("verify", export, "cup", "--expect", status["head"])[0]
    assert "rows were lost" in roundel("verify", export, "--expect", "999:abc", status=1)[1]
    assert "no tournament 'mug'" in roundel("verify", export, "mug", status=1)[1]
    again = str(tmp_path / "again.db")
    assert status["head"] in roundel("import", again, export)[0]
    assert json.loads(roundel("status", again, "cup", "--json")[0]) == status

    text = Path(proof).read_text()
    Path(proof).write_text(text.replace('"winner": "a"', '"winner": "b"'))
    assert "digest does not cover" in roundel("verify", proof, status=1)[1]
    lines = Path(export).read_text().replace('"verdict":"first"', '"verdict":"second"', 1)
    Path(export).write_text(lines)
    assert "not what its digest covers" in roundel("verify", export, status=1)[1]


def test_lines_that_fail_do_not_hold_up_the_others(store: str) -> None:
    lines = roundel("lease", store, "cup", "-n", "4")[0].splitlines()
    good = judge("\n".join(lines[:2])).splitlines()
    passed = json.dumps({**json.loads(lines[2]), "verdict": None, "note": "cannot say"})
    bad = ["{", "[]", '{"duel": "1.0", "token": "forged", "verdict": "first"}', lines[3]]
    out, err = roundel("tell", store, "cup", "-", "--json", given="\n".join([*bad, *good, passed, ""]), status=1)
    assert [json.loads(line)["became"] for line in out.splitlines()] == ["counted", "counted", "rejected"]
    assert "4 of 7 lines were not taken: line 1: not JSON" in err
    counts = json.dumps({"key": "log", "counts": [["a", "b", 0, 0, 1]]})
    assert json.loads(roundel("tell", store, "cup", "--json", given=counts)[0])["became"] == "counted"


def test_closing_and_ending(store: str) -> None:
    assert "no verdict yet" in roundel("close", store, "cup", status=1)[1]
    assert "round 2" in roundel("close", store, "cup", "--empty")[0]
    assert json.loads(roundel("close", store, "cup", "--end", "--json")[0])["outcome"] == "undecided"


def test_a_name_and_a_noted_head_are_looked_for_in_every_kind_of_file(store: str, tmp_path: Path) -> None:
    judged = judge(roundel("lease", store, "cup", "--limit", "100")[0])
    roundel("tell", store, "cup", given=judged)
    head = json.loads(roundel("status", store, "cup", "--json")[0])["head"]
    whole, proof = str(tmp_path / "all.jsonl"), str(tmp_path / "proof.json")
    roundel("export", store, "cup", "--out", whole)
    roundel("certificate", store, "cup", "--out", proof)
    assert f"{whole}: verified" in roundel("verify", whole, "cup", "--expect", head)[0]
    assert "verified" in roundel("verify", proof, "cup")[0]
    for arguments, message in (
        ((whole, "mug"), f"{whole} has no tournament 'mug'"),
        ((whole, "--expect", "5:abc"), "delivery 5 is not the one whose head was noted"),
        ((whole, "--expect", "99:abc"), "rows were lost"),
        ((proof, "mug"), "is the certificate of 'cup', not of 'mug'"),
        ((proof, "--expect", head), "in a store or an export"),
    ):
        out, err = roundel("verify", *arguments, status=1)
        assert (out, message in err) == ("", True), err


def test_errors_name_what_is_wrong(store: str, tmp_path: Path) -> None:
    for arguments, message in (
        (("status", str(tmp_path / "none.db")), "there is no store"),
        (("lease", store, "mug"), "no tournament 'mug': it holds cup"),
        (("lease", store, "cup", "--limit", "0"), "limit is 0"),
        (("new", store, "cup", "--options", str(tmp_path / "o.yaml")), "already"),
        (("new", store, "new", "--options", str(tmp_path / "none.yaml")), "none.yaml"),
        (("tell", store, "cup", str(tmp_path / "none.jsonl")), "check the path"),
        (("verify", str(tmp_path / "none")), "give a certificate, an export, or a store"),
        (("verify", store, "--expect", "5:abc"), "rows were lost"),
        (("import", store, str(tmp_path / "o.yaml")), "not JSON"),
    ):
        out, err = roundel(*arguments, status=1)
        assert out == ""
        assert err.startswith("roundel: ")
        assert message in err
        assert "Traceback" not in err
    roundel("lease", status=2)
