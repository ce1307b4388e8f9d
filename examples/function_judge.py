"""A judge of your own: a function of a duel. This one prefers the headline that is easier to read."""

import tempfile
from pathlib import Path

from roundel.judges import judge_with
from roundel.report import write_report
from roundel.tournament import Duel, Tournament

HEADLINES = {
    "long words": "Municipal administration contemplates infrastructural ameliorations",
    "plain": "City plans to mend its roads",
    "middling": "Council considers improvements to local streets",
    "shouting": "ROADS!!! CITY COUNCIL ABSOLUTELY STUNS RESIDENTS WITH ANNOUNCEMENT",
}


def letters_a_word(duel_side_text: str) -> float:
    words = duel_side_text.split()
    return sum(map(len, words)) / len(words)


def easier(duel: Duel) -> str:
    first, second = (letters_a_word(side.content["text"]) for side in (duel.first, duel.second))
    return "tie" if first == second else "first" if first < second else "second"


with (
    tempfile.TemporaryDirectory() as folder,
    Tournament.create(Path(folder, "headlines.db"), "headlines", HEADLINES, horizon=600, rounds=4) as cup,
):
    print(judge_with(cup, easier, "letters a word", workers=2))
    print(cup.outcome.word, cup.outcome.leader)
    report = write_report(cup, Path(folder, "headlines.html"))
    print(f"a report of {report.stat().st_size // 1000} KB")
