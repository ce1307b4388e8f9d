"""Comparisons: the same numbers however they are run, resumable, saved and read back."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from instances import RPS3, SIX
from roundel.errors import InputError, MissingExtraError, NoCondorcetWinnerError, ScheduleWarning
from roundel.policies.registry import _policies, batched, resolve
from roundel.preferences import Preferences
from roundel.simulation import Comparison, compare, grid, simulate
from roundel.simulation.grid import Cell, workers
from roundel.simulation.journal import Journal
from roundel.simulation.trial import Trial

PROBLEM = Preferences(SIX, name="six")
POLICIES = ["c2b-kl", "scomp2", "rucb"]


def facts(trial: Trial) -> tuple[object, ...]:
    return (*(getattr(trial, name) for name in Trial.__slots__ if name != "curve"), *trial.curve.regret.tolist())


def same(one: Comparison, other: Comparison) -> bool:
    return [facts(t) for t in one.trials] == [facts(t) for t in other.trials]


@pytest.fixture(scope="module")
def alone() -> Comparison:
    return compare(POLICIES, [PROBLEM], 5000, 6, seed=3)


@pytest.mark.parametrize("backend", ["processes", "threads"])
def test_any_number_of_jobs_gives_the_same_numbers(alone: Comparison, backend: str) -> None:
    assert same(alone, compare(POLICIES, [PROBLEM], 5000, 6, seed=3, jobs=2, backend=backend))


def test_a_local_dask_cluster_gives_the_same_numbers(alone: Comparison) -> None:
    assert same(alone, compare(POLICIES, [PROBLEM], 5000, 6, seed=3, jobs=2, backend="dask"))


def test_a_local_ray_cluster_gives_the_same_numbers(alone: Comparison, tmp_path: Path) -> None:
    # In a process of its own: Ray leaves threads, sockets and warnings of its own behind.
    script = (
        "import json, sys\n"
        "from roundel import Preferences, compare\n"
        "problem = Preferences(json.loads(sys.argv[1]), name='six')\n"
        f"table = compare({POLICIES}, [problem], 5000, 6, seed=3, jobs=2, backend='ray')\n"
        "table.save(sys.argv[2])\n"
    )
    target = tmp_path / "ray.parquet"
    environment = {**os.environ, "RAY_DEDUP_LOGS": "0", "RAY_USAGE_STATS_ENABLED": "0", "HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script, json.dumps(SIX.tolist()), str(target)], check=True, env=environment)
    assert same(alone, Comparison.load(target))


def test_naming_a_cluster_is_enough_to_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """One job, the default, would run in this very process."""
    asked = []
    monkeypatch.setattr(grid, "workers", lambda jobs, backend: asked.append((backend, jobs)) or workers(1))
    for backend in grid.BACKENDS:
        compare(["c2b"], [PROBLEM], 100, 1, backend=backend)
    assert asked == [("processes", 1), ("threads", 1), ("ray", -1), ("dask", -1)]
    compare(["c2b"], [PROBLEM], 100, 1, backend="ray", jobs=3)
    assert asked[-1] == ("ray", 3)


def test_company_and_more_repeats_do_not_change_a_trial(alone: Comparison) -> None:
    more = compare(["bcope", "rucb"], [Preferences(SIX.T[::-1, ::-1].T, name="other"), PROBLEM], 5000, 9, seed=3)
    mine = alone.select("rucb", "six").trials
    assert [facts(t) for t in more.select("rucb", "six").trials[:6]] == [facts(t) for t in mine]
    seeds = np.random.SeedSequence(3).spawn(6)
    assert [facts(t) for t in mine] == [facts(simulate("rucb", PROBLEM, 5000, seed=s)) for s in seeds]
    assert len({t.regret for t in mine}) == 6  # repeats are different runs


def test_the_summary_counts_what_the_trials_say(alone: Comparison) -> None:
    rows = alone.summary()
    assert [(row["problem"], row["policy"]) for row in rows] == [("six", policy) for policy in POLICIES]
    costs = [t.regret for t in alone.select("c2b-kl").trials]
    assert rows[0]["regret"] == pytest.approx(np.mean(costs))
    assert rows[0]["error"] == pytest.approx(np.std(costs, ddof=1) / np.sqrt(6))
    assert rows[0]["most_rounds"] == max(t.rounds for t in alone.select("c2b-kl").trials)
    assert rows[2]["duels_to_winner"] is None
    band = alone.band("c2b-kl", "six", (0.25, 0.75))
    assert band.mean[-1] == pytest.approx(np.mean(costs))
    assert (band.low <= band.median).all()
    assert (band.median <= band.high).all()
    assert band.high[-1] == pytest.approx(np.quantile(costs, 0.75))
    for wrong in ((10, 90), (0.9, 0.1)):
        with pytest.raises(InputError, match="quantiles are"):
            alone.band("c2b-kl", "six", wrong)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_saved_comparison_reads_back_the_same(alone: Comparison, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"table.{ending}"
    (alone + compare(["pcomp"], [PROBLEM], 300, 2, rounds=4)).save(path)
    back = Comparison.load(path)
    assert same(back.select(max_rounds=4), compare(["pcomp"], [PROBLEM], 300, 2, rounds=4))
    assert [facts(t) for t in back.trials[:18]] == [facts(t) for t in alone.trials]
    assert back.rows[0].seed == 3
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_what_was_added_up_reads_back_as_the_same_trials(tmp_path: Path, ending: str) -> None:
    """Trials that differ in nothing but the seed, or not even in that, stay apart."""
    parts = [compare(["c2b"], [PROBLEM], 300, 1, seed=seed) for seed in (1, 2, 2)]
    table = parts[0] + parts[1] + parts[2]
    table.save(tmp_path / f"table.{ending}")
    assert same(Comparison.load(tmp_path / f"table.{ending}"), table)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("seed", [2**63 - 1, 2**63, 2**127 + 1])
def test_a_seed_of_any_size_is_kept(tmp_path: Path, ending: str, seed: int) -> None:
    target = tmp_path / f"table.{ending}"
    table = compare(["c2b"], [PROBLEM], 300, 2, seed=seed, out=target)
    assert Comparison.load(target).rows[0].seed == seed
    assert same(Comparison.load(target), table)


def test_different_settings_are_never_averaged() -> None:
    short, long = (compare(["c2b"], [PROBLEM], horizon, 2) for horizon in (300, 3000))
    weak = compare(["c2b"], [PROBLEM], 300, 2, regret="weak")
    table = short + long + weak
    assert [row["regret"] for row in table.summary()] == [part.summary()[0]["regret"] for part in (short, long, weak)]
    assert [(row["horizon"], row["regret_kind"]) for row in table.summary()] == [
        (300, "strong"),
        (3000, "strong"),
        (300, "weak"),
    ]
    for mixed in (short + long, short + weak, short + compare(["c2b"], [PROBLEM], 300, 2, rounds=3)):
        with pytest.raises(InputError, match="differ in horizon, rounds, regret or checkpoints"):
            mixed.band("c2b", "six")


def test_bad_tables_are_refused(tmp_path: Path) -> None:
    for name in ("noise.csv", "noise.parquet"):
        (tmp_path / name).write_bytes(b"\xff\xfe\0 noise")
        with pytest.raises(InputError, match=rf"{name}: (the columns|this is not a Parquet file)"):
            Comparison.load(tmp_path / name)
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="columns problem, policy"):
        Comparison.load(wrong)
    with pytest.raises(InputError, match="no such file"):
        Comparison.load(tmp_path / "none.csv")
    with pytest.raises(InputError, match="cannot write there"):  # there is no room for '.writing' in the name
        Comparison(()).save(tmp_path / ("x" * 250 + ".csv"))
    with pytest.raises(InputError, match=r"\.parquet or \.csv"):
        compare(["c2b"], [PROBLEM], 100, 1).save(tmp_path / "table.xlsx")


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_no_trial_at_all_is_kept_and_read_back(tmp_path: Path, ending: str) -> None:
    Comparison(()).save(tmp_path / f"none.{ending}")
    assert Comparison.load(tmp_path / f"none.{ending}").rows == ()


def test_a_cell_that_was_emptied_is_named(alone: Comparison, tmp_path: Path) -> None:
    target = tmp_path / "table.csv"
    alone.save(target)
    lines = target.read_text().splitlines()
    cells = lines[2].split(",")
    for name in ("t", "regret", "repeat"):
        column = lines[0].split(",").index(name)
        target.write_text("\n".join([*lines[:2], ",".join([*cells[:column], "", *cells[column + 1 :]]), *lines[3:]]))
        with pytest.raises(InputError, match=rf"table\.csv: row 2 has no {name}"):
            Comparison.load(target)


def test_an_interrupted_comparison_goes_on_where_it_stopped(alone: Comparison, tmp_path: Path) -> None:
    """Kill the process in the middle; the journal keeps what was done, a torn last line is dropped."""
    target = tmp_path / "table.parquet"
    script = (
        "import json, sys\n"
        "from roundel import Preferences, compare\n"
        "problem = Preferences(json.loads(sys.argv[1]), name='six')\n"
        f"compare({POLICIES}, [problem], 5000, 100_000, seed=3, out=sys.argv[2])\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", script, json.dumps(SIX.tolist()), str(target)])
    journal = tmp_path / "table.parquet.part"
    deadline = time.monotonic() + 60
    while not (journal.exists() and journal.read_bytes().count(b"\n") > 1) and time.monotonic() < deadline:
        time.sleep(0.02)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    kept = journal.read_text()
    lines = kept[: kept.rindex("\n") + 1].splitlines(keepends=True)
    assert len(lines) > 1
    # Mark a finished trial, to see that it is taken over and not run again; tear the last line.
    key, trial = json.loads(lines[1])
    trial["leader"] = 5
    marked = json.dumps([key, trial]) + "\n"
    journal.write_text(lines[0] + marked + '[["c2b-kl", "six", 50')
    table = compare(POLICIES, [PROBLEM], 5000, 6, seed=3, out=target)
    assert [t.leader for t in table.trials].count(5) == 1
    unmarked = [facts(t) for t in table.trials if t.leader != 5]
    assert Counter(unmarked) < Counter(facts(t) for t in alone.trials)
    assert not journal.exists()
    assert same(Comparison.load(target), table)


def test_two_at_once_do_not_share_a_file(tmp_path: Path) -> None:
    target = tmp_path / "table.csv"
    cells = [Cell(*resolve("c2b", {}), PROBLEM, 100, None)]
    with closing(Journal(target, cells, 0)), pytest.raises(InputError, match="is being run already"):
        compare(["c2b"], [PROBLEM], 100, 1, out=target)
    assert len(compare(["c2b"], [PROBLEM], 100, 1, out=target).rows) == 1  # whoever had it has let go
    assert list(tmp_path.iterdir()) == [target]


def test_a_journal_that_another_run_finishes_meanwhile_is_not_written_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening the file and locking it: what is removed from the folder keeps nothing."""
    cells = [Cell(*resolve("c2b", {}), PROBLEM, 100, None)]
    other = Journal(tmp_path / "table.csv", cells, 0)
    lock = fcntl.flock

    def slow_lock(file, how):
        other.finish()
        other.close()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", slow_lock)
    with pytest.raises(InputError, match="another run has finished this comparison just now"):
        Journal(tmp_path / "table.csv", cells, 0)


