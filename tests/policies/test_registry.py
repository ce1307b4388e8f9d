"""The registry: names, parameters and what is refused."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module
from typing import Any, Literal

import numpy as np
import pytest

import roundel
from playing import play, start
from roundel.errors import InputError, PolicyError
from roundel.plan import Plan
from roundel.policies.arms import Arms
from roundel.policies.registry import Play, add, batched, find, parse
from roundel.rng import Stream

registry = import_module("roundel.policies.registry")

BATCHED = {"bcope", "c2b", "c2b-kl", "pcomp", "r-scomp", "scomp", "scomp2"}


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A registry that forgets what a test registers."""
    own = roundel.policies()
    monkeypatch.setattr(registry, "_policies", own)
    return own


def test_the_batched_policies_are_there_in_order() -> None:
    found = roundel.policies()
    assert {name for name, policy in found.items() if policy.kind == "batched"} == BATCHED
    assert list(found) == sorted(found, key=lambda name: (found[name].kind, name))
    for name, policy in found.items():
        assert policy.name == name
        assert policy.summary
        assert policy.paper
        assert policy.bound
    found.clear()
    assert roundel.policies()


def test_what_the_papers_assume_and_promise() -> None:
    expected = {
        "c2b": ("Condorcet", 11),
        "c2b-kl": ("Condorcet", 11),
        "pcomp": ("Condorcet", 11),
        "bcope": ("none", 11),
        "scomp": ("SST+STI", 12),
        "scomp2": ("SST+STI", 23),
        "r-scomp": ("SST+STI", 13),
        "r-scomp:levels=4": ("SST+STI", 15),
    }
    for text, (assumption, most) in expected.items():
        policy, parameters = parse(text)
        assert (policy.assumption, policy.most_rounds(11, 10**5, parameters)) == (assumption, most)


def test_names_with_parameters() -> None:
    policy, parameters = parse("c2b-kl:defeat=scaled, kappa=0.5,f=none")
    assert policy is find("c2b-kl")
    assert parameters == {"defeat": "scaled", "kappa": 0.5, "f": None, "fallback": False}
    assert parse("c2b:fallback=yes")[1]["fallback"] is True
    assert parse("r-scomp")[1] == {"levels": 2}
    assert parse(" pcomp ")[0].name == "pcomp"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("c3b", "there is no policy 'c3b': choose one of .*bcope.*c2b-kl"),
        ("c2b_kl", "there is no policy 'c2b_kl': did you mean c2b-kl\\?"),
        ("", "there is no policy ''"),
        ("c2b:", "'c2b:': '' is not parameter=value"),
        ("c2b:defeat", "'defeat' is not parameter=value; write as in"),
        ("c2b:defeat=", "is not parameter=value"),
        ("c2b:=paper", "is not parameter=value"),
        ("c2b:defeat=never", "c2b: defeat is 'never': it must be one of paper, scaled, majority .default paper"),
        ("c2b:kappa=much", "c2b: kappa is 'much': it must be a number"),
        ("c2b:kappa=nan", "kappa is 'nan': it must be a finite number"),
        ("c2b:kappa=inf", "kappa is 'inf': it must be a finite number"),
        ("c2b:fallback=perhaps", "fallback is 'perhaps': it must be true or false"),
        ("r-scomp:levels=2.5", "levels is '2.5': it must be a whole number"),
        ("pcomp:kappa=1", "pcomp has no parameter 'kappa': it takes estimates, fallback"),
        ("scomp:kappa=1", "scomp has no parameter 'kappa': it takes none"),
        ("c2b:kappa=1,kappa=2", "parameter 'kappa' stands twice"),
    ],
)
def test_texts_that_name_no_policy_are_refused(text: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("policy", "parameters"),
    [
        ("r-scomp", {"levels": 0}),
        ("r-scomp", {"levels": -1}),
        ("r-scomp", {"levels": 1.5}),
        ("r-scomp", {"levels": True}),
        ("r-scomp", {"levels": None}),
        ("r-scomp", {"levels": [2]}),
        ("r-scomp", {"levels": float("inf")}),
        ("r-scomp", {"levels": float("nan")}),
        ("scomp2", {"conf_scale": 0}),
        ("scomp2", {"conf_scale": -1}),
        ("scomp2", {"conf_scale": float("inf")}),
        ("bcope", {"eps": -0.1}),
        ("bcope", {"eps": 1.1}),
        ("bcope", {"eps": 10**400}),
        ("c2b", {"kappa": -0.5}),
        ("c2b", {"kappa": 1.5}),
        ("c2b", {"fallback": 1}),
        ("c2b", {"defeat": None}),
        ("c2b-kl", {"f": -1}),
        ("c2b-kl", {"f": "small"}),
    ],
)
def test_values_that_a_parameter_does_not_take_are_refused(policy: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(parameters))):
        roundel.Run(policy, 4, 1000, **parameters)


def test_parameters_given_twice_the_keyword_wins() -> None:
    run = roundel.Run("c2b:defeat=majority,kappa=0.5", 4, 1000, defeat="scaled", kappa=np.float64(1))
    assert run.parameters == {"defeat": "scaled", "kappa": 1.0, "fallback": False}


