"""A session of one judge: lease duels, have them judged in parallel, deliver; stop cleanly, whatever happens."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from types import FrameType
from typing import Any

from roundel._check import whole
from roundel.errors import InputError, JudgeError, RoundelError, StoreError
from roundel.judges.answers import Answer, CapReached, StopJudging
from roundel.judges.pace import Stopped
from roundel.tournament import Duel, Tournament

DEFAULT_LEASE = 900.0  # seconds
MOST_WORKERS = 1_000
FIRST_POLL, LONGEST_POLL = 0.05, 2.0  # seconds between looks for new duels
PATIENCE = 10  # duels in a row without a verdict before a judge is given up

Work = Callable[[Duel], Answer]
Say = Callable[[str], None]


@dataclass(slots=True)
class Summary:
    """What a session came to."""

    judge: str
    duels: int = 0  # that were judged
    counted: int = 0
    late: int = 0  # the round had closed
    surplus: int = 0  # somebody else was faster
    passed: int = 0  # no verdict: given back for other judges
    flips: int = 0  # the two orders contradicted each other: a tie
    known: int = 0  # answers that were on record and cost nothing now
    calls: int = 0  # paid calls
    nonsense: int = 0  # answers or lines that could not be read
    in_doubt: int = 0  # calls whose answer was lost: they may have been paid for, and were not repeated
    cost: float = 0.0
    stopped: str = ""  # why the session ended
    failed: bool = False  # it ended because the judge cannot go on

    def to_json(self) -> dict[str, Any]:
        """Return the summary as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        parts = [f"{self.judge}: {self.duels:,} duels judged, {self.counted:,} counted"]
        for name, text in (
            ("late", "late"),
            ("surplus", "surplus"),
            ("passed", "passed on"),
            ("flips", "order flips (ties)"),
            ("known", "known before"),
            ("calls", "calls"),
            ("nonsense", "unreadable answers"),
            ("in_doubt", "in doubt"),
        ):
            if value := getattr(self, name):
                parts.append(f"{value:,} {text}")
        if self.cost:
            parts.append(f"cost {self.cost:.4g}")
        return f"{', '.join(parts)}; {self.stopped}"


