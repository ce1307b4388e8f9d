"""The bundled problems: what they are, and that the raw files give them again to the last digit."""

from __future__ import annotations

import os
from importlib.resources import files

import numpy as np
import pytest

from roundel.datasets import build, data_folder, load_problem, problems, save, stand_in
from roundel.datasets.bundled import NAMES, about
from roundel.errors import DataError, ProblemError

# name -> arms, the winner's label, the smallest gap, SST, STI; as docs/datasets.md says
FACTS = {
    "six_rankers": (6, "ranker 0", 0.04, False, False),
    "sushi": (16, "toro (fatty tuna)", 0.10236, False, False),
    "irish_meath": (12, "Noel Dempsey F.F.", 0.04835, False, False),
    "irish_dublin": (8, "Trevor Sargent G.P.", 0.03098, False, False),
    "arithmetic": (8, "0", 0.05, True, True),
    "cyclic": (4, "0", 0.1, False, False),
    "nocw5": (5, None, None, False, False),
}
RAW = {
    "sushi": "preflib/00014-00000002.soi",
    "irish_meath": "preflib/00001-00000003.soi",
    "irish_dublin": "preflib/00001-00000001.soi",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ROUNDEL_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.mark.parametrize("name", NAMES)
def test_facts(name):
    problem = load_problem(name)
    arms, winner, gap, sst, sti = FACTS[name]
    assert (problem.name, problem.arms, problem.sst, problem.sti) == (name, arms, sst, sti)
    if winner is None:
        assert problem.winner is None
    else:
        assert problem.labels[problem.winner] == winner
        assert np.delete(problem.gaps, problem.winner).min() == pytest.approx(gap, abs=1e-5)


def test_worked_numbers():
    six = load_problem("six_rankers")
    assert six.matrix[0].tolist() == [0.5, 0.55, 0.55, 0.54, 0.61, 0.61]
    assert six.matrix[3, 5] == 0.5
    assert six.lower_bound_coefficient == pytest.approx(20.735, abs=0.001)
    arithmetic = load_problem("arithmetic")
    assert arithmetic.matrix[1, 6] == 0.75
    assert arithmetic.lower_bound_coefficient == pytest.approx(12.712, abs=0.001)
    assert load_problem("cyclic").matrix[1].tolist() == [0.4, 0.5, 0.9, 0.1]
    assert load_problem("nocw5").copeland.tolist() == [3, 3, 2, 1, 1]


@pytest.mark.parametrize("name", NAMES)
def test_files_say_where_they_come_from(name):
    facts = about(name)
    assert min(map(len, facts)) > 10
    text = (files("roundel.datasets") / "bundled" / f"{name}.txt").read_text("utf-8")
    assert text.startswith("# description: ")
    assert len(text) < 10_000


@pytest.mark.parametrize("name", RAW)
def test_raw_files_give_the_bundled_problems_to_the_last_digit(name, shared_data, folder):
    made = build(name, shared_data / RAW[name])
    bundled = load_problem(name)
    assert made.labels == bundled.labels
    assert (made.matrix == bundled.matrix).all()
    saved = save(name, made).read_bytes()
    assert saved == (files("roundel.datasets") / "bundled" / f"{name}.txt").read_bytes()


def test_mslr30_from_the_matrix_of_136_rankers(shared_data, folder):
    with pytest.raises(ProblemError, match=r"mslr30 is not built.*roundel data build mslr30 --from FILE"):
        load_problem("mslr30")
    assert not problems()["mslr30"].ready
    made = build("mslr30", shared_data / "mslr" / "MSLR-Navigational.txt")
    chosen = np.sort(np.random.default_rng(1).choice(136, 30, replace=False))
    everyone = np.loadtxt(shared_data / "mslr" / "MSLR-Navigational.txt")
    assert (made.matrix == everyone[np.ix_(chosen, chosen)]).all()
    assert made.labels[0] == f"feature {chosen[0] + 1}"
    assert made.winner == 25
    assert np.delete(made.gaps, made.winner).min() == pytest.approx(0.0056, abs=5e-5)
    assert save("mslr30", made).parent == folder
    assert problems()["mslr30"].ready
    again = load_problem("mslr30")
    assert (again.matrix == made.matrix).all()
    assert (again.name, again.labels) == ("mslr30", made.labels)


@pytest.mark.parametrize("name", ["mslr30", "yahoo30"])
@pytest.mark.parametrize("seed", [1, 2])
def test_stand_ins_have_the_size_and_a_winner(name, seed):
    made = stand_in(name, seed)
    assert made.arms == 30
    assert made.winner is not None
    assert made.name == f"{name}-stand-in:seed={seed}"
    assert all("synthetic" in label for label in made.labels)
    assert not made.sst
    if seed == 2:
        assert (load_problem(f"{name}-stand-in:seed=2").matrix == made.matrix).all()


def letor_text(features: int, queries: int = 12, documents: int = 12) -> str:
    """Ranking data in which a higher feature is the better ranker."""
    rng = np.random.default_rng(features)
    lines = []
    for query in range(queries):
        for grade in rng.integers(0, 5, documents).tolist():
            quality = (np.arange(1, features + 1) / features) ** 3
            values = quality * (grade - 2) + (1 - quality) * 3 * rng.standard_normal(features)
            cells = " ".join(f"{f}:{v:.4f}" for f, v in enumerate(values.tolist(), 1))
            lines.append(f"{grade} qid:{query} {cells}\n")
    return "".join(lines)


@pytest.mark.parametrize(("name", "features"), [("mslr30", 136), ("yahoo30", 40)])
def test_thirty_rankers_from_ranking_data(name, features, tmp_path, folder):
    raw = tmp_path / "train.txt"
    raw.write_text("# a remark\n\n" + letor_text(features))
    made = build(name, raw, comparisons=200)
    assert made.arms == 30
    assert made.winner is not None
    numbers = [int(label.removeprefix("feature ")) for label in made.labels]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] <= features
    save(name, made)
    assert (load_problem(name).matrix == made.matrix).all()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("sushi", "# DATA TYPE: soi\n# NUMBER ALTERNATIVES: 3\n1: 1,2\n", r"3 alternatives where .*00014-00000002.soi"),
        ("mslr30", "0.5 0.6\n0.4 0.5\n", r"a matrix of 2 x 2 where the one of MSLR is 136 x 136"),
        ("yahoo30", "0.5 0.6\n0.4 0.5\n", r"lines 'grade qid:N 1:value ...' were expected for yahoo30"),
        ("yahoo30", "1 qid:1 1:1 2:2\n", r"2 features that are not zero everywhere; yahoo30 needs 30"),
        ("mslr30", "1 qid:1 1:1 137:2\n", r"features up to 137, but MSLR has 136"),
    ],
)
def test_wrong_raw_files(name, text, message, tmp_path):
    raw = tmp_path / "raw.soi"
    raw.write_text(text)
    with pytest.raises(DataError, match=message):
        build(name, raw)


