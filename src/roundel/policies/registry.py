"""The registry: name -> policy, with its parameters, paper, assumption and bound on rounds."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from roundel._check import did_you_mean
from roundel.errors import PolicyError
from roundel.plan import Plan
from roundel.policies.arms import Result

Play = Generator[Plan, Result, int | None]
Planner = Callable[..., Play]
P = TypeVar("P", bound=Planner)
Assumption = Literal["Condorcet", "SST+STI", "Copeland", "Borda", "linear utilities", "adversarial", "none"]

_LARGEST: dict[type, float] = {int: 10**18, float: 1e100}

_policies: dict[str, Policy] = {}
_loaded = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a policy."""

    name: str
    type: type
    default: Any
    choices: tuple[str, ...] = ()
    optional: bool = False  # None is a value too: "work it out"

    def check(self, policy: str, value: Any) -> Any:
        """Return `value` in the parameter's type; text is read as on a command line."""
        if self.optional and (value is None or value == "none"):
            return None
        if self.choices:
            if value not in self.choices:
                self._refuse(policy, value, f"one of {', '.join(self.choices)}")
            return value
        if self.type is bool:
            words = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}
            if isinstance(value, str) and value.lower() in words:
                return words[value.lower()]
            if not isinstance(value, bool):
                self._refuse(policy, value, "true or false")
            return value
        if isinstance(value, bool):
            self._refuse(policy, value, "a number")
        try:
            number = self.type(value)
        except (TypeError, ValueError, OverflowError):
            self._refuse(policy, value, "a whole number" if self.type is int else "a number")
        cut = self.type is int and not isinstance(value, str) and number != value
        if number != number or number in (float("inf"), float("-inf")) or cut:
            self._refuse(policy, value, "a whole number" if self.type is int else "a finite number")
        if self.type in _LARGEST and abs(number) > (most := _LARGEST[self.type]):
            self._refuse(policy, value, f"between -{most:.0e} and {most:.0e}, so that no sum or square overflows")
        return number

    def _refuse(self, policy: str, value: Any, rule: str) -> None:
        raise PolicyError(f"{policy}: {self.name} is {value!r}: it must be {rule} (default {self.default})")


@dataclass(frozen=True, slots=True)
class Policy:
    """An algorithm that turns tallies into plans, and what is known of it."""

    name: str
    kind: Literal["batched", "sequential"]
    start: Planner = field(repr=False)
    paper: str
    assumption: Assumption
    summary: str
    bound: str  # on rounds, the final commitment included, as people read it
    most_rounds: Callable[[int, int, Mapping[str, Any]], int] = field(repr=False)  # (B, T, parameters) -> rounds
    parameters: tuple[Parameter, ...]
    kernels: Any = field(default=None, repr=False)  # of a sequential policy, for the simulator

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return every parameter with its value: the given one, checked, or the default."""
        known = {p.name: p for p in self.parameters}
        for name in given:
            if name not in known:
                have = f"it takes {', '.join(known)}" if known else "it takes none"
                raise PolicyError(f"{self.name} has no parameter {name!r}: {have}")
        return {
            name: parameter.check(self.name, given[name]) if name in given else parameter.default
            for name, parameter in known.items()
        }

    def text(self, parameters: Mapping[str, Any]) -> str:
        """Return `name:parameter=value,...`, naming what differs from the defaults; `parse` reads it back."""
        said = [f"{p.name}={word(parameters[p.name])}" for p in self.parameters if parameters[p.name] != p.default]
        return f"{self.name}:{','.join(said)}" if said else self.name

    def __reduce__(self) -> Any:
        """Travel to another process by name; a user's own policy, which is not registered there, as a whole."""
        if self.start.__module__.startswith("roundel."):
            return find, (self.name,)
        return _rebuild, tuple(getattr(self, f.name) for f in fields(self))

    def describe(self) -> dict[str, Any]:
        """Return what is known of the policy as plain data."""
        parameters = [
            {"name": p.name, "type": p.type.__name__, "default": p.default, "choices": list(p.choices)}
            for p in self.parameters
        ]
        about = {name: getattr(self, name) for name in ("name", "kind", "summary", "assumption", "bound", "paper")}
        return {**about, "parameters": parameters}


