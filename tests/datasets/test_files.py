"""Matrices and ranking data in files; and no file, however broken, gets anything but a clear error."""

from __future__ import annotations

import csv
import zipfile
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundel import _matrixfile, _textfile
from roundel._matrixfile import read_matrix, write_matrix
from roundel.datasets import Query, load_problem, read_queries
from roundel.errors import DataError, PreferencesError, RoundelError

THREE = np.array([[0.5, 0.7, 1 / 3], [0.3, 0.5, 0.9], [2 / 3, 0.1, 0.5]])


@pytest.mark.parametrize(("header", "index", "delimiter"), list(product([True, False], [True, False], ",;\t")))
@pytest.mark.parametrize("labels", [("a", "b, or ; c", "d"), ("0", "1", "2")])
def test_csv_with_and_without_labels(tmp_path, header, index, delimiter, labels):
    path = tmp_path / "m.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        if header:
            writer.writerow([*([""] if index else []), *labels])
        for label, row in zip(labels, THREE.tolist(), strict=True):
            writer.writerow([*([label] if index else []), *row])
    matrix, found = read_matrix(path)
    assert (matrix == THREE).all()
    assert found == (labels if header or index else None)


@given(numbers=st.integers(1, 7).flatmap(lambda n: st.lists(st.floats(0, 1), min_size=n * n, max_size=n * n)))
def test_text_keeps_every_digit_and_label(numbers, tmp_path_factory):
    n = int(len(numbers) ** 0.5)
    matrix = np.array(numbers).reshape(n, n)
    labels = [f"arm: {i} # x" for i in range(n)]
    path = write_matrix(tmp_path_factory.mktemp("m") / "m.txt", matrix, labels, ["about: this", ""])
    again, found = read_matrix(path)
    assert (again == matrix).all()
    assert found == tuple(labels)


def test_npz(tmp_path):
    path = tmp_path / "m.npz"
    np.savez_compressed(path, matrix=THREE.astype(np.float32))
    matrix, labels = read_matrix(path)
    assert matrix == pytest.approx(THREE, abs=1e-7)
    assert labels is None
    np.savez(path, matrix=THREE, labels=np.array([b"\xc3\xa9", b"b", b"c"]))
    assert read_matrix(path)[1] == ("é", "b", "c")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"p": THREE}, r"no array 'matrix' in it, only p"),
        ({"matrix": THREE[:2]}, r"'matrix' has shape \(2, 3\)"),
        ({"matrix": np.array([["a"]])}, r"'matrix' has shape \(1, 1\) and type <U1: it must be square and of numbers"),
        ({"matrix": THREE, "labels": np.arange(3)}, r"'labels' has shape \(3,\) and type int64: it must be 3 texts"),
        ({"matrix": THREE, "labels": np.array(["a"])}, r"'labels' has shape \(1,\)"),
        ({"matrix": THREE, "labels": np.array([b"\xff", b"b", b"c"])}, r"'labels' is not UTF-8"),
        ({"matrix": np.array([[None]], object)}, r"not an NPZ file of plain arrays"),
    ],
)
def test_broken_npz(tmp_path, arrays, message):
    np.savez(tmp_path / "m.npz", **arrays)
    with pytest.raises(DataError, match=message):
        read_matrix(tmp_path / "m.npz")


