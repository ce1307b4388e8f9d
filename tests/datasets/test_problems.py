"""One door: names, parameters in text, and files by suffix."""

from __future__ import annotations

import os

import numpy as np
import pytest

from roundel.datasets import bradley_terry, load_problem, problems
from roundel.errors import DataError, ProblemError


def test_every_problem_is_listed_with_what_is_known_of_it(tmp_path, monkeypatch):
    monkeypatch.setenv("ROUNDEL_DATA", str(tmp_path))
    every = problems()
    assert list(every)[:7] == ["six_rankers", "sushi", "irish_meath", "irish_dublin", "arithmetic", "cyclic", "nocw5"]
    for name, problem in every.items():
        assert problem.name == name
        assert problem.description
        assert problem.source
        assert problem.ready == (problem.kind != "built")
        if problem.kind == "bundled":
            assert problem.load().arms == problem.arms
    assert [p.name for p in every["mallows"].parameters] == ["arms", "seed", "dispersion"]


def test_text_arguments_and_functions_are_the_same():
    one = load_problem("bradley-terry:arms=12,seed=5")
    assert (one.matrix == load_problem("bradley_terry", arms=12, seed=5).matrix).all()
    assert (one.matrix == load_problem("bradley-terry:arms=12", seed="5").matrix).all()
    assert (one.matrix == bradley_terry(arms=12, seed=5).matrix).all()
    assert one.name == "bradley-terry:arms=12,seed=5,spread=1.0"
    assert (load_problem(one.name).matrix == one.matrix).all()
    assert load_problem("six-rankers").name == "six_rankers"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sushy", r"no problem 'sushy' and no such file: did you mean sushi\? choose one of six_rankers, "),
        ("", r"there is no problem ''"),
        ("mallows:arms", r"'arms' is not key=value"),
        ("mallows:", r"'' is not key=value"),
        ("mallows:arms=4,arms=5", r"'arms' is given twice"),
        ("mallows:size=4", r"mallows has no parameter 'size': it takes arms, seed, dispersion"),
        ("mallows:arms=many", r"arms is 'many': it must be a whole number"),
        ("sushi:arms=4", r"sushi has no parameter 'arms': it takes none"),
    ],
)
def test_bad_names(text, message):
    with pytest.raises(ProblemError, match=message):
        load_problem(text)


def test_what_is_neither_name_nor_path():
    with pytest.raises(ProblemError, match=r"5 is neither the name of a problem nor a path"):
        load_problem(5)


def test_files_go_to_their_loaders(tmp_path):
    (tmp_path / "m.csv").write_text("a,b\n0.5,0.75\n0.25,0.5\n")
    (tmp_path / "m.txt").write_text("# remark\n0.5 0.75\n0.25 0.5\n")
    np.savez(tmp_path / "m.npz", matrix=np.array([[0.5, 0.75], [0.25, 0.5]]), labels=np.array(["a", "b"]))
    (tmp_path / "b.csv").write_text("model_a,model_b,winner\na,b,tie\na,b,model_a\n")
    (tmp_path / "b.jsonl").write_text(
        '{"left": "a", "right": "b", "winner": "tie"}\n{"left":"a","right":"b","winner":"left"}'
    )
    (tmp_path / "v.soi").write_text("# NUMBER ALTERNATIVES: 2\n3: 1,2\n1: 2,1\n")
    for name in ("m.csv", "m.txt", "m.npz", "b.csv", "b.jsonl", "v.soi"):
        for given in (tmp_path / name, str(tmp_path / name)):
            problem = load_problem(given)
            assert problem.matrix.tolist() == [[0.5, 0.75], [0.25, 0.5]]
            assert problem.name == name
    (tmp_path / "r.txt").write_text("# remark\n1 qid:1 1:2 2:1\n0 qid:1 1:1 2:2\n")
    assert load_problem(f"{tmp_path}/r.txt:user=perfect,comparisons=1000").winner == 0


def test_options_in_text_and_as_arguments(tmp_path):
    path = tmp_path / "v.soi"
    path.write_text("# NUMBER ALTERNATIVES: 3\n2: 1\n1: 2,1\n1: 3,1\n")
    expected = load_problem(path, unranked="last", top=2).matrix.tolist()
    assert expected == [[0.5, 0.75], [0.25, 0.5]]
    assert load_problem(f"{path}:unranked=last,top=2").matrix.tolist() == expected
    assert load_problem(f"{path}:unranked=last", top="2").matrix.tolist() == expected
    log = tmp_path / "b.csv"
    log.write_text("x,y,z\na,b,a\na,b,b\nc,b,tie\n")
    assert load_problem(f"{log}:first=x,second=y,verdict=z,top=2").labels == ("a", "b")
    with pytest.raises(ProblemError, match=r"has no parameter 'side': it takes unranked, top"):
        load_problem(path, side=1)
    with pytest.raises(ProblemError, match=r"unranked is 'first': it must be one of ignored, last"):
        load_problem(f"{path}:unranked=first")


def test_a_name_wins_over_a_file_and_colons_in_paths_are_fine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cyclic").write_text("0.5 1\n0 0.5\n")
    assert load_problem("cyclic").arms == 4
    assert load_problem(f".{os.sep}cyclic").arms == 2
    (tmp_path / "a:b=c.txt").write_text("0.5 1\n0 0.5\n")
    assert load_problem("a:b=c.txt").arms == 2


def test_a_path_that_leads_nowhere(tmp_path):
    with pytest.raises(DataError, match=r"nowhere.csv: there is no such file"):
        load_problem(str(tmp_path / "nowhere.csv"))
    with pytest.raises(DataError, match=r"this is not a file"):
        load_problem(tmp_path)
    (tmp_path / "a.zip").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"compressed file; unpack it first"):
        load_problem(tmp_path / "a.zip")
