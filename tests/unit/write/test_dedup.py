"""Semantic dedup: whom it compares, what forbids it, which one stays."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from worker.llm.items import ExtractedFact
from worker.write.calls import VectorCache
from worker.write.dedup import semantic_dedup


def fact(text: str, subject: str = "Ana", **fields: object) -> ExtractedFact:
    return ExtractedFact(subject=subject, text=text, **fields)


def near(*facts: ExtractedFact, cosine: float = 0.95) -> VectorCache:
    """Vectors that stand ``cosine`` from the first one's, in one plane."""
    rows = [[1.0, 0.0]] + [[cosine, float(np.sqrt(1 - cosine**2))]] * (len(facts) - 1)
    return VectorCache([item.text for item in facts], np.array(rows, dtype=np.float32))


def test_near_duplicates_of_one_subject_fall_together() -> None:
    facts = [fact("Ana lives in Leeds"), fact("Ana resides in Leeds")]
    kept, dropped = semantic_dedup(facts, near(*facts), 0.85)
    assert [item.text for item in kept] == ["Ana lives in Leeds"]
    assert [(item.text, item.kept) for item in dropped] == [("Ana resides in Leeds", "Ana lives in Leeds")]
    assert dropped[0].similarity == pytest.approx(0.95, abs=1e-3)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (fact("Ana likes tea"), fact("Ana dislikes tea")),
        (fact("Ana has 2 cats"), fact("Ana has 3 cats")),
        (fact("Ana lives in Leeds"), fact("Eva resides in Leeds", "Eva")),
        (fact("Ana flew out", event_date=date(2025, 1, 1)), fact("Ana took off", event_date=date(2025, 1, 2))),
        (
            fact("Ana eats well", attribute_key="food.style", value="vegan"),
            fact("Ana eats fine", attribute_key="food.style", value="halal"),
        ),
    ],
)
def test_what_is_never_a_duplicate(one: ExtractedFact, other: ExtractedFact) -> None:
    kept, dropped = semantic_dedup([one, other], near(one, other, cosine=0.99), 0.85)
    assert kept == [one, other]
    assert dropped == []


def test_the_threshold_is_passed_not_reached() -> None:
    facts = [fact("Ana lives in Leeds"), fact("Ana resides in Leeds")]
    assert len(semantic_dedup(facts, near(*facts, cosine=0.84), 0.85)[0]) == 2
    assert len(semantic_dedup(facts, near(*facts, cosine=0.86), 0.85)[0]) == 1


def test_the_richer_stays_at_the_first_ones_place_with_what_both_knew() -> None:
    facts = [
        fact("Ana adopted a cat", event_date=date(2025, 2, 2), event_date_precision="day", confidence=0.95),
        fact("Ana works at Vertix"),
        fact("Ana adopted a black cat called Nilo", confidence=0.6),
    ]
    vectors = VectorCache([item.text for item in facts], np.array([[1, 0], [0, 1], [0.99, 0.1]], dtype=np.float32))
    kept, _ = semantic_dedup(facts, vectors, 0.85)
    assert [item.text for item in kept] == ["Ana adopted a black cat called Nilo", "Ana works at Vertix"]
    assert kept[0].event_date == date(2025, 2, 2)  # DAT-11
    assert kept[0].confidence == 0.95


def test_an_elaboration_may_be_further_away_but_not_any_distance() -> None:
    facts = [fact("Ana paints the room"), fact("Ana paints the room green")]
    assert len(semantic_dedup(facts, near(*facts, cosine=0.75), 0.85)[0]) == 1
    assert len(semantic_dedup(facts, near(*facts, cosine=0.6), 0.85)[0]) == 2
    other = [fact("Ana paints the room"), fact("Ana cleans the whole room")]
    assert len(semantic_dedup(other, near(*other, cosine=0.75), 0.85)[0]) == 2


def test_three_of_a_kind_and_a_fact_without_vector() -> None:
    facts = [
        fact("Ana lives in Leeds"),
        fact("Ana resides in Leeds"),
        fact("Ana is living in Leeds now"),
        fact("Ana sings"),
    ]
    kept, dropped = semantic_dedup(facts, near(*facts[:3], cosine=0.97), 0.85)
    assert len(kept) == 2
    assert len(dropped) == 2
    assert kept[-1].text == "Ana sings"


def test_zero_vectors_and_nothing_at_all() -> None:
    facts = [fact("Ana lives in Leeds"), fact("Ana resides in Leeds")]
    zeros = VectorCache([item.text for item in facts], np.zeros((2, 4), dtype=np.float32))
    assert semantic_dedup(facts, zeros, 0.85) == (facts, [])
    assert semantic_dedup([], VectorCache(), 0.85) == ([], [])
