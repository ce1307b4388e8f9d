"""`roundel paper`, `compare`, `problems` and `data`: for researchers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from roundel.cli.output import AsJson, print_json, print_table, share, without_nan
from roundel.errors import InputError

Jobs = Annotated[int, typer.Option(metavar="N", help="Processes; -1: one a core. The numbers are the same for any.")]
Seed = Annotated[int, typer.Option(metavar="S", help="The seed that everything random comes from.")]

data = typer.Typer(help="Problems that are made from raw data.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (paper, compare, problems):
        app.command(rich_help_panel="Simulations")(command)
    data.command("build")(build)
    app.add_typer(data, name="data", rich_help_panel="Simulations")


def paper(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for figures, tables and claims.")] = Path(
        "out/paper"
    ),
    repeats: Annotated[int, typer.Option(metavar="R", help="Runs of each policy on each problem.")] = 20,
    seed: Seed = 0,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Run the paper's experiments. Three figures, a table, and which claims hold."""
    from roundel.paper import paper as run

    result = run(out, repeats, seed, jobs=jobs)
    if as_json:
        print_json(without_nan(result.table()))
        return
    _print_summary(result.table())
    typer.echo(result.claims)
    typer.echo(f"figures, table and trials are in {result.folder}")


def compare(
    policy: Annotated[
        list[str], typer.Option(metavar="NAME", help="Policy, as in c2b-kl:defeat=majority; may be repeated.")
    ],
    problem: Annotated[
        list[str], typer.Option(metavar="NAME|FILE", help="Problem by name, or a file; may be repeated.")
    ],
    horizon: Annotated[int, typer.Option(metavar="T", help="Duels that each run may spend.")],
    rounds: Annotated[
        int | None, typer.Option(metavar="B", help="Most rounds of a batched policy; default floor(ln T).")
    ] = None,
    repeats: Annotated[int, typer.Option(metavar="R", help="Runs of each policy on each problem.")] = 20,
    seed: Seed = 0,
    jobs: Jobs = 1,
    backend: Annotated[str, typer.Option(metavar="WHERE", help="processes, threads, ray or dask.")] = "processes",
    regret: Annotated[str, typer.Option(metavar="KIND", help="strong, weak, copeland or borda.")] = "strong",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep all trials here (.parquet, .csv); resumable.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the regret curves here (.png, .svg, .pdf).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare policies on problems by simulation. Regret, rounds, and when the winner was known."""
    from roundel.datasets import load_problem
    from roundel.plots import check_figure_path
    from roundel.simulation import compare as run

    if plot is not None:
        check_figure_path(plot)  # before the work, not after it
    for file in (Path(text) for name in problem for text in (name, name.rpartition(":")[0])):  # maybe with options
        if out is not None and out.is_file() and file.is_file() and out.samefile(file):
            raise InputError(f"{out}: this is the file of a problem, which the trials would replace; choose another")
    table = run(
        policy,
        [load_problem(name) for name in problem],
        horizon,
        repeats,
        rounds,
        seed,
        jobs=jobs,
        backend=backend,
        regret=regret,
        out=out,
    )
    if plot is not None:
        table.plot(plot)
    if as_json:
        print_json(without_nan(table.summary()))
    else:
        _print_summary(table.summary())


def _print_summary(rows: list[dict[str, Any]]) -> None:
    print_table(
        ["problem", "policy", "B", "regret", "+-", "rounds", "most", "duels to winner", "known", "right"],
        [
            [
                row["problem"],
                row["policy"],
                row["max_rounds"],
                row["regret"],
                None if row["error"] != row["error"] else row["error"],
                row["rounds"],
                row["most_rounds"],
                row["duels_to_winner"],
                share(row["known"]),
                share(row["right"]),
            ]
            for row in rows
        ],
    )


def problems(as_json: AsJson = False) -> None:
    """List the problems: bundled, to be built, generated."""
    from roundel.datasets import problems as known

    rows: list[dict[str, Any]] = [
        {
            "name": p.name,
            "kind": p.kind,
            "ready": p.ready,
            "arms": p.arms,
            "description": p.description,
            "source": p.source,
            "parameters": [{"name": q.name, "type": q.type.__name__, "default": q.default} for q in p.parameters],
        }
        for p in known().values()
    ]
    if as_json:
        print_json(rows)
        return
    print_table(
        ["problem", "kind", "arms", "what it is", "source"],
        [
            [
                row["name"],
                row["kind"] if row["ready"] else f"{row['kind']}: run data build",
                row["arms"],
                row["description"] + "".join(f"\n  {q['name']}={q['default']}" for q in row["parameters"]),
                row["source"],
            ]
            for row in rows
        ],
    )


def build(
    name: Annotated[str, typer.Argument(metavar="NAME", help="mslr30, yahoo30, sushi, irish_meath or irish_dublin.")],
    source: Annotated[Path, typer.Option("--from", metavar="FILE", help="The raw file.")],
    as_json: AsJson = False,
) -> None:
    """Build a problem from its raw file, and keep it. `--problem NAME` finds what is not bundled."""
    from roundel.datasets import build as make
    from roundel.datasets import load_problem, save

    made = make(name, source)
    target = save(name, made)
    differs = load_problem(name).matrix.tolist() != made.matrix.tolist()  # bundled problems stay what they are
    facts = {"name": name, "arms": made.arms, "winner": made.labels[made.winner or 0], "file": str(target)}
    if as_json:
        print_json(facts)
    else:
        typer.echo(f"{name}: {facts['arms']} arms, Condorcet winner {facts['winner']}; kept in {target}")
        if differs:
            typer.echo(f"it is not the {name} that is bundled, and goes by its path: --problem {target}", err=True)
