"""Whatever judges read and write beyond the tournament's own doors, on SQLite and on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from fake_model import Reply, serving, shorter
from roundel.judges import ModelSettings, export_manifest, import_verdicts, judge_by_model, judge_with, tell_log
from roundel.judges.records import field_of, unfinished
from roundel.report import report_html
from roundel.tournament import Duel, Tournament


def test_every_kind_of_judge(where: str, tmp_path: Path) -> None:
    options = {"alpha": "a", "beta": "bb", "gamma": "ccc"}
    (tmp_path / "l.csv").write_text("first,second,verdict\n" + "alpha,beta,first\n" * 3 + "gamma,beta,tie\n" * 2)

    def right(duel: Duel) -> str:
        return "first" if duel.first.name < duel.second.name else "second"

    with (
        Tournament.create(where, "t", options, horizon=200, rounds=2, seed=1) as cup,
        serving(lambda call, n: Reply(shorter(call))) as fake,
    ):
        assert tell_log(cup, str(tmp_path / "l.csv")).counted == 5
        (tmp_path / "l.csv").write_text("first,second,verdict\n" + "alpha,beta,first\n" * 2)
        assert tell_log(cup, str(tmp_path / "l.csv")).counted == 2
        field = field_of(cup, [])
        assert field is not None
        assert [pair.free for pair in field.pairs] == [field.pairs[1].free - 2, *[field.pairs[1].free] * 2]
        settings = ModelSettings("fake", fake.url, price_in=1.0, price_out=1.0, cap=1.0, canaries=1)
        model = judge_by_model(cup, settings, limit=4)
        assert (model.counted, model.calls) == (4, 4 * 2 + 2)
        assert unfinished(cup, "fake") == []
        assert export_manifest(cup, tmp_path / "m.jsonl", limit=2) == 2
        text = (tmp_path / "m.jsonl").read_text().replace('"task_input"', '"verdict": "tie", "task_input"')
        (tmp_path / "r.jsonl").write_text(text)
        assert import_verdicts(cup, tmp_path / "r.jsonl").became == {"counted": 2}
        assert judge_with(cup, right, "paid", paid=True, limit=3).counted == 3
        assert judge_with(cup, right, "me").stopped == "the tournament has ended"
        html = report_html(cup)
        for judge in ("fake", "manifest", "paid", "me", "log"):
            assert f"<th scope=row>{judge}</th>" in html
        cup.verify()
