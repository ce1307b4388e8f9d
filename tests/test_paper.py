"""The paper's experiments: what is written, and that the text says what the numbers say."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

from instances import SIX
from roundel import paper as module
from roundel.errors import MissingExtraError
from roundel.paper import BATCHED, FIGURES, NAMES, SEQUENTIAL, claims, paper
from roundel.preferences import Preferences
from roundel.simulation.comparison import Comparison, Row
from roundel.simulation.trial import Curve, Trial


def trial(policy: str, problem: str, regret: float) -> Trial:
    curve = Curve(np.array([1, 100]), np.array([0.0, regret]))
    return Trial(policy, problem, 100, regret, curve, 5, 6, 90, 90, 0, 0, right=True)


def table(costs: dict[str, float], problems: tuple[str, ...] = ("a", "b")) -> Comparison:
    """Two repeats of each policy, 1% apart."""
    return Comparison(
        tuple(
            Row(trial(policy, problem, cost * factor), repeat, 11, 0, "strong")
            for problem in problems
            for policy, cost in costs.items()
            for repeat, factor in enumerate((0.995, 1.005))
        )
    )


COSTS = {
    "c2b-kl": 100.0,
    "c2b-kl:defeat=majority": 60.0,
    "scomp2": 500.0,
    "pcomp": 300.0,
    "rucb": 80.0,
    "rmed1": 35.0,
    "rmed2fh": 40.0,
    "btm": 900.0,
    "d-ts": 20.0,
}


def test_the_claims_follow_the_numbers() -> None:
    text = claims(table(COSTS), table(COSTS), {"a": "A", "b": "SYNTHETIC B"})
    sections = {part.splitlines()[0]: part for part in text.split("## ")[1:]}
    assert "C2B-KL: **holds (better on 2 of 2)**" in sections["C2B-KL always beats BTM, B = floor(ln T)"]
    close = sections["C2B-KL is comparable to RUCB, B = floor(ln T)"]
    assert "- C2B-KL: **holds (at worst 1.25 times)**" in close
    better = sections["C2B-KL always beats RUCB, B = floor(ln T) + 6"]
    assert "- C2B-KL: **does not hold (better on 0 of 2)**" in better
    assert "- C2B-KL majority: **holds (better on 2 of 2)**" in better
    rmed = sections["C2B-KL is comparable to RMED1, B = floor(ln T) + 6"]
    assert "- C2B-KL: **does not hold (2.86 times at worst)**" in rmed
    assert "- C2B-KL majority: **holds roughly (at worst 1.71 times)**" in rmed
    against = sections["C2B-KL beats SCOMP2 on most data sets, B = floor(ln T)"]
    assert "SCOMP2 may play 2B + 1 rounds: here it played up to 5, C2B-KL up to 5." in against
    assert "stand-ins" in text


def test_a_difference_within_the_noise_is_no_victory() -> None:
    costs = {**COSTS, "c2b-kl": 79.8}  # 80 for RUCB, both known to half a percent
    text = claims(table(costs), table(costs), {"a": "A", "b": "B"})
    better = next(part for part in text.split("## ") if part.startswith("C2B-KL always beats RUCB"))
    assert "- C2B-KL: **does not hold (better on 0 of 2)**" in better


def test_losing_the_winner_is_reported() -> None:
    rows = table(COSTS).rows
    wrong = Comparison(tuple(r._replace(trial=_wrong(r.trial)) if r.trial.policy == "scomp2" else r for r in rows))
    assert "SCOMP2, A, B = 11: right in 0 of 2 runs" in claims(wrong, wrong, {"a": "A", "b": "B"})


def _wrong(one: Trial) -> Trial:
    return Trial(**{**{name: getattr(one, name) for name in Trial.__slots__}, "right": False})


def test_paper_asks_for_what_it_needs_before_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without numba it would run for hours; without pyarrow or matplotlib it would end with nothing."""
    for part in ("numba", "pyarrow", "matplotlib"):
        with monkeypatch.context() as missing:
            missing.setitem(sys.modules, part, None)
            with pytest.raises(MissingExtraError, match=r"roundel\[paper\]"):
                paper(tmp_path / "out", repeats=2)
    assert not (tmp_path / "out").exists()


def test_paper_writes_figures_tables_trials_and_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole pipeline on two small problems (the demo runs it on all six)."""
    small = [
        ("six", Preferences(SIX, name="six"), 2000),
        ("four", Preferences(SIX[:4, :4], name="four"), 3000),
    ]
    monkeypatch.setattr(module, "_problems", lambda jobs: small)
    result = paper(tmp_path / "new" / "folder", repeats=2, seed=1, jobs=1)
    written = {path.name for path in result.folder.iterdir()}
    assert written == {f"{name}.{end}" for name in FIGURES for end in ("png", "svg")} | {
        "claims.md",
        "table.csv",
        "trials.parquet",
    }
    with (result.folder / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    # both bounds on rounds for the batched policies, one row for the sequential ones
    assert len(rows) == 2 * (2 * len(BATCHED) + len(SEQUENTIAL))
    assert {row["policy"] for row in rows} == set(NAMES)
    assert {row["max_rounds"] for row in rows if row["problem"] == "six"} == {"7", "13", ""}
    trials = Comparison.load(result.folder / "trials.parquet")
    regrets = [t.regret for t in trials.select("c2b-kl", "six", 13).trials]
    row = next(r for r in rows if (r["problem"], r["policy"], r["max_rounds"]) == ("six", "c2b-kl", "13"))
    assert float(row["regret"]) == pytest.approx(np.mean(regrets))
    svg = (result.folder / f"{FIGURES[0]}.svg").read_text()
    for name in NAMES.values():
        assert svg.count(f"<!-- {name} -->") >= 2  # each curve carries its name, in each panel
    assert "SCOMP2: 2B + 1" in (result.folder / f"{FIGURES[2]}.svg").read_text()
    again = paper(tmp_path / "again", repeats=2, seed=1, jobs=2)
    for name in FIGURES:
        assert (again.folder / f"{name}.svg").read_bytes() == (result.folder / f"{name}.svg").read_bytes()
