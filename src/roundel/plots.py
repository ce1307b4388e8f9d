"""Figures, readable in black and white: every curve has its own dashes and marker, and its name beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roundel._check import file_to_write, need
from roundel.errors import InputError, MissingExtraError
from roundel.simulation.comparison import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours that stay apart for colour-blind readers and as shades of grey (after Okabe and Ito).
COLOURS = ("#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#7A7A7A", "#E69F00", "#56B4E9")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (8, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
WIDEST_TITLE = 40  # characters over a panel
ENDINGS = (".png", ".svg", ".pdf")
STYLE = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "xtick.direction": "out",
    "legend.frameon": False,
    "svg.hashsalt": "roundel",  # the same picture is the same file
}


def regret_figure(table: Comparison, path: str | os.PathLike[str], names: dict[str, str] | None = None) -> None:
    """Draw cumulative regret against duels, a panel a problem, with the mean's band of two standard errors."""
    save(regret_panels(table, names), [path])


def regret_panels(
    table: Comparison, names: dict[str, str] | None = None, titles: dict[str, str] | None = None
) -> Figure:
    """Return the figure of `regret_figure`."""
    if not table.rows:
        raise InputError("nothing to draw: the comparison holds no trial")
    order = list(names or {}) + table.policies  # a policy looks the same in every figure that shares its names
    figure, panels = _panels(len(table.problems))
    for axes, problem in zip(panels, table.problems, strict=True):
        ends = []
        for index, policy in enumerate(sorted(table.policies, key=order.index)):
            if not table.select(policy, problem).rows:
                continue
            band = table.band(policy, problem)
            look = _look(index)
            shown = band.t >= band.t[-1] / 1000  # before that all curves are one line
            t, mean = band.t[shown], np.maximum(band.mean[shown], 1e-3)
            every = max(1, len(t) // 6)
            axes.plot(t, mean, markevery=(index % every, every), **look)
            wide = 2 * np.nan_to_num(band.error[shown])
            axes.fill_between(t, np.maximum(mean - wide, 1e-3), mean + wide, color=look["color"], alpha=0.18, lw=0)
            ends.append((float(mean[-1]), _name(policy, names), look["color"]))
        low, high = axes.dataLim.intervaly
        if low == high:  # nobody pays anything: a logarithmic scale needs some height
            axes.set_ylim(low / 10, high * 10)
        axes.set(xscale="log", yscale="log", title=(titles or {}).get(problem, _title(problem)))
        axes.set_xlim(right=float(band.t[-1]))
        _thin_ticks(axes)
        _label_ends(axes, ends)
    _share_labels(figure, "duels", "cumulative regret")
    return figure


def rounds_panels(
    batched: Mapping[str, Mapping[str, Sequence[tuple[int, float, float]]]],
    sequential: Mapping[str, Mapping[str, float]],
    names: dict[str, str] | None = None,
    titles: dict[str, str] | None = None,
    x: str = "rounds allowed (B)",
) -> Figure:
    """Draw mean regret against the bound on rounds.

    `batched[problem][policy]` lists (rounds, mean, standard error); `sequential[problem][policy]` is one mean,
    drawn as a horizontal line.
    """
    figure, panels = _panels(len(batched))
    for axes, problem in zip(panels, batched, strict=True):
        ends = []
        for index, (policy, points) in enumerate(batched[problem].items()):
            rounds, mean, error = (np.array(column, float) for column in zip(*points, strict=True))
            look = _look(index)
            axes.plot(rounds, mean, markevery=3, **look)
            axes.fill_between(
                rounds, np.maximum(mean - 2 * error, 1e-3), mean + 2 * error, color=look["color"], alpha=0.18, lw=0
            )
            ends.append((float(mean[-1]), _name(policy, names), look["color"]))
        for policy, level in sequential[problem].items():
            axes.axhline(level, color="#7A7A7A", lw=0.6, ls=(0, (2, 2)))
            ends.append((level, _name(policy, names), "#7A7A7A"))
        axes.set(yscale="log", title=(titles or {}).get(problem, problem))
        _label_ends(axes, ends)
    _share_labels(figure, x, "regret at the horizon")
    return figure


def save(figure: Figure, paths: Iterable[str | os.PathLike[str]]) -> None:
    """Write `figure` to each path, as .png, .svg or .pdf, and close it."""
    plt = _pyplot()
    for target in map(Path, paths):
        check_figure_path(target)
        # Without a date the same figure gives the same file.
        metadata = {"Date": None} if target.suffix == ".svg" else {}
        figure.savefig(target, dpi=200, metadata=metadata)
        figure.set_layout_engine("none")  # the layout is found; finding it takes longer than drawing
    plt.close(figure)


def check_figure_path(target: Path) -> None:
    """Refuse a path that no figure can be saved to, and any where nothing can draw."""
    file_to_write(target, "a figure", ENDINGS)
    need(["matplotlib"], "a figure", "plot")


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError("a figure", "plot") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _thin_ticks(axes: Axes) -> None:
    """Leave two small ticks a decade: eight take longer to draw than the curves."""
    from matplotlib.ticker import LogLocator

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(LogLocator(subs=(2, 5)))


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    plt = _pyplot()
    plt.rcParams.update(STYLE)
    columns = min(3, count)
    rows = -(-count // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(3.9 * columns, 2.7 * rows), squeeze=False, layout="constrained")
    panels = list(grid.flat)
    for spare in panels[count:]:
        spare.set_visible(False)
    return figure, panels[:count]


def _look(index: int) -> dict[str, Any]:
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": DASHES[index % len(DASHES)],
        "marker": MARKERS[index % len(MARKERS)],
        "markerfacecolor": "white",
        "markeredgewidth": 0.8,
    }


def _name(policy: str, names: dict[str, str] | None) -> str:
    return (names or {}).get(policy, _plain(policy))


def _plain(text: str) -> str:
    """Keep what stands between dollars in a user's name from being taken for mathematics."""
    return text.replace("$", r"\$")


def _title(problem: str) -> str:
    """Break a long name after its commas: a panel that cuts `strength=0.4` short says another problem."""
    lines = [""]
    for piece in re.findall(rf"[^,]{{1,{WIDEST_TITLE}}},?|,", problem):
        if lines[-1] and len(lines[-1] + piece) > WIDEST_TITLE:
            lines.append("")
        lines[-1] += piece
    return _plain("\n".join(lines))


def _label_ends(axes: Axes, ends: list[tuple[float, str, str]], gap: float = 0.062) -> None:
    """Write each curve's name at its right end, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    scale = np.log(high / low)
    wanted = sorted((float(np.log(max(value, low) / low) / scale), name, colour) for value, name, colour in ends)
    for (height, name, colour), place in zip(wanted, spread([height for height, _, _ in wanted], gap), strict=True):
        axes.annotate(
            name,
            xy=(1.0, height),
            xytext=(1.04, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=colour,
            fontsize=7,
            va="center",
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.4, "shrinkA": 0, "shrinkB": 0},
        )


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Move ascending `heights` in [0, 1] at least `gap` apart, and none further than it must (least squares).

    Less `gap` for each one below, the places must ascend, so neighbours in the wrong order share their mean.
    """
    blocks: list[tuple[float, int]] = []  # (mean, how many share it)
    for i, height in enumerate(heights):
        mean, count = height - i * gap, 1
        while blocks and blocks[-1][0] > mean:
            before, many = blocks.pop()
            mean, count = (before * many + mean * count) / (many + count), many + count
        blocks.append((mean, count))
    most = max(0.0, 1 - (len(heights) - 1) * gap)
    means = [min(max(mean, 0.0), most) for mean, count in blocks for _ in range(count)]
    return [mean + i * gap for i, mean in enumerate(means)]


def _share_labels(figure: Figure, x: str, y: str) -> None:
    figure.supxlabel(x, fontsize=9)
    figure.supylabel(y, fontsize=9)
