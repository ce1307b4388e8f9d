"""What verify finds: every changed column, every missing guard, every flipped bit that matters."""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from campaign import NAMES, SETTINGS, play, story, verdict
from roundel.errors import RoundelError, StoreError, VerifyError
from roundel.tournament import Tournament, open_store
from roundel.tournament.certificate import certificate_text, parse_certificate, read_certificate, verify_certificate
from roundel.tournament.sqlite_library import sqlite_library
from roundel.tournament.texts import canonical, sha256
from roundel.tournament.transfer import import_lines
from roundel.tournament.verify import verify_store

library = sqlite_library().module


def everything(where: str, clock: Any) -> Tournament:
    """A tournament with a row of every kind: late, surplus, rejected, carried, counts, paid calls, an open round."""
    cup = Tournament.create(where, "cup", NAMES, clock=clock, **SETTINGS)
    late = cup.lease(3, "slow", ttl=10)
    clock.ahead(11)
    again = cup.lease(1, "quick")[0]
    cup.tell(again, "first", note="clear", body="A", cost=0.5)
    cup.tell(late[0], "second")
    play(cup, most=15)
    cup.close()
    receipt = cup.tell(late[1], "first")
    assert receipt.became == "late"
    cup.carry(receipt.key)
    cup.reject(cup.lease(1, "model")[0], body="?", note="no")
    cup.intend("call", "request", judge="model")
    cup.respond("call", "response", cost=1.0)
    cup.tell_counts([("d", "e", 2, 1, 0)], key="log", judge="clicks", cost=0.25, note="week 1")
    cup.tell_counts([("d", "e", 1, 1, 1)], key="log", judge="clicks", cost=0.25, note="week 1")
    play(cup, most=12)
    return cup


def raw(where: str) -> Any:
    connection = library.connect(where, isolation_level=None)
    connection.execute("PRAGMA foreign_keys=OFF")
    return connection


@pytest.fixture
def store(tmp_path: Path, clock: Any) -> str:
    where = str(tmp_path / "store.db")
    with everything(where, clock) as cup:
        cup.verify()
    return where


def without_triggers(connection: Any) -> list[str]:
    """Drop all triggers, as somebody with the file in hand can; return the SQL that puts them back."""
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    return [sql for _, sql in triggers]


def changed(value: Any) -> Any:
    """Another value of the same type: the smallest change there is."""
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:]
    if isinstance(value, str):
        return (chr(ord(value[0]) ^ 1) if value else "x") + value[1:]
    return value + 1 if isinstance(value, int) else value + 0.5


