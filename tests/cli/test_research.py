"""The commands for researchers and the lists of what there is, run as a user runs them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import roundel
from instances import SIX
from roundel.cli.output import share
from roundel.policies import parse, policies


def roundel_(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "roundel", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **environment},
    )


def test_policies_lists_the_registry_as_a_table_and_as_json() -> None:
    table, data = roundel_("policies"), roundel_("policies", "--json")
    assert table.returncode == data.returncode == 0
    rows = {row["name"]: row for row in json.loads(data.stdout)}
    assert list(rows) == list(policies())
    assert all(name in table.stdout for name in rows)
    assert rows["c2b-kl"]["assumption"] == "Condorcet"
    assert rows["scomp2"]["bound"] == "2B + 1"
    assert {p["name"]: p["default"] for p in rows["rucb"]["parameters"]}["alpha"] == 0.51
    assert all(row["summary"] and row["paper"] for row in rows.values())


def test_the_table_of_policies_shows_papers_and_parameters_as_they_are_written() -> None:
    table = roundel_("policies").stdout
    assert "Agarwal, Ghuge & Nagarajan" in table
    written = re.findall(r"(\w+)=(\S+) \(([^)]*)\)", table)
    assert ("f", "none", "float or none") in written
    assert ("fallback", "false", "bool") in written
    assert ("defeat", "paper", "paper|scaled|majority") in written
    assert ("levels", "2", "int") in written
    assert len(written) == sum(len(policy.parameters) for policy in policies().values())
    for name, policy in policies().items():
        for parameter in policy.parameters:
            default = next(value for key, value, _ in written if key == parameter.name)
            assert parse(f"{name}:{parameter.name}={default}")


def test_info_names_versions() -> None:
    facts = {row["part"]: row["version"] for row in json.loads(roundel_("info", "--json").stdout)}
    assert facts["roundel"] == roundel.__version__
    assert facts["numpy"]
    assert roundel.__version__ in roundel_("info").stdout


def test_problems_lists_what_there_is() -> None:
    rows = {row["name"]: row for row in json.loads(roundel_("problems", "--json").stdout)}
    assert rows["six_rankers"]["arms"] == 6
    assert rows["mslr30"]["kind"] == "built"
    assert "six_rankers" in roundel_("problems").stdout


def test_compare_prints_draws_and_keeps(tmp_path: Path) -> None:
    done = roundel_(
        *("compare", "--policy", "c2b-kl:defeat=majority", "--policy", "pcomp", "--problem", "six_rankers"),
        *("--horizon", "20000", "--repeats", "4", "--seed", "5", "--out", "t.parquet", "--plot", "t.svg", "--json"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row["policy"] for row in rows] == ["c2b-kl:defeat=majority", "pcomp"]
    problem = roundel.load_problem("six_rankers")
    again = roundel.compare(["c2b-kl:defeat=majority", "pcomp"], [problem], 20000, 4, seed=5)
    assert [row["regret"] for row in rows] == [row["regret"] for row in again.summary()]
    assert {path.name for path in tmp_path.iterdir()} == {"t.parquet", "t.svg"}
    assert "PCOMP" in (tmp_path / "t.svg").read_text().upper()


def test_a_bar_moves_on_a_terminal_and_nowhere_else() -> None:
    arguments = ["compare", "--policy", "c2b", "--problem", "six_rankers", "--horizon", "500", "--repeats", "3"]
    assert roundel_(*arguments).stderr == ""
    terminal, side = os.openpty()
    with open(terminal, "rb", buffering=0) as screen:
        done = subprocess.run(
            [sys.executable, "-m", "roundel", *arguments, "--json"],
            stdout=subprocess.PIPE,
            stderr=side,
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(side)
        shown = b""
        with suppress(OSError):  # how the end of a terminal reads
            while part := screen.read(4096):
                shown += part
    assert json.loads(done.stdout)[0]["repeats"] == 3  # the numbers are not disturbed
    assert b"trials" in shown
    assert b"3/3" in shown


@pytest.mark.parametrize(
    ("part", "text"), [(0, "0%"), (1e-9, "<1%"), (0.25, "25%"), (0.99, "99%"), (0.9951, ">99%"), (1.0, "100%")]
)
def test_nearly_all_is_not_written_as_all(part: float, text: str) -> None:
    assert share(part) == text


def test_a_problem_may_be_a_file_with_a_single_repeat(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("\n".join(",".join(map(str, row)) for row in SIX))
    done = roundel_(*("compare", "--policy", "c2b", "--problem", "mine.csv", "--horizon", "500"), "--repeats", "1",
                    "--json", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["error"] is None  # one repeat has no standard error; JSON has no NaN


@pytest.mark.parametrize("options", ["", ":first=model_a,second=model_b,verdict=winner"])
def test_the_trials_never_replace_the_problem(tmp_path: Path, options: str) -> None:
    mine = tmp_path / "mine.csv"
    mine.write_text("model_a,model_b,winner\nx,y,model_a\n")
    done = roundel_(*("compare", "--policy", "c2b", "--problem", f"mine.csv{options}", "--horizon", "100"),
                    *("--out", str(mine)), cwd=tmp_path)  # fmt: skip
    assert done.returncode == 1
    assert "this is the file of a problem" in done.stderr
    assert mine.read_text().startswith("model_a")
    assert list(tmp_path.iterdir()) == [mine]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_the_trials_never_replace_what_is_no_comparison(tmp_path: Path, ending: str) -> None:
    mine = tmp_path / f"mine{ending}"
    mine.write_text("a,b\n1,2\n")
    arguments = ("compare", "--policy", "c2b", "--problem", "cyclic", "--horizon", "100", "--repeats", "1", "--out")
    done = roundel_(*arguments, str(mine), cwd=tmp_path)
    assert (done.returncode, "not a comparison" in done.stderr) == (1, True)
    assert mine.read_text() == "a,b\n1,2\n"
    assert list(tmp_path.iterdir()) == [mine]
    other = str(tmp_path / f"other{ending}")
    for _ in range(2):
        assert roundel_(*arguments, other, cwd=tmp_path).returncode == 0


def test_data_build_says_when_it_made_another_problem_than_the_bundled_one(tmp_path: Path, shared_data: Path) -> None:
    raw = next(shared_data.rglob("00014-00000002*"))
    data = tmp_path / "data"
    done = roundel_("data", "build", "sushi", "--from", str(raw), ROUNDEL_DATA=str(data))
    assert (done.returncode, done.stderr) == (0, "")
    more = tmp_path / raw.name
    lines = raw.read_text().splitlines()
    ballot = next(n for n, line in enumerate(lines) if not line.startswith("#"))
    count, _, order = lines[ballot].partition(":")
    lines[ballot] = f"{int(count) + 500}:{order}"
    more.write_text("\n".join(line for line in lines if "NUMBER VOTERS" not in line) + "\n")
    done = roundel_("data", "build", "sushi", "--from", str(more), ROUNDEL_DATA=str(data))
    assert (done.returncode, "not the sushi that is bundled" in done.stderr) == (0, True)


def test_data_build_makes_a_problem_from_its_raw_file(tmp_path: Path, shared_data: Path) -> None:
    raw = shared_data / "mslr" / "MSLR-Navigational.txt"
    done = roundel_("data", "build", "mslr30", "--from", str(raw), "--json", ROUNDEL_DATA=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["arms"] == 30
    listed = json.loads(roundel_("problems", "--json", ROUNDEL_DATA=str(tmp_path)).stdout)
    assert next(row for row in listed if row["name"] == "mslr30")["ready"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["compare", "--policy", "c3b", "--problem", "six_rankers", "--horizon", "9"], 1, "there is no policy 'c3b'"),
        (["compare", "--policy", "c2b", "--problem", "sixty", "--horizon", "9"], 1, "there is no problem 'sixty'"),
        (["compare", "--policy", "c2b", "--problem", "nocw5", "--horizon", "9"], 1, "no Condorcet winner"),
        (["compare", "--policy", "c2b", "--problem", "six_rankers", "--horizon", "0"], 1, "horizon is 0"),
        (["compare", "--policy", "c2b:defeat=luck", "--problem", "six_rankers", "--horizon", "9"], 1, "majority"),
        (["compare", "--policy", "c2b", "--problem", "none.csv", "--horizon", "9"], 1, "none.csv"),
        (["compare", "--policy", "c2b", "--problem", "six_rankers", "--horizon", "9", "--plot", "x.gif"], 1, ".svg"),
        (["compare", "--policy", "c2b", "--problem", "six_rankers", "--horizon", "9", "--out", "x.xls"], 1, ".csv"),
        (["compare", "--policy", "c2b", "--problem", "six_rankers", "--horizon", "many"], 2, "--horizon"),
        (["compare", "--policy", "c2b"], 2, "--problem"),
        (["data", "build", "mslr31", "--from", "x"], 1, "cannot be built"),
        (["paper", "--repeats", "1"], 1, "repeats is 1"),
        (["nothing"], 2, "nothing"),
    ],
)
def test_bad_input_gets_a_clear_line_and_writes_nothing(tmp_path: Path, arguments, status, message) -> None:
    done = roundel_(*arguments, cwd=tmp_path)
    assert done.returncode == status, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    if status == 1:
        assert len(done.stderr.strip().splitlines()) == 1
        assert done.stderr.startswith("roundel: ")
    assert list(tmp_path.iterdir()) == []


def test_paper_refuses_a_folder_that_it_cannot_make(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = roundel_("paper", "--out", str(tmp_path / "file" / "sub"), "--repeats", "2")
    assert done.returncode == 1
    assert "choose another with --out" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_one_clear_line() -> None:
    for arguments in ("policies", "policies --json"):
        command = f"{sys.executable} -m roundel {arguments} > /dev/full"
        done = subprocess.run(command, shell=True, capture_output=True, text=True)
        assert done.returncode == 1
        assert done.stderr == "roundel: No space left on device\n"


def test_a_warning_is_one_line_without_code() -> None:
    done = roundel_("compare", "--policy", "c2b", "--problem", "six_rankers", "--horizon", "50", "--rounds", "30")
    assert done.returncode == 0
    assert done.stderr.startswith("roundel: rounds is 30: ")
    assert len(done.stderr.splitlines()) == 1


def test_starting_the_command_line_loads_nothing_heavy() -> None:
    heavy = {"numba", "matplotlib", "pyarrow", "joblib", "sqlite3", "fastapi", "pydantic", "roundel.simulation"}
    script = "import sys, roundel.cli; print('\\n'.join(m for m in sys.modules))"
    loaded = set(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.split())
    assert "roundel.cli" in loaded
    assert not heavy & loaded


def test_a_closed_pipe_is_no_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m roundel policies --json | head -n 1", shell=True, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.stdout == "[\n"
