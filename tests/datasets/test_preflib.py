"""Ballots: worked examples, a second way of counting, and broken files."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundel.datasets import read_preflib
from roundel.errors import DataError, InputError

HEAD = "# DATA TYPE: {kind}\n# NUMBER ALTERNATIVES: {n}\n"


def write(folder, kind, n, ballots):
    path = folder / f"votes.{kind}"
    path.write_text(HEAD.format(kind=kind, n=n) + "".join(f"{ballot}\n" for ballot in ballots))
    return path


def test_a_worked_example_with_ties_and_unranked(tmp_path):
    path = write(tmp_path, "toi", 4, ["3: 1,{2,3}", "2: 2", "1: {1, 4}, 2"])
    ignored = read_preflib(path)
    assert ignored.tally.points.tolist() == [[0, 8, 6, 1], [0, 0, 3, 0], [0, 3, 0, 0], [1, 2, 0, 0]]
    assert ignored.seen.tolist() == [4, 6, 3, 1]
    last = read_preflib(path, unranked="last")
    # 1 against 2: 4 votes to 2. 3 against 4: 3 for 3, 1 for 4, and 2 that rank neither: 3*2+2 to 1*2+2.
    assert last.tally.points.tolist() == [[0, 8, 10, 9], [4, 0, 9, 10], [2, 3, 0, 8], [3, 2, 4, 0]]
    assert last.tally.counts[np.triu_indices(4, 1)].tolist() == [6] * 6
    assert last.seen.tolist() == [4, 6, 3, 1]


def test_names_and_top(tmp_path):
    path = tmp_path / "v.soi"
    path.write_text(
        "# FILE NAME: v.soi\n# A remark\n# NUMBER ALTERNATIVES: 4\n# ALTERNATIVE NAME 1: Ann: the first\n"
        "# ALTERNATIVE NAME 2: Bob\n# ALTERNATIVE NAME 4: Bob\n2: 4,1\n1: 2,4\n\n"
    )
    counted = read_preflib(path)
    assert counted.labels == ("Ann: the first", "Bob (2)", "3", "Bob (4)")
    top = counted.top(2)
    assert top.labels == ("Ann: the first", "Bob (4)")
    assert top.preferences("top").matrix.tolist() == [[0.5, 0.0], [1.0, 0.5]]
    assert counted.preferences("all").matrix[0, 2] == 0.5  # nobody compared them
    with pytest.raises(InputError, match=r"top is 5: there are only 4 arms"):
        counted.top(5)


@st.composite
def elections(draw):
    n = draw(st.integers(2, 6))
    ballots = []
    for _ in range(draw(st.integers(1, 6))):
        ranked = draw(st.permutations(range(1, n + 1)))[: draw(st.integers(1, n))]
        cuts = draw(st.lists(st.booleans(), min_size=len(ranked) - 1, max_size=len(ranked) - 1))
        groups = [[ranked[0]]]
        for cut, alternative in zip(cuts, ranked[1:], strict=True):
            if cut:
                groups.append([alternative])
            else:
                groups[-1].append(alternative)
        ballots.append((draw(st.integers(1, 9)), groups))
    return n, ballots


def line(votes, groups):
    return f"{votes}: " + ",".join(str(g[0]) if len(g) == 1 else "{" + ",".join(map(str, g)) + "}" for g in groups)


@given(election=elections())
def test_counts_agree_with_pair_by_pair_counting(election, tmp_path_factory):
    n, ballots = election
    folder = tmp_path_factory.mktemp("votes")
    path = write(folder, "toi", n, [line(*b) for b in ballots])
    for unranked in ("ignored", "last"):
        expected = np.zeros((n, n), int)
        for votes, groups in ballots:
            place = {a: p for p, group in enumerate(groups) for a in group}
            if unranked == "last":
                place = {a: place.get(a, n) for a in range(1, n + 1)}
            for a in place:
                for b in place:
                    if a != b:
                        expected[a - 1, b - 1] += votes * (2 if place[a] < place[b] else place[a] == place[b])
        assert (read_preflib(path, unranked=unranked).tally.points == expected).all()
    # Unranked alternatives counted as last are what a complete order with a tie at its end says.
    full = []
    for votes, groups in ballots:
        rest = sorted(set(range(1, n + 1)).difference(*groups))
        full.append((votes, [*groups, rest] if rest else groups))
    complete = write(folder, "toc", n, [line(*b) for b in full])
    last = read_preflib(path, unranked="last").tally.points
    assert (read_preflib(complete).tally.points == last).all()


@pytest.mark.parametrize(
    ("kind", "ballot", "message"),
    [
        ("soi", "1,2,3", r"line 3: '1,2,3' has no colon: 'votes: order', like '3: 1,2,4', was expected"),
        ("soi", "x: 1", r"line 3: the number of votes is 'x'"),
        ("soi", "0: 1", r"line 3: the number of votes is '0'"),
        ("soi", "-2: 1", r"line 3: the number of votes is '-2'"),
        ("soi", f"{'9' * 5000}: 1", r"line 3: the number of votes is '999"),
        ("soi", f"1: {'9' * 5000}", r"line 3: '9+' is no alternative"),
        ("soi", "1: \u0663", r"line 3: '\u0663': alternatives"),
        ("soi", "1:", r"line 3: '': alternatives between commas"),
        ("soi", "1: 1,", r"line 3: '': alternatives between commas"),
        ("soi", "1: 1,,2", r"line 3: ',2': alternatives"),
        ("soi", "1: 1;2", r"line 3: '1;2': alternatives"),
        ("soi", "1: 1,2 3", r"line 3: '2 3': alternatives"),
        ("soi", "1: 5", r"line 3: '5' is no alternative: alternatives go from 1 to 4"),
        ("soi", "1: 0", r"line 3: '0' is no alternative"),
        ("soi", "1: 1,2,1", r"line 3: alternative 1 stands twice"),
        ("soi", "1: {1,2}", r"line 3: a tie, but the data type is soi"),
        ("toi", "1: {1,2", r"line 3: '\{1,2': alternatives"),
        ("toi", "1: {1,{2}}", r"line 3: '\{1,\{2\}\}': alternatives"),
        ("toi", "1: {}", r"line 3: '' is no alternative"),
        ("soc", "1: 1,2,3", r"line 3: alternative 4 is missing, but soc is a complete order"),
        ("toc", "1: {1,2},4", r"line 3: alternative 3 is missing, but toc is a complete order"),
    ],
)
def test_broken_ballots(tmp_path, kind, ballot, message):
    with pytest.raises(DataError, match=rf"votes.{kind}, {message}"):
        read_preflib(write(tmp_path, kind, 4, [ballot, "1: 1,2,3,4"]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4\n1,Ann\n", r"line 1: a ballot before '# NUMBER ALTERNATIVES: n'; files from before 2022"),
        ("# NUMBER ALTERNATIVES: four\n", r"line 1: the number of alternatives is 'four'"),
        ("# DATA TYPE: cat\n", r"line 1: data type 'cat': one of soc, soi, toc, toi"),
        ("# NUMBER ALTERNATIVES: 2\n# ALTERNATIVE NAME x: Ann\n", r"line 2: an alternative's number is 'x'"),
        (
            "# NUMBER ALTERNATIVES: 2\n# ALTERNATIVE NAME 1: A\n# ALTERNATIVE NAME 1: B\n",
            r"line 3: names .* a second time",
        ),
        (
            "# NUMBER ALTERNATIVES: 2\n# ALTERNATIVE NAME 3: A\n1: 1\n",
            r"alternative 3 has a name, but the header declares 2",
        ),
        ("# NUMBER ALTERNATIVES: 2\n1: 1,2\n# NUMBER ALTERNATIVES: 3\n1: 1,3\n", r"line 3: declares .* a second time"),
        ("# NUMBER ALTERNATIVES: 999999999999\n1: 1\n", r"line 1: 999,999,999,999 alternatives: the most is 10,000"),
        (f"# NUMBER ALTERNATIVES: 2\n{10**15 - 1}: 1,2\n2: 1,2\n", r"line 3: 1,000,000,000,000,001 voters so far"),
        ("# NUMBER ALTERNATIVES: 2\n", r"the file holds no ballots"),
        ("# NUMBER ALTERNATIVES: 2\n# NUMBER VOTERS: 3\n2: 1,2\n", r"2 voters where the header declares 3; .*cut off"),
        ("# NUMBER ALTERNATIVES: 2\n# NUMBER UNIQUE ORDERS: 2\n2: 1,2\n", r"1 orders where the header declares 2"),
    ],
)
def test_broken_headers(tmp_path, text, message):
    path = tmp_path / "v.soi"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_preflib(path)


def test_a_long_remark_takes_no_time(tmp_path):
    path = tmp_path / "v.soi"
    path.write_text(f"#{' ' * 100_000}\n# a remark{' ' * 100_000}\n# NUMBER ALTERNATIVES: 2\n1: 1,2\n")
    started = time.process_time()
    assert read_preflib(path).tally.points[0, 1] == 2
    assert time.process_time() - started < 1  # it once grew with the third power of the length


def test_a_name_without_type_needs_one(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("# NUMBER ALTERNATIVES: 2\n1: 1,2\n")
    with pytest.raises(DataError, match=r"line 2: a ballot before '# DATA TYPE: soc'"):
        read_preflib(path)
    with pytest.raises(InputError, match=r"unranked is 'first': it must be 'ignored' or 'last'"):
        read_preflib(path, unranked="first")


def test_many_ballots_are_counted_in_parts(tmp_path):
    path = write(tmp_path, "soi", 3, ["1: 1,2"] * 5000 + ["1: 2,1,3"] * 4000)
    assert read_preflib(path).tally.points.tolist() == [[0, 10_000, 8000], [8000, 0, 8000], [0, 0, 0]]
