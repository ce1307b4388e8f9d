"""What a tournament is made of: options, contexts and files; a corpus of bad input, each with a clear error."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundel.errors import InputError, RoundelError, SpecError
from roundel.tournament import Context, Option, Spec, Tournament, read_spec
from roundel.tournament.draws import context_of, flipped
from roundel.tournament.spec import DEFAULT_POLICY, default_horizon
from roundel.tournament.texts import canonical, check_json, check_name, check_text

AB = ["a", "b"]


def test_defaults() -> None:
    spec = Spec.build("x", AB)
    assert (spec.policy, spec.parameters["defeat"], spec.parameters["fallback"]) == ("c2b-kl", "majority", True)
    assert DEFAULT_POLICY.startswith(spec.policy)
    assert (spec.horizon, spec.rounds, spec.seed, spec.overlap, spec.deadline) == (200, 5, 0, 1, None)
    assert [default_horizon(k) for k in (2, 3, 12, 50)] == [200, 600, 4800, 30000]
    assert spec.options[0] == Option("a", {"text": "a"})


def test_options_in_every_form_mean_the_same() -> None:
    forms: list[Any] = [
        [{"name": "a", "text": "x"}, {"name": "b", "text": "y"}],
        {"a": "x", "b": {"text": "y"}},
        (Option("a", {"text": "x"}), {"name": "b", "text": "y"}),
        iter([{"name": "a", "text": "x"}, {"name": "b", "text": "y"}]),
    ]
    assert len({Spec.build("n", form).digest() for form in forms}) == 1


def test_contents_by_context_in_every_form() -> None:
    forms: list[Any] = [
        {"a": {"contents": ["1", "2"]}, "b": {"contents": ["3", "4"]}},
        {"a": {"contents": {"q": "1", "r": "2"}}, "b": {"contents": {"r": "4", "q": {"text": "3"}}}},
    ]
    specs = [Spec.build("n", form, contexts=[{"name": "q"}, {"name": "r", "text": "r"}]) for form in forms]
    assert specs[0] == specs[1]
    assert specs[0].contexts[1] == Context("r", {"text": "r"})
    assert specs[0].options[1].shown(1) == {"text": "4"}


SAFE = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
LEAF = (
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | SAFE
)


@given(st.recursive(LEAF, lambda inner: st.lists(inner) | st.dictionaries(SAFE, inner), max_leaves=20))
def test_any_json_survives_as_content(value: Any) -> None:
    spec = Spec.build("n", [{"name": "a", "data": value}, "b"], contexts=["c"])
    again = Spec.from_json(json.loads(spec.text()))
    assert again == spec
    assert again.digest() == spec.digest()
    assert again.options[0].shown(0) == {"data": value}


BAD: list[tuple[dict[str, Any], str]] = [
    ({"options": []}, "there are 0 options"),
    ({"options": ["a"]}, "there are 1 options"),
    ({"options": [f"{n}" for n in range(100_000)]}, "there are 100,000 options"),
    ({"options": "ab"}, "give a list"),
    ({"options": 5}, "give a list"),
    ({"options": None}, "give a list"),
    ({"options": ["a", "a"]}, "two options are named 'a'"),
    ({"options": ["é", "e\u0301"]}, "two options are named"),
    ({"options": ["a", ""]}, "visible character"),
    ({"options": ["a", "\u200f \t"]}, r"visible|control|space"),
    ({"options": ["a", " b"]}, "remove the space"),
    ({"options": ["a", "b\0"]}, "zero character"),
    ({"options": ["a", "\ud800"]}, "half a character"),
    ({"options": ["a", "b\nc"]}, "control character"),
    ({"options": ["a", "\u202eb"]}, "control character"),
    ({"options": ["a", "x" * 201]}, "201 characters"),
    ({"options": ["a", 5]}, "option 2 has no name"),
    ({"options": ["a", {"text": "b"}]}, "option 2 has no name"),
    ({"options": ["a", {"name": 5}]}, "must be text"),
    ({"options": ["a", {"name": "b", "text": 5}]}, "must be text"),
    ({"options": ["a", {"name": "b", "text": "x", "markdown": "y"}]}, "exactly one of"),
    ({"options": ["a", {"name": "b", "html": "x"}]}, "exactly one of"),
    ({"options": ["a", {"name": "b", "data": float("nan")}]}, "finite numbers"),
    ({"options": ["a", {"name": "b", "data": [float("inf")]}]}, "finite numbers"),
    ({"options": ["a", {"name": "b", "data": 10**30}]}, r"2\*\*63"),
    ({"options": ["a", {"name": "b", "data": {1: 2}}]}, "must be text"),
    ({"options": ["a", {"name": "b", "data": {"x": {1, 2}}}]}, "holds a set"),
    ({"options": ["a", {"name": "b", "image": "/nowhere/x.png"}]}, "cannot be read"),
    ({"options": ["a", {"name": "b", "image": "x\0.png"}]}, "zero character"),
    ({"options": ["a", {"name": "b", "contents": ["x"]}]}, "there are no contexts"),
    ({"options": ["a", {"name": "b", "contents": ["x"], "text": "y"}], "contexts": ["q"]}, "has both"),
    ({"options": ["a", {"name": "b", "contents": ["x", "y"]}], "contexts": ["q"]}, "2 contents for 1 contexts"),
    ({"options": ["a", {"name": "b", "contents": {"z": "x"}}], "contexts": ["q"]}, "no such context"),
    ({"options": ["a", {"name": "b", "contents": {}}], "contexts": ["q"]}, "no content for context"),
    ({"options": ["a", {"name": "b", "contents": "x"}], "contexts": ["q"]}, "give a list or a mapping"),
    ({"contexts": [{"name": "q", "text": "1"}, {"name": "q", "text": "2"}]}, "two contexts are named"),
    ({"contexts": "q"}, "give a list"),
    ({"contexts": [5]}, "must be text"),
    ({"horizon": 0}, "horizon is 0"),
    ({"horizon": -5}, "horizon is -5"),
    ({"horizon": True}, "whole number"),
    ({"horizon": float("nan")}, "whole number"),
    ({"horizon": float("inf")}, "whole number"),
    ({"horizon": 10**19}, "at most"),
    ({"horizon": "many"}, "whole number"),
    ({"rounds": 0}, "rounds is 0"),
    ({"rounds": 1.5}, "whole number"),
    ({"seed": -1}, "seed is -1"),
    ({"seed": "x"}, "whole number"),
    ({"overlap": 0}, "overlap is 0"),
    ({"overlap": 1000}, "overlap is 1000"),
    ({"deadline": 0}, "deadline is 0"),
    ({"deadline": float("nan")}, "deadline is nan"),
    ({"deadline": True}, "deadline is True"),
    ({"deadline": "soon"}, "deadline is 'soon'"),
    ({"policy": "best"}, "no policy 'best'"),
    ({"policy": "c2b:colour=red"}, "no parameter 'colour'"),
    ({"question": 5}, "must be text"),
    ({"question": "\0"}, "zero character"),
    ({"name": ""}, "visible character"),
    ({"name": None}, "must be text"),
    ({"name": "\ud800"}, "half a character"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[str(n) for n in range(len(BAD))])
def test_bad_input_is_named_and_makes_no_store(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    given = {"name": "cup", "options": AB, **change}
    with pytest.raises(InputError, match=message):
        Tournament.create(tmp_path / "store.db", given.pop("name"), given.pop("options"), **given)
    assert not (tmp_path / "store.db").exists()


def test_text_of_every_script_is_kept(tmp_path: Path) -> None:
    names = ["שלום", "مرحبا", "日本語", "👩‍👩‍👧", "a'; DROP TABLE duel; --", "<script>alert(1)</script>", "%s ? {} $1"]
    with Tournament.create(tmp_path / "s.db", "שם", [{"name": n, "markdown": f"# {n}\n"} for n in names]) as cup:
        shown = {side.name: side.content for duel in cup.lease(100) for side in (duel.first, duel.second)}
        assert shown == {name: {"markdown": f"# {name}\n"} for name in names}
        assert Tournament.names(cup.store) == ["שם"]


def test_an_image_is_kept_with_its_digest(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"picture")
    spec = Spec.build("n", [{"name": "a", "image": "x.png"}, "b"], folder=tmp_path)
    content = spec.options[0].shown(None)
    assert content["image"] == str(tmp_path / "x.png")
    assert len(content["sha256"]) == 64


FILES = {
    "o.yaml": "question: Which?\nhorizon: 500\noptions:\n  - {name: a, text: x}\n  - {name: b, text: y}\n",
    "o.json": '{"question": "Which?", "horizon": 500, "options": {"a": "x", "b": "y"}}',
    "o.jsonl": '{"name": "a", "text": "x"}\n\n{"name": "b", "text": "y"}\n',
    "o.csv": "\ufeffName,text\r\na,x\r\nb,y\r\n",
}


@pytest.mark.parametrize("name", FILES)
def test_files_in_every_format(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(FILES[name], encoding="utf-8")
    spec = Spec.build("n", **{"question": "Which?", "horizon": 500, **read_spec(path)})
    assert spec.digest() == Spec.build("n", {"a": "x", "b": "y"}, question="Which?", horizon=500).digest()


def test_a_table_of_options_and_contexts(tmp_path: Path) -> None:
    path = tmp_path / "o.csv"
    path.write_text('name,context,text\na,q1,"x, 1"\nb,q1,y\na,q2,"z\nz"\nb,q2,w\n')
    spec = Spec.build("n", **read_spec(path))
    assert [c.name for c in spec.contexts] == ["q1", "q2"]
    assert spec.options[0].contents == ({"text": "x, 1"}, {"text": "z\nz"})


BROKEN = {
    "a.yaml": [
        b"options: [a",
        b"a: 1\na: 2\n",
        b"\xff\xfe",
        b"options: [a, b]\ncolour: red\n",
        b"- a\n- b\n- \x00",
        b"",
    ],
    "a.json": [b"[1,", b'{"a": 1, "a": 2}', b'[{"name": "a", "data": NaN}, "b"]', b"[" * 100_000, b"5", b"null"],
    "a.jsonl": [b'{"name": "a"}\n{"name"\n', b"", b"\xff"],
    "a.csv": [b"", b"text\nx\n", b"name,html\na,x\n", b"name,text\na,x,y\n", b'name,text\na,"x\n', b"name,name\na,b\n"],
    "a.txt": [b"a\nb\n"],
}


@pytest.mark.parametrize(("name", "content"), [(n, c) for n, cs in BROKEN.items() for c in cs])
def test_broken_files_name_the_file(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(SpecError):
        Spec.build("n", **read_spec(path))


@pytest.mark.parametrize(
    ("content", "message"), [("", "the file is empty"), ("# later\n", "empty"), ("opions: [a, b]\n", "field 'opions'")]
)
def test_a_file_without_options_says_so(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "o.yaml"
    path.write_text(content)
    with pytest.raises(SpecError, match=rf"o\.yaml: .*{message}"):
        read_spec(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"none\.yaml"):
        read_spec(tmp_path / "none.yaml")


def test_a_damaged_spec_is_refused() -> None:
    good = Spec.build("n", AB).to_json()
    for bad in ({}, [], None, {**good, "format": "x"}, {**good, "options": [{}]}, {**good, "parameters": 5}):
        with pytest.raises(RoundelError):
            Spec.from_json(bad)  # type: ignore[arg-type]


@given(st.integers(0, 2**40), st.integers(1, 30), st.integers(0, 200))
def test_contexts_are_drawn_without_replacement(seed: int, contexts: int, start: int) -> None:
    first = start // contexts * contexts
    drawn = [context_of(seed, 1, 4, first + n, contexts) for n in range(contexts)]
    assert sorted(drawn, key=int) == list(range(contexts))  # type: ignore[arg-type]
    assert drawn == [context_of(seed, 1, 4, first + n, contexts) for n in range(contexts)]


def test_draws_never_change() -> None:
    """Stores of every version replay these: a changed number here breaks them."""
    assert [context_of(3, 0, 1, n, 5) for n in range(10)] == DRAWN
    assert [flipped(3, n, 0, 1, 0, 0) for n in range(1, 13)] == FLIPPED


DRAWN = [1, 4, 3, 2, 0, 3, 2, 4, 1, 0]
FLIPPED = [False, True, False, False, False, False, False, True, True, True, False, True]


def test_the_coin_of_a_pair_is_fair_and_copies_alternate() -> None:
    coins = Counter(flipped(seed, n, 0, 1, 0, 0) for seed in range(100) for n in range(1, 41))
    # 4,000 fair coins miss 2,000 by more than 200 (6.3 standard deviations) with probability below 1e-9
    assert abs(coins[True] - 2000) <= 200
    for repeat in range(4):
        assert flipped(1, 1, 0, 1, repeat, 0) != flipped(1, 1, 0, 1, repeat, 1)
        assert flipped(1, 1, 0, 1, repeat, 0) != flipped(1, 1, 0, 1, repeat + 1, 0)


def test_canonical_text_is_one_text() -> None:
    assert canonical({"b": 1, "a": [1.5, None, "é"]}) == '{"a":[1.5,null,"\\u00e9"],"b":1}'
    with pytest.raises(ValueError, match="JSON"):
        canonical(float("nan"))


def test_checks_of_texts() -> None:
    assert check_name("n", "e\u0301") == "é"
    assert check_text("t", "ok") == "ok"
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    with pytest.raises(InputError, match="nested"):
        check_json("j", deep)
    with pytest.raises(InputError, match="at most"):
        check_text("t", "x" * 20, longest=10)
