"""Every problem by name, and every file by its suffix: one door to preferences."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from roundel._check import did_you_mean
from roundel._textfile import byte_lines, check_file
from roundel.datasets import battles, generators, preflib
from roundel.datasets.build import ABOUT_BUILT, SAMPLE, built_file, load_built
from roundel.datasets.bundled import NAMES, about, bundled
from roundel.datasets.clicks import User, ranker_preferences
from roundel.datasets.counted import Counted
from roundel.datasets.stand_ins import stand_in
from roundel.errors import DataError, PolicyError, PreferencesError, ProblemError
from roundel.policies.registry import Parameter, parameters_of, summary
from roundel.preferences import Preferences

Source = Callable[..., Preferences]


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem with a name, and what is known of it."""

    name: str
    kind: Literal["bundled", "built", "generated"]
    arms: int | None  # None: the parameter `arms` says
    description: str
    source: str
    parameters: tuple[Parameter, ...] = ()
    make: Source = field(default=bundled, repr=False)

    @property
    def ready(self) -> bool:
        """Whether it can be loaded now; what is not ready must be built first."""
        return self.kind != "built" or built_file(self.name).exists()

    def load(self, **given: Any) -> Preferences:
        """Return its preferences."""
        return self.make(**_complete(self.name, self.parameters, given))


def problems() -> dict[str, Problem]:
    """Return every problem by name: the bundled ones, those to be built from raw data, the generated ones."""
    every = [
        *(
            Problem(name, "bundled", bundled(name).arms, about(name).description, about(name).source,
                    make=partial(bundled, name))
            for name in NAMES
        ),
        *(
            Problem(name, "built", SAMPLE, facts.description, facts.source, make=partial(load_built, name))
            for name, facts in ABOUT_BUILT.items()
        ),
        *(_generated(name, make) for name, make in _GENERATORS.items()),
    ]  # fmt: skip
    return {problem.name: problem for problem in every}


def load_problem(name_or_path: str | os.PathLike[str], **options: Any) -> Preferences:
    """Return the preferences of a named problem or of a file.

    Names: those of `problems()`, maybe with parameters, as in "bradley-terry:arms=30,seed=1". Files: matrices
    (.csv .tsv .npz, text), PrefLib (.soc .soi .toc .toi), battle logs (.csv .tsv .jsonl .ndjson .parquet) and
    LETOR ranking data (text), maybe with options, as in "votes.soi:unranked=last,top=12". Parameters and options
    may come as arguments too. A name wins over a file that is called the same; write ./name for the file.
    """
    if not isinstance(name_or_path, (str, os.PathLike)):
        raise ProblemError(f"{name_or_path!r} is neither the name of a problem nor a path")
    if isinstance(name_or_path, str):
        head, colon, rest = name_or_path.partition(":")
        known = problems()
        found = _spelled(head.strip(), known)
        if found is not None:
            return found.load(**_written(name_or_path, rest if colon else None, options))
        head, colon, rest = name_or_path.rpartition(":")
        if colon and "=" in rest and not Path(name_or_path).exists():
            return _load_file(Path(head), _written(name_or_path, rest, options), name_or_path)
        looks_like_path = any(mark in name_or_path for mark in (".", "/", os.sep))
        if not name_or_path or not (looks_like_path or Path(name_or_path).exists()):
            hint = did_you_mean(head or name_or_path, known)
            raise ProblemError(
                f"there is no problem {name_or_path!r} and no such file: {hint}choose one of {', '.join(known)}"
            )
    return _load_file(Path(name_or_path), options, str(name_or_path))


def load_matrix(path: Path) -> Preferences:
    """Return the preferences in a file that holds their matrix."""
    return Preferences.from_csv(path)


def load_ballots(path: Path, *, unranked: preflib.Unranked = "ignored", top: int | None = None) -> Preferences:
    """Return the preferences of the voters in a PrefLib file; `top` keeps the alternatives that most of them rank."""
    return _preferences(path, preflib.read_preflib(path, unranked=unranked), top)


