"""Comparison: the trials of many runs as one tidy table, and what it says."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from math import nan, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from roundel._check import file_to_write, need
from roundel.errors import InputError, MissingExtraError
from roundel.plan import Ints
from roundel.simulation.trial import Curve, Trial
from roundel.tally import Floats

COLUMNS = ("problem", "policy", "horizon", "max_rounds", "seed", "repeat", "regret_kind", "t", "regret")
ENDINGS = (".parquet", ".csv")
MAY_BE_EMPTY = {"max_rounds", "duels_to_winner", "winner"}
FACTS = ("total_regret", "rounds", "batches", "duels", "duels_to_winner", "winner", "leader", "right")


class Row(NamedTuple):
    """One trial and the settings that it ran with."""

    trial: Trial
    repeat: int
    max_rounds: int | None
    seed: int
    regret_kind: str


class Band(NamedTuple):
    """A regret curve over repeats: its mean, the standard error of that, and quantiles."""

    t: Ints
    mean: Floats
    error: Floats
    low: Floats
    median: Floats
    high: Floats


@dataclass(frozen=True)
class Comparison:
    """Every trial of a comparison, in the order problem, policy, repeat."""

    rows: tuple[Row, ...]

    def __add__(self, other: Comparison) -> Comparison:
        return Comparison(self.rows + other.rows)

    @property
    def trials(self) -> list[Trial]:
        """The trials alone."""
        return [row.trial for row in self.rows]

    @property
    def problems(self) -> list[str]:
        """The names of the problems, in order."""
        return list(dict.fromkeys(row.trial.problem for row in self.rows))

    @property
    def policies(self) -> list[str]:
        """The policies with their parameters, in order."""
        return list(dict.fromkeys(row.trial.policy for row in self.rows))

    def select(
        self, policy: str | None = None, problem: str | None = None, max_rounds: int | None = None
    ) -> Comparison:
        """Return the trials of one policy, one problem, one bound on rounds."""
        return Comparison(
            tuple(
                row
                for row in self.rows
                if policy in (None, row.trial.policy)
                and problem in (None, row.trial.problem)
                and max_rounds in (None, row.max_rounds)
            )
        )

    def select_policies(self, policies: Iterable[str]) -> Comparison:
        """Return the trials of some policies."""
        wanted = set(policies)
        return Comparison(tuple(row for row in self.rows if row.trial.policy in wanted))

    def band(self, policy: str, problem: str, quantiles: tuple[float, float] = (0.1, 0.9)) -> Band:
        """Return the regret curve of one policy on one problem, over the repeats."""
        rows = self.select(policy, problem).rows
        if not rows:
            raise InputError(f"no trial of {policy!r} on {problem!r}: there are {self.policies} on {self.problems}")
        if len({(row.trial.horizon, row.max_rounds, row.regret_kind, len(row.trial.curve.t)) for row in rows}) > 1:
            raise InputError(
                f"trials of {policy!r} on {problem!r} differ in horizon, rounds, regret or checkpoints: "
                "one band shows repeats of one setting; select it first"
            )
        if not 0 <= quantiles[0] <= quantiles[1] <= 1:
            raise InputError(f"quantiles are {quantiles!r}: give two from 0 to 1, the lower one first")
        trials = [row.trial for row in rows]
        curves = np.array([trial.curve.regret for trial in trials])
        low, median, high = np.quantile(curves, (quantiles[0], 0.5, quantiles[1]), axis=0)
        return Band(trials[0].curve.t, curves.mean(axis=0), _error(curves), low, median, high)

    def summary(self) -> list[dict[str, Any]]:
        """Return one row for each setting that was repeated: regret, rounds, and whether the winner was known, when."""
        groups: dict[tuple[Any, ...], list[Trial]] = {}
        for trial, _, max_rounds, _, kind in self.rows:
            setting = trial.problem, trial.policy, trial.horizon, max_rounds, kind
            groups.setdefault(setting, []).append(trial)
        return [
            {
                "problem": problem,
                "policy": policy,
                "horizon": horizon,
                "max_rounds": max_rounds,
                "regret_kind": kind,
                "repeats": len(trials),
                "regret": float(np.mean(costs := np.array([t.regret for t in trials]))),
                "error": float(_error(costs)),
                "sd": float(costs.std(ddof=1)) if len(trials) > 1 else nan,
                "rounds": float(np.mean([t.rounds for t in trials])),
                "most_rounds": max(t.rounds for t in trials),
                "known": sum(t.duels_to_winner is not None for t in trials) / len(trials),
                "duels_to_winner": _median([t.duels_to_winner for t in trials], horizon),
                "right": sum(t.right for t in trials) / len(trials),
            }
            for (problem, policy, horizon, max_rounds, kind), trials in groups.items()
        ]

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the regret curves, a panel a problem, into a .png, .svg or .pdf file."""
        from roundel.plots import regret_figure  # a leaf: drawn only when asked for

        regret_figure(self, path)

    def _table(self) -> dict[str, list[Any]]:
        table: dict[str, list[Any]] = {name: [] for name in COLUMNS + FACTS}
        for trial, repeat, max_rounds, seed, kind in self.rows:
            n = len(trial.curve.t)
            facts = [trial.problem, trial.policy, trial.horizon, max_rounds, seed, repeat, kind]
            for name, value in zip(COLUMNS[:7], facts, strict=True):
                table[name] += [value] * n
            table["t"] += trial.curve.t.tolist()
            table["regret"] += trial.curve.regret.tolist()
            for name in FACTS:
                table[name] += [trial.regret if name == "total_regret" else getattr(trial, name)] * n
        return table

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tidy table, one row for each checkpoint of each trial, as .parquet or .csv; all or nothing."""
        target = check_table_path(path)
        part = target.with_name(target.name + ".writing")
        try:
            _write(self._table(), part, target.suffix)
            os.replace(part, target)
        except OSError as error:
            raise InputError(f"{target}: cannot write there ({error.strerror}); choose another file") from None
        finally:
            with suppress(OSError):  # what could not be made cannot be removed either
                part.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Comparison:
        """Read a table that `save` wrote."""
        source = Path(path)
        if not source.is_file():
            raise InputError(f"{source}: there is no such file")
        if source.suffix not in ENDINGS:
            raise InputError(f"{source}: a comparison is kept as {' or '.join(ENDINGS)}")
        table = _read_csv(source) if source.suffix == ".csv" else _read_parquet(source)
        if missing := [name for name in COLUMNS + FACTS if name not in table]:
            raise InputError(f"{source}: the columns {', '.join(missing)} are missing; is it a saved comparison?")
        for name in set(COLUMNS + FACTS) - MAY_BE_EMPTY:
            if None in table[name]:
                raise InputError(f"{source}: row {table[name].index(None) + 1} has no {name}; was the file edited?")
        t = table["t"]
        starts = [i for i in range(len(t)) if i == 0 or t[i] <= t[i - 1]]  # time ascends within a trial ...
        keys = list(zip(*(table[name] for name in COLUMNS[:7]), strict=True))
        starts = sorted({*starts, *(i for i in range(1, len(t)) if keys[i] != keys[i - 1])})  # ... of one setting
        return cls(tuple(_row(table, start, end) for start, end in pairwise([*starts, len(t)])))


def check_table_path(path: str | os.PathLike[str]) -> Path:
    """Refuse a path that no table can be saved to."""
    target = file_to_write(path, "a comparison", ENDINGS)
    if target.suffix == ".parquet":
        need(["pyarrow"], "a Parquet file", "sim")
    if target.exists() and target.stat().st_size and not set(COLUMNS) <= _columns(target):
        raise InputError(f"{target}: this is not a comparison, and would be lost; choose another file")
    return target


def _columns(source: Path) -> set[str]:
    """Return the names of a table's columns, as far as it is one."""
    if source.suffix == ".csv":
        with source.open(newline="", encoding="utf-8", errors="replace") as file:
            return set(next(csv.reader([file.readline(10_000)]), ()))
    arrow, parquet = _pyarrow()
    try:
        return set(parquet.read_schema(source).names)
    except (arrow.ArrowException, OSError):
        return set()


