"""Generated problems: each a function of its size and seed, the same in every version and on every machine.

Numbers come from the raw words of PCG64, which numpy promises to keep, not from its distributions, which it
does not.
"""

from __future__ import annotations

from math import expm1, log

import numpy as np

from roundel._check import whole
from roundel.errors import InputError
from roundel.preferences import Preferences
from roundel.tally import Floats

MOST_ARMS = 10_000


def bradley_terry(*, arms: int = 30, seed: int = 1, spread: float = 1.0) -> Preferences:
    """Bradley-Terry: P[i, j] = 1 / (1 + exp(s_j - s_i)), strengths s normal with standard deviation `spread`."""
    arms = _arms(arms)
    _within("spread", spread, 0.0, 20.0, low_open=True)
    u, v = _uniforms("bradley-terry", seed, 2 * arms).reshape(2, arms)
    strengths = spread * np.sqrt(-2 * np.log1p(-u)) * np.cos(2 * np.pi * v)  # Box and Muller 1958
    upper = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
    return _problem("bradley-terry", upper, arms=arms, seed=seed, spread=spread)


def linear_utilities(*, arms: int = 30, seed: int = 1) -> Preferences:
    """Linear utilities: P[i, j] = 1/2 + (u_i - u_j) / 2, utilities u uniform on [0, 1): SST and STI hold."""
    arms = _arms(arms)
    u = _uniforms("linear-utilities", seed, arms)
    return _problem("linear-utilities", 0.5 + (u[:, None] - u[None, :]) / 2, arms=arms, seed=seed)


def random_condorcet(*, arms: int = 30, seed: int = 1, gap: float = 0.01) -> Preferences:
    """Every pair uniform on [0, 1], but one arm beats all others by at least `gap`: nothing else holds."""
    arms = _arms(arms)
    _within("gap", gap, 0.0, 0.5, low_open=True)
    draws = _uniforms("random-condorcet", seed, 1 + arms * arms)
    winner, upper = int(draws[0] * arms), draws[1:].reshape(arms, arms)
    row = 0.5 + gap + (0.5 - gap) * upper[winner]
    upper = upper.copy()
    upper[winner], upper[:, winner] = row, 1 - row
    return _problem("random-condorcet", upper, arms=arms, seed=seed, gap=gap)


def hard_condorcet(*, arms: int = 30, seed: int = 1, gap: float = 0.05, strength: float = 0.4) -> Preferences:
    """A narrow Condorcet winner, a runner-up with the higher Borda score, and a strong cycle of all the rest.

    The winner beats everybody by `gap` only; the runner-up beats the rest by `strength`; each of the rest beats
    the half of the rest that follows it in a circle by `strength`. Who is who is drawn with the seed.
    """
    arms = _arms(arms)
    _within("gap", gap, 0.0, 0.5, low_open=True)
    _within("strength", strength, 0.0, 0.5)
    rest = arms - 2
    ahead = (np.arange(rest)[None, :] - np.arange(rest)[:, None]) % max(rest, 1)
    upper = np.full((arms, arms), 0.5)
    upper[0, 1:] += gap
    upper[1, 2:] += strength
    # In an even circle the opposite arm is half a turn away from both: the one that stands first wins.
    upper[2:, 2:] += np.where(2 * ahead <= rest, strength, -strength)
    shuffled = np.argsort(_uniforms("hard-condorcet", seed, arms), kind="stable")
    upper = np.triu(upper, 1) + np.tril(1 - upper.T, -1)
    upper = upper[np.ix_(shuffled, shuffled)]
    return _problem("hard-condorcet", upper, arms=arms, seed=seed, gap=gap, strength=strength)


def mallows(*, arms: int = 30, seed: int = 1, dispersion: float = 0.8) -> Preferences:
    """Mallows: rankings with chance proportional to dispersion ** (swaps from a centre); exact pair chances.

    An arm d places ahead in the centre comes first with chance h(d + 1) - h(d), h(k) = k / (1 - dispersion ** k)
    (Mallows 1957). The centre is drawn with the seed. SST holds.
    """
    arms = _arms(arms)
    _within("dispersion", dispersion, 0.0, 0.9999)  # nearer to 1, rounding swallows what tells the arms apart
    ahead = np.full(arms, 1.0)  # by the distance in the centre
    ahead[0] = 0.5
    if dispersion > 0:
        h = [k / -expm1(k * log(dispersion)) for k in range(1, arms + 1)]
        ahead[1:] = np.diff(h)
    place = np.argsort(np.argsort(_uniforms("mallows", seed, arms), kind="stable"))
    distance = place[None, :] - place[:, None]
    chance = ahead[np.abs(distance)]
    return _problem("mallows", np.where(distance >= 0, chance, 1 - chance), arms=arms, seed=seed, dispersion=dispersion)


def _uniforms(name: str, seed: int, count: int) -> Floats:
    seed = whole("seed", seed)
    words = np.random.PCG64(np.random.SeedSequence([seed, *name.encode()])).random_raw(count)
    return np.asarray((words >> np.uint64(11)) * 2.0**-53)


def _arms(arms: int) -> int:
    return whole("arms", arms, least=2, most=MOST_ARMS)


def _within(name: str, value: float, low: float, high: float, low_open: bool = False) -> None:
    fits = isinstance(value, (int, float, np.floating)) and not isinstance(value, bool)
    fits = fits and (low < value if low_open else low <= value) and value <= high
    if not fits:
        left = "above" if low_open else "at least"
        raise InputError(f"{name} is {value!r}: it must be a number {left} {low:g} and at most {high:g}")


def _problem(kind: str, upper: Floats, **parameters: float) -> Preferences:
    """Take what stands above the diagonal, so that P[i, j] + P[j, i] is 1 to the last bit that it can be."""
    matrix = np.triu(upper, 1)
    matrix += np.tril(1 - matrix.T, -1)
    np.fill_diagonal(matrix, 0.5)
    return Preferences(matrix, name=f"{kind}:" + ",".join(f"{key}={value}" for key, value in parameters.items()))
