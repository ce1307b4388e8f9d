"""Interleaving and clicks against exact expectations, by enumeration."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest

from roundel.datasets import Query, ranker_preferences
from roundel.datasets.clicks import Clicks, compare_rankers, draw, interleave, rankings, verdicts
from roundel.errors import DataError, InputError

DUELS = 200_000
FALSE_ALARM = 1e-9
# Points per duel lie in [0, 1], so by Hoeffding the mean of DUELS of them is off by more with that chance at most.
TOLERANCE = sqrt(log(2 / FALSE_ALARM) / (2 * DUELS))


def exact(grades: list[int], one: list[int], other: list[int], clicks: Clicks, page: int) -> float:
    """The expected share of `one`: every coin, every document, every click and every stop in turn."""

    def softmax(ranking: list[int], shown: tuple[int, ...]) -> dict[int, float]:
        weights = {d: (p + 1) ** -3.0 for p, d in enumerate(ranking) if d not in shown}
        return {d: w / sum(weights.values()) for d, w in weights.items()}

    @cache
    def fill(shown: tuple[int, ...], coins: tuple[bool, ...]) -> float:
        if len(shown) == page:
            return read(shown, coins, 0, 0)
        return sum(
            0.5 * chance * fill((*shown, document), (*coins, coin))
            for coin in (True, False)
            for document, chance in softmax(one if coin else other, shown).items()
        )

    @cache
    def read(shown: tuple[int, ...], coins: tuple[bool, ...], at: int, lead: int) -> float:
        if at == len(shown):
            return 0.5 + 0.5 * np.sign(lead)
        click, stop = clicks.click[grades[shown[at]]], clicks.stop[grades[shown[at]]]
        led = lead + (1 if coins[at] else -1)
        after = (1 - stop) * read(shown, coins, at + 1, led) + stop * (0.5 + 0.5 * np.sign(led))
        return float((1 - click) * read(shown, coins, at + 1, lead) + click * after)

    return fill((), ())


def simulated(grades: list[int], one: list[int], other: list[int], clicks: Clicks, page: int, seed: int) -> float:
    values = np.zeros((len(grades), 2))
    for column, ranking in enumerate((one, other)):
        values[ranking, column] = -np.arange(len(ranking))
    query = Query("q", np.array(grades), values)
    return float(compare_rankers([query], np.array([1, 2]), clicks, DUELS, seed, page).phat[0, 1])


CASES = [
    ([1, 0], [0, 1], [1, 0], 2),
    ([4, 0], [0, 1], [1, 0], 2),
    ([4, 2, 0], [0, 1, 2], [2, 1, 0], 3),
    ([4, 2, 0], [1, 0, 2], [0, 2, 1], 3),
    ([4, 2, 0], [0, 1, 2], [2, 1, 0], 2),
    ([3, 3, 1, 0], [0, 1, 2, 3], [3, 0, 2, 1], 3),
]


@pytest.mark.parametrize("user", ["perfect", "navigational", "informational"])
@pytest.mark.parametrize(("grades", "one", "other", "page"), CASES)
def test_share_of_duels_is_the_exact_expectation(user, grades, one, other, page):
    clicks = Clicks.of(user, 4)
    expected = exact(grades, one, other, clicks, page)
    assert abs(simulated(grades, one, other, clicks, page, seed=3) - expected) < TOLERANCE


def test_rankers_that_share_draws_are_compared_as_exactly():
    orders = [[0, 1, 2], [2, 0, 1], [1, 2, 0], [0, 2, 1]]
    values = np.zeros((3, 4))
    for column, ranking in enumerate(orders):
        values[ranking, column] = -np.arange(3)
    clicks = Clicks.of("informational", 2)
    query = Query("q", np.array([2, 0, 1]), values)
    phat = compare_rankers([query], np.arange(1, 5), clicks, DUELS, 9).phat
    for i in range(4):
        for j in range(i):
            assert abs(phat[i, j] - exact([2, 0, 1], orders[i], orders[j], clicks, 3)) < TOLERANCE


def test_two_documents_by_hand():
    # One relevant document, a perfect user: whoever gave it wins. `one` puts it first, with weight 1 against 1/8.
    # Coin `one`: shown first and credited with chance 8/9; left for the second place with 1/9, where a coin
    # decides. Coin `other`: 1/9 credited to `other`; 8/9 left, a coin decides.
    # Credited to `one`: 1/2 * 8/9 + (1/2 * 1/9 + 1/2 * 8/9) * 1/2 = 4/9 + 1/4 = 25/36.
    clicks = Clicks.of("perfect", 4)
    assert exact([4, 0], [0, 1], [1, 0], clicks, 2) == pytest.approx(25 / 36)
    assert abs(simulated([4, 0], [0, 1], [1, 0], clicks, 2, seed=5) - 25 / 36) < TOLERANCE


def test_the_check_would_notice_a_wrong_user_swapped_rankers_or_a_short_page():
    grades, one, other, page = CASES[2]
    measured = simulated(grades, one, other, Clicks.of("navigational", 4), page, seed=3)
    for wrong in (
        exact(grades, one, other, Clicks.of("informational", 4), page),
        exact(grades, other, one, Clicks.of("navigational", 4), page),
        exact(grades, one, other, Clicks.of("navigational", 4), 1),
    ):
        assert abs(measured - wrong) > 2 * TOLERANCE


@pytest.mark.parametrize(
    ("user", "most", "click", "stop"),
    [
        ("perfect", 4, [0, 0.2, 0.4, 0.8, 1], [0, 0, 0, 0, 0]),
        ("navigational", 4, [0.05, 0.3, 0.5, 0.7, 0.95], [0.2, 0.3, 0.5, 0.7, 0.9]),
        ("informational", 3, [0.4, 0.6, 0.7, 0.8, 0.9], [0.1, 0.2, 0.3, 0.4, 0.5]),
        ("perfect", 2, [0, 0.5, 1], [0, 0, 0]),
        ("navigational", 2, [0.05, 0.5, 0.95], [0.2, 0.5, 0.9]),
        ("informational", 2, [0.4, 0.7, 0.9], [0.1, 0.3, 0.5]),
        ("navigational", 1, [0.05, 0.95], [0.2, 0.9]),
    ],
)
def test_tables_of_the_users(user, most, click, stop):
    table = Clicks.of(user, most)
    assert table.click.tolist() == click
    assert table.stop.tolist() == stop


def test_a_page_shows_every_document_once_and_a_page_of_all_shows_all():
    rng = np.random.default_rng(0)
    lists = rankings(rng.random((12, 4)), rng)
    assert (np.sort(lists, axis=1) == np.arange(12)).all()
    drawn = draw(lists, 12, 50, rng)
    shown, _ = interleave(drawn[:, 0], drawn[:, 1], rng)
    assert (np.sort(shown, axis=1) == np.arange(12)).all()
    shown, _ = interleave(drawn[:, 0, :5], drawn[:, 1, :5], rng)
    assert all(len(set(row)) == 5 for row in shown.tolist())


def test_draws_follow_the_softmax_of_the_places():
    rng = np.random.default_rng(1)
    drawn = draw(np.array([[2, 0, 1]]), 2, DUELS, rng)[:, 0]
    weights = {2: 1.0, 0: 1 / 8, 1: 1 / 27}
    for one, other in product(weights, weights):
        if one != other:
            left = sum(weights.values()) - weights[one]
            chance = weights[one] / sum(weights.values()) * weights[other] / left
            assert abs(float(np.mean((drawn == (one, other)).all(axis=1))) - chance) < TOLERANCE


def test_equal_values_stand_in_random_order():
    rng = np.random.default_rng(2)
    firsts = [int(rankings(np.zeros((3, 1)), rng)[0, 0]) for _ in range(3000)]
    # Each of 3 first: binomial; Hoeffding with a false alarm of 1e-9 for 3000 draws.
    assert max(abs(firsts.count(d) / 3000 - 1 / 3) for d in range(3)) < sqrt(log(2e9) / 6000)


def test_a_user_who_stops_reads_no_further():
    always = Clicks(np.array([1.0, 1.0]), np.array([0.0, 1.0]))
    by_first = np.array([[False, True, True], [False, True, True]])
    points = verdicts(np.array([[1, 0, 0], [0, 0, 0]]), by_first, always, np.random.default_rng(0))
    assert points.tolist() == [0, 2]  # stopped after the second ranker's document; read on to 2 against 1


def queries(documents: int = 15) -> Iterator[Query]:
    rng = np.random.default_rng(7)
    for number in range(20):
        grades = rng.integers(0, 5, documents)
        noise = rng.standard_normal((documents, 4))
        yield Query(str(number), grades, np.round(np.array([2.0, 1.0, 0.3, 0.0]) * grades[:, None] + noise, 3))


def write_letor(path: Path, data: Iterator[Query]) -> Path:
    with path.open("w") as file:
        for query in data:
            for grade, row in zip(query.grades.tolist(), query.values.tolist(), strict=True):
                cells = " ".join(f"{f}:{v!r}" for f, v in enumerate(row, 1) if v)
                file.write(f"{grade} qid:{query.name} {cells} # doc\n")
    return path


def test_file_and_memory_give_the_same_matrix(tmp_path):
    path = write_letor(tmp_path / "train.txt", queries())
    found = ranker_preferences(path, comparisons=100, seed=4)
    direct = compare_rankers(queries(), np.arange(1, 5), Clicks.of("navigational", 4), 5, 4)
    assert (found.matrix == direct.phat).all()
    assert found.labels == ("feature 1", "feature 2", "feature 3", "feature 4")
    assert found.winner == 0
    assert (ranker_preferences(path, comparisons=100, seed=5).matrix != found.matrix).any()


def test_a_subset_of_features_keeps_their_names(tmp_path):
    path = write_letor(tmp_path / "train.txt", queries())
    assert ranker_preferences(path, features=[3, 1], comparisons=20).labels == ("feature 3", "feature 1")


def test_bad_arguments_are_refused(tmp_path):
    path = write_letor(tmp_path / "train.txt", queries())
    with pytest.raises(InputError, match=r"user is 'lazy': it must be one of perfect, navigational, informational"):
        ranker_preferences(path, user="lazy")
    with pytest.raises(InputError, match=r"comparisons is 0: it must be at least 1"):
        ranker_preferences(path, comparisons=0)
    with pytest.raises(InputError, match=r"different numbers from 1"):
        ranker_preferences(path, features=[1, 1])
    with pytest.raises(DataError, match=r"1 features .* two are the least"):
        ranker_preferences(path, features=[1])


def test_more_rankers_than_can_be_compared_are_refused(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("1 qid:1 " + " ".join(f"{f}:1" for f in range(1, 100_001)) + "\n")
    with pytest.raises(DataError, match=r"train.txt: 100,000 features, each a ranker, and 1,000 are the most; choose"):
        ranker_preferences(path, comparisons=1)
    assert ranker_preferences(path, features=[1, 99_999], comparisons=1).arms == 2