def _row(table: dict[str, list[Any]], start: int, end: int) -> Row:
    one = {name: column[start] for name, column in table.items()}
    curve = Curve(np.array(table["t"][start:end]), np.array(table["regret"][start:end]))
    facts = {name: one[name] for name in FACTS if name != "total_regret"}
    trial = Trial(one["policy"], one["problem"], one["horizon"], one["total_regret"], curve, **facts)
    return Row(trial, one["repeat"], one["max_rounds"], int(one["seed"]), one["regret_kind"])


def _write(table: dict[str, list[Any]], path: Path, ending: str) -> None:
    if ending == ".parquet":
        arrow, parquet = _pyarrow()
        if max(table["seed"], default=0) >= 2**63:  # numpy's own seeds have 128 bits; Parquet's numbers have 64
            table = {**table, "seed": list(map(str, table["seed"]))}
        parquet.write_table(arrow.table(table), path, compression="zstd")
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        columns = [["" if v is None else v for v in column] for column in table.values()]
        writer.writerows(zip(*columns, strict=True))


def _read_parquet(source: Path) -> dict[str, list[Any]]:
    arrow, parquet = _pyarrow()
    try:
        table: dict[str, list[Any]] = parquet.read_table(source).to_pydict()
    except (arrow.ArrowException, OSError) as error:
        raise InputError(f"{source}: this is not a Parquet file ({error})") from None
    return table


def _read_csv(source: Path) -> dict[str, list[Any]]:
    text = {"problem", "policy", "regret_kind"}
    with source.open(newline="", encoding="utf-8", errors="replace") as file:  # what is not UTF-8 is not a number
        reader = csv.DictReader(file)
        table: dict[str, list[Any]] = {name: [] for name in reader.fieldnames or ()}
        for line in reader:
            for name, value in line.items():
                try:
                    table[name].append(value if name in text else None if value == "" else json.loads(value.lower()))
                except (ValueError, KeyError, AttributeError):
                    raise InputError(
                        f"{source}, line {reader.line_num}: {name} is {value!r}, not a number; was the file edited?"
                    ) from None
    return table


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("a Parquet file", "sim") from None
    return pyarrow, pyarrow.parquet


def _error(values: Floats) -> Any:
    """Return the standard error of the mean over the first axis; not a number for a single repeat."""
    if len(values) < 2:
        return np.full(values.shape[1:], nan)
    return values.std(axis=0, ddof=1) / sqrt(len(values))


def _median(times: Sequence[int | None], horizon: int) -> int | None:
    """Return the median of times of which some never came (they count as later than any); None if most did not."""
    late = sorted(horizon + 1 if time is None else time for time in times)
    middle = late[(len(late) - 1) // 2]
    return None if middle > horizon else middle