def test_npz_that_would_not_fit(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "m.npz", matrix=np.full((200, 200), 0.5))
    monkeypatch.setattr(_matrixfile, "MOST_ARMS", 100)
    with pytest.raises(DataError, match=r"matrix.npy has 320,128 bytes; the most is 100 arms"):
        read_matrix(tmp_path / "m.npz")
    header = b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999, 9), }"
    with zipfile.ZipFile(tmp_path / "liar.npz", "w") as archive:
        archive.writestr("matrix.npy", header.ljust(127) + b"\n")
    with pytest.raises(DataError, match=r"liar.npz"):
        read_matrix(tmp_path / "liar.npz")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("m.txt", b"", r"m.txt: the file is empty"),
        ("m.txt", b" \n\n", r"m.txt: the file holds nothing but blank lines"),
        ("m.txt", b"# only\n", r"m.txt: the file holds no numbers"),
        ("m.txt", b"0.5 1\n0\n", r"m.txt, line 2: 1 cells where the first row has 2"),
        ("m.txt", b"0.5 1\n0 0.5\n1 1\n0 0\n", r"m.txt, line 4: a row too many: 2 columns need 2 rows"),
        ("m.txt", b"0.5 1 1\n0 0.5 1\n\n# x\n", r"m.txt, line 2: the last of 2 rows of 3 numbers: .* must be square"),
        ("m.txt", b"0.5 1\n0 x\n", r"m.txt, line 2: column 2 is 'x': a number was expected"),
        ("m.txt", b"0.5 1\nx 0.5\n", r"m.txt, line 2: column 1 is 'x': a number was expected"),
        ("m.csv", b"0.5,\n1,0.5\n0.5,1", r"m.csv, line 1: column 2 of the header is empty; name every arm"),
        ("m.csv", b"a,b,c\n0.5,1,1\n0,0.5,1\n", r"m.csv, line 3: the last of 2 rows of 3 numbers"),
        ("m.csv", b"a,b\n0.5,\n1,0.5\n", r"m.csv, line 2: column 2 is '': a number was expected"),
        ("m.csv", b",a,b\na,0.5,1\nc,0,0.5\n", r"m.csv, line 3: row 'c' where the header has 'b'"),
        ("m.csv", b'"a,b\n1,2\n', r"m.csv, line 1: unexpected end of data"),
        ("m.txt", b"0.5 1\n0 0.5\xff\n", r"m.txt, line 2: byte 0xff is not UTF-8"),
        ("m.txt", "0.5 1\n0 0.5\n".encode("utf-16"), r"m.txt, line 1: the text is UTF-16; save it as UTF-8"),
        ("m.txt", b"0.5 1\n0 \0 0.5\n", r"m.txt, line 2: holds a zero byte"),
        ("m.txt", b"# arm 0: a\n0.5 1\n0 0.5\n", r"arm 1 has no line '# arm 1: name'"),
        ("m.txt", b"# arm 0: a\n# arm 2: b\n0.5 1\n0 0.5\n", r"line 2: names arm 2, but the matrix has arms 0 to 1"),
        ("m.txt", b"# arm 0: a\na b\n0.5 1\n0 0.5\n", r"in comments and in the table"),
        ("m.npz", b"PK\x03\x04 nothing", r"not an NPZ file of plain arrays"),
        ("m.npz", b"", r"m.npz: the file is empty"),
    ],
)
def test_broken_matrices(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=message):
        read_matrix(tmp_path / name)


def test_matrices_that_are_no_preferences_name_the_file_and_the_cell(tmp_path):
    (tmp_path / "m.csv").write_text("0.5,0.7\n0.4,0.5\n")
    with pytest.raises(PreferencesError, match=r"m.csv: P\[0, 1\] is 0.7 and P\[1, 0\] is 0.4: they must add up to 1"):
        load_problem(tmp_path / "m.csv")
    (tmp_path / "m.csv").write_text("a,a\n0.5,0.7\n0.3,0.5\n")
    with pytest.raises(PreferencesError, match=r"m.csv: label 'a' stands twice"):
        load_problem(tmp_path / "m.csv")


def test_too_large_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(_matrixfile, "MOST_ARMS", 3)
    (tmp_path / "m.txt").write_text("1 2 3 4 5\nbroken")
    with pytest.raises(DataError, match=r"line 1: 5 columns: such a matrix fills 0.0 GB; the most is 3 arms"):
        read_matrix(tmp_path / "m.txt")
    monkeypatch.setattr(_textfile, "LONGEST_LINE", 8)
    (tmp_path / "m.txt").write_text("1 2\n" + "3" * 9)
    with pytest.raises(DataError, match=r"line 2: longer than .* \(the file has 13 bytes\): not lines of text"):
        read_matrix(tmp_path / "m.txt")


def test_windows_texts_are_fine(tmp_path):
    (tmp_path / "m.csv").write_bytes(b"\xef\xbb\xbfa;b\r\n0.5;0.75\r\n0.25;0.5\r\n")
    assert load_problem(tmp_path / "m.csv").labels == ("a", "b")


def queries_of(tmp_path, text):
    path = tmp_path / "train.txt"
    path.write_text(text)
    return list(read_queries(path))


def test_ranking_data_by_hand(tmp_path):
    text = "# remark\n2 qid:10 1:0.5 3:-1e-2 # docid = 1:2\n0 qid:10 2:7\n\n1 qid:x\n4\tqid:x\t2:1.5 \t4:0\r\n"
    one, two = queries_of(tmp_path, text)
    assert (one.name, one.grades.tolist()) == ("10", [2, 0])
    assert one.values.tolist() == [[0.5, 0, -0.01], [0, 7, 0]]
    assert (two.name, two.grades.tolist()) == ("x", [1, 4])
    assert two.values.tolist() == [[0, 0, 0, 0], [0, 1.5, 0, 0]]
    assert one.feature(np.array([3, 9, 1])).tolist() == [[-0.01, 0, 0.5], [0, 0, 0]]


sparse = st.dictionaries(st.integers(1, 30), st.floats(-1e6, 1e6).filter(bool), max_size=6)