def test_a_policy_of_ones_own(scratch: dict[str, Any]) -> None:
    @batched("champion", paper="mine", assumption="none", bound="K - 1", most_rounds=lambda b, t, p: 99)
    def champion(
        arms: Arms,
        horizon: int,
        rounds: int,
        rng: Stream,
        *,
        times: int = 5,
        share: float = 0.5,
        side: Literal["first", "second"] = "first",
        noisy: bool = False,
        stop: int | None = None,
    ) -> Play:
        """Let the champion meet one challenger after another."""
        best = 0
        for challenger in range(1, arms.count):
            result = yield Plan([best], [challenger], times)
            if result.points[0] < result.played[0]:
                best = challenger
        return best

    policy = find("champion")
    assert policy.summary == "Let the champion meet one challenger after another"
    assert [(p.name, p.type, p.default, p.choices, p.optional) for p in policy.parameters] == [
        ("times", int, 5, (), False),
        ("share", float, 0.5, (), False),
        ("side", str, "first", ("first", "second"), False),
        ("noisy", bool, False, (), False),
        ("stop", int, None, (), True),
    ]
    last_wins = np.tril(np.ones((4, 4)), -1) + np.eye(4) / 2
    played = play(start("champion:times=3", 4, 100), last_wins)
    assert played.run.winner == 3
    assert played.plans == [{(0, 1): 3}, {(1, 2): 3}, {(2, 3): 3}]
    assert (played.alone, played.run.rounds, played.batches) == (9, 3, 4)


def test_a_name_is_registered_once_and_is_a_word(scratch: dict[str, Any]) -> None:
    def other(arms: Arms, horizon: int, rounds: int, rng: Stream) -> Play:
        """Do nothing."""
        yield Plan.empty()
        return None

    with pytest.raises(PolicyError, match="'c2b' is registered already: choose another name"):
        batched("c2b", paper="mine")(other)
    for name in ("two words", "a:b", "a,b", "a=b", ""):
        with pytest.raises(PolicyError, match="must be a word"):
            batched(name, paper="mine")(other)
    assert set(roundel.policies()) == set(scratch)
    add(replace(find("c2b"), summary="again"))  # the same function, reloaded
    assert find("c2b").summary == "again"


def test_a_parameter_needs_a_type_that_can_be_read_and_a_default(scratch: dict[str, Any]) -> None:
    def untyped(arms: Arms, horizon: int, rounds: int, rng: Stream, *, size: list[int] = []) -> Play:  # noqa: B006
        """Take a list."""
        yield Plan.empty()
        return None

    def required(arms: Arms, horizon: int, rounds: int, rng: Stream, *, size: int) -> Play:
        """Take what nobody gave."""
        yield Plan.empty()
        return None

    for planner in (untyped, required):
        with pytest.raises(PolicyError, match="parameter 'size': give it a default"):
            batched("sized", paper="mine")(planner)
    assert "sized" not in roundel.policies()


def test_the_decorator_stays_what_it_is_once_the_policies_are_loaded() -> None:
    """The family's folder has the same name: importing it puts the module in the place of a name beside it."""
    roundel.policies()
    assert roundel.batched is registry.batched
    assert "batched" not in sys.modules["roundel.policies"].__all__


@pytest.mark.parametrize("returned", [4, -1, "zero", 1.5, True])
def test_a_commitment_to_what_is_no_arm_is_refused(scratch: dict[str, Any], returned: Any) -> None:
    @batched("odd", paper="mine")
    def odd(arms: Arms, horizon: int, rounds: int, rng: Stream) -> Play:
        """Play once."""
        yield Plan.all_pairs(arms.active, 1)
        return returned  # type: ignore[no-any-return]

    run = roundel.Run("odd", 4, 1000)
    run.ask()
    with pytest.raises(PolicyError, match=r"odd committed to .*: return an arm from 0 to 3, or None"):
        run.tell([1] * 6)
    assert run.winner is None


def test_a_commitment_is_a_plain_number(scratch: dict[str, Any]) -> None:
    @batched("best", paper="mine")
    def best(arms: Arms, horizon: int, rounds: int, rng: Stream) -> Play:
        """Play once."""
        result = yield Plan.all_pairs(arms.active, 1)
        return result.total.points.sum(axis=1).argmax()  # type: ignore[return-value]

    winner = play(start("best", 4, 100), np.triu(np.ones((4, 4)), 1) + np.eye(4) / 2).run.winner
    assert winner == 0
    assert type(winner) is int


def test_a_policy_that_leaves_nobody_in_play_is_refused(scratch: dict[str, Any]) -> None:
    @batched("odd", paper="mine")
    def odd(arms: Arms, horizon: int, rounds: int, rng: Stream) -> Play:
        """Send everybody home."""
        arms.keep([])
        yield Plan.all_pairs([0, 1], 1)
        return None

    with pytest.raises(PolicyError, match="odd took every arm out of play"):
        roundel.Run("odd", 4, 1000)


@pytest.mark.parametrize("planned", [Plan.empty(), Plan([0], [9], 1), [(0, 1, 5)]])
def test_a_plan_that_nobody_can_play_is_refused(scratch: dict[str, Any], planned: Any) -> None:
    @batched("odd", paper="mine")
    def odd(arms: Arms, horizon: int, rounds: int, rng: Stream) -> Play:
        """Plan nonsense."""
        yield planned
        return None

    with pytest.raises(PolicyError, match="odd planned"):
        roundel.Run("odd", 4, 1000)