class Session:
    """One judge at work. `work` judges a duel, in any of the worker threads; everything else runs in the caller's."""

    def __init__(
        self,
        cup: Tournament,
        work: Work,
        judge: str,
        *,
        workers: int = 4,
        limit: int | None = None,
        lease: float = DEFAULT_LEASE,
        wait: float = 0.0,
        patience: int = PATIENCE,
        stop: threading.Event | None = None,
        say: Say | None = None,
        progress: Callable[[Summary], None] | None = None,
    ) -> None:
        """Prepare a session.

        `workers`: duels at once; `limit`: duels in all; `lease`: seconds a duel is kept; `wait`: seconds to wait
        for new duels while others hold the rest; `patience`: duels in a row without a verdict before giving up.
        """
        self.cup = cup
        self.summary = Summary(judge)
        self._work = work
        self._workers = whole("workers", workers, least=1, most=MOST_WORKERS)
        self._limit = None if limit is None else whole("limit", limit, least=1)
        self._ttl = lease
        if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not wait >= 0:
            raise InputError(f"wait is {wait!r}: it is the seconds to wait for new duels, 0 or more")
        self._wait = float(wait)
        self._patience = whole("patience", patience, least=1)
        self.stop = threading.Event() if stop is None else stop  # set: nothing new is begun
        self._say = say or (lambda _: None)
        self._progress = progress or (lambda _: None)
        self._todo: queue.SimpleQueue[Duel | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[Duel, Answer | BaseException] | None] = queue.SimpleQueue()
        self._begun: set[str] = set()  # leased and not delivered
        self._passed: dict[str, tuple[Duel, Answer]] = {}  # kept until the end, so that we do not get them again
        self._barren = 0  # duels in a row without a verdict

    def run(self) -> Summary:
        """Judge until the tournament ends, the limit is reached or nothing is left to do; Ctrl-C stops cleanly.

        At the first Ctrl-C (or SIGTERM) nothing new begins, and what is being judged is awaited and delivered (it may
        have been paid for); at the second the session leaves at once, and the next one picks up the answers on record.
        """
        threads = [
            threading.Thread(target=self._serve, name=f"judge-{number}", daemon=True) for number in range(self._workers)
        ]
        for thread in threads:
            thread.start()
        try:
            with self._signals():
                self._play()
                self._give_back()
        except BaseException:
            self.stop.set()
            raise
        finally:
            for _ in threads:
                self._todo.put(None)
        return self.summary

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Turn the first signal to stop into a message among the answers: an exception could strike between two steps
        of a delivery and lose it. Only the main thread may do this; elsewhere signals are left alone."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        pressed = False

        def stop(number: int, _: FrameType | None) -> None:
            nonlocal pressed
            if pressed:
                raise KeyboardInterrupt
            pressed = True
            self._done.put(None)  # the one queue whose put is safe in a signal handler

        kinds = (signal.SIGINT, signal.SIGTERM)
        ours = [kind for kind in kinds if signal.getsignal(kind) in (signal.SIG_DFL, signal.default_int_handler)]
        before = {kind: signal.signal(kind, stop) for kind in ours}
        try:
            yield
        finally:
            for kind, handler in before.items():
                signal.signal(kind, handler)

    # the caller's thread --------------------------------------------------------------------------------------

    def _play(self) -> None:
        idle_since: float | None = None
        poll = FIRST_POLL
        while True:
            if not self.stop.is_set():
                self._lease()
            if self._begun:
                idle_since, poll = None, FIRST_POLL
                self._deliver()
                continue
            if self.stop.is_set():
                return None
            if not self.cup.is_open:
                return self._close("the tournament has ended")
            now = time.monotonic()
            idle_since = now if idle_since is None else idle_since
            if now - idle_since >= self._wait:
                held = self.cup.status.leased - len(self._passed)
                what = f"{held} duels are with other judges" if held > 0 else "nothing is left for this judge"
                return self._close(what)
            with contextlib.suppress(queue.Empty):
                self._hear(self._done.get(timeout=min(poll, self._wait)))
            poll = min(2 * poll, LONGEST_POLL)

    def _lease(self) -> None:
        free = self._workers - len(self._begun)
        if self._limit is not None:
            left = self._limit - self.summary.duels - len(self._begun)
            if left <= 0:
                if not self._begun:
                    self._close(f"the limit of {self._limit} duels is reached")
                return
            free = min(free, left)
        if free <= 0:
            return
        for duel in self.cup.lease(free, self.summary.judge, self._ttl):
            if duel.id in self._passed:  # our lease had expired
                self._passed[duel.id] = (duel, self._passed[duel.id][1])
                continue
            if duel.id in self._begun:  # it takes longer than its lease: the answer under the first one still counts
                continue
            self._begun.add(duel.id)
            self._todo.put(duel)

    def _deliver(self) -> None:
        """Wait for one answer and deliver it, and those that have come in meanwhile."""
        self._hear(self._done.get())
        with contextlib.suppress(queue.Empty):
            while True:
                self._hear(self._done.get_nowait())
        self._progress(self.summary)

    def _hear(self, message: tuple[Duel, Answer | BaseException] | None) -> None:
        if message is None:
            self._close("interrupted")
            if self._begun:
                self._say("stopping: waiting for the answers that are under way (Ctrl-C again to leave them)")
            return
        duel, answer = message
        self._begun.discard(duel.id)
        self._take(duel, answer)

    def _take(self, duel: Duel, answer: Answer | BaseException) -> None:
        if isinstance(answer, BaseException):
            if isinstance(answer, Stopped):
                answer = Answer(None, note="given back: the judge stopped")
                self._passed[duel.id] = (duel, answer)
                return
            if isinstance(answer, StoreError) or not isinstance(answer, Exception):
                raise answer  # nothing can be kept any more
            if isinstance(answer, StopJudging):
                self._close(str(answer), failed=not isinstance(answer, CapReached))
                self._passed[duel.id] = (duel, Answer(None, note="given back: the judge stopped"))
                return
            self._say(f"duel {duel.id}: {type(answer).__name__}: {answer}")
            answer = Answer(None, note=f"{type(answer).__name__}: {answer}"[:1000])
        summary = self.summary
        summary.duels += 1
        summary.known += answer.known
        if answer.verdict is None:
            self._passed[duel.id] = (duel, answer)
            summary.passed += 1
            self._barren += 1
            if self._barren >= self._patience:
                self._close(
                    f"{self._barren} duels in a row without a verdict; the last: {answer.note or 'no reason given'}",
                    failed=True,
                )
            return
        self._barren = 0
        summary.flips += answer.flipped
        summary.cost += answer.cost or 0.0
        receipt = self.cup.tell(
            duel,
            answer.verdict,
            key=answer.key,
            judge=answer.judge or summary.judge,
            cost=answer.cost,
            note=answer.note,
            body=answer.body,
        )
        setattr(summary, receipt.became, getattr(summary, receipt.became) + 1)

    def _close(self, why: str, failed: bool = False) -> None:
        """Begin nothing new; the first reason stays."""
        if not self.summary.stopped:
            self.summary.stopped, self.summary.failed = why, failed
        self.stop.set()

    def _give_back(self) -> None:
        """Offer the duels without a verdict to other judges, with what is known of them."""
        for duel, answer in self._passed.values():
            self.cup.reject(
                duel, judge=answer.judge or self.summary.judge, cost=answer.cost, note=answer.note, body=answer.body
            )
            self.summary.cost += answer.cost or 0.0
        self._passed.clear()
        self._progress(self.summary)

    # the workers ----------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        while (duel := self._todo.get()) is not None:
            try:
                result: Answer | BaseException = Stopped() if self.stop.is_set() else self._work(duel)
            except BaseException as error:  # told to the caller's thread, which decides
                result = error
            self._done.put((duel, result))


def check_judge(name: str) -> str:
    """Return the name of a judge as the store keeps it."""
    from roundel.tournament.texts import check_name

    try:
        return check_name("judge", name)
    except RoundelError as error:
        raise JudgeError(str(error)) from None
