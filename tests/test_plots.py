"""Figures: they can be told apart without colour, labels do not overlap, bad targets are refused."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from matplotlib.text import Text

from instances import SIX
from roundel import plots
from roundel.errors import InputError
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


def test_figures_are_saved_as_asked(table: Comparison, tmp_path: Path) -> None:
    for ending in ("png", "svg", "pdf"):
        table.plot(tmp_path / f"curves.{ending}")
        assert (tmp_path / f"curves.{ending}").stat().st_size > 5000


def test_bad_targets_are_refused(table: Comparison, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf"):
        table.plot(tmp_path / "curves.gif")
    with pytest.raises(InputError, match="does not exist"):
        table.plot(tmp_path / "none" / "curves.png")
    with pytest.raises(InputError, match="nothing to draw"):
        Comparison(()).plot(tmp_path / "curves.png")
