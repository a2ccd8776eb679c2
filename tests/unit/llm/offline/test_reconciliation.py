"""What a new plain fact does to the ones that stand, in and across both languages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.llm.offline.asking import TUESDAY, ask, decide


@pytest.mark.parametrize(
    ("new", "old", "action"),
    [
        ("Bruna lives in Recife", "Bruna mora em Recife", "NOOP"),
        ("Bruna mora em Natal", "Bruna mora em Recife", "UPDATE"),
        ("Bruna moved to Austin", "Bruna mora em São Paulo", "UPDATE"),
        ("Bruna se mudou para Natal", "Bruna lives in Recife", "UPDATE"),
        ("Bruna joined Orion as an analyst", "Bruna works at Vertix", "UPDATE"),
        ("Bruna foi para a Nortec como gerente", "Bruna trabalha na Vértice", "UPDATE"),
        ("Bruna left Vertix", "Bruna works at Vertix", "DELETE"),
        ("Bruna saiu da Vertix", "Bruna works at Vertix", "DELETE"),
        ("Bruna no longer works at Vertix", "Bruna works at Vertix as an engineer", "DELETE"),
        ("Bruna left Vertix", "Bruna works at Orion", "ADD"),
        ("Bruna não mora mais em Campinas", "Bruna mora em Campinas", "DELETE"),
        ("Bruna does not live in Dublin anymore", "Bruna lives in Dublin", "DELETE"),
        ("Bruna likes coffee", "Bruna likes tea", "ADD"),
        ("Bruna gosta de café", "Bruna likes coffee", "NOOP"),
        ("Bruna hates coffee", "Bruna likes coffee", "UPDATE"),
        ("Bruna does not like coffee", "Bruna gosta de café", "UPDATE"),
        ("Bruna no longer likes tea, prefers coffee", "Bruna likes tea", "UPDATE"),
        ("Bruna não gosta mais de chá", "Bruna gosta de chá", "DELETE"),
        ("Bruna sold the car", "Bruna has a car", "UPDATE"),
        ("Bruna broke up with Pedro", "Bruna is dating Pedro", "DELETE"),
        ("Bruna terminou com o Pedro", "Bruna namora o Pedro", "DELETE"),
        ("Bruna married Pedro", "Bruna is dating Pedro", "UPDATE"),
        ("Bruna is 35 years old", "Bruna tem 34 anos", "UPDATE"),
        ("Bruna is 34", "Bruna tem 34 anos", "NOOP"),
        ("Bruna's favourite color is green", "Bruna's favourite color is blue", "UPDATE"),
        ("Bruna's favourite band is Muse", "Bruna's favourite color is blue", "ADD"),
        ("Bruna has a cat", "Bruna has a dog", "ADD"),
        ("Bruna speaks French", "Bruna speaks Italian", "ADD"),
        ("Bruna nunca fumou", "Bruna fuma", "UPDATE"),
        ("Bruna plays the drums", "Bruna plays chess", "ADD"),
        ("Bruna was born in Olinda", "Bruna lives in Olinda", "ADD"),
        ("Bruna is vegan", "Bruna is vegetarian", "UPDATE"),
        ("Bruna weighs 80 kg", "Bruna likes jazz", "ADD"),
    ],
)
def test_action(new: str, old: str, action: str) -> None:
    assert decide(new, old) == (action, None if action == "ADD" else 1)


def test_the_right_one_of_several_is_cited() -> None:
    existing = ("Bruna likes tea", "Bruna works at Vertix", "Bruna lives in Recife")
    assert decide("Bruna moved to Natal", *existing) == ("UPDATE", 3)
    assert decide("Bruna left Vertix", *existing) == ("DELETE", 2)
    assert decide("Bruna runs marathons", *existing) == ("ADD", None)


def test_what_cannot_hold_at_once_is_an_update_whatever_came_first() -> None:
    """The pipeline places a version in time; the reader judges by content only, also for late history."""
    fact: dict[str, Any] = {
        "number": 7,
        "subject": "Bruna",
        "text": "Bruna mora em Recife",
        "confidence": 0.95,
        "existing": [{"number": 2, "text": "Bruna mora em Natal", "since": "2024-06-01", "until": None}],
    }
    reply = ask("reconciliation", {"message_date": "2020-01-01 (Wednesday)", "facts": [fact]})
    decision = reply["decisions"][0]
    assert (decision["fact_number"], decision["action"], decision["existing_number"]) == (7, "UPDATE", 2)


def test_a_closed_later_version_counts_like_an_open_one() -> None:
    fact: dict[str, Any] = {
        "number": 1,
        "subject": "Bruna",
        "text": "Bruna mora em Olinda",
        "confidence": 0.95,
        "existing": [{"number": 1, "text": "Bruna mora em Recife", "since": "2020-01-01", "until": "2022-01-01"}],
    }
    assert ask("reconciliation", {"message_date": TUESDAY, "facts": [fact]})["decisions"][0]["action"] == "UPDATE"


def test_a_bare_ending_of_nothing_known_is_a_retraction() -> None:
    assert decide("Bruna no longer works at Vertix") == ("DELETE", None)
