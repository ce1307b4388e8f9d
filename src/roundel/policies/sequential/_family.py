"""What all sequential policies share: their form, how they are registered, and how `Run` plays them.

A sequential policy is a named tuple of arrays, its state, and a few kernels over it. At each time t = 1, 2, ...,
the number of the duel that comes next (self-duels count),

    i, j = choose(state, t, rng)                # random numbers come from rng only
    learn(state, i, j, points)                  # if i != j: the half-wins that i took, 2, 1 or 0

`learn` never hears of self-duels: what a policy makes of one it does within `choose`, with a coin of its own
if it needs one. A policy that is sure for a while says so by

    last = idle(state, t)                       # right after `choose` gave (i, i) at t; last >= t

which promises that `choose` would give the same self-duel at every time up to `last`, drawing no random number
and leaving the state as it is. The caller may then go on at last + 1, as if it had asked each time.

A policy that eliminates has `remaining(state)`, the number of arms in play, and `active(state)`, which arms. An arm
that is left alone duels itself to the end: the caller need not ask again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from roundel._jit import kernel, wrapping
from roundel.plan import Plan
from roundel.policies import registry
from roundel.policies.arms import Arms
from roundel.rng import Stream

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Init = TypeVar("Init", bound=Callable[..., Any])

FOREVER = 2**62  # a time that no horizon reaches


@kernel
def never_idle(state: Any, t: int) -> int:
    """Say that nothing is known of the choices after `t`."""
    return t


@kernel
def all_remain(state: Any) -> int:
    """Say that this policy never eliminates: any constant but 1 does."""
    return -1


@dataclass(frozen=True, slots=True)
class Kernels:
    """A sequential policy taken apart, for loops that compile it."""

    name: str
    init: Callable[..., Any]  # (arms, horizon, rng state, **parameters) -> state; plain Python
    choose: Callable[..., tuple[int, int]]
    learn: Callable[..., None]
    idle: Callable[..., int] = never_idle
    remaining: Callable[..., int] = all_remain
    active: Callable[..., NDArray[np.bool_]] | None = None  # plain Python

    @property
    def parts(self) -> dict[str, Callable[..., Any]]:
        """The kernels by the names that loops call them by."""
        return {"choose": self.choose, "learn": self.learn, "idle": self.idle, "remaining": self.remaining}

    @property
    def family(self) -> str:
        """The name of the module that holds the kernels."""
        return self.choose.__module__.rpartition(".")[2]

    @property
    def layout(self) -> str:
        """The fields of the state, in order: compiled code depends on it."""
        return _layout(get_type_hints(self.init)["return"])


def _layout(state: Any) -> str:
    """Describe a type; of a named tuple, its fields too."""
    if not hasattr(state, "_fields"):
        return repr(state)
    fields = ", ".join(f"{name}: {_layout(kind)}" for name, kind in get_type_hints(state).items())
    return f"{state.__module__}.{state.__qualname__}({fields})"


def sequential(
    name: str,
    *,
    paper: str,
    assumption: registry.Assumption,
    choose: Callable[..., tuple[int, int]],
    learn: Callable[..., None],
    idle: Callable[..., int] = never_idle,
    remaining: Callable[..., int] = all_remain,
    active: Callable[..., NDArray[np.bool_]] | None = None,
) -> Callable[[Init], Init]:
    """Register an init `(arms, horizon, rng state, *, parameters...) -> state` and its kernels as a policy.

    Keyword-only arguments become the policy's parameters; the first line of the docstring its summary.
    """

    def register(init: Init) -> Init:
        kernels = Kernels(name, init, choose, learn, idle, remaining, active)
        registry.add(
            registry.Policy(
                name=name,
                kind="sequential",
                start=_player(kernels),
                paper=paper,
                assumption=assumption,
                summary=registry.summary(init),
                bound="T",
                most_rounds=_one_duel_each,
                parameters=registry.parameters_of(init),
                kernels=kernels,
            )
        )
        return init

    return register


def _one_duel_each(rounds: int, horizon: int, parameters: Mapping[str, Any]) -> int:
    return horizon


def _player(kernels: Kernels) -> registry.Planner:
    """Return the generator by which `Run` plays these kernels: each duel is a round; self-duels are passed over."""
    init, choose, learn = wrapping(kernels.init), wrapping(kernels.choose), wrapping(kernels.learn)
    idle, remaining = wrapping(kernels.idle), wrapping(kernels.remaining)

    def play(arms: Arms, horizon: int, rounds: int, rng: Stream, **parameters: Any) -> registry.Play:
        state = init(arms.count, horizon, rng.state, **parameters)
        left, t = 1 if arms.count == 1 else remaining(state), 0  # an arm without rivals has won
        while left != 1 and t < horizon:
            t += 1
            i, j = (int(arm) for arm in choose(state, t, rng.state))
            if i == j:
                if remaining(state) != 1:  # an arm that is left alone has won: nothing more needs to be played
                    last = min(int(idle(state, t)), horizon)
                    arms.idle += last - t + 1
                    t = last
            else:
                result = yield Plan([i], [j], [1])
                while not result.played[0]:  # nothing was learned and nothing was spent: the same duel again
                    result = yield result.plan
                points = int(result.points[0])
                learn(state, i, j, points if i < j else 2 - points)
            if remaining(state) != left and kernels.active is not None:
                left = remaining(state)
                arms.keep(np.flatnonzero(kernels.active(state)))
        return int(arms.active[0]) if left == 1 else None

    play.__module__, play.__qualname__ = kernels.init.__module__, kernels.init.__qualname__
    return play
