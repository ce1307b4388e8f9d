from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roundel import _jit
from roundel.errors import UncompiledWarning
from roundel.policies import registry
from roundel.rng import Stream
from roundel.simulation import drive as module
from roundel.simulation.drive import drive

OFFSET = 3


@_jit.kernel
def triple(x: int) -> int:
    return 3 * x


@_jit.kernel
def shifted(x: int) -> int:
    return triple(x) + OFFSET


@_jit.kernel
def negated(x: int) -> int:
    return -triple(x)


def step(x: int) -> int:
    raise NotImplementedError


def total(n: int) -> int:
    result = 0
    for x in range(n):
        result += step(x)
    return result


def text(part: Callable[..., Any] = shifted) -> str:
    return _jit._fingerprint(total, {"step": part}, set())


@pytest.mark.parametrize(("part", "value"), [(shifted, 18 + 12), (negated, -18)])
def test_a_loop_runs_the_part_that_it_is_given(part: Callable[..., Any], value: int) -> None:
    assert _jit.plain(total, {"step": part})(4) == value
    if _jit.compiler() is not None:
        assert _jit.specialise(total, {"step": part}, "total")(4) == value
    with pytest.raises(NotImplementedError):
        total(1)


def test_the_fingerprint_follows_all_that_the_code_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [text(), text(negated)]
    monkeypatch.setitem(shifted.__globals__, "OFFSET", 4)
    seen.append(text())
    monkeypatch.undo()
    assert text() == seen[0]
    kernel = _jit.kernel(lambda x: 4 * x)
    monkeypatch.setitem(shifted.__globals__, "triple", kernel)
    seen.append(text())
    assert len(set(seen)) == 4


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    code = (
        "from roundel import _jit; from roundel.policies import registry; from roundel.simulation import drive\n"
        "from hashlib import sha256\n"
        "for p in registry.policies().values():\n"
        "    if p.kind == 'sequential':\n"
        "        t = _jit._fingerprint(drive._drive, p.kernels.parts, set()) + p.kernels.layout\n"
        "        assert ' at 0x' not in t, t\n"
        "        print(p.name, sha256(t.encode()).hexdigest())"
    )
    first, second = (run(code, PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert first == second
    assert "rucb" in first


def test_the_layout_names_the_fields_of_the_state() -> None:
    layout = registry.find("rucb").kernels.layout
    assert "State(alpha: " in layout
    assert layout.index("points") < layout.index("share") < layout.index("memory")


def run(code: str, **environment: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_numba_is_not_imported_before_it_is_needed() -> None:
    run(
        "import sys, roundel\n"
        "from roundel.policies import registry\n"
        "import roundel.simulation.drive\n"
        "assert len(registry.policies()) > 5\n"
        "assert 'numba' not in sys.modules"
    )


SHORT = """
from roundel.policies import registry
from roundel.rng import Stream
from roundel.simulation import drive as module
p = registry.find("savage")
P = [[0.5, 0.7], [0.3, 0.5]]
end = module.drive(p.kernels, P, [[0, 0], [0, 0]], 500, [], Stream(1).state, Stream(2).state, p.complete({}))
loop = module._loop(p.kernels, True)
print(end.duels, end.alone, end.points.tolist())
print(sum(loop.stats.cache_hits.values()), sum(loop.stats.cache_misses.values()))
print(loop.stats.cache_path)
"""


def test_the_next_process_finds_what_this_one_compiled(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    first = run(SHORT, NUMBA_CACHE_DIR=str(tmp_path)).split()
    second = run(SHORT, NUMBA_CACHE_DIR=str(tmp_path)).split()
    assert first[-3:-1] == ["0", "1"]
    assert second[-3:-1] == ["1", "0"]
    assert first[:-3] == second[:-3]
    assert Path(first[-1]).parent == tmp_path


def test_nowhere_to_keep_the_cache_is_no_obstacle() -> None:
    pytest.importorskip("numba")
    found = run(SHORT, NUMBA_CACHE_LOCATOR_CLASSES="UserProvidedCacheLocator", NUMBA_CACHE_DIR="")
    assert found.split()[0] == run(SHORT).split()[0]
    assert found.split()[-1] == "None"


def play(horizon: int) -> Any:
    policy = registry.find("savage")
    own, world = Stream(1).state, Stream(2).state
    P = [[0.5, 0.9], [0.1, 0.5]]
    return drive(policy.kernels, P, [[0, 0], [0, 0]], horizon, [], own, world, policy.complete({}))


def test_without_numba_everything_runs_as_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = play(1000)
    monkeypatch.setitem(sys.modules, "numba", None)
    for cached in (_jit.compiler, module._specialised, module._warn_once):
        cached.cache_clear()
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            found = play(1000)
            assert not heard  # a short run is quick enough
            play(10**6)
            play(10**6)
        assert [w.category for w in heard] == [UncompiledWarning]
        assert "pip install" in str(heard[0].message)
    finally:
        monkeypatch.undo()
        for cached in (_jit.compiler, module._specialised, module._warn_once):
            cached.cache_clear()
    assert (found.duels, found.alone, found.points.tolist()) == (wanted.duels, wanted.alone, wanted.points.tolist())
