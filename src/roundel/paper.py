"""The experiments of the C2B paper, in one command: two figures, a third, a table, and which claims hold."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from math import floor, log, log2, sqrt
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from roundel import plots
from roundel._check import need, whole
from roundel.datasets import load_problem, problems
from roundel.errors import InputError
from roundel.policies.registry import parse
from roundel.policies.schedule import default_rounds
from roundel.preferences import Preferences
from roundel.simulation.comparison import Comparison
from roundel.simulation.grid import Cell, run_cells, workers

BATCHED = {
    "c2b-kl": "C2B-KL",
    "c2b-kl:defeat=majority": "C2B-KL majority",
    "scomp2": "SCOMP2",
    "pcomp": "PCOMP",
}
SEQUENTIAL = {
    "rucb": "RUCB",
    "rmed1": "RMED1",
    "rmed2fh": "RMED2FH",
    "btm": "BTM",
    "d-ts": "D-TS",
}
NAMES = BATCHED | SEQUENTIAL
MORE = 6  # the paper's second figure allows floor(ln T) + 6 rounds
HORIZON, LONG_HORIZON = 10**5, 10**6  # the long one for the problems with 30 arms
ROUNDS = "rounds allowed: B (SCOMP2: 2B + 1)"
FIGURES = ("rounds-ln-T", "rounds-ln-T-plus-6", "regret-against-rounds")


@dataclass(frozen=True)
class Paper:
    """What the experiments gave, and where it was written."""

    folder: Path
    titles: dict[str, str]
    first: Comparison  # B = floor(ln T)
    second: Comparison  # B = floor(ln T) + 6
    claims: str

    def table(self) -> list[dict[str, Any]]:
        """One row for each problem, policy and bound on rounds."""
        return self.first.summary() + self.second.select_policies(BATCHED).summary()


def paper(
    out: str | os.PathLike[str] = "out/paper",
    repeats: int = 20,
    seed: int = 0,
    *,
    jobs: int = -1,
    progress: bool | None = None,
) -> Paper:
    """Run the paper's experiments; write figures (PNG, SVG), table (CSV), claims, and the first two figures' trials."""
    repeats = whole("repeats", repeats, least=2)
    need(["joblib", "matplotlib", "numba", "pyarrow"], "`roundel paper`", "paper")
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise InputError(
            f"{folder}: cannot write into this folder ({error.strerror}); choose another with --out"
        ) from None
    fields = _problems(jobs)
    titles = {p.name: f"{title}\nK = {p.arms}, T = {_power(horizon)}" for title, p, horizon in fields}
    plain = {p.name: title for title, p, _ in fields}
    published, others = _cells(fields)
    table = run_cells(published, repeats, seed, jobs=jobs, progress=progress)
    first, second = _figure(table, fields, 0), _figure(table, fields, MORE)
    with ThreadPoolExecutor(1) as artist:  # draws what there is while the workers go on
        drawings: list[Future[None]] = []

        def draw(*what: Any) -> None:
            drawings.append(artist.submit(_draw, folder / FIGURES[len(drawings)], *what))

        draw(plots.regret_panels, first, NAMES, titles)
        draw(plots.regret_panels, second, NAMES, titles)
        table += run_cells(others, repeats, seed, jobs=jobs, progress=progress)
        levels = {
            problem: {NAMES[p]: first.select(p, problem).summary()[0]["regret"] for p in SEQUENTIAL}
            for problem in titles
        }
        draw(plots.rounds_panels, _sweep(table, titles), levels, NAMES, titles, ROUNDS)
        for drawing in drawings:
            drawing.result()
    result = Paper(folder, titles, first, second, claims(first, second, plain))
    (folder / "claims.md").write_text(result.claims, encoding="utf-8")
    (first + second.select_policies(BATCHED)).save(folder / "trials.parquet")
    _write_table(folder / "table.csv", result.table())
    return result


def _problems(jobs: int) -> list[tuple[str, Preferences, int]]:
    """Return (title, problem, horizon) of the six data sets, with stand-ins where data may not be bundled."""
    wanted = [
        ("six_rankers", "six rankers", HORIZON),
        ("irish_dublin", "Irish election, Dublin North", HORIZON),
        ("irish_meath", "Irish election, Meath", HORIZON),
        ("sushi", "sushi", HORIZON),
    ]
    known = problems()
    for name, title in (("mslr30", "MSLR-WEB10K"), ("yahoo30", "Yahoo! LTRC")):
        if known[name].ready:
            wanted.append((name, title, LONG_HORIZON))
        else:
            wanted.append((f"{name}-stand-in", f"SYNTHETIC stand-in for {title}", LONG_HORIZON))
    with workers(jobs) as map_tasks:  # a stand-in takes its time to make
        loaded = dict(map_tasks(_load, [(name,) for name, _, _ in reversed(wanted)]))
    return [(title, loaded[name], horizon) for name, title, horizon in wanted]


def _load(name: str) -> tuple[str, Preferences]:
    return name, load_problem(name)


def _cells(fields: list[tuple[str, Preferences, int]]) -> tuple[list[Cell], list[Cell]]:
    """Return what is run for the paper's figures, and what the third figure needs besides.

    That is every batched policy with 2 to floor(log2 T) + 6 rounds, and the sequential ones once.
    """
    published: list[Cell] = []
    others: list[Cell] = []
    for _, problem, horizon in fields:
        figures = (None, default_rounds(horizon), default_rounds(horizon) + MORE)
        for name in NAMES:
            for rounds in range(2, floor(log2(horizon)) + MORE + 1) if name in BATCHED else (None,):
                cell = Cell(*parse(name), problem, horizon, rounds)
                (published if rounds in figures else others).append(cell)
    return published, others


def _figure(everything: Comparison, fields: list[tuple[str, Preferences, int]], more: int) -> Comparison:
    """Return the trials of one figure: the batched ones with floor(ln T) + `more` rounds, the sequential ones."""
    allowed = {problem.name: default_rounds(horizon) + more for _, problem, horizon in fields}
    return Comparison(tuple(row for row in everything.rows if row.max_rounds in (None, allowed[row.trial.problem])))


def _sweep(everything: Comparison, titles: dict[str, str]) -> dict[str, dict[str, list[tuple[int, float, float]]]]:
    """Return (rounds, mean regret, standard error) for each problem and batched policy."""
    found: dict[str, dict[str, list[tuple[int, float, float]]]] = {
        problem: {policy: [] for policy in BATCHED} for problem in titles
    }
    for row in everything.select_policies(BATCHED).summary():
        found[row["problem"]][row["policy"]].append((row["max_rounds"], row["regret"], row["error"]))
    return {problem: {policy: sorted(points) for policy, points in one.items()} for problem, one in found.items()}


def _draw(target: Path, draw: Callable[..., Any], *data: Any) -> None:
    plots.save(draw(*data), [target.with_suffix(ending) for ending in (".png", ".svg")])


def _write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _power(horizon: int) -> str:
    return f"$10^{{{round(log(horizon, 10))}}}$"


# which claims hold ------------------------------------------------------------------------------------------

CLOSE, ROUGHLY = 1.5, 2.0  # "comparable" is within this factor on every data set; "roughly", within this one


def claims(first: Comparison, second: Comparison, titles: dict[str, str]) -> str:
    """Say, with numbers, which of the paper's claims hold here for C2B-KL as published and with majorities."""
    lines = [
        "# Which claims of the paper hold here",
        "",
        "Mean regret of C2B-KL divided by that of its rival, data set by data set (below 1: C2B-KL is better; the",
        "number after +- is two standard errors). 'Beats' asks for a ratio below 1 everywhere by more than two",
        f"standard errors; 'comparable' for at most {CLOSE} everywhere ('roughly': at most {ROUGHLY:g}).",
        "",
    ]
    if any("SYNTHETIC" in title for title in titles.values()):
        lines += [
            "Panels marked SYNTHETIC are stand-ins of the same size, made from generated ranking data: the real",
            "data may not be bundled. `roundel data build mslr30|yahoo30 --from FILE` puts them in their place.",
            "",
        ]
    questions = [
        ("always beats BTM, B = floor(ln T)", "btm", first, 0.0),
        ("always beats BTM, B = floor(ln T) + 6", "btm", second, 0.0),
        ("beats SCOMP2 on most data sets, B = floor(ln T)", "scomp2", first, 0.0),
        ("beats SCOMP2 on most data sets, B = floor(ln T) + 6", "scomp2", second, 0.0),
        ("is comparable to RUCB, B = floor(ln T)", "rucb", first, CLOSE),
        ("always beats RUCB, B = floor(ln T) + 6", "rucb", second, 0.0),
        ("is comparable to RMED1, B = floor(ln T) + 6", "rmed1", second, CLOSE),
    ]
    for question, rival, table, factor in questions:
        lines += [f"## C2B-KL {question}", ""]
        if rival == "scomp2":
            most = {p: max(r["most_rounds"] for r in table.summary() if r["policy"] == p) for p in ("c2b-kl", rival)}
            lines += [
                f"SCOMP2 may play 2B + 1 rounds: here it played up to {most[rival]}, C2B-KL up to {most['c2b-kl']}.",
                "",
            ]
        for policy in ("c2b-kl", "c2b-kl:defeat=majority"):
            ratios = {problem: _ratio(table, policy, rival, problem) for problem in titles}
            verdict = _verdict(list(ratios.values()), factor, most="most" in question)
            lines.append(f"- {NAMES[policy]}: **{verdict}**")
            lines += [f"  - {titles[p]}: {ratio:.2f} +- {2 * error:.2f}" for p, (ratio, error) in ratios.items()]
        lines.append("")
    wrong = [
        row for table in (first, second) for row in table.summary() if row["right"] < 1 and row["policy"] in BATCHED
    ]
    lines += ["## The winner", ""]
    lines += [
        f"- {NAMES[r['policy']]}, {titles[r['problem']]}, B = {r['max_rounds']}: right in {_runs(r)}" for r in wrong
    ] or ["- Every batched policy led with the Condorcet winner at the end of every run."]
    return "\n".join(lines) + "\n"


