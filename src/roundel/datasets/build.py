"""Problems built from raw data on this machine: those that may not be bundled, and the bundled ones again."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

import numpy as np

from roundel._check import whole
from roundel._matrixfile import read_matrix, write_matrix
from roundel._textfile import byte_lines
from roundel.datasets.bundled import About, about
from roundel.datasets.clicks import estimate
from roundel.datasets.letor import survey
from roundel.datasets.preflib import Unranked, read_preflib
from roundel.errors import DataError, PreferencesError, ProblemError
from roundel.plan import Ints
from roundel.preferences import Preferences

SAMPLE = 30  # rankers in mslr30 and yahoo30
MSLR_FEATURES = 136
COMPARISONS = 400_000  # of each pair of rankers: standard errors below 0.0008
_DRAWS = 100  # samples of rankers tried before we give up on a Condorcet winner

ABOUT_BUILT = {
    "mslr30": About(
        "30 of the 136 rankers of MSLR-WEB10K, one per feature, compared by clicks of navigational users",
        "Qin & Liu, Introducing LETOR 4.0 Datasets, 2013; the 136-ranker matrix as in Zoghi, Karnin, Whiteson "
        "& de Rijke, Copeland Dueling Bandits, NIPS 2015",
        "rows of numpy default_rng(s).choice(136, 30, replace=False), sorted, for the first s = 1, 2, ... with a "
        "Condorcet winner; from the 136-ranker matrix, or from a raw file by probabilistic interleaving",
    ),
    "yahoo30": About(
        "30 rankers of the Yahoo! Learning to Rank Challenge, one per feature, compared by clicks of "
        "navigational users",
        "Chapelle & Chang, Yahoo! Learning to Rank Challenge Overview, JMLR W&CP 14, 2011",
        "numpy default_rng(s).choice of 30 among the features that are not zero everywhere, sorted, for the first "
        "s = 1, 2, ... with a Condorcet winner; probabilistic interleaving",
    ),
}


@dataclass(frozen=True, slots=True)
class Ballots:
    """How a bundled problem follows from a file of ballots."""

    file: str
    alternatives: int
    arms: int
    unranked: Unranked

    def build(self, name: str, source: Path) -> Preferences:
        """Count the ballots and keep the alternatives that the most of them rank."""
        counted = read_preflib(source, unranked=self.unranked)
        if len(counted.labels) != self.alternatives:
            have = len(counted.labels)
            problem = f"{have} alternatives where {self.file} has {self.alternatives}; give that file"
            raise DataError(f"{source}: {problem}")
        return counted.top(self.arms).preferences(name)


BALLOTS = {
    "sushi": Ballots("00014-00000002.soi", 100, 16, "ignored"),
    "irish_meath": Ballots("00001-00000003.soi", 14, 12, "last"),
    "irish_dublin": Ballots("00001-00000001.soi", 12, 8, "last"),
}

#: The problems that `build` makes.
BUILDABLE = (*ABOUT_BUILT, *BALLOTS)


def build(name: str, source: str | os.PathLike[str], *, comparisons: int = COMPARISONS) -> Preferences:
    """Build the problem `name` from its raw file; `comparisons` of each pair where clicks are simulated."""
    key, path = _buildable(name), Path(source)
    whole("comparisons", comparisons, least=1)
    if key in BALLOTS:
        made = BALLOTS[key].build(key, path)
        if made.winner is None:
            raise DataError(f"{path}: {key} would have no Condorcet winner; this is not {BALLOTS[key].file}")
        return made
    if _is_letor(path):
        return _first_with_winner(path, _from_letor(key, path, comparisons))
    if key == "mslr30":
        return _first_with_winner(path, _from_matrix(key, path))
    raise DataError(f"{path}: not ranking data; lines 'grade qid:N 1:value ...' were expected for {key}")


def save(name: str, preferences: Preferences) -> Path:
    """Keep a built problem in the data folder, where `load_problem` finds it; return the file."""
    key = _buildable(name)
    facts = ABOUT_BUILT.get(key) or about(key)
    return write_matrix(built_file(key), preferences.matrix, preferences.labels, facts.lines())


def load_built(name: str) -> Preferences:
    """Return the problem `name` from the data folder."""
    path = built_file(_buildable(name))
    if not path.exists():
        raise ProblemError(
            f"{name} is not built: its data may not be bundled; get the raw file ({ABOUT_BUILT[name].source}) and run "
            f"'roundel data build {name} --from FILE', or take the synthetic '{name}-stand-in'"
        )
    matrix, labels = read_matrix(path)
    try:
        return Preferences(matrix, labels, name)
    except PreferencesError as error:
        raise DataError(f"{path}: {error}; build {name} again") from None


def built_file(name: str) -> Path:
    """Where a built problem is kept."""
    return data_folder() / f"{name}.txt"


def data_folder() -> Path:
    """The folder of built problems: $ROUNDEL_DATA, or where this platform keeps the data of a user."""
    if chosen := os.environ.get("ROUNDEL_DATA"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "roundel"


def _buildable(name: str) -> str:
    key = name.replace("-", "_")
    if key not in BUILDABLE:
        raise ProblemError(f"{name!r} cannot be built from raw data: choose one of {', '.join(BUILDABLE)}")
    return key


def _is_letor(path: Path) -> bool:
    remarks = (b"", b"#")  # blank lines too
    return next((b"qid:" in line for _, line in byte_lines(path) if line.lstrip()[:1] not in remarks), False)


def _first_with_winner(path: Path, candidates: Iterable[Preferences]) -> Preferences:
    for made in islice(candidates, _DRAWS):
        if made.winner is not None:
            return made
    raise DataError(f"{path}: none of {_DRAWS} samples of {SAMPLE} rankers has a Condorcet winner")


def _from_matrix(name: str, path: Path) -> Iterator[Preferences]:
    matrix, _ = read_matrix(path)
    if matrix.shape != (MSLR_FEATURES, MSLR_FEATURES):
        shape = f"{matrix.shape[0]} x {matrix.shape[1]}"
        raise DataError(f"{path}: a matrix of {shape} where the one of MSLR is {MSLR_FEATURES} x {MSLR_FEATURES}")
    try:
        everyone = Preferences(matrix, [f"feature {f}" for f in range(1, MSLR_FEATURES + 1)], name)
    except PreferencesError as error:
        raise DataError(f"{path}: {error}") from None
    for seed in count(1):
        yield everyone.restrict(_sample(seed, MSLR_FEATURES).tolist())


def _from_letor(name: str, path: Path, comparisons: int) -> Iterator[Preferences]:
    found = survey(path)
    features = found.features if name == "yahoo30" else np.arange(1, MSLR_FEATURES + 1)
    if features.size < SAMPLE:
        raise DataError(f"{path}: {features.size} features that are not zero everywhere; {name} needs {SAMPLE}")
    if name == "mslr30" and found.features.max(initial=0) > MSLR_FEATURES:
        have = found.features.max()
        raise DataError(f"{path}: features up to {have}, but MSLR has {MSLR_FEATURES}; give a file of MSLR-WEB10K")
    for seed in count(1):
        chosen = features[_sample(seed, features.size)]
        yield estimate(path, found, chosen, "navigational", comparisons, 1, name)


def _sample(seed: int, size: int) -> Ints:
    return np.sort(np.random.default_rng(seed).choice(size, SAMPLE, replace=False)).astype(np.int64)