def load_battles(
    path: Path, *, first: str = "", second: str = "", verdict: str = "", top: int | None = None
) -> Preferences:
    """Return the shares of wins in a battle log; `top` keeps the options that were in most battles."""
    return _preferences(path, battles.count_battles(path, first=first, second=second, verdict=verdict), top)


def load_rankers(path: Path, *, user: User = "navigational", comparisons: int = 10_000, seed: int = 1) -> Preferences:
    """Return the preferences between the rankers of LETOR data, one per feature, found by simulated clicks."""
    return ranker_preferences(path, user=user, comparisons=comparisons, seed=seed, name=path.name)


def _preferences(path: Path, counted: Counted, top: int | None) -> Preferences:
    kept = counted if top is None else counted.top(top)
    try:
        return kept.preferences(path.name)
    except PreferencesError as error:
        raise PreferencesError(f"{path}: {error}") from None


def _stand_in(name: str) -> Source:
    def make(*, seed: int = 1) -> Preferences:
        return stand_in(name, seed)

    make.__doc__ = f"A synthetic stand-in for {name}: generated ranking data, the same clicks"
    return make


_GENERATORS: dict[str, Source] = {
    "bradley-terry": generators.bradley_terry,
    "linear-utilities": generators.linear_utilities,
    "random-condorcet": generators.random_condorcet,
    "hard-condorcet": generators.hard_condorcet,
    "mallows": generators.mallows,
    "mslr30-stand-in": _stand_in("mslr30"),
    "yahoo30-stand-in": _stand_in("yahoo30"),
}


def _generated(name: str, make: Source) -> Problem:
    arms = SAMPLE if name.endswith("-stand-in") else None
    return Problem(name, "generated", arms, summary(make), "generated", parameters_of(make), make)


def _spelled(name: str, known: Mapping[str, Problem]) -> Problem | None:
    """Find a name however its words are joined."""
    return known.get(name) or known.get(name.replace("-", "_")) or known.get(name.replace("_", "-"))


def _written(text: str, rest: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Read `key=value,...` and add it to the options given as arguments."""
    given = dict(options)
    for part in rest.split(",") if rest is not None else ():
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value):
            raise ProblemError(f"{text!r}: {part!r} is not key=value; write as in bradley-terry:arms=30,seed=1")
        if key in given:
            raise ProblemError(f"{text!r}: {key!r} is given twice: give it once")
        given[key] = value
    return given


def _complete(name: str, parameters: tuple[Parameter, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    known = {parameter.name: parameter for parameter in parameters}
    for key in given:
        if key not in known:
            have = f"it takes {', '.join(known)}" if known else "it takes none"
            raise ProblemError(f"{name} has no parameter {key!r}: {have}")
    try:
        return {key: known[key].check(name, value) for key, value in given.items()}
    except PolicyError as error:  # the shared check of parameters speaks of policies
        raise ProblemError(str(error)) from None


def _load_file(path: Path, options: Mapping[str, Any], text: str) -> Preferences:
    check_file(path)
    loader = _loader(path, options)
    return loader(path, **_complete(text, parameters_of(loader), options))


def _loader(path: Path, options: Mapping[str, Any]) -> Source:
    suffix = path.suffix.lower()
    if suffix in preflib.SUFFIXES:
        return load_ballots
    if suffix in (".csv", ".tsv"):
        return load_battles if "first" in options or battles.looks_like_battles(path) else load_matrix
    if suffix in battles.SUFFIXES:
        return load_battles
    if suffix == ".npz":
        return load_matrix
    if suffix in (".zip", ".gz", ".bz2", ".xz", ".7z", ".zst"):
        raise DataError(f"{path}: this is a compressed file; unpack it first")
    remarks = (line for _, line in byte_lines(path) if line.strip() and not line.lstrip().startswith(b"#"))
    return load_rankers if b"qid:" in next(remarks, b"") else load_matrix