def test_every_column_of_every_row_is_covered(store: str) -> None:
    pristine = Path(store).read_bytes()
    connection = raw(store)
    tables = [r[0] for r in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    cells = []
    for table in tables:
        if table == "migration":
            continue
        columns = [r[1] for r in connection.execute(f"PRAGMA table_info({table})")]
        keys = [r[1] for r in connection.execute(f"PRAGMA table_info({table})") if r[5]]
        rows = connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
        for row in rows[:: max(1, len(rows) // 6)]:
            where = {key: row[columns.index(key)] for key in keys}
            cells += [(table, c, where, v) for c, v in zip(columns, row, strict=True) if v is not None]
    connection.close()
    assert {table for table, *_ in cells} == set(tables) - {"migration"}
    silent = []
    tried = 0
    for table, column, where, value in cells:
        if (table, column) == ("tournament", "created"):
            continue  # nothing depends on when it was made
        if column in ("id", "tournament"):
            continue  # the database's own numbers: what they join is covered
        if column == "round":  # to the other round that there is
            value = {1: 1, 2: 0}[value]
        Path(store).write_bytes(pristine)
        connection = raw(store)
        triggers = without_triggers(connection)
        condition = " AND ".join(f"{key} = ?" for key in where)
        try:
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {condition}", (changed(value), *where.values()))
        except library.IntegrityError:
            connection.close()
            continue  # a constraint stands guard already
        for sql in triggers:
            connection.execute(sql)
        connection.close()
        tried += 1
        try:
            verify_store(store)
            silent.append((table, column, where))
        except VerifyError:
            pass
    assert tried > 150
    assert silent == []


@pytest.mark.parametrize("table", ["verdict", "lease", "duel", "bulk", "intent", "response", "pair", "round"])
def test_a_row_that_is_gone_is_missed(store: str, table: str) -> None:
    connection = raw(store)
    triggers = without_triggers(connection)
    last = {"intent": "key", "response": "key"}.get(table)
    if last is None:
        columns = [r[1] for r in connection.execute(f"PRAGMA table_info({table})") if r[5]]
        row = connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchone()
        condition = " AND ".join(f"{c} = ?" for c in columns)
        connection.execute(f"DELETE FROM {table} WHERE {condition}", row)
    else:
        connection.execute(f"DELETE FROM {table}")
    for sql in triggers:
        connection.execute(sql)
    connection.close()
    if table == "response":
        verify_store(store)  # a call without an answer is what a crash leaves: it is asked again, never counted
        return
    with pytest.raises(VerifyError):
        verify_store(store)


def test_every_guard_of_the_schema_is_missed_when_it_is_gone(store: str, tmp_path: Path) -> None:
    connection = raw(store)
    guards = connection.execute(
        "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'index') AND sql IS NOT NULL"
    ).fetchall()
    connection.close()
    assert len(guards) > 20
    for kind, name in guards:
        copy = tmp_path / "copy.db"
        shutil.copy(store, copy)
        connection = raw(str(copy))
        connection.execute(f"DROP {kind} {name}")
        connection.close()
        with pytest.raises(VerifyError, match=f"the {kind} '{name}' is missing"):
            verify_store(copy)


def test_the_guards_of_a_server_are_missed_when_they_are_gone(server: Any, clock: Any) -> None:
    import psycopg

    url = server.fresh()
    with everything(url, clock) as cup:
        cup.verify()
        for change, message in (
            ("DROP INDEX verdict_counted", "index 'verdict_counted' is missing"),
            ("ALTER TABLE lease DISABLE TRIGGER lease_kept", "trigger 'lease_kept' is missing"),
            ("ALTER TABLE duel DROP CONSTRAINT duel_check", "constraints instead of"),
        ):
            with psycopg.connect(url, autocommit=False) as connection:
                connection.execute("SET search_path = roundel")
                connection.execute(change)
                connection.commit()
            assert any(message in line for line in cup.store.check())
            with pytest.raises(VerifyError, match=r"is missing|constraints instead"):
                cup.verify()


REFUSED = [
    ("UPDATE verdict SET verdict = 'tie'", "append-only"),
    ("DELETE FROM verdict", "append-only"),
    ("UPDATE lease SET judge = 'x'", "append-only"),
    ("DELETE FROM lease", "append-only"),
    ("UPDATE bulk SET wins = 0", "append-only"),
    ("DELETE FROM bulk", "append-only"),
    ("DELETE FROM intent", "append-only"),
    ("UPDATE response SET body = 'x'", "append-only"),
    ("UPDATE tournament SET spec = '{}'", "never changes"),
    ("DELETE FROM tournament", "never deleted"),
    ("UPDATE round SET reason = 'hand' WHERE reason IS NOT NULL", "changes once"),
    ("UPDATE round SET plan_digest = '' WHERE reason IS NULL", "changes once"),
    ("DELETE FROM round", "never deleted"),
    ("UPDATE pair SET times = times + 1", "only its counters"),
    ("UPDATE pair SET done = done - 1 WHERE done > 0", "only its counters"),
    ("DELETE FROM pair", "never deleted"),
    ("UPDATE duel SET first = second, second = first", "only its state"),
    ("UPDATE duel SET state = 'open' WHERE state = 'done'", "never back"),
    ("DELETE FROM duel", "never deleted"),
    (
        (
            "INSERT INTO verdict (tournament, seq, key, round, k, verdict, became, received, digest) "
            "SELECT tournament, seq + 1000, key || 'x', round, k, 'tie', 'counted', 0, '' FROM verdict "
            "WHERE became = 'late'"
        ),
        "closed round",
    ),
    (
        (
            "INSERT INTO verdict (tournament, seq, key, round, k, verdict, became, received, digest) "
            "SELECT tournament, seq + 1000, key || 'x', round, k, 'tie', 'counted', 0, '' FROM verdict "
            "WHERE became = 'counted' AND k IS NOT NULL AND round = (SELECT MAX(id) FROM round)"
        ),
        "(?i)unique",
    ),
]


@pytest.mark.parametrize(("sql", "why"), REFUSED)
def test_the_database_itself_refuses(where: str, clock: Any, sql: str, why: str) -> None:
    with everything(where, clock) as cup:
        before = list(cup.export())
        with pytest.raises(StoreError, match=why):
            cup.store.write(lambda tx: tx.run(sql))
        assert list(cup.export()) == before


def test_flipped_bits_are_found_or_change_nothing(store: str, tmp_path: Path) -> None:
    with Tournament.open(store) as cup:
        honest = list(cup.export())
    pristine = Path(store).read_bytes()
    used = [at for at, byte in enumerate(pristine) if byte]  # most of the rest is empty space
    draw = random.Random(7)
    copy = tmp_path / "flipped.db"
    found = 0
    for _ in range(250):
        for side in tmp_path.glob("flipped.db*"):
            side.unlink()
        at, bit = draw.choice(used), draw.randrange(8)
        copy.write_bytes(pristine[:at] + bytes([pristine[at] ^ (1 << bit)]) + pristine[at + 1 :])
        try:
            verify_store(copy)
        except RoundelError:
            found += 1
            continue
        with Tournament.open(copy) as cup:
            told = list(cup.export())
        same = [re.sub(r'"created":[^,]*', "", line) for line in told]
        assert same == [re.sub(r'"created":[^,]*', "", line) for line in honest], f"byte {at}, bit {bit}"
    assert found > 100


# certificates -----------------------------------------------------------------------------------------------


@pytest.fixture
def certificate(tmp_path: Path, clock: Any) -> dict[str, Any]:
    with Tournament.create(tmp_path / "c.db", "cup", NAMES, clock=clock, **SETTINGS) as cup:
        play(cup)
        assert cup.outcome.word == "winner"
        return cup.certificate()


def test_a_certificate_proves_its_outcome(certificate: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    path.write_text(certificate_text(certificate))
    report = verify_certificate(path)
    assert any("4 eliminations follow from the counts; 4 recomputed" in line for line in report.holds)
    assert certificate["outcome"]["winner"] == "a"
    assert {e["option"] for e in certificate["eliminations"]} == set("bcde")
    for e in certificate["eliminations"]:
        assert e["statistic"] > e["threshold"]
        assert 0 < e["points_of_by"] <= 2 * e["duels_with_by"]
    assert 0 < certificate["error_probability"]["bound"] <= 1


def test_changing_any_digit_is_caught(certificate: dict[str, Any]) -> None:
    text = certificate_text(certificate)
    digits = [at for at, character in enumerate(text) if character.isdigit()]
    assert len(digits) > 1000
    for at in digits[:: max(1, len(digits) // 700)]:
        forged = text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]
        with pytest.raises(VerifyError):
            verify_certificate(parse_certificate(forged))


def reseal(value: dict[str, Any]) -> dict[str, Any]:
    """Recompute the outer digest, as a forger would."""
    text = json.dumps({key: item for key, item in value.items() if key != "digest"})
    body = parse_certificate(text)
    from roundel.tournament.certificate import _literal

    return {**body, "digest": sha256(canonical(_literal(body)))}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("outcome", "winner"), "b"),
        (("outcome", "outcome"), "undecided"),
        (("outcome", "standings", 0, "rating"), 2000.0),
        (("outcome", "standings", 0, "wins"), 1),
        (("rounds", 0, "wins", 0), 0),
        (("rounds", 1, "close_digest"), "0" * 64),
        (("rounds", 1, "before"), "0" * 64),
        (("rounds", 0, "plan", 0, 2), 1),
        (("rounds", 0, "closed"), 5.0),
        (("spec", "seed"), 99),
        (("spec", "options", 0, "text"), "other"),
        (("eliminations", 0, "statistic"), 99.0),
        (("eliminations", 0, "threshold"), 0.5),
        (("eliminations", 0, "by"), "e"),
        (("eliminations", 0, "round"), 1),
        (("error_probability", "bound"), 1e-9),
        (("rounds", 0, "wins"), None),
        (("rounds",), 5),
        (("spec",), {}),
    ],
)
def test_a_forger_who_seals_it_again_is_caught(certificate: dict[str, Any], path: tuple[Any, ...], value: Any) -> None:
    verify_certificate(reseal(certificate))
    forged = json.loads(json.dumps(certificate))
    place = forged
    for step in path[:-1]:
        place = place[step]
    assert place[path[-1]] != value
    place[path[-1]] = value
    with pytest.raises(VerifyError):
        verify_certificate(reseal(forged))


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a certificate, an empty list being one."""
    if isinstance(value, (dict, list)) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [leaf for key, item in items for leaf in leaves(item, (*path, key))]
    return [path]


def others(value: Any) -> list[Any]:
    """Other values, of the same and of another type, that a careless reader could take for this one."""
    if isinstance(value, int):
        return [
            value + 1,
            value + 0.25,
            float(value),
            str(value),
            *([bool(value)] if value in (0, 1) and value is not bool(value) else []),
        ]
    if isinstance(value, float):
        return [value + 1, str(value)]
    return [f"{value}x"] if isinstance(value, str) else [0, "x"]


def test_every_leaf_is_covered_even_when_it_is_sealed_again(certificate: dict[str, Any]) -> None:
    silent, tried, seen = [], 0, set()
    for path in leaves(certificate):
        shape = tuple("#" if isinstance(step, int) else step for step in path)
        if path == ("digest",) or (shape in seen and path[0] == "rounds"):
            continue  # one of each kind in a round is enough
        seen.add(shape)
        for other in others(value_at(certificate, path)):
            forged = json.loads(json.dumps(certificate))
            value_at(forged, path[:-1])[path[-1]] = other
            tried += 1
            try:
                verify_certificate(reseal(forged))
                silent.append((path, other))
            except VerifyError:
                pass
    assert tried > 200
    assert silent == []


def value_at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def test_a_field_too_many_is_caught(certificate: dict[str, Any]) -> None:
    for path in ((), ("rounds", 0), ("spec",), ("spec", "options", 0), ("eliminations", 0), ("outcome",)):
        forged = json.loads(json.dumps(certificate))
        value_at(forged, path)["signed"] = "by the committee"
        with pytest.raises(VerifyError):
            verify_certificate(reseal(forged))


def test_files_that_are_no_certificates(tmp_path: Path) -> None:
    for number, content in enumerate(
        (b"", b"{}", b"[1", b'{"format": NaN}', b"\xff", b'{"a":1,"a":2}', b"[" * 100_000)
    ):
        path = tmp_path / f"{number}.json"
        path.write_bytes(content)
        with pytest.raises(VerifyError):
            verify_certificate(path)
    with pytest.raises(VerifyError, match="check the path"):
        read_certificate(tmp_path / "none.json")


def test_certificates_of_every_state_verify(where: str, clock: Any) -> None:
    with Tournament.create(where, "cup", NAMES, clock=clock, **SETTINGS) as cup:
        verify_certificate(cup.certificate())
        play(cup, most=35)
        cup.close()
        assert verify_certificate(cup.certificate()).holds[-1].startswith("the outcome follows: open")
        cup.close(end=True)
        assert verify_certificate(cup.certificate()).holds[-1].startswith("the outcome follows: undecided")


# export and import ------------------------------------------------------------------------------------------


def test_an_export_comes_back_the_same_from_either_database(
    where: str, clock: Any, tmp_path: Path, server: Any
) -> None:
    with everything(where, clock) as cup:
        lines = list(cup.export())
        held = cup.lease(1, "me")[0]
        told = story(cup)
        lines = list(cup.export())
        assert not any(held.token in line for line in lines), "tokens never leave the store"
        for number, target in enumerate((str(tmp_path / "copy.db"), server.fresh())):
            report = import_lines(target, lines)
            assert report.head == cup.status.head
            with Tournament.open(target, clock=clock) as copy:
                assert list(copy.export()) == lines
                assert story(copy) == told
                assert copy.certificate() == cup.certificate()
                assert copy.tell(held, "first").became == "counted", "an outstanding lease still holds"
                play(copy)
                copy.verify()
                assert copy.outcome.word != "open", number
            with pytest.raises(RoundelError, match="already"):
                import_lines(target, lines)


def test_an_export_is_in_one_order_whatever_the_language_of_the_server(server: Any, clock: Any, tmp_path: Path) -> None:
    import psycopg

    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE english TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'")
    with Tournament.create(server.url("english"), "cup", NAMES, clock=clock, **SETTINGS) as cup:
        for key in ("b", "B", "a", "\u00e9", "Z", "_", "\U0001f600", "\uff5a"):
            cup.intend(key, "request")
            cup.respond(key, "response")
        lines = list(cup.export())
    import_lines(tmp_path / "copy.db", lines)
    with Tournament.open(tmp_path / "copy.db") as copy:
        assert list(copy.export()) == lines


def test_a_damaged_export_imports_nothing(tmp_path: Path, clock: Any) -> None:
    with everything(str(tmp_path / "store.db"), clock) as cup:
        lines = list(cup.export())
    draw = random.Random(3)
    broken = [lines[:-1], lines[1:], lines[:-3] + lines[-2:], [*lines, lines[-1]], ["x"], [], lines[:5] + lines[6:]]
    for _ in range(60):
        at = draw.randrange(len(lines))
        digits = [i for i, c in enumerate(lines[at]) if c.isdigit()]
        spot = draw.choice(digits)
        changed_line = lines[at][:spot] + str((int(lines[at][spot]) + 1) % 10) + lines[at][spot + 1 :]
        if '"is":"tournament"' in changed_line and spot < changed_line.index('"digest"'):
            continue  # when it was made: nothing depends on it
        broken.append([*lines[:at], changed_line, *lines[at + 1 :]])
    target = tmp_path / "target.db"
    for damaged in broken:
        with pytest.raises(RoundelError):
            import_lines(target, damaged)
        if target.exists():
            assert Tournament.names(target) == []
    assert import_lines(target, lines).holds


def test_an_export_smuggles_in_no_second_tournament(tmp_path: Path, clock: Any) -> None:
    with everything(str(tmp_path / "store.db"), clock) as cup:
        lines = list(cup.export())
    forged = json.loads(lines[0])
    forged["spec"]["name"], forged["digest"] = "forged", "0" * 64
    target = tmp_path / "target.db"
    with pytest.raises(RoundelError, match="line 2: a second tournament"):
        import_lines(target, [json.dumps(forged), *lines])
    assert Tournament.names(target) == []


def test_a_backup_is_a_whole_store(tmp_path: Path, clock: Any) -> None:
    with everything(str(tmp_path / "store.db"), clock) as cup:
        copy = cup.store.backup(tmp_path / "backup.db")
        assert verify_store(copy, expect=cup.status.head).head == cup.status.head
        with pytest.raises(StoreError, match="never overwrites"):
            cup.store.backup(copy)
    with Tournament.open(copy, clock=clock) as cup:
        play(cup)


def test_a_server_is_backed_up_by_its_own_tools(server: Any, tmp_path: Path) -> None:
    with (
        Tournament.create(server.fresh(), "cup", NAMES, **SETTINGS) as cup,
        pytest.raises(StoreError, match="pg_dump"),
    ):
        cup.store.backup(tmp_path / "x")


# versions ---------------------------------------------------------------------------------------------------


def test_a_newer_schema_is_refused(tmp_path: Path, server: Any) -> None:
    import psycopg

    for where in (str(tmp_path / "store.db"), server.fresh()):
        Tournament.create(where, "cup", NAMES, **SETTINGS).disconnect()
        if "://" in where:
            with psycopg.connect(where, autocommit=True) as connection:
                connection.execute("INSERT INTO roundel.migration VALUES (9, 'later', 'x')")
        else:
            connection = raw(where)
            connection.execute("INSERT INTO migration VALUES (9, 'later', 'x')")
            connection.close()
        with pytest.raises(StoreError, match="newer roundel"):
            Tournament.open(where)


def test_a_migration_backs_the_store_up_first(tmp_path: Path, clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from roundel.tournament import sqlite
    from roundel.tournament.store import Migration, migrations

    where = tmp_path / "store.db"
    with everything(str(where), clock) as cup:
        head = cup.status.head
    steps = [*migrations("sqlite"), Migration(2, "more", "CREATE TABLE more (x INTEGER) STRICT;\n")]
    broken = [*migrations("sqlite"), Migration(2, "more", "CREATE TABLE more (x INTEGER) STRICT;\nCREATE nonsense;\n")]
    monkeypatch.setattr(sqlite, "migrations", lambda dialect: broken)
    with pytest.raises(StoreError):
        open_store(where)
    (tmp_path / "store.db.before-0002.bak").unlink()
    monkeypatch.setattr(sqlite, "migrations", lambda dialect: steps)
    with Tournament.open(where, clock=clock) as cup:
        assert cup.verify(expect=head)
    backup = tmp_path / "store.db.before-0002.bak"
    connection = sqlite3.connect(backup)
    assert connection.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'more'").fetchone() == (0,)
    connection.close()
    monkeypatch.undo()
    verify_store(backup, expect=head)


STORES = Path(__file__).parents[1] / "stores"


@pytest.mark.parametrize("manifest", sorted(STORES.glob("*.json")), ids=lambda path: path.stem)
def test_stores_of_every_released_version_are_read(manifest: Path, tmp_path: Path, clock: Any) -> None:
    facts = json.loads(manifest.read_text())
    where = tmp_path / "store.db"
    shutil.copy(manifest.with_suffix(".db"), where)
    assert verify_store(where, expect=facts["head"]).head == facts["head"]
    with Tournament.open(where, facts["name"], clock=clock) as cup:
        assert cup.certificate()["digest"] == facts["certificate"]
        status = cup.status.to_json()
        assert {key: status[key] for key in facts["status"]} == facts["status"]
        clock.now = facts["now"]
        for duel in cup.lease(5, "me"):
            cup.tell(duel, verdict(duel))
        cup.verify(expect=facts["head"])


def test_there_is_a_store_of_this_version() -> None:
    assert list(STORES.glob("*.json"))