def test_a_journal_does_not_mind_the_order_of_the_problems(tmp_path: Path) -> None:
    cells = [Cell(*resolve("c2b", {}), Preferences(SIX, name=name), 100, None) for name in "ab"]
    for order in (cells, cells[::-1]):
        Journal(tmp_path / "table.csv", order, 0).close()


def test_a_failed_comparison_lets_go_of_its_journal(tmp_path: Path) -> None:
    @batched("stumbles", paper="none")
    def stumbles(arms, horizon, rounds, rng):
        """Fail at once."""
        yield 1 // 0

    try:
        for _ in range(2):  # the second time must not find the file locked by the first
            with pytest.raises(ZeroDivisionError):
                compare(["c2b", "stumbles"], [PROBLEM], 100, 1, out=tmp_path / "table.csv")
    finally:
        del _policies["stumbles"]


@pytest.mark.parametrize("content", [b"my notes", b"my notes\n", b"\xff\xfe\0\n", b"[1]\n[2]\n", b"\n"])
def test_a_file_that_is_no_journal_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    other = tmp_path / "table.csv.part"
    other.write_bytes(content)
    with pytest.raises(InputError, match="no journal at all"):
        compare(["c2b"], [PROBLEM], 100, 1, out=tmp_path / "table.csv")
    assert other.read_bytes() == content


