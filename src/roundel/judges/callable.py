"""A Python function as judge: `judge(duel) -> "first" | "second" | "tie"`, plain or async, in parallel."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from roundel._check import whole
from roundel.errors import InputError, JudgeError
from roundel.judges.answers import Answer, StopJudging, TryAgain
from roundel.judges.calls import Calls, Exchange, Result
from roundel.judges.pace import Pace, Stopped
from roundel.judges.session import Session, Summary, check_judge
from roundel.tournament import Duel, Tournament
from roundel.tournament.texts import canonical

Function = Callable[[Duel], Any] | Callable[[Duel], Awaitable[Any]]


def judge_with(
    cup: Tournament,
    judge: Function,
    name: str | None = None,
    *,
    paid: bool = False,
    revision: str = "1",
    retries: int = 2,
    again: bool = False,
    rate: float | None = None,
    **session: Any,
) -> Summary:
    """Let a function judge the duels of a tournament until none is left for it; the arguments of `Session` apply.

    `judge` gets a `Duel` and returns "first", "second", "tie", None (a pass), or an `Answer`. One that fails is
    asked `retries` more times. With `paid`, each call is noted before it is made and its answer kept before it is
    used; then only a `TryAgain` repeats a call, since any other failure may have been paid for (`again` repeats
    those as well). Give a paid judge a new `revision` when its answers may change. `rate`: calls a minute at most.
    """
    if not callable(judge):
        raise InputError(f"the judge is {judge!r}: give a function that takes a duel")
    who = check_judge(name or getattr(judge, "__name__", "") or "function")
    extra = whole("retries", retries)
    stop = session.pop("stop", None) or threading.Event()
    pace = Pace(stop, rate)
    calls = Calls(cup, who, revision, pace, again=again) if paid else None
    with _Runner(judge) as run:

        def work(duel: Duel) -> Answer:
            if calls is None:
                return _free(run, duel, extra, pace)
            return _paid(run, duel, extra, calls)

        summary = Session(cup, work, who, stop=stop, **session).run()
    if calls is not None:
        summary.calls, summary.in_doubt, summary.cost = calls.made, calls.in_doubt, calls.cost
    return summary


def _free(run: Callable[[Duel], Any], duel: Duel, retries: int, pace: Pace) -> Answer:
    for attempt in range(retries + 1):
        pace.turn()
        try:
            return Answer.of(run(duel))
        except (StopJudging, Stopped):
            raise
        except TryAgain as error:
            if attempt == retries:
                raise
            pace.pause(attempt, error.after)
        except Exception:
            if attempt == retries:
                raise
            pace.pause(attempt, None)
    raise AssertionError  # the last attempt returns or raises


def _paid(run: Callable[[Duel], Any], duel: Duel, retries: int, calls: Calls) -> Answer:
    def send(_: str) -> Exchange:
        try:
            answer = Answer.of(run(duel))
        except TryAgain as error:
            return Exchange("unpaid", str(error), 0.0, after=error.after)
        except StopJudging:
            raise
        except InputError as error:  # it came back, and it is nonsense
            return Exchange("refused", str(error))
        except Exception as error:
            return Exchange("lost", f"{type(error).__name__}: {error}")
        return Exchange("answer", canonical(asdict(answer)), answer.cost)

    result: Result[Answer] = calls.ask(duel.id, {}, send, lambda text: Answer(**json.loads(text)), failures=retries)
    if result.value is None:
        return Answer(None, note=result.why)
    value = result.value
    # The cost stands with the call, and is not told twice.
    return Answer(value.verdict, None, value.note, value.body, result.keys[-1], value.judge, known=result.known)


class _Runner:
    """Calls a function; one that is async runs in a loop of its own, so that thousands may wait at once."""

    def __init__(self, judge: Function) -> None:
        self._judge = judge
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Callable[[Duel], Any]:
        call = self._judge if inspect.isroutine(self._judge) else getattr(self._judge, "__call__", self._judge)  # noqa: B004
        if not inspect.iscoroutinefunction(call):
            return self._judge
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="judge-loop", daemon=True)
        self._thread.start()
        return self._await

    def _await(self, duel: Duel) -> Any:
        if self._loop is None:
            raise JudgeError("the judge has stopped")

        async def one() -> Any:
            return await self._judge(duel)

        return asyncio.run_coroutine_threadsafe(one(), self._loop).result()

    def __exit__(self, *_: object) -> None:
        if self._loop is None or self._thread is None:
            return
        loop = self._loop

        async def leave() -> None:
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(leave(), loop).result(timeout=10)
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(timeout=10)
        loop.close()
