"""Write the store that later versions must read: run once for each released version, and never again for it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER.parent / "tournament"), str(FOLDER.parent / "helpers")]

import roundel  # noqa: E402


def main() -> None:
    from test_verify import everything

    import campaign

    class Clock:
        now = 1_000_000.0

        def __call__(self) -> float:
            return self.now

        def ahead(self, seconds: float) -> None:
            self.now += seconds

    place = FOLDER / f"{roundel.__version__}.db"
    if place.exists():
        sys.exit(f"{place.name} is there: a released version's store is never written again")
    clock: Any = Clock()
    assert campaign.SETTINGS
    with everything(str(place), clock) as cup:
        status = cup.status
        facts = {
            "version": roundel.__version__,
            "name": cup.name,
            "head": status.head,
            "now": clock.now + 10**6,
            "certificate": cup.certificate()["digest"],
            "status": {
                k: v for k, v in status.to_json().items() if k in ("round", "spent", "verdicts", "cost", "leader")
            },
        }
    Path(f"{place}.lock").unlink()
    place.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