def test_a_broken_line_of_a_journal_is_named(tmp_path: Path) -> None:
    target = tmp_path / "table.csv"
    with closing(Journal(target, [Cell(*resolve("c2b", {}), PROBLEM, 100, None)], 0)) as journal:
        head = journal.path.read_bytes()
        journal.path.write_bytes(head + b'["half a li\n')
    with pytest.raises(InputError, match=r"table\.csv\.part, line 2: a trial was expected"):
        compare(["c2b"], [PROBLEM], 100, 1, out=target)
    journal.path.write_bytes(head[:9])  # killed while it wrote its very first line
    assert len(compare(["c2b"], [PROBLEM], 100, 1, out=target).rows) == 1


def test_what_cannot_run_leaves_no_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part, name, jobs in (("joblib", "table.csv", 2), ("pyarrow", "table.parquet", 1)):
        with monkeypatch.context() as missing:
            missing.setitem(sys.modules, part, None)
            with pytest.raises(MissingExtraError, match=r"roundel\[sim\]"):
                compare(["c2b"], [PROBLEM], 100, 1, out=tmp_path / name, jobs=jobs)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("backend", ["processes", "threads", "dask"])
def test_results_come_back_before_all_are_done(backend: str) -> None:
    """Else an interruption would cost everything that the journal has not seen."""
    tasks = [(0.01,)] * 200 + [(-1,)]  # nobody sleeps for less than no time: the last one fails
    with workers(2, backend) as map_tasks:
        results = iter(map_tasks(time.sleep, tasks))
        assert next(results) is None
        with pytest.raises(ValueError, match="non-negative"):
            list(results)