def batched(
    name: str,
    *,
    paper: str,
    assumption: Assumption = "none",
    bound: str = "B",
    most_rounds: Callable[[int, int, Mapping[str, Any]], int] = lambda rounds, horizon, parameters: rounds,
) -> Callable[[P], P]:
    """Register a generator `(arms, horizon, rounds, rng, *, parameters...)` that yields plans as a policy.

    Keyword-only arguments become the policy's parameters; the first line of the docstring its summary.
    """

    def register(planner: P) -> P:
        add(
            Policy(
                name=name,
                kind="batched",
                start=planner,
                paper=paper,
                assumption=assumption,
                summary=summary(planner),
                bound=bound,
                most_rounds=most_rounds,
                parameters=parameters_of(planner),
            )
        )
        return planner

    return register


def word(value: Any) -> str:
    """Write the value of a parameter as `parse` reads it."""
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _rebuild(*values: Any) -> Policy:
    return Policy(*values)


def add(policy: Policy) -> None:
    """Put a policy into the registry; a name that is taken is replaced only by a reload of the same function."""
    old = _policies.get(policy.name)
    if old is not None and (old.start.__module__, old.start.__qualname__) != (
        policy.start.__module__,
        policy.start.__qualname__,
    ):
        raise PolicyError(f"policy {policy.name!r} is registered already: choose another name")
    if not policy.name or set(policy.name) & set(":,= \t\n"):
        raise PolicyError(f"policy name {policy.name!r}: it must be a word without spaces, ':', ',' and '='")
    _policies[policy.name] = policy


def summary(function: Callable[..., Any]) -> str:
    """Return the first line of a docstring, without its full stop."""
    return (inspect.getdoc(function) or "").partition("\n")[0].rstrip(".")


def parameters_of(planner: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Read the keyword-only arguments of a planner: bool, int, float or a Literal of words, maybe `| None`."""
    hints = get_type_hints(planner)
    found = []
    for name, argument in inspect.signature(planner).parameters.items():
        if argument.kind is not inspect.Parameter.KEYWORD_ONLY:
            continue
        hint, optional = hints.get(name), False
        if type(None) in get_args(hint):
            hint, optional = next(a for a in get_args(hint) if a is not type(None)), True
        choices = get_args(hint) if get_origin(hint) is Literal else ()
        kind = str if choices else hint
        if kind not in (bool, int, float, str) or argument.default is inspect.Parameter.empty:
            raise PolicyError(f"parameter {name!r}: give it a default and one of bool, int, float, Literal[...]")
        found.append(Parameter(name, kind, argument.default, choices, optional))
    return tuple(found)


def _load() -> None:
    """Import every module of the two families once; each registers its own."""
    global _loaded
    if _loaded:
        return
    _loaded = True
    for family in ("batched", "sequential"):
        package = importlib.import_module(f"roundel.policies.{family}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")


def policies() -> dict[str, Policy]:
    """Return every registered policy by name: the batched ones first, each family in alphabetical order."""
    _load()
    return dict(sorted(_policies.items(), key=lambda item: (item[1].kind, item[0])))


def find(name: str) -> Policy:
    """Return the policy of that name."""
    _load()
    try:
        return _policies[name]
    except KeyError:
        hint = did_you_mean(name, policies(), cutoff=0.7)
        raise PolicyError(f"there is no policy {name!r}: {hint}choose one of {', '.join(policies())}") from None


def resolve(policy: str | Policy, parameters: Mapping[str, Any]) -> tuple[Policy, dict[str, Any]]:
    """Return the policy and all its parameters; those given apart come before those in its text."""
    named: Mapping[str, Any] = {}
    if isinstance(policy, str):
        policy, named = parse(policy)
    if not isinstance(policy, Policy):
        raise PolicyError(f"policy is {policy!r}: give its name, as in 'c2b-kl:defeat=majority', or a Policy")
    return policy, policy.complete({**named, **parameters})


def parse(text: str) -> tuple[Policy, dict[str, Any]]:
    """Read `name` or `name:parameter=value,...` into a policy and all its parameters."""
    name, colon, rest = text.partition(":")
    policy = find(name.strip())
    given: dict[str, Any] = {}
    for part in rest.split(",") if colon else ():
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value):
            raise PolicyError(f"{text!r}: {part!r} is not parameter=value; write as in c2b-kl:defeat=majority")
        if key in given:
            raise PolicyError(f"{text!r}: parameter {key!r} stands twice: give it once")
        given[key] = value
    return policy, policy.complete(given)
