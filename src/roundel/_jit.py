"""The one place that knows about numba: marks kernels, and compiles those that are called from one loop.

A kernel is a plain function of numbers, arrays and other kernels. Nothing is compiled, and numba is not even
imported, before `specialise` is called: it copies the loop and every kernel that the loop reaches, puts the
copies in each other's globals and compiles them as one piece. A loop that takes its kernels as arguments could
not be cached on disk (numba identifies an argument that is a function by its place in memory), a copy can.

The name of the compiled copy holds a digest of all code and constants that went into it, so that a cache entry
can never be stale. Numba keeps the entries beside the source, or in the user's cache folder where that cannot
be written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dis import get_instructions
from functools import cache
from types import CodeType, FunctionType
from typing import Any, TypeVar, overload

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

# No reference counts: kernels never allocate. Division follows IEEE rules; kernels never divide by zero.
_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}


@overload
def kernel(function: F) -> F: ...
@overload
def kernel(*, inline: bool) -> Callable[[F], F]: ...
def kernel(function: F | None = None, *, inline: bool = True) -> F | Callable[[F], F]:
    """Mark a function that runs compiled where numba is installed, and as plain Python where it is not.

    Kernels are compiled into their callers, because a call would copy every array of a state to the stack.
    `inline=False` is for a long one with few arguments, which would be compiled again wherever it is used.
    """

    def mark(function: F) -> F:
        function.__roundel_kernel__ = "inline" if inline else "call"  # type: ignore[attr-defined]
        return function

    return mark if function is None else mark(function)


@cache
def compiler() -> Any:
    """Return the module numba, or None where it is not installed."""
    try:
        import numba
    except ImportError:
        return None
    return numba


def specialise(loop: F, parts: Mapping[str, Callable[..., Any]], name: str, salt: str = "") -> F:
    """Return a copy of `loop` that calls `parts` by their names, compiled under `name` and cached on disk.

    `salt` is anything else that the compiled code depends on, such as the fields of a named tuple.
    """
    numba = compiler()
    if numba is None:
        return plain(loop, parts)
    text = f"{sorted(_OPTIONS.items())}\n{salt}\n{_fingerprint(loop, parts, set())}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:20]
    root = _with_twins(loop, parts)
    root.__name__ = root.__qualname__ = f"{name}_{digest}"
    try:
        compiled = numba.njit(cache=True, **_OPTIONS)(root)
    except RuntimeError:  # no folder for the cache can be written: compile each time
        compiled = numba.njit(**_OPTIONS)(root)
    return compiled  # type: ignore[no-any-return]


def plain(loop: F, parts: Mapping[str, Callable[..., Any]]) -> F:
    """Return a copy of `loop` that calls `parts` by their names, as plain Python."""
    copy: Any = _with_globals(loop, parts)
    return wrapping(copy)  # type: ignore[no-any-return]


def wrapping(function: F) -> F:
    """Let the 64-bit sums of the random stream wrap in silence where `function` runs as plain Python."""
    return np.errstate(over="ignore")(function)


@cache
def _twin(function: Any) -> Any:
    """Return the compiled twin of a kernel, which calls the twins of other kernels."""
    inline = function.__roundel_kernel__ == "inline"
    return compiler().njit(forceinline=inline, **_OPTIONS)(_with_twins(function, {}))


def _with_twins(function: Any, replaced: Mapping[str, Any]) -> FunctionType:
    uses = {name: _twin(value) for name, value in _globals_used(function, replaced) if _is_kernel(value)}
    return _with_globals(function, uses)


def _is_kernel(value: Any) -> bool:
    return hasattr(value, "__roundel_kernel__")


def _with_globals(function: Any, replaced: Mapping[str, Any]) -> FunctionType:
    space = {**function.__globals__, **replaced}
    return FunctionType(function.__code__, space, function.__name__, function.__defaults__)


def _globals_used(function: Any, replaced: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    names = {step.argval for step in get_instructions(function.__code__) if step.opname == "LOAD_GLOBAL"}
    for name in sorted(names):
        if name in replaced:
            yield name, replaced[name]
        elif name in function.__globals__:  # the others are builtins
            yield name, function.__globals__[name]


def _fingerprint(function: Any, replaced: Mapping[str, Any], seen: set[Any]) -> str:
    """Return a text that changes with the code of `function`, of each kernel below it, and their constants."""
    if function in seen:
        return ""
    seen.add(function)
    lines = [
        f"{function.__module__}.{function.__qualname__}",
        _code_text(function.__code__),
        repr(function.__defaults__),
    ]
    for name, value in _globals_used(function, replaced):
        if _is_kernel(value):
            lines += [name, _fingerprint(value, {}, seen)]
        elif callable(value):
            lines.append(f"{name} is {value.__module__}.{value.__qualname__}")
        else:
            lines.append(f"{name} = {value!r}")
    return "\n".join(lines)


def _code_text(code: CodeType) -> str:
    constants = [_constant_text(c) for c in code.co_consts]
    return repr((code.co_code.hex(), code.co_names, code.co_varnames, constants))


def _constant_text(constant: Any) -> str:
    if isinstance(constant, CodeType):
        return _code_text(constant)
    return repr(sorted(constant, key=repr) if isinstance(constant, frozenset) else constant)
