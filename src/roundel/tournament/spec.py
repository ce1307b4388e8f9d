"""What a tournament is: options, contexts, policy, limits; checked once, and never changed."""

from __future__ import annotations

import hashlib
import unicodedata
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil, isfinite, log2
from pathlib import Path
from typing import Any

import roundel
from roundel._check import whole
from roundel.errors import ScheduleWarning, SpecError
from roundel.run import Run
from roundel.tournament.texts import canonical, check_json, check_name, check_text, sha256

FORMAT = "roundel tournament 1"
DEFAULT_POLICY = "c2b-kl:defeat=majority,fallback=true"
DEFAULT_QUESTION = "Which one is better?"
MOST_OPTIONS = 2_000  # a tally has K * K cells
MOST_CONTEXTS = 1_000_000
MOST_OVERLAP = 99
MOST_DUELS = 10**12
KINDS = ("text", "markdown", "image", "data")

Content = dict[str, Any]  # one of KINDS to its value; an image also has its "sha256"


@dataclass(frozen=True, slots=True)
class Option:
    """What people compare: a name, and what is shown for it: the same everywhere, or one content a context."""

    name: str
    content: Content | None = None
    contents: tuple[Content, ...] | None = None

    def shown(self, context: int | None) -> Content:
        """Return what is shown for this option in a context."""
        if self.contents is not None and context is not None:
            return self.contents[context]
        return self.content or {}

    def to_json(self) -> dict[str, Any]:
        """Return the option as it stands in the spec."""
        if self.contents is not None:
            return {"name": self.name, "contents": list(self.contents)}
        return {"name": self.name, **(self.content or {})}


@dataclass(frozen=True, slots=True)
class Context:
    """A test case on which options are compared: a question, a query, a page."""

    name: str
    content: Content

    def to_json(self) -> dict[str, Any]:
        """Return the context as it stands in the spec."""
        return {"name": self.name, **self.content}