def test_a_journal_of_other_settings_is_refused_and_kept(tmp_path: Path) -> None:
    target = tmp_path / "table.csv"
    journal = tmp_path / "table.csv.part"
    journal.write_text(json.dumps({"roundel comparison": 1, "seed": 8}) + "\n")
    before = journal.read_bytes()
    with pytest.raises(InputError, match=r"begun with another seed.*delete it"):
        compare(["c2b"], [PROBLEM], 100, 1, out=target)
    assert journal.read_bytes() == before
    assert not target.exists()


def test_a_users_own_policy_travels_to_the_workers() -> None:
    @batched("twice-around", paper="none")
    def twice_around(arms, horizon, rounds, rng):
        """Duel all pairs twice and commit to who took most points."""
        from roundel.plan import Plan

        result = yield Plan.all_pairs(arms.active, 2)
        return int(result.total.points.sum(axis=1).argmax())

    try:
        one, two = (compare(["twice-around"], [PROBLEM], 500, 4, jobs=jobs) for jobs in (1, 2))
        assert same(one, two)
    finally:
        del _policies["twice-around"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policies": []}, "nothing to compare"),
        ({"problems": []}, "nothing to compare"),
        ({"policies": ["c2b", "c2b"]}, "stands twice"),
        ({"repeats": 0}, "repeats is 0"),
        ({"backend": "mpi"}, "backend is 'mpi'"),
        ({"jobs": 0}, "jobs is 0"),
        ({"out": "nowhere/table.csv"}, "does not exist"),
        ({"out": "table.txt"}, "choose one of these endings"),
        ({"out": "a\0.csv"}, "zero byte"),
        ({"out": "a" * 300 + ".csv"}, "too long"),
        ({"policies": "c2b"}, "are lists"),
        ({"policies": [3]}, "policy is 3"),
        ({"problems": PROBLEM}, "are lists"),
        ({"problems": ["six_rankers"]}, "must be Preferences"),
        ({"horizon": 10**18 + 1}, "at most"),
        ({"rounds": "many"}, "rounds is 'many'"),
    ],
)
def test_bad_comparisons_are_refused_before_anything_runs(change, message) -> None:
    arguments = {"policies": ["c2b"], "problems": [PROBLEM], "horizon": 100, "repeats": 1, **change}
    with pytest.raises(InputError, match=message):
        compare(**arguments)


def test_problems_without_a_condorcet_winner_are_refused_before_anything_runs() -> None:
    with pytest.raises(NoCondorcetWinnerError):
        compare(["c2b"], [PROBLEM, Preferences(RPS3, name="rps")], 100, 1)


def test_too_many_rounds_warn_once() -> None:
    with pytest.warns(ScheduleWarning) as caught:
        compare(["c2b", "pcomp"], [PROBLEM], 100, 3, rounds=17)
    assert len(caught) == 1
