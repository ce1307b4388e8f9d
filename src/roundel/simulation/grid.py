"""Many trials: policies times problems times repeats, over processes or a cluster, resumable."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from numpy.random import SeedSequence

from roundel._check import whole
from roundel.errors import InputError, MissingExtraError, ScheduleWarning
from roundel.policies.registry import Policy, resolve
from roundel.policies.schedule import warn_of_slow_growth
from roundel.preferences import Preferences
from roundel.run import MOST_DUELS
from roundel.simulation.comparison import Comparison, Row
from roundel.simulation.journal import Journal
from roundel.simulation.regret import regret_table
from roundel.simulation.trial import POINTS, Trial, preferences, simulate

CLUSTERS = ("ray", "dask")
BACKENDS = ("processes", "threads", *CLUSTERS)
WAVE = 16  # tasks a worker
TASK_SECONDS = 0.5  # about how long one task of a worker should take


class Cell(NamedTuple):
    """One setting that is repeated: a policy on a problem."""

    policy: Policy
    parameters: dict[str, Any]
    problem: Preferences
    horizon: int
    rounds: int | None
    regret: str = "strong"
    points: int = POINTS

    @property
    def key(self) -> tuple[str, str, int, int | None]:
        """What tells cells apart."""
        return self.policy.text(self.parameters), self.problem.name, self.horizon, self.rounds

    @property
    def seconds(self) -> float:
        """A guess of what one trial takes."""
        return 2e-3 if self.policy.kind == "batched" else min(self.horizon, 10**6) * 1e-7 + 1e-3


def compare(
    policies: Iterable[str | Policy],
    problems: Iterable[Preferences],
    horizon: int,
    repeats: int = 20,
    rounds: int | None = None,
    seed: int = 0,
    *,
    jobs: int = 1,
    backend: str = "processes",
    regret: str = "strong",
    points: int = POINTS,
    out: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Run every policy on every problem `repeats` times and return all trials.

    Repeat r has its own stream, the r-th child of `seed`: the numbers are the same for any number of jobs, any
    backend and any company of other policies. `jobs` processes of this machine (-1: all cores), or a cluster:
    `backend="ray"` or "dask" uses the one that is connected, or starts a local one, with one job a core unless
    `jobs` says how many. With `out` (a .parquet or .csv file) every trial is kept as soon as it is done, and a
    comparison that was interrupted goes on where it stopped. `progress`: a bar on the terminal (default: if there
    is one).
    """
    horizon = whole("horizon", horizon, least=1, most=MOST_DUELS)
    points = whole("points", points, least=2)
    rounds = None if rounds is None else whole("rounds", rounds, least=1)
    if isinstance(policies, (str, Policy)) or isinstance(problems, (str, Preferences)):
        raise InputError("policies and problems are lists: write [policy] and [problem] for a single one")
    chosen = [resolve(policy, {}) for policy in policies]
    fields = [preferences(problem) for problem in problems]
    if not chosen or not fields:
        raise InputError("nothing to compare: give at least one policy and one problem")
    if rounds is not None and any(policy.kind == "batched" for policy, _ in chosen):
        warn_of_slow_growth(horizon, rounds)
    cells = [
        Cell(policy, parameters, problem, horizon, rounds, regret, points)
        for problem in fields
        for policy, parameters in chosen
    ]
    return run_cells(cells, repeats, seed, jobs=jobs, backend=backend, out=out, progress=progress)