@given(data=st.lists(st.lists(st.tuples(st.integers(0, 4), sparse), min_size=1, max_size=4), min_size=1, max_size=4))
def test_ranking_data_comes_back_as_written(data, tmp_path_factory):
    lines = [
        f"{grade} qid:{q} " + " ".join(f"{f}:{cells[f]!r}" for f in sorted(cells))
        for q, documents in enumerate(data)
        for grade, cells in documents
    ]
    found: list[Query] = queries_of(tmp_path_factory.mktemp("q"), "\n".join(lines))
    assert [[g for g, _ in documents] for documents in data] == [q.grades.tolist() for q in found]
    for documents, query in zip(data, found, strict=True):
        for (_, cells), row in zip(documents, query.values.tolist(), strict=True):
            assert {f: v for f, v in enumerate(row, 1) if v} == cells


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 1:2", r"'1 1:2': 'grade qid:N 1:value 2:value ...' was expected"),
        ("1 qid: 1:2", r"'1 qid: 1:2': 'grade qid:N 1:value 2:value ...' was expected"),
        ("1", r"'1': 'grade qid:N"),
        ("5 qid:1 1:2", r"grade '5': a whole number from 0 to 4 was expected"),
        ("-1 qid:1 1:2", r"grade '-1'"),
        ("1.5 qid:1 1:2", r"grade '1.5'"),
        ("1 qid:1 1:x", r"'1:x': 'feature:value', like 12:0.5, was expected"),
        ("1 qid:1 x:1", r"'x:1': 'feature:value'"),
        ("1 qid:1 1:", r"'1:': 'feature:value'"),
        ("1 qid:1 :1", r"':1': 'feature:value'"),
        ("1 qid:1 1:2:3 4", r"'1:2:3': 'feature:value'"),
        ("1 qid:1 1:2 3", r"'3': 'feature:value'"),
        ("1 qid:1 1:nan", r"'1:nan': 'feature:value'"),
        ("1 qid:1 1:1e999", r"'1:1e999': 'feature:value'"),
        ("1 qid:1 0:1", r"feature 0: features go from 1 to 100,000"),
        ("1 qid:1 100001:1", r"feature 100001: features go from 1"),
        ("1 qid:1 2:1 2:1", r"feature 2 after 2: features must rise within a line"),
        ("1 qid:1 3:1 2:1", r"feature 2 after 3"),
        (f"1 qid:1 {'9' * 5000}:1", r"'99999"),
        ("1 qid:1 1.5:1", r"'1.5:1': 'feature:value'"),
        ("1 qid:1 1:\u00bd", r"'1:½': 'feature:value'"),
        ("1 qid:0 1:1", r"query '0' comes a second time: the lines of a query must stand together"),
    ],
)
def test_broken_ranking_data(tmp_path, line, message):
    with pytest.raises(DataError, match=rf"train.txt, line 3: {message}"):
        queries_of(tmp_path, f"1 qid:0 1:1\n0 qid:1 1:2 4:5\n{line}\n")


def test_queries_are_streamed(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("1 qid:1 1:1\n1 qid:2 1:2\n1 qid:3\nbroken\n")
    queries = read_queries(path)
    assert [next(queries).name, next(queries).name] == ["1", "2"]
    with pytest.raises(DataError, match=r"train.txt, line 4: 'broken'"):
        next(queries)


def test_ranking_data_without_documents(tmp_path):
    with pytest.raises(DataError, match=r"the file holds no documents"):
        queries_of(tmp_path, "# only a remark\n")


VALID = {
    "f.csv": b"model_a,model_b,winner\na,b,model_a\nb,c,tie\n",
    "g.csv": b",a,b\na,0.5,0.75\nb,0.25,0.5\n",
    "f.txt": b"# arm 0: x\n# arm 1: y\n0.5 0.75\n0.25 0.5\n",
    "f.letor": b"2 qid:1 1:0.5 2:7 # d\n0 qid:1 1:0.1 2:9\n1 qid:2 2:1\n",
    "f.jsonl": b'{"left": "a", "right": "b", "winner": "left"}\n{"left": "b", "right": "a", "winner": "tie"}\n',
    "f.toi": b"# DATA TYPE: toi\n# NUMBER ALTERNATIVES: 3\n# ALTERNATIVE NAME 1: A\n2: 1,{2,3}\n1: 3\n",
}


def make_valid(folder):
    np.savez(folder / "f.npz", matrix=np.array([[0.5, 0.75], [0.25, 0.5]]), labels=np.array(["a", "b"]))
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"winner": ["a", "b"], "loser": ["b", "c"]}), folder / "f.parquet")
    for name, data in VALID.items():
        (folder / name).write_bytes(data)
    return sorted(folder.iterdir())


def test_the_files_to_be_broken_are_whole(tmp_path):
    for path in make_valid(tmp_path):
        assert load_problem(path).arms >= 2


marks = st.sampled_from([b"\n", b":", b",", b"{", b'"', b"9", b" ", b"tie"])


@settings(max_examples=300)
@given(data=st.data())
def test_no_broken_file_gets_past_a_clear_error(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("broken")
    path = data.draw(st.sampled_from(make_valid(folder)))
    text = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 12))
        text[at : at + cut] = data.draw(st.one_of(st.binary(max_size=6), marks))
    path.write_bytes(bytes(text))
    try:
        problem = load_problem(path)
    except RoundelError as error:
        said = str(error)
    else:
        said = path.name
        assert problem.matrix.shape == (problem.arms, problem.arms)
    assert path.name in said