def _runs(row: dict[str, Any]) -> str:
    """Say in how many runs the leader was the winner: as a percentage, 999 of 1000 would read as all."""
    return f"{round(row['right'] * row['repeats'])} of {row['repeats']} runs"


def _ratio(table: Comparison, policy: str, rival: str, problem: str) -> tuple[float, float]:
    """Return the ratio of two mean regrets and its standard error (by the delta method)."""
    mine, theirs = (table.select(p, problem).summary()[0] for p in (policy, rival))
    ratio = mine["regret"] / theirs["regret"]
    return ratio, ratio * sqrt((mine["error"] / mine["regret"]) ** 2 + (theirs["error"] / theirs["regret"]) ** 2)


def _verdict(ratios: list[tuple[float, float]], factor: float, most: bool) -> str:
    if factor:
        worst = max(ratio for ratio, _ in ratios)
        if worst <= factor:
            return f"holds (at worst {worst:.2f} times)"
        return (
            f"holds roughly (at worst {worst:.2f} times)"
            if worst <= ROUGHLY
            else f"does not hold ({worst:.2f} times at worst)"
        )
    better = sum(ratio + 2 * error < 1 for ratio, error in ratios)
    holds = 2 * better > len(ratios) if most else better == len(ratios)
    return f"{'holds' if holds else 'does not hold'} (better on {better} of {len(ratios)})"
