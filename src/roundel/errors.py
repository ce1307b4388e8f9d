"""What can go wrong by a user's doing; each message names the value, the rule and the remedy."""

from __future__ import annotations


class RoundelError(Exception):
    """The root of every error that roundel raises on purpose."""


class InputError(RoundelError, ValueError):
    """A value that breaks a rule: an argument, a file, a line of it."""


class PreferencesError(InputError):
    """A matrix that is not a matrix of preferences."""


class PlanError(InputError):
    """Duels that no round may hold: self-duels, repeated pairs, negative counts."""


class VerdictError(InputError):
    """Verdicts that do not answer the plan they are told for."""


class PolicyError(InputError):
    """An unknown policy, an unknown parameter, or a value that the parameter does not take."""


class DataError(InputError):
    """A file of data that is missing, broken, or not of the kind it should be."""


class ProblemError(InputError):
    """An unknown problem, or one that must be built first."""


class NoCondorcetWinnerError(InputError):
    """A question about the Condorcet winner, asked of preferences that have none."""


class ReplayError(RoundelError):
    """A replay that plans other duels than were recorded."""


class SpecError(InputError):
    """A tournament that cannot be: its options, contexts, policy or limits break a rule."""


class LeaseError(InputError):
    """A duel or a token that nobody was given."""


class ConflictError(InputError):
    """The same key delivered again with another content, or a name that is taken."""


class AccessError(InputError):
    """An invitation, a token or a key that is not good, or not good for this."""


class StoreError(RoundelError):
    """A store that cannot be opened, read or written; what was acknowledged before is safe."""


class StoreVersionError(StoreError):
    """A store written by a newer version, or one that must be migrated first."""


class VerifyError(RoundelError):
    """A record that does not hold: the first thing in it that is not as it must be."""


class JudgeError(RoundelError):
    """A judge that cannot go on: its program, its model or its settings."""


class MissingExtraError(RoundelError, ImportError):
    """An optional part that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional part: pip install 'roundel[{extra}]'")


class ScheduleWarning(UserWarning):
    """More rounds than the theory covers: the ratio between rounds is below 2."""


class UncompiledWarning(UserWarning):
    """Kernels that run as plain Python, because numba is not installed."""