@dataclass(frozen=True, slots=True)
class Spec:
    """Everything that decisions depend on besides the verdicts."""

    name: str
    options: tuple[Option, ...]
    contexts: tuple[Context, ...]
    question: str
    policy: str
    parameters: dict[str, Any]
    horizon: int
    rounds: int
    seed: int
    overlap: int  # verdicts asked for each duel
    deadline: float | None  # seconds a round may take
    made_by: str = field(default=f"roundel {roundel.__version__}")

    @classmethod
    def build(
        cls,
        name: str,
        options: Any,
        *,
        contexts: Any = None,
        question: str | None = None,
        policy: str | None = None,
        horizon: int | None = None,
        rounds: int | None = None,
        seed: int | None = None,
        overlap: int | None = None,
        deadline: float | None = None,
        folder: str | Path = ".",
    ) -> Spec:
        """Check everything a user gave, fill in the defaults, and return the spec; image paths start at `folder`."""
        base = Path(folder)
        title = check_name("the tournament's name", name, SpecError)
        cases = _contexts(contexts, base)
        choices = _options(options, cases, base)
        count = len(choices)
        budget = default_horizon(count) if horizon is None else whole("horizon", horizon, least=1, most=MOST_DUELS)
        run = Run(policy or DEFAULT_POLICY, count, budget, rounds, 0 if seed is None else whole("seed", seed))
        return cls(
            name=title,
            options=choices,
            contexts=cases,
            question=check_text("question", question, SpecError) if question is not None else DEFAULT_QUESTION,
            policy=run.policy.name,
            parameters=run.parameters,
            horizon=budget,
            rounds=run.max_rounds,
            seed=run.seed,
            overlap=1 if overlap is None else whole("overlap", overlap, least=1, most=MOST_OVERLAP),
            deadline=None if deadline is None else _seconds(deadline),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The options' names, by arm."""
        return tuple(option.name for option in self.options)

    def arm(self, name: str) -> int:
        """Return the arm of the option with this name."""
        try:
            return self.names.index(unicodedata.normalize("NFC", name) if isinstance(name, str) else name)
        except ValueError:
            known = ", ".join(self.names[:10]) + (", ..." if len(self.names) > 10 else "")
            raise SpecError(f"there is no option {name!r}: the options are {known}") from None

    def run(self) -> Run:
        """Return the run of this tournament before its first round."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ScheduleWarning)  # said once, when the tournament was made
            return Run(
                self.policy,
                len(self.options),
                self.horizon,
                self.rounds,
                self.seed,
                keep_history=False,
                **self.parameters,
            )

    def to_json(self) -> dict[str, Any]:
        """Return the spec as plain values."""
        return {
            "format": FORMAT,
            "made_by": self.made_by,
            "name": self.name,
            "question": self.question,
            "options": [option.to_json() for option in self.options],
            "contexts": [context.to_json() for context in self.contexts],
            "policy": self.policy,
            "parameters": self.parameters,
            "horizon": self.horizon,
            "rounds": self.rounds,
            "seed": self.seed,
            "overlap": self.overlap,
            "deadline": self.deadline,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Spec:
        """Read a spec that `to_json` wrote."""
        if not isinstance(value, Mapping) or value.get("format") != FORMAT:
            found = value.get("format") if isinstance(value, Mapping) else value
            raise SpecError(f"the spec has format {found!r}: this version reads {FORMAT!r}")
        try:
            return cls(
                name=value["name"],
                options=tuple(_stored_option(option) for option in value["options"]),
                contexts=tuple(Context(c["name"], _without_name(c)) for c in value["contexts"]),
                question=value["question"],
                policy=value["policy"],
                parameters=dict(value["parameters"]),
                horizon=value["horizon"],
                rounds=value["rounds"],
                seed=value["seed"],
                overlap=value["overlap"],
                deadline=value["deadline"],
                made_by=value["made_by"],
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise SpecError(f"the spec is damaged: {type(error).__name__}: {error}") from None

    def text(self) -> str:
        """Return the canonical text that the digest covers."""
        return canonical(self.to_json())

    def digest(self) -> str:
        """SHA-256 of the spec."""
        return sha256(self.text())


def default_horizon(arms: int) -> int:
    """Return 100 K ceil(log2 K): enough, as a rule, to find a winner that beats the others 60 to 40."""
    return 100 * arms * max(1, ceil(log2(arms)))


def _seconds(deadline: Any) -> float:
    if isinstance(deadline, bool) or not isinstance(deadline, (int, float)) or not isfinite(deadline) or deadline <= 0:
        raise SpecError(f"deadline is {deadline!r}: it is the seconds a round may take, a number above 0")
    return float(deadline)


def _without_name(row: Mapping[str, Any]) -> Content:
    return {key: value for key, value in row.items() if key != "name"}


def _stored_option(row: Mapping[str, Any]) -> Option:
    if "contents" in row:
        return Option(row["name"], None, tuple(dict(content) for content in row["contents"]))
    return Option(row["name"], _without_name(row))


def _items(what: str, value: Any) -> list[Any]:
    """Return a list of named rows from a list, or from a mapping of names."""
    if isinstance(value, Mapping):
        return [
            {"name": name, **row} if isinstance(row, Mapping) else {"name": name, "text": row}
            for name, row in value.items()
        ]
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise SpecError(
            f"{what} is {type(value).__name__}: give a list of names, of mappings with 'name', or a mapping"
        )
    return list(value)


def _options(given: Any, contexts: tuple[Context, ...], folder: Path) -> tuple[Option, ...]:
    rows = _items("options", given)
    if not 2 <= len(rows) <= MOST_OPTIONS:
        raise SpecError(f"there are {len(rows):,} options: a tournament compares from 2 to {MOST_OPTIONS:,}")
    options = tuple(_option(row, number, contexts, folder) for number, row in enumerate(rows, 1))
    _refuse_twins("options", [option.name for option in options])
    return options


def _option(row: Any, number: int, contexts: tuple[Context, ...], folder: Path) -> Option:
    if isinstance(row, Option):
        row = row.to_json()
    if isinstance(row, str):
        row = {"name": row, "text": row}
    if not isinstance(row, Mapping) or "name" not in row:
        raise SpecError(
            f"option {number} has no name: give text, or a mapping with 'name' and one of {', '.join(KINDS)}"
        )
    name = check_name(f"the name of option {number}", row["name"], SpecError)
    rest = _without_name(row)
    if "contents" not in rest:
        return Option(name, _content(f"option {name!r}", rest or {"text": name}, folder))
    contents = rest.pop("contents")
    if rest:
        raise SpecError(f"option {name!r} has both 'contents' and {', '.join(map(repr, rest))}: give one of them")
    if not contexts:
        raise SpecError(f"option {name!r} has one content a context, but there are no contexts: give contexts")
    if isinstance(contents, Mapping):
        known = {context.name for context in contexts}
        if unknown := [key for key in contents if key not in known]:
            raise SpecError(f"option {name!r} has a content for {unknown[0]!r}: there is no such context")
        if missing := [context.name for context in contexts if context.name not in contents]:
            raise SpecError(f"option {name!r} has no content for context {missing[0]!r}: give one for each context")
        contents = [contents[context.name] for context in contexts]
    elif isinstance(contents, (str, bytes)) or not isinstance(contents, Iterable):
        raise SpecError(
            f"option {name!r}: 'contents' is {type(contents).__name__}: give a list or a mapping by context"
        )
    listed = [_content(f"option {name!r}, context {place}", item, folder) for place, item in enumerate(contents, 1)]
    if len(listed) != len(contexts):
        raise SpecError(f"option {name!r} has {len(listed)} contents for {len(contexts)} contexts: give one for each")
    return Option(name, None, tuple(listed))


def _contexts(given: Any, folder: Path) -> tuple[Context, ...]:
    if given is None:
        return ()
    rows = _items("contexts", given)
    if len(rows) > MOST_CONTEXTS:
        raise SpecError(f"there are {len(rows):,} contexts: at most {MOST_CONTEXTS:,}; sample them")
    contexts = []
    for number, row in enumerate(rows, 1):
        if isinstance(row, Context):
            row = row.to_json()
        if not isinstance(row, Mapping):
            row = {"name": f"{number}", "text": row}
        name = check_name(f"the name of context {number}", row.get("name", f"{number}"), SpecError)
        content = _content(f"context {name!r}", _without_name(row) or {"text": name}, folder)
        contexts.append(Context(name, content))
    _refuse_twins("contexts", [context.name for context in contexts])
    return tuple(contexts)


def _content(what: str, value: Any, folder: Path) -> Content:
    if isinstance(value, str):
        return {"text": check_text(what, value, SpecError)}
    if not isinstance(value, Mapping):
        raise SpecError(f"{what} shows {type(value).__name__}: give text, or one of {', '.join(KINDS)}")
    kinds = [key for key in value if key != "sha256"]
    if len(kinds) != 1 or kinds[0] not in KINDS:
        have = ", ".join(map(repr, kinds)) or "nothing"
        raise SpecError(f"{what} has {have}: give exactly one of {', '.join(KINDS)} (any JSON goes under 'data')")
    kind = kinds[0]
    if kind == "data":
        return {"data": check_json(what, value["data"], SpecError)}
    text = check_text(f"{what}: {kind}", value[kind], SpecError)
    return _image(what, text, folder) if kind == "image" else {kind: text}


def _image(what: str, path: str, folder: Path) -> Content:
    """Keep the picture's digest with its path, so that another picture under the same name is noticed."""
    try:
        with (folder / path).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SpecError(f"{what}: image {path!r} cannot be read ({reason}): give a path from {str(folder)!r}") from None
    return {"image": str(folder / path), "sha256": digest}


def _refuse_twins(what: str, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SpecError(f"two {what} are named {name!r}: names tell them apart; rename one")
        seen.add(name)
