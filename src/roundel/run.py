"""Run: ask/tell over any policy, the only door to one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roundel._check import whole, whole_array
from roundel.errors import InputError, PolicyError, ReplayError, VerdictError
from roundel.plan import Ints, Plan, frozen
from roundel.policies.arms import Arms, Elimination, Result
from roundel.policies.registry import Policy, resolve
from roundel.policies.schedule import default_rounds, warn_of_slow_growth
from roundel.rng import Stream
from roundel.tally import Tally

MOST_DUELS = 10**18  # points are 64-bit, two a duel
MOST_ARMS = 100_000  # one table of points then fills 80 GB


class Round(NamedTuple):
    """A round as it was played: for each pair of the plan, wins of the first arm, ties, and duels played."""

    plan: Plan
    wins: Ints
    ties: Ints
    played: Ints


class Run:
    """One run of a policy: `ask` for the plan of a round, `tell` its verdicts, until `ask` gives None.

    A run depends on nothing but (policy, parameters, arms, horizon, rounds, seed) and the verdicts it was told:
    it is rebuilt by `replay`, never pickled.
    """

    def __init__(
        self,
        policy: str | Policy,
        arms: int,
        horizon: int,
        rounds: int | None = None,
        seed: int = 0,
        *,
        keep_history: bool = True,
        **parameters: Any,
    ) -> None:
        """Start `policy` ("name" or "name:parameter=value,...") on `arms` arms with `horizon` duels to spend.

        `rounds` is the most rounds that a batched policy may take (default: floor(ln horizon)); sequential ones
        take one duel a round. `keep_history=False` saves the memory that `history` takes.
        """
        self.policy, self.parameters = resolve(policy, parameters)
        count = whole("arms", arms, least=1, most=MOST_ARMS)
        self.horizon = whole("horizon", horizon, least=1, most=MOST_DUELS)
        self.max_rounds = default_rounds(self.horizon) if rounds is None else whole("rounds", rounds, least=1)
        self.seed = whole("seed", seed)
        if self.policy.kind == "batched":
            warn_of_slow_growth(self.horizon, self.max_rounds)
        self._arms = Arms(count)
        self._tally = Tally.zero(count)
        self._keep = keep_history
        self._history: list[Round] = []
        self._spent = 0
        self._committed: int | None = None
        self._plan: Plan | None = None
        self._asked = False
        stream = Stream(self.seed, "policy")
        self._play = self.policy.start(self._arms, self.horizon, self.max_rounds, stream, **self.parameters)
        self._advance(None)

    # what a user sees ---------------------------------------------------------------------------------------

    def ask(self) -> Plan | None:
        """Return the plan of the open round, the same until it is told; None when the run has finished."""
        self._asked = True
        return self._plan

    def tell(self, wins: ArrayLike, ties: ArrayLike | None = None, played: ArrayLike | None = None) -> None:
        """Take the verdicts of the open round, pair by pair, and plan the next.

        `wins`: how often the first arm won; `ties`: default none; `played`: how many duels were really judged,
        default all that were planned. What was neither won nor tied was lost. Where something is wrong, nothing
        changes.
        """
        plan = self._plan
        if plan is None:
            raise VerdictError("the run has finished: there is no round to tell verdicts for")
        if not self._asked:
            raise VerdictError("this round's plan was not asked for: call ask() before tell()")
        won = self._column("wins", wins, plan)
        tied = np.zeros_like(plan.times) if ties is None else self._column("ties", ties, plan)
        done = plan.times if played is None else self._column("played", played, plan)
        self._refuse(done > plan.times, plan, done, "duels judged", plan.times, "duels planned")
        both = won.view(np.uint64) + tied.view(np.uint64)  # the sum may need the 64th bit
        self._refuse(won > done - tied, plan, both, "wins and ties", done, "duels judged")
        self._digest(plan, 2 * won + tied, done, tied if ties is not None else None)

    def replay(self, history: Iterable[Round]) -> None:
        """Tell recorded rounds again; raise `ReplayError` where this run plans other duels than were recorded."""
        for recorded in history:
            plan = self.ask()
            number = self.rounds + 1
            if plan is None:
                raise ReplayError(f"round {number} was recorded, but the replay finished after round {number - 1}")
            if (difference := plan.difference(recorded.plan)) is not None:
                raise ReplayError(
                    f"round {number}: {difference} (replayed, recorded): the policy, its parameters, the seed "
                    "or a verdict is not what it was; replay with the recorded ones"
                )
            self.tell(recorded.wins, recorded.ties, recorded.played)

    @property
    def arms(self) -> int:
        """How many arms the run started with."""
        return self._arms.count

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to ask."""
        return self._plan is None

    @property
    def winner(self) -> int | None:
        """The arm that the policy is left with or committed to, or None while that is open."""
        return self._committed

    @property
    def leader(self) -> int:
        """The winner; until there is one, the active arm with the least evidence against it."""
        if self._committed is not None:
            return self._committed
        return self._tally.leader(self._arms.active)

    @property
    def active(self) -> Ints:
        """The arms still in play, ascending."""
        return self._arms.active

    @property
    def tally(self) -> Tally:
        """Everything told so far."""
        return self._tally

    @property
    def history(self) -> list[Round]:
        """The rounds told so far, oldest first."""
        return list(self._history)

    @property
    def eliminations(self) -> list[Elimination]:
        """Who is out, since which round, and on what evidence."""
        return list(self._arms.eliminations)

    @property
    def no_condorcet_evidence(self) -> bool:
        """Whether the verdicts contradict that one arm beats every other."""
        return self._arms.no_condorcet_evidence

    @property
    def rounds(self) -> int:
        """How many rounds were played."""
        return self._arms.round

    @property
    def spent(self) -> int:
        """How much of the horizon is gone: duels judged, and self-duels passed over."""
        return self._spent + self._arms.idle

    @property
    def left(self) -> int:
        """How much of the horizon is left."""
        return self.horizon - self.spent

    def __repr__(self) -> str:
        state = f"winner {self.winner}" if self.winner is not None else f"{len(self.active)} of {self.arms} arms active"
        return f"<Run {self.policy.name}: {self.rounds} rounds, {self.spent} of {self.horizon} duels, {state}>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a Run is not pickled: keep its history and replay it")

    # how it goes on -----------------------------------------------------------------------------------------

    def _digest(self, plan: Plan, points: Ints, played: Ints, ties: Ints | None = None) -> None:
        """Take checked verdicts in half-wins of the first arm."""
        duels = plan.total if played is plan.times else int(played.sum())
        self._spent += duels
        self._arms.round += 1
        self._tally = self._tally.plus(plan, points, played)
        if self._keep:
            tied = np.broadcast_to(np.int64(0), points.shape) if ties is None else ties
            self._history.append(Round(plan, frozen((points - tied) // 2), frozen(tied), frozen(played)))
        self._asked = False
        self._advance(Result(self._arms.round, plan, points, played, self._tally, self.left))

    def _advance(self, result: Result | None) -> None:
        """Let the policy digest `result`, and plan the next round if there is one to play."""
        self._plan = None
        committed: int | None = None
        plan: Plan | None = None
        try:
            plan = next(self._play) if result is None else self._play.send(result)
        except StopIteration as stop:
            committed = self._commitment(stop.value)
        if not len(self._arms):
            raise PolicyError(f"{self.policy.name} took every arm out of play: it must leave at least one")
        if len(self._arms) == 1:
            committed = int(self._arms.active[0])
        if committed is not None:
            self._committed = committed
        elif plan is not None and self.left > 0:
            if not isinstance(plan, Plan):
                raise PolicyError(f"{self.policy.name} planned {plan!r}: yield a Plan")
            if not plan.total or int(plan.second.max()) >= self.arms:
                raise PolicyError(f"{self.policy.name} planned {plan!r} for {self.arms} arms: not a round one can play")
            self._plan = plan.truncate(self.left)
            return
        self._play.close()

    def _commitment(self, arm: Any) -> int | None:
        """Check what a policy returned at its end."""
        try:
            return None if arm is None else whole("arm", arm, most=self.arms - 1)
        except InputError:
            raise PolicyError(
                f"{self.policy.name} committed to {arm!r}: return an arm from 0 to {self.arms - 1}, or None"
            ) from None

    def _column(self, name: str, values: ArrayLike, plan: Plan) -> Ints:
        column = whole_array(name, values, VerdictError)
        if column.shape != (len(plan),):
            raise VerdictError(
                f"{name} has shape {column.shape}: the plan has {len(plan)} pairs; give one number a pair"
            )
        self._refuse(column < 0, plan, column, name, np.zeros_like(column), "or more")
        return column

    @staticmethod
    def _refuse(bad: Any, plan: Plan, value: NDArray[Any], what: str, limit: Ints, rule: str) -> None:
        if bad.any():
            at = int(bad.argmax())
            raise VerdictError(
                f"pair ({plan.first[at]}, {plan.second[at]}): {value[at]} {what} against {limit[at]} {rule}; "
                "nothing was counted"
            )