def run_cells(
    cells: Sequence[Cell],
    repeats: int,
    seed: int = 0,
    *,
    jobs: int = 1,
    backend: str = "processes",
    out: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Repeat every cell and return all trials, cell by cell; `compare` says what the arguments mean."""
    repeats, seed = whole("repeats", repeats, least=1), whole("seed", seed)
    if backend not in BACKENDS:
        raise InputError(f"backend is {backend!r}: it must be one of {', '.join(BACKENDS)}")
    if not isinstance(jobs, int) or jobs == 0:
        raise InputError(f"jobs is {jobs!r}: it must be a number of processes, or -1 for one a core")
    if backend in CLUSTERS and jobs == 1:
        jobs = -1  # naming the cluster is enough: one job would run here and not there
    keys = [cell.key for cell in cells]
    if len(set(keys)) < len(keys):
        policy, problem, *_ = max(keys, key=keys.count)
        raise InputError(
            f"{policy!r} on {problem!r} stands twice: name each policy once, and each problem by its own name"
        )
    for cell in cells:
        regret_table(cell.problem, cell.regret)  # refuses now what would fail in every worker
    with ExitStack() as stack:
        map_tasks = stack.enter_context(workers(jobs, backend))
        journal = stack.enter_context(closing(Journal(Path(out), cells, seed))) if out is not None else None
        done: dict[tuple[Any, ...], Trial] = dict(journal.trials()) if journal else {}
        tasks = list(_tasks(cells, repeats, done))
        advance = stack.enter_context(progress_bar(len(cells) * repeats, progress))
        if jobs != 1 and tasks:
            _compile_once(cells, map_tasks)
        advance(len(cells) * repeats - sum(len(task.repeats) for task in tasks))
        for task, trials in map_tasks(_work, [(task, seed) for task in tasks]):
            finished = {(*task.cell.key, r): trial for r, trial in zip(task.repeats, trials, strict=True)}
            done |= finished
            if journal:
                journal.append(finished)
            advance(len(finished))
        table = Comparison(
            tuple(
                Row(done[*cell.key, repeat], repeat, cell.rounds, seed, cell.regret)
                for cell in cells
                for repeat in range(repeats)
            )
        )
        if journal:
            table.save(journal.target)
            journal.finish()
    return table


class Task(NamedTuple):
    """Some repeats of one cell, for one worker."""

    cell: Cell
    repeats: list[int]


def _tasks(cells: Sequence[Cell], repeats: int, done: dict[tuple[Any, ...], Trial]) -> Iterator[Task]:
    """Cut the work up: a task is not dwarfed by what it takes to hand it out; the longest come first."""
    for cell in sorted(cells, key=lambda cell: -cell.seconds):
        todo = [r for r in range(repeats) if (*cell.key, r) not in done]
        size = max(1, round(TASK_SECONDS / cell.seconds))
        for start in range(0, len(todo), size):
            yield Task(cell, todo[start : start + size])


def _work(task: Task, seed: int) -> tuple[Task, list[Trial]]:
    policy, parameters, problem, horizon, rounds, regret, points = task.cell
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScheduleWarning)  # `compare` has said it once
        # SeedSequence(seed, spawn_key=(r,)) is the r-th child that SeedSequence(seed).spawn() gives.
        return task, [
            simulate(
                policy,
                problem,
                horizon,
                rounds,
                SeedSequence(seed, spawn_key=(repeat,)),
                regret=regret,
                points=points,
                **parameters,
            )
            for repeat in task.repeats
        ]


def _compile_once(cells: Sequence[Cell], map_tasks: Callable[..., Iterable[Any]]) -> None:
    """Have each sequential policy compiled by one worker; the others then find it in the cache on disk."""
    coin = Preferences([[0.5, 0.6], [0.4, 0.5]], name="to compile by")
    kinds = {cell.policy.name: cell for cell in cells if cell.policy.kind == "sequential"}
    tasks = [
        (Task(cell._replace(problem=coin, horizon=2, points=2, regret="strong"), [0]), 0) for cell in kinds.values()
    ]
    for _ in map_tasks(_work, tasks):
        pass


@contextmanager
def workers(jobs: int, backend: str = "processes") -> Iterator[Callable[..., Iterable[Any]]]:
    """Give a function that maps tasks over workers, in any order of completion."""
    if jobs == 1 and backend in ("processes", "threads"):
        yield lambda function, tasks: (function(*task) for task in tasks)
        return
    try:
        import joblib
    except ImportError:
        raise MissingExtraError("more than one job", "sim") from None
    if backend == "ray":
        try:
            from ray.util.joblib import register_ray
        except ImportError:
            raise MissingExtraError("backend 'ray'", "ray") from None
        register_ray()
    client = None
    if backend == "dask":
        try:
            from distributed import Client, default_client
        except ImportError:
            raise MissingExtraError("backend 'dask'", "dask") from None
        try:
            default_client()
        except ValueError:
            workers = jobs if jobs > 0 else joblib.cpu_count()
            client = Client(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    names = {"processes": "loky", "threads": "threading"}

    def map_tasks(function: Callable[..., Any], tasks: list[tuple[Any, ...]]) -> Iterable[Any]:
        calls = [joblib.delayed(function)(*task) for task in tasks]
        if backend != "ray":
            yield from joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(calls)
            return
        # Ray's hands back nothing before all is done: several waves, so that an interruption costs one of them.
        with joblib.Parallel(n_jobs=jobs, batch_size=1) as parallel:
            size = WAVE * joblib.effective_n_jobs(jobs)
            for start in range(0, len(calls), size):
                yield from parallel(calls[start : start + size])

    try:
        with joblib.parallel_config(backend=names.get(backend, backend)):
            yield map_tasks
    finally:
        if client is not None:
            client.close()


@contextmanager
def progress_bar(total: int, wanted: bool | None) -> Iterator[Callable[[int], None]]:
    """Give a function that moves a bar on the terminal; it does nothing where there is none."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield lambda n: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("trials"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("trials", total=total)
        yield lambda n: bar.advance(task, n)
