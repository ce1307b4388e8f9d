"""The journal of a comparison: trials that are done, kept as they come, so that an interrupted one goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roundel.errors import InputError
from roundel.simulation.trial import Curve, Trial

if TYPE_CHECKING:
    from roundel.simulation.grid import Cell

ENDINGS = (".parquet", ".csv")


class Journal:
    """A line of JSON for each trial, beside the file `target` that the whole table will go to."""

    def __init__(self, target: Path, cells: Sequence[Cell], seed: int) -> None:
        if target.suffix not in ENDINGS:
            raise InputError(f"{target}: a comparison is kept as {' or '.join(ENDINGS)}; choose one of these endings")
        if not target.parent.is_dir():
            raise InputError(f"{target}: the folder {target.parent} does not exist; make it first")
        self.target = target
        self.path = target.with_name(target.name + ".part")
        # What must be the same for old trials to count; which policies and how many repeats may change.
        digests = {cell.problem.name: sha256(cell.problem.matrix.tobytes()).hexdigest()[:16] for cell in cells}
        settings = sorted({(cell.regret, cell.points) for cell in cells})
        self.head = {
            "roundel comparison": 1,
            "seed": seed,
            "problems": digests,
            "settings": [list(s) for s in settings],
        }
        self._lines = self._read()
        try:
            self._file = self.path.open("a", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{self.path}: cannot write there ({error.strerror}); choose another file") from None
        if not self._lines:
            self._write(self.head)

    def _read(self) -> list[str]:
        if not self.path.exists():
            return []
        text = self.path.read_text(encoding="utf-8")
        whole_lines, _, torn = text.rpartition("\n")
        if torn:  # the line that was being written when the last run was interrupted
            os.truncate(self.path, len(text.encode()) - len(torn.encode()))
        lines = whole_lines.splitlines()
        if lines and json.loads(lines[0]) != self.head:
            raise InputError(
                f"{self.path} was begun with another seed, other problems or settings: finish that comparison, "
                "choose another file, or delete it to start again"
            )
        return lines

    def trials(self) -> Iterator[tuple[tuple[Any, ...], Trial]]:
        """Give the trials that an interrupted comparison left, by key."""
        for line in self._lines[1:]:
            key, facts = json.loads(line)
            t, regret = (np.array(column) for column in facts["curve"])
            yield tuple(key), Trial(**{**facts, "curve": Curve(t, regret)})

    def append(self, finished: Mapping[tuple[Any, ...], Trial]) -> None:
        """Keep what is done, whatever happens next."""
        for key, trial in finished.items():
            self._write([key, {**asdict(trial), "curve": [column.tolist() for column in trial.curve]}])

    def _write(self, row: Any) -> None:
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()

    def close(self) -> None:
        """The table is saved: the journal has done its work."""
        self._file.close()
        self.path.unlink()
