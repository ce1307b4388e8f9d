"""Regret and batches against the 400-run table at the end of ALGORITHMS.md, section 15 (and 200 runs of section 14).

Means agree within four standard errors of both sides together, and the rounding of the table. The alarms expected:
a two-sided four-sigma event has probability 6.3e-5, and there are 56 rows with a mean regret, a mean of batches and
a median each: 168 * 6.3e-5 = 0.011; the bound on the largest number of batches adds 56 * 2**-14 = 0.003. So for 98
in 100 seeds (STATISTICS_SEED) no test of this file fails by chance; the default seed is fixed, so none is flaky.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from math import sqrt
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from instances import ARITH8, CYC4, NOCW5, SIX
from playing import Played, play, start

SIGMAS = 4
RUNS = 400
HORIZON = 100_000
INSTANCES = {"SIX": SIX, "ARITH8": ARITH8, "CYC4": CYC4, "NOCW5": NOCW5}


class Row(NamedTuple):
    """Mean and sd of the regret, mean and largest number of batches, median of the duels until one arm was left."""

    regret: float
    sd: float
    batches: float
    most: int
    alone: float


COLUMNS = (
    *("c2b-kl", "c2b-kl:defeat=majority", "pcomp", "c2b:defeat=majority", "pcomp:estimates=round"),
    *("scomp", "scomp2", "r-scomp", "bcope"),
)
TABLE = {
    ("SIX", 11): """807, 180, 8.63/9, 18719 | 532, 136, 8.98/10, 17946 | 1949, 417, 9.04/10, 47352
        | 779, 209, 9.27/10, 24395 | 2853, 462, 9.44/10, 61023 | 3359, 1925, 9.71/11, 79582
        | 3538, 2130, 16.6/20, 100000 | 3536, 1972, 9.85/12, 81456 | 3575, 559, 9.02/10, 69450""",
    ("SIX", 17): """661, 137, 12.1/13, 15270 | 426, 101, 12.6/14, 14482 | 1584, 278, 12.9/14, 35852
        | 637, 135, 13.3/15, 21928 | 3119, 540, 13.9/15, 70668 | 3080, 1897, 14.1/16, 70302
        | 3600, 2116, 24.5/29, 100000 | 3328, 1974, 14.3/17, 75658 | 2928, 534, 12.9/14, 57133""",
    ("ARITH8", 11): """602, 116, 8.66/10, 10146 | 387, 111, 8.63/9, 8700 | 1472, 233, 8.91/10, 17632
        | 576, 167, 8.88/10, 10920 | 2233, 336, 9.27/10, 22195 | 3511, 2469, 10.0/11, 52912
        | 5042, 4167, 16.0/20, 92006 | 3603, 2355, 10.3/12, 59718 | 3005, 374, 8.88/10, 28014""",
    ("ARITH8", 17): """488, 87, 12.1/14, 7092 | 305, 76, 12.1/14, 5758 | 1202, 135, 12.5/14, 13528
        | 468, 120, 12.5/14, 9406 | 2438, 283, 13.6/15, 28542 | 2897, 1958, 14.2/16, 42022
        | 5458, 4621, 23.6/29, 100000 | 3089, 2048, 14.6/17, 43514 | 2416, 277, 12.6/14, 22723""",
    ("CYC4", 11): """33, 19, 5.45/8, 450 | 62, 43, 6.39/8, 960 | 44, 2, 5.00/7, 588 | 168, 93, 7.34/8, 2739
        | 77, 55, 5.88/9, 588 | | | | 242, 90, 7.53/8, 5786""",
    ("CYC4", 17): """28, 11, 7.38/10, 357 | 61, 40, 8.90/12, 1004 | 75, 33, 9.33/12, 1170 | 155, 61, 10.6/12, 2862
        | 144, 66, 10.3/13, 2333 | | | | 202, 55, 10.5/11, 3024""",
}


def read(cell: str) -> Row:
    regret, sd, both, alone = (part.strip() for part in cell.split(","))
    mean, most = both.split("/")
    return Row(float(regret), float(sd), float(mean), int(most), float(alone))


ROWS = {
    (policy, instance, rounds): read(cell)
    for (instance, rounds), line in TABLE.items()
    for policy, cell in zip(COLUMNS, line.split("|"), strict=True)
    if cell.strip()
}
# Section 1: at this horizon C2B with the rule of the paper is PCOMP.
ROWS |= {("c2b", instance, rounds): ROWS["pcomp", instance, rounds] for instance, rounds in TABLE}
COPELAND = {
    ("bcope", "NOCW5", 11): Row(2343, 558, 7.62, 8, 11218),
    ("bcope", "NOCW5", 17): Row(1927, 402, 10.5, 12, 8507),
}


def runs(
    policy: str, instance: str, rounds: int, seed: int, count: int = RUNS, flip: bool = False, copeland: bool = False
) -> list[Played]:
    matrix = INSTANCES[instance]
    cost: NDArray[np.float64] = matrix[0] - 0.5
    if copeland:
        score = (matrix > 0.5).sum(axis=1)
        cost = (score.max() - score) / (len(matrix) - 1)
    rng = np.random.default_rng([seed, zlib.crc32(f"{policy} {instance} {rounds}".encode())])
    shown = matrix.T if flip else matrix
    # each run has its own seed, so that seed sets differ
    seeds = rng.integers(0, 2**31, count)
    return [play(start(policy, len(matrix), HORIZON, rounds, int(s)), shown, rng, cost) for s in seeds]


def disagreements(row: Row, trials: list[Played], theirs: int = 400) -> list[str]:
    """Say what of `trials` is not what the table says."""
    n = len(trials)
    regret = np.array([t.regret for t in trials])
    batches = np.array([t.batches for t in trials])
    alone = np.array([t.alone for t in trials])
    found = []
    error = SIGMAS * sqrt(regret.var(ddof=1) / n + row.sd**2 / theirs) + 0.5
    if abs(regret.mean() - row.regret) > error:
        found.append(f"regret {regret.mean():.1f}, {row.regret} expected, at most {error:.1f} apart")
    # The table has no sd of batches: ours stands for both, and that of one odd run where ours are all equal. It rounds
    # to 3 digits.
    spread = max(batches.std(ddof=1), sqrt(1 / n))
    error = SIGMAS * spread * sqrt(1 / n + 1 / theirs) + (0.05 if row.batches >= 10 else 0.005)
    if abs(batches.mean() - row.batches) > error:
        found.append(f"batches {batches.mean():.2f}, {row.batches} expected, at most {error:.2f} apart")
    # Exchangeable runs: that the k largest of all of them are ours has probability below (n / (n + theirs))^k.
    if (batches > row.most).sum() >= 14:
        found.append(f"{(batches > row.most).sum()} runs took more than {row.most} batches")
    # Half of the runs are on either side of the median (atoms count for both), within the error of two samples.
    share = SIGMAS * 0.5 * sqrt(1 / n + 1 / theirs)
    if (alone < row.alone - 0.5).mean() > 0.5 + share or (alone <= row.alone + 0.5).mean() < 0.5 - share:
        found.append(f"median {np.median(alone):.0f} duels until alone, {row.alone:.0f} expected")
    return found


@pytest.mark.parametrize(("policy", "instance", "rounds"), ROWS)
def test_regret_and_batches_agree_with_the_table(policy: str, instance: str, rounds: int, statistics_seed: int) -> None:
    trials = runs(policy, instance, rounds, statistics_seed)
    assert disagreements(ROWS[policy, instance, rounds], trials) == []


@pytest.mark.parametrize(("policy", "instance", "rounds"), COPELAND)
def test_copeland_regret_agrees_with_the_table(policy: str, instance: str, rounds: int, statistics_seed: int) -> None:
    trials = runs(policy, instance, rounds, statistics_seed, count=200, copeland=True)
    assert disagreements(COPELAND[policy, instance, rounds], trials, theirs=200) == []


# negative controls: what must fail ---------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", COLUMNS)
def test_flipped_verdicts_disagree_with_the_table(policy: str, statistics_seed: int) -> None:
    trials = runs(policy, "SIX", 11, statistics_seed, count=30, flip=True)
    assert disagreements(ROWS[policy, "SIX", 11], trials)


BREAKS = {
    "pcomp": ("roundel.policies.batched.pcomp", "hoeffding_level", lambda *_: 10.0),
    "c2b:defeat=majority": ("roundel.policies.batched.c2b", "hoeffding_level", lambda *_: 10.0),
    "bcope": ("roundel.policies.batched.bcope", "hoeffding_level", lambda *_: 10.0),
    "c2b-kl": ("roundel.policies.batched.c2b", "log", lambda x: 8.0),
    "c2b-kl:defeat=majority": ("roundel.policies.batched.c2b", "log", lambda x: 8.0),
    "scomp": ("roundel.policies.batched.scomp", "log", lambda x: 4.0),
    "r-scomp": ("roundel.policies.batched.scomp", "log", lambda x: 4.0),
    "scomp2": ("roundel.policies.batched.scomp2", "log", lambda x: 4.0),
    "pcomp:estimates=round": ("roundel.policies.batched.pcomp", "hoeffding_level", lambda *_: 10.0),
}


@pytest.mark.parametrize("policy", BREAKS)
def test_a_narrower_radius_disagrees_with_the_table(
    policy: str, statistics_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A confidence level other than specified shows, although the regret it gives would look fine by itself."""
    module, name, level = BREAKS[policy]
    broken: Callable[..., float] = level
    monkeypatch.setattr(importlib.import_module(module), name, broken)
    assert disagreements(ROWS[policy, "SIX", 11], runs(policy, "SIX", 11, statistics_seed))
