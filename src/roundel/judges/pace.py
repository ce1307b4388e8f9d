"""When the next call may go out: a rate, and the pauses that a server asks for."""

from __future__ import annotations

import random
import threading
import time

from roundel.errors import InputError

LONGEST_PAUSE = 60.0  # seconds between attempts where the server names no time of its own
FIRST_PAUSE = 0.5


class Stopped(Exception):  # noqa: N818 - no error: somebody asked to stop
    """The session is closing: no new call goes out."""


class Pace:
    """Shared by the workers of a session; `stop` wakes everybody who waits."""

    def __init__(self, stop: threading.Event, per_minute: float | None = None) -> None:
        self.stop = stop
        if per_minute is not None and not per_minute > 0:
            raise InputError(f"rate is {per_minute!r}: it is the calls a minute at most, more than 0")
        self._gap = 0.0 if per_minute is None else 60.0 / per_minute
        self._lock = threading.Lock()
        self._free = 0.0  # when the next call may go, in monotonic seconds

    def turn(self) -> None:
        """Wait for the next turn; raise `Stopped` when the session closes first."""
        while True:
            with self._lock:
                delay = self._free - time.monotonic()
                if delay <= 0 and not self.stop.is_set():
                    self._free = time.monotonic() + self._gap
                    return
            if self.stop.wait(max(delay, 0.0)):
                raise Stopped

    def hold(self, seconds: float) -> None:
        """Let nobody go for some seconds: the server asked for it."""
        with self._lock:
            self._free = max(self._free, time.monotonic() + seconds)

    def pause(self, attempt: int, after: float | None) -> None:
        """Wait after a failed attempt (from 0): as long as the server says, else longer each time, with jitter."""
        if after is not None:
            self.hold(after)
        else:
            longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempt)
            if self.stop.wait(longest * random.uniform(0.5, 1.0)):  # jitter decides nothing that is recorded
                raise Stopped
