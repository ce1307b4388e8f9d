"""The journal of a comparison: trials that are done, kept as they come, so that an interrupted one goes on."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from os import fstat
from os.path import samestat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roundel.errors import InputError
from roundel.simulation.comparison import check_table_path
from roundel.simulation.trial import Curve, Trial

if TYPE_CHECKING:
    from roundel.simulation.grid import Cell


class Journal:
    """A line of JSON for each trial, beside the file `target` that the whole table will go to."""

    def __init__(self, target: Path, cells: Sequence[Cell], seed: int) -> None:
        self.target = check_table_path(target)
        self.path = target.with_name(target.name + ".part")
        # What must be the same for old trials to count; which policies, how many repeats and the order may change.
        matrices = {cell.problem.name: cell.problem.matrix for cell in cells}
        digests = {name: sha256(matrices[name].tobytes()).hexdigest()[:16] for name in sorted(matrices)}
        settings = sorted({(cell.regret, cell.points) for cell in cells})
        self.head = {
            "roundel comparison": 1,
            "seed": seed,
            "problems": digests,
            "settings": [list(s) for s in settings],
        }
        try:
            self._file = self.path.open("a+b")
        except OSError as error:
            raise InputError(f"{self.path}: cannot write there ({error.strerror}); choose another file") from None
        try:
            self._lines = self._read()
        except InputError:
            self.close()
            raise
        if not self._lines:
            self._write(self.head)

    def _read(self) -> list[bytes]:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until the file is closed, or the process dies
        except BlockingIOError:
            raise InputError(
                f"{self.path}: this comparison is being run already; wait for it, or choose another file"
            ) from None
        if not (self.path.exists() and samestat(self.path.stat(), fstat(self._file.fileno()))):
            raise InputError(f"{self.path}: another run has finished this comparison just now; start again")
        self._file.seek(0)
        data = self._file.read()
        lines = data.splitlines(keepends=True)
        head = _line(self.head)
        if lines and not (head.startswith(lines[0]) if len(lines) == 1 else head == lines[0]):
            raise InputError(
                f"{self.path} was begun with another seed, other problems or settings, or is no journal at all: "
                "finish that comparison, choose another file, or delete it to start again"
            )
        if lines and not lines[-1].endswith(b"\n"):  # it was being written when the last run was interrupted
            self._file.truncate(len(data) - len(lines.pop()))
        return lines

    def trials(self) -> Iterator[tuple[tuple[Any, ...], Trial]]:
        """Give the trials that an interrupted comparison left, by key."""
        for number, line in enumerate(self._lines[1:], 2):
            try:
                key, facts = json.loads(line)
                t, regret = (np.array(column) for column in facts["curve"])
                trial = Trial(**{**facts, "curve": Curve(t, regret)})
            except (ValueError, TypeError, KeyError):
                raise InputError(
                    f"{self.path}, line {number}: a trial was expected; delete the line to run it again"
                ) from None
            yield tuple(key), trial

    def append(self, finished: Mapping[tuple[Any, ...], Trial]) -> None:
        """Keep what is done, whatever happens next."""
        for key, trial in finished.items():
            self._write([key, {**asdict(trial), "curve": [column.tolist() for column in trial.curve]}])

    def _write(self, row: Any) -> None:
        self._file.write(_line(row))
        self._file.flush()

    def finish(self) -> None:
        """The table is saved: the journal has done its work."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the file; what is in it stays for the next time, unless the journal is finished."""
        self._file.close()


def _line(row: Any) -> bytes:
    return json.dumps(row).encode() + b"\n"