def test_names_that_cannot_be_built(tmp_path, folder):
    for action in (lambda: build("cyclic", tmp_path), lambda: save("nothing", load_problem("cyclic"))):
        with pytest.raises(ProblemError, match=r"cannot be built from raw data: choose one of mslr30, yahoo30"):
            action()
    with pytest.raises(ProblemError, match=r"no stand-in for 'sushi': choose one of mslr30, yahoo30"):
        stand_in("sushi")
    with pytest.raises(DataError, match=r"not a file"):
        build("sushi", tmp_path)
    with pytest.raises(DataError, match=r"no such file"):
        build("mslr30", tmp_path / "missing.txt")


def test_a_damaged_built_file_says_to_build_it_again(folder):
    folder.mkdir()
    (folder / "mslr30.txt").write_text("0.5 0.7\n0.4 0.5\n")
    with pytest.raises(DataError, match=r"mslr30.txt: P\[0, 1\].*add up to 1; build mslr30 again"):
        load_problem("mslr30")


def test_saving_leaves_no_drafts_and_an_unwritable_place_is_named(folder):
    problem = load_problem("sushi")
    save("sushi", problem)
    save("sushi", problem)
    assert [p.name for p in folder.iterdir()] == ["sushi.txt"]
    (folder / "irish_meath.txt").mkdir()
    with pytest.raises(DataError, match=r"irish_meath.txt: this is not a file"):
        save("irish_meath", load_problem("irish_meath"))
    assert sorted(p.name for p in folder.iterdir()) == ["irish_meath.txt", "sushi.txt"]


def test_where_built_files_live(monkeypatch, tmp_path):
    monkeypatch.setenv("ROUNDEL_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.delenv("ROUNDEL_DATA")
    if os.name == "posix" and os.uname().sysname == "Linux":
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
        assert data_folder() == tmp_path / "share" / "roundel"
        monkeypatch.delenv("XDG_DATA_HOME")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert data_folder() == tmp_path / ".local" / "share" / "roundel"
