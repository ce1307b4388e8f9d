"""Figures: they can be told apart without colour, labels do not overlap, bad targets are refused."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.text import Text

from instances import SIX
from roundel import plots
from roundel.errors import InputError, MissingExtraError
from roundel.preferences import Preferences
from roundel.simulation import Comparison, compare

POLICIES = ["c2b", "c2b-kl", "pcomp", "scomp", "scomp2", "r-scomp", "bcope", "rucb", "rmed1", "savage"]


@pytest.fixture(scope="module")
def table() -> Comparison:
    return compare(POLICIES, [Preferences(SIX, name="six"), Preferences(SIX[:3, :3], name="three")], 3000, 3, rounds=5)


def test_every_curve_has_its_own_look_and_name(table: Comparison) -> None:
    figure = plots.regret_panels(table)
    for axes in figure.axes:
        looks = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in axes.lines}
        assert len(looks) == len(axes.lines) == len(POLICIES)
        # without colour too: dashes and marker alone tell neighbours apart
        assert len(
            {(line._dash_pattern[1] and tuple(line._dash_pattern[1]), line.get_marker()) for line in axes.lines}
        ) == (len(POLICIES))
        assert {text.get_text() for text in axes.texts} == set(POLICIES)
        figure.canvas.draw()
        boxes = sorted((box.y0, box.y1) for box in (Text.get_window_extent(text) for text in axes.texts))
        assert all(upper[0] >= lower[1] - 2 for lower, upper in pairwise(boxes))
    plots._pyplot().close(figure)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9).map(sorted))
def test_labels_are_moved_apart_and_no_further_than_they_must(heights: list[float]) -> None:
    places = plots.spread(heights, 0.1)
    assert all(upper - lower >= 0.1 - 1e-9 for lower, upper in pairwise(places))
    assert -1e-9 <= places[0] <= places[-1] <= 1 + 1e-9
    if all(upper - lower >= 0.1 for lower, upper in pairwise(heights)):
        assert places == pytest.approx(heights)


def test_crowded_labels_share_the_displacement() -> None:
    assert plots.spread([0.5, 0.5, 0.5, 0.9], 0.1) == pytest.approx([0.4, 0.5, 0.6, 0.9])
    assert plots.spread([0.0, 0.0], 0.1) == pytest.approx([0.0, 0.1])
    assert plots.spread([1.0, 1.0], 0.1) == pytest.approx([0.9, 1.0])


def test_figures_are_saved_as_asked(table: Comparison, tmp_path: Path) -> None:
    for ending in ("png", "svg", "pdf"):
        table.plot(tmp_path / f"curves.{ending}")
        assert (tmp_path / f"curves.{ending}").stat().st_size > 5000


def test_any_name_and_no_regret_at_all_can_be_drawn(tmp_path: Path) -> None:
    priced = Preferences([[0.5, 0.6], [0.4, 0.5]], name=r"$5_$ against $\frac$")
    alone = Preferences([[0.5]], name="alone")  # one arm costs nothing
    compare(["c2b"], [priced, alone], 100, 2).plot(tmp_path / "curves.svg")
    assert r"$5_$ against $\frac$" in (tmp_path / "curves.svg").read_text()


def test_a_long_name_is_not_cut_off() -> None:
    names = ["hard-condorcet:arms=10,seed=1,gap=0.05,strength=0.4", "a,,b", "x" * 70 + ".csv"]
    figure = plots.regret_panels(compare(["c2b"], [Preferences(SIX, name=name) for name in names], 100, 2))
    figure.canvas.draw()
    width = figure.bbox.width
    for axes, name in zip(figure.axes, names, strict=True):
        title = axes._left_title
        assert title.get_text().replace("\n", "") == name
        assert title.get_window_extent().x1 <= width
    assert "gap=0.05,\n" in figure.axes[0]._left_title.get_text()
    plots._pyplot().close(figure)


def test_what_needs_matplotlib_says_so_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as if it were not installed
    with pytest.raises(MissingExtraError, match=r"roundel\[plot\]"):
        plots.check_figure_path(tmp_path / "curves.png")


def test_bad_targets_are_refused(table: Comparison, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.png or \.svg or \.pdf"):
        table.plot(tmp_path / "curves.gif")
    with pytest.raises(InputError, match="does not exist"):
        table.plot(tmp_path / "none" / "curves.png")
    (tmp_path / "folder.png").mkdir()
    for name, message in [("folder.png", "is a folder"), ("a\0.png", "zero byte"), ("a" * 300 + ".png", "too long")]:
        with pytest.raises(InputError, match=message):
            table.plot(tmp_path / name)
    with pytest.raises(InputError, match="nothing to draw"):
        Comparison(()).plot(tmp_path / "curves.png")
