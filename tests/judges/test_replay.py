"""How many past votes a tournament would have needed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from roundel.errors import DataError
from roundel.judges.replay import _draw, replay_log


def log(path: Path, strength: Sequence[float], votes: int, seed: int = 0, skip: tuple[int, int] | None = None) -> Path:
    """A log of votes on options 0, 1, ...: P(i beats j) is logistic in the strengths, one vote in ten a tie."""
    rng = random.Random(seed)
    rows = ["first,second,verdict"]
    while len(rows) <= votes:
        i, j = rng.sample(range(len(strength)), 2)
        if skip is not None and {i, j} == set(skip):
            continue
        word = "tie" if rng.random() < 0.1 else None
        if word is None:
            word = "first" if rng.random() < 1 / (1 + np.exp(strength[j] - strength[i])) else "second"
        rows.append(f"o{i},o{j},{word}")
    path.write_text("\n".join(rows) + "\n")
    return path


def test_a_clear_log_needs_few_of_its_votes(tmp_path: Path) -> None:
    estimate = replay_log(log(tmp_path / "l.csv", [3, 0, 0, 0, 0], 20_000), repeats=20)
    assert (estimate.favourite, estimate.condorcet, estimate.right, estimate.decided) == ("o0", True, 1.0, 1.0)
    assert estimate.share < 0.1
    assert estimate.missing == 0
    assert estimate.low <= estimate.used <= estimate.high <= estimate.votes == 20_000
    assert "caution" not in str(estimate)


def test_a_close_log_needs_more(tmp_path: Path) -> None:
    close = replay_log(log(tmp_path / "c.csv", [0.4, 0, 0, 0, 0], 20_000), repeats=20)
    clear = replay_log(log(tmp_path / "l.csv", [3, 0, 0, 0, 0], 20_000), repeats=20)
    assert close.used > 2 * clear.used


def test_equal_options_are_not_decided(tmp_path: Path) -> None:
    """The negative control: where there is nothing to find, the replay does not claim to find it cheaply."""
    estimate = replay_log(log(tmp_path / "l.csv", [0, 0, 0, 0], 4_000), repeats=20)
    assert estimate.decided < 0.5
    assert "do not decide it" in str(estimate)


def test_a_pair_without_votes_is_said(tmp_path: Path) -> None:
    estimate = replay_log(log(tmp_path / "l.csv", [0.5, 0.3, 0.0], 600, skip=(0, 1)), repeats=10)
    assert estimate.missing > 0
    assert estimate.short[0][:3] in (("o0", "o1", 0), ("o1", "o0", 0))
    assert "caution" in str(estimate)


def test_no_replay_uses_a_vote_twice(tmp_path: Path) -> None:
    estimate = replay_log(log(tmp_path / "l.csv", [0.1, 0, 0], 90), horizon=100_000, repeats=30)
    assert estimate.high <= 90
    assert estimate.asked > 90


def test_the_same_seed_gives_the_same_estimate(tmp_path: Path) -> None:
    path = log(tmp_path / "l.csv", [1, 0, 0], 3_000)
    assert replay_log(path, repeats=5, seed=3) == replay_log(path, repeats=5, seed=3)
    assert replay_log(path, repeats=5, seed=3) != replay_log(path, repeats=5, seed=4)


def test_votes_are_drawn_without_looking() -> None:
    """4,000 draws of 20 from (50, 30, 20): each mean within 4.5 standard errors (1 in 147,000 by chance)."""
    rng = np.random.Generator(np.random.PCG64(1))
    kinds = np.array([50, 30, 20])
    drawn = np.array([_draw(rng, kinds, 20) for _ in range(4_000)])
    for column, share in enumerate((0.5, 0.3, 0.2)):
        error = (20 * share * (1 - share) * (80 / 99) / 4_000) ** 0.5
        assert abs(drawn[:, column].mean() - 20 * share) < 4.5 * error


def test_top_keeps_the_most_seen(tmp_path: Path) -> None:
    rows = ["a,b,first"] * 30 + ["b,c,first"] * 20 + ["d,a,second"] * 2
    (tmp_path / "l.csv").write_text("first,second,verdict\n" + "\n".join(rows) + "\n")
    assert replay_log(tmp_path / "l.csv", top=3, repeats=2).options == ("a", "b", "c")
    (tmp_path / "one.csv").write_text("first,second,verdict\na,b,first\n")
    with pytest.raises(DataError, match="only one option"):
        replay_log(tmp_path / "one.csv", top=1)
