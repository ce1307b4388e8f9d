"""The certificate: one JSON file that carries all it takes to check an outcome, with nothing but arithmetic."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, isclose, log
from pathlib import Path
from typing import Any

import numpy as np

from roundel.errors import RoundelError, VerifyError
from roundel.plan import Plan
from roundel.policies import Elimination
from roundel.run import Round, Run
from roundel.tally import Tally
from roundel.tournament import rounds
from roundel.tournament.files import refuse_constant, unique_keys
from roundel.tournament.outcome import Outcome, outcome_of
from roundel.tournament.rounds import Results
from roundel.tournament.spec import Spec
from roundel.tournament.store import Transaction
from roundel.tournament.texts import canonical, sha256
from roundel.tournament.tournament import Tournament

FORMAT = "roundel certificate 1"
MOST_BYTES = 2**30
FIELDS = {"format", "spec", "spec_digest", "rounds", "eliminations", "error_probability", "outcome", "digest"}
ROUND = {
    *("n", "before", "plan", "plan_digest", "opened", "deadline", "digest"),
    *("wins", "ties", "played", "reason", "closed", "deliveries", "head", "close_digest"),
}
DIGITS = 1e-9  # how far statistics may differ between machines


@dataclass(slots=True)
class Report:
    """What a check found to hold."""

    subject: str
    holds: list[str] = field(default_factory=list)
    head: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {"verified": self.subject, "holds": self.holds, "head": self.head}

    def __str__(self) -> str:
        return "\n".join([f"{self.subject}: verified", *(f"  {line}" for line in self.holds)])


# writing ----------------------------------------------------------------------------------------------------


def certificate_of(cup: Tournament) -> dict[str, Any]:
    """Return the certificate of a tournament: its closed rounds, and what follows from them."""
    return cup.store.read(lambda tx: _certificate(cup, tx))


def _certificate(cup: Tournament, tx: Transaction) -> dict[str, Any]:
    spec = cup.spec
    played = [_round(row) for row in rounds.after(tx, cup.number, 0) if row.reason is not None]
    story = _replay(spec, played)
    body: dict[str, Any] = {
        "format": FORMAT,
        "spec": spec.to_json(),
        "spec_digest": cup.digest,
        "rounds": played,
        "eliminations": [_elimination(spec, e, story.tallies[e.round - 1]) for e in story.run.eliminations],
        "error_probability": error_probability(spec),
        "outcome": story.outcome.to_json(),
    }
    return {**body, "digest": sha256(canonical(_literal(body)))}


def _round(row: rounds.RoundRow) -> dict[str, Any]:
    wins, ties, played = rounds.results_of(row)
    return {
        "n": row.n,
        "before": row.before,
        "plan": [list(pair) for pair in rounds.plan_of(row)],
        "plan_digest": row.plan_digest,
        "opened": row.opened,
        "deadline": row.deadline,
        "digest": row.digest,
        "wins": wins.tolist(),
        "ties": ties.tolist(),
        "played": played.tolist(),
        "reason": row.reason,
        "closed": row.closed,
        "deliveries": row.seq,
        "head": row.head,
        "close_digest": row.close_digest,
    }


def _elimination(spec: Spec, e: Elimination, tally: Tally) -> dict[str, Any]:
    duels = int(tally.counts[e.by, e.arm])
    return {
        "option": spec.names[e.arm],
        "arm": e.arm,
        "round": e.round,
        "by": spec.names[e.by],
        "by_arm": e.by,
        "rule": e.rule,
        "points_of_by": int(tally.points[e.by, e.arm]),
        "duels_with_by": duels,
        "statistic": e.statistic,
        "threshold": e.threshold,
    }


def error_probability(spec: Spec) -> dict[str, Any]:
    """Return what the theory says of the chance that a Condorcet winner is eliminated."""
    arms, horizon = len(spec.options), spec.horizon
    if spec.policy in ("c2b", "pcomp"):
        bound = (arms - 1) / (arms * arms * horizon)
        rule = "Hoeffding's inequality for each of its K - 1 opponents and B rounds, at level ln(K^2 B T)"
        return {"bound": bound, "rule": rule}
    if spec.policy == "c2b-kl":
        level = evidence_threshold(spec)
        bound = min(1.0, spec.rounds * gamma_tail(arms - 1, level))
        rule = (
            "each N kl(phat, 1/2) of the winner is at most exponential, so their sum at most gamma with K - 1; "
            "B times its tail at ln T + f. As T grows the paper gives (1/T) exp(K ln C - f) with C a constant"
        )
        return {"bound": bound, "rule": rule}
    return {"bound": None, "rule": f"no number is known for {spec.policy}; its paper gives the order of growth"}


def evidence_threshold(spec: Spec) -> float:
    """Return ln T + f of C2B-KL."""
    f = spec.parameters.get("f")
    return log(spec.horizon) + (0.3 * len(spec.options) ** 1.01 if f is None else float(f))


def gamma_tail(shape: int, x: float) -> float:
    """Return P(X > x) for X the sum of `shape` standard exponentials: exp(-x) sum_{i < shape} x^i / i!."""
    term, total = exp(-x), 0.0
    for i in range(shape):
        total += term
        term *= x / (i + 1)
    return min(1.0, total)


# reading and checking ---------------------------------------------------------------------------------------


class _Digits(float):
    """A float that remembers how it was written: a changed digit is a change, even one below the last bit."""

    text: str


def _digits(text: str) -> _Digits:
    value = _Digits(text)
    value.text = text
    return value


def _literal(value: Any) -> Any:
    """Replace each float by its text, for the digest."""
    if isinstance(value, _Digits):
        return f"float {value.text}"
    if isinstance(value, float):
        return f"float {value!r}"
    if isinstance(value, Mapping):
        return {key: _literal(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_literal(item) for item in value]
    return value


def read_certificate(path: str | Path) -> dict[str, Any]:
    """Read a certificate from a file, every digit as it is written."""
    place = Path(path)
    try:
        if place.stat().st_size > MOST_BYTES:
            raise VerifyError(f"{place}: larger than {MOST_BYTES:,} bytes: this is no certificate")
        text = place.read_bytes().decode()
    except OSError as error:
        raise VerifyError(f"{place}: {error.strerror or error}: check the path") from None
    except UnicodeDecodeError as error:
        raise VerifyError(f"{place}: byte {error.start} is not UTF-8: the file was changed") from None
    return parse_certificate(text, str(place))


def parse_certificate(text: str, name: str = "certificate") -> dict[str, Any]:
    """Parse the text of a certificate."""
    try:
        value = json.loads(text, parse_float=_digits, parse_constant=refuse_constant, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError) as error:
        raise VerifyError(f"{name}: not JSON: {error}") from None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise VerifyError(f"{name}: not a certificate that this version reads ({FORMAT!r})")
    return value


def verify_certificate(certificate: str | Path | Mapping[str, Any]) -> Report:
    """Recompute everything in a certificate; raise VerifyError at the first thing that does not hold."""
    if isinstance(certificate, Mapping):
        value: Mapping[str, Any] = certificate
        name = "certificate"
    else:
        value, name = read_certificate(certificate), str(certificate)
    report = Report(name)
    try:
        _verify(value, report)
    except VerifyError:
        raise
    except (RoundelError, KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = f"{type(error).__name__}: {error}" if not isinstance(error, RoundelError) else str(error)
        raise VerifyError(f"{name}: it cannot be replayed: {what}") from None
    return report


def _must(holds: bool, what: str) -> None:
    if not holds:
        raise VerifyError(what)


def _verify(value: Mapping[str, Any], report: Report) -> None:
    body = {key: item for key, item in value.items() if key != "digest"}
    _must(
        sha256(canonical(_literal(body))) == value["digest"], "the digest does not cover this content: it was changed"
    )
    report.holds.append("the content is what its digest covers")
    _must(set(value) == FIELDS, "it has other fields than it should")
    spec = Spec.from_json(value["spec"])
    _must(spec.digest() == value["spec_digest"], "the spec is not what its digest covers")
    _must(spec.text() == canonical(value["spec"]), "the spec has other fields than it should")
    _chain(value["rounds"], value["spec_digest"])
    played = value["rounds"]
    report.holds.append(f"the digests of {len(played)} rounds build on each other and on the spec")
    story = _replay(spec, played)
    report.holds.append(f"{spec.policy}, replayed, plans the same {len(played)} rounds")
    _must(len(story.run.eliminations) == len(value["eliminations"]), "the replay eliminates other options")
    for given, e in zip(value["eliminations"], story.run.eliminations, strict=True):
        _same(given, _elimination(spec, e, story.tallies[e.round - 1]), f"the elimination of {given['option']!r}")
    checked = sum(_recheck(spec, e, story) for e in story.run.eliminations)
    total = len(story.run.eliminations)
    report.holds.append(f"{total} eliminations follow from the counts; {checked} recomputed by hand-written arithmetic")
    _same(value["error_probability"], error_probability(spec), "the error probability")
    _same(value["outcome"], story.outcome.to_json(), "the outcome")
    report.holds.append(f"the outcome follows: {story.outcome.word}, {story.outcome.leader}")
    if played:
        report.head = f"{played[-1]['deliveries']}:{played[-1]['head']}"


def _chain(played: Sequence[Mapping[str, Any]], digest: str) -> None:
    for n, row in enumerate(played, 1):
        what = f"round {n}"
        _must(set(row) == ROUND, f"{what}: it has other fields than it should")
        _must(type(row["n"]) is int and row["n"] == n, f"{what}: it is numbered {row['n']}")
        _must(row["before"] == digest, f"{what}: it does not build on what came before")
        plan = _plan(row)
        _must(plan.digest() == row["plan_digest"], f"{what}: the plan is not what its digest covers")
        opened = rounds.opening_digest(n, row["plan_digest"], digest, row["opened"], row["deadline"])
        _must(opened == row["digest"], f"{what}: its opening is not what its digest covers")
        digest = rounds.closing_digest(
            row["digest"], row["reason"], row["closed"], _results(row), row["deliveries"], row["head"]
        )
        _must(digest == row["close_digest"], f"{what}: its result is not what its digest covers")


def _plan(row: Mapping[str, Any]) -> Plan:
    first, second, times = (_integers(column) for column in zip(*row["plan"], strict=True))
    return Plan(first, second, times)


def _results(row: Mapping[str, Any]) -> Results:
    return Results(*(np.array(_integers(row[column]), np.int64) for column in ("wins", "ties", "played")))


def _integers(values: Sequence[Any]) -> Sequence[int]:
    """Refuse 5.25 and "5", which an array of integers would take for 5."""
    for value in values:
        _must(type(value) is int, f"{value!r} stands where a whole number should")
    return values


@dataclass(frozen=True, slots=True)
class _Story:
    """A replay, with the tally after each round."""

    run: Run
    tallies: list[Tally]
    outcome: Outcome


def _replay(spec: Spec, played: Sequence[Mapping[str, Any]]) -> _Story:
    run, tallies = spec.run(), []
    ties = np.zeros((run.arms, run.arms), np.int64)
    for row in played:
        plan, results = _plan(row), _results(row)
        run.replay([Round(plan, *results)])
        tallies.append(run.tally)
        ties[plan.first, plan.second] += results.ties
        ties[plan.second, plan.first] += results.ties
    ended = bool(played) and played[-1]["reason"] == "ended"
    is_open = run.ask() is not None and not ended
    return _Story(run, tallies, outcome_of(spec, run, run.tally, ties, is_open=is_open, ended=ended))


def _same(given: Any, computed: Any, what: str) -> None:
    """Compare values; floats may differ in their last digits, since machines round logarithms differently."""
    if isinstance(given, float) and isinstance(computed, float):
        _must(
            isclose(given, computed, rel_tol=DIGITS, abs_tol=1e-300), f"{what}: {given} is recorded, {computed} follows"
        )
    elif isinstance(given, Mapping) and isinstance(computed, Mapping):
        _must(given.keys() == computed.keys(), f"{what}: it has other fields than it should")
        for key in computed:
            _same(given[key], computed[key], f"{what}, {key}")
    elif isinstance(given, (list, tuple)) and isinstance(computed, (list, tuple)):
        _must(len(given) == len(computed), f"{what}: {len(given)} are recorded, {len(computed)} follow")
        for number, (a, b) in enumerate(zip(given, computed, strict=True), 1):
            _same(a, b, f"{what}, {number}")
    else:
        same_type = type(given) is type(computed)
        _must(same_type and given == computed, f"{what}: {given!r} is recorded, {computed!r} follows")


# eliminations, recomputed in plain arithmetic: no code is shared with the policies -----------------------------


def _recheck(spec: Spec, e: Elimination, story: _Story) -> bool:
    """Recompute a logged elimination from the counts; return False where its rule has no recheck here."""
    points: list[list[int]] = story.tallies[e.round - 1].points.tolist()
    gone = {other.arm for other in story.run.eliminations if other.round < e.round}
    active = [arm for arm in range(len(points)) if arm not in gone]
    if e.rule == "evidence" and spec.policy == "c2b-kl":
        least = min(_evidence_against(points, arm) for arm in active)
        statistic, threshold = _evidence_against(points, e.arm) - least, evidence_threshold(spec)
    elif e.rule == "hoeffding" and spec.policy == "c2b":
        duels = (points[e.by][e.arm] + points[e.arm][e.by]) / 2
        level = log(len(points) ** 2 * spec.rounds * spec.horizon)
        statistic, threshold = points[e.by][e.arm] / 2 / duels, 0.5 + (level / 2 / duels) ** 0.5
    else:
        return False
    name = f"the elimination of {spec.names[e.arm]!r} in round {e.round}"
    _must(isclose(statistic, e.statistic, rel_tol=DIGITS, abs_tol=DIGITS), f"{name}: its statistic is {statistic}")
    _must(isclose(threshold, e.threshold, rel_tol=DIGITS), f"{name}: its threshold is {threshold}")
    _must(statistic > threshold, f"{name}: {statistic} does not exceed {threshold}")
    return True


def _evidence_against(points: list[list[int]], arm: int) -> float:
    """Add up N (p ln 2p + (1-p) ln 2(1-p)) over the opponents that took more points from `arm` than they gave."""
    return sum(_loss(points[arm][other], points[other][arm]) for other in range(len(points)) if other != arm)


def _loss(mine: int, theirs: int) -> float:
    if mine >= theirs:
        return 0.0
    total = mine + theirs
    return sum(part / 2 * log(2 * part / total) for part in (mine, theirs) if part)


def certificate_text(certificate: Mapping[str, Any]) -> str:
    """Return the text of a certificate, laid out for people too."""
    return json.dumps(certificate, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
