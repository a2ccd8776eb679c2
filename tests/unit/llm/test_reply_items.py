"""Single items of a reply: every value that a model may put where another was asked for."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from worker.llm.items import Emotion, ParsedExtraction
from worker.llm.provider import ModelError
from worker.llm.replies import parse_emotion, parse_extraction

FACT = {"subject": "Bruna", "text": "Bruna mora em Maceió", "action": "NEW"}


def extract(reply: Any, speaker: str = "Bruna", **options: Any) -> ParsedExtraction:
    return parse_extraction(
        reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False), speaker, **options
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"confidence_level": "explicit_statement"}, 0.95),
        ({"confidence_level": "Strong Inference"}, 0.80),
        ({"confidence_level": "weak-inference"}, 0.60),
        ({"confidence_level": "speculation"}, 0.40),
        ({"confidence_level": "certain"}, 0.60),
        ({}, 0.60),
        ({"confidence": 0.37}, 0.37),
        ({"confidence": "0.5"}, 0.5),
        ({"confidence_level": 0.2}, 0.2),
        ({"confidence": 0}, 0.0),
        ({"confidence": 95}, 0.60),
        ({"confidence": -1}, 0.60),
        ({"confidence": True}, 0.60),
        ({"confidence": "high"}, 0.60),
        ({"confidence": None}, 0.60),
        ({"confidence": [1]}, 0.60),
    ],
)
def test_confidence(given: dict[str, Any], expected: float) -> None:
    assert extract({"facts": [{**FACT, **given}]}).facts[0].confidence == expected


def test_confidence_not_a_number() -> None:
    parsed = extract('{"facts": [{"subject": "B", "text": "B sings", "confidence": NaN}]}')
    assert parsed.facts[0].confidence == 0.60


@pytest.mark.parametrize(
    ("category", "number"),
    [
        ("biographical_milestone", 0.95),
        ("Stable Preference", 0.75),
        ("conversational", 0.30),
        ("huge", 0.50),
        (None, 0.50),
        (3, 0.50),
    ],
)
def test_importance(category: Any, number: float) -> None:
    assert extract({"facts": [{**FACT, "importance_category": category}]}).facts[0].importance == number


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("NEW", "NEW"),
        ("update ", "UPDATE"),
        ("action=UPDATE", "UPDATE"),
        (None, "NEW"),
        ("MERGE", "NEW"),
        (7, "NEW"),
        ("add", "NEW"),
    ],
)
def test_action(action: Any, expected: str) -> None:
    assert extract({"facts": [{**FACT, "action": action}]}).facts[0].action == expected


@pytest.mark.parametrize(
    ("given", "precision", "expected"),
    [
        ("2024-05-17", "day", (date(2024, 5, 17), "day")),
        ("2024-05-17", None, (date(2024, 5, 17), "day")),
        ("2024-05-17T10:00:00Z", None, (date(2024, 5, 17), "day")),
        ("2024-05-01", "month", (date(2024, 5, 1), "month")),
        ("2024-05", None, (date(2024, 5, 1), "month")),
        ("2024-05", "day", (date(2024, 5, 1), "month")),
        ("2024", "day", (date(2024, 1, 1), "year")),
        (2024, None, (date(2024, 1, 1), "year")),
        ("2024-13-40", "day", (None, None)),
        ("2023-02-29", "day", (None, None)),
        ("yesterday", "day", (None, None)),
        ("0000", None, (None, None)),
        ("", "day", (None, None)),
        (["2024"], None, (None, None)),
        (None, "day", (None, None)),
    ],
)
def test_event_date(given: Any, precision: Any, expected: tuple[Any, Any]) -> None:
    fact = extract({"facts": [{**FACT, "event_date": given, "event_date_precision": precision}]}).facts[0]
    assert (fact.event_date, fact.event_date_precision) == expected


def test_names_are_put_on_one_line_and_blank_ones_dropped() -> None:
    parsed = extract(
        {
            "entities": [
                {
                    "name": "Clara\n  Rezende",
                    "type": "PERSON",
                    "aliases": ["Clara", "", None, " Clara ", "Clara Rezende", 3],
                },
                {"name": "  ", "type": "person"},
                {"name": None, "type": "person"},
                {"name": 42, "type": "person"},
                {"type": "person"},
                {"name": "🦊", "type": "pet"},
                {"name": "Na", "type": "person"},
                "Olinda",
                None,
            ]
        }
    )
    assert [(e.name, e.type, e.aliases) for e in parsed.entities] == [
        ("Clara Rezende", "person", ["Clara"]),
        ("🦊", "pet", []),
        ("Na", "person", []),
        ("Olinda", "concept", []),
    ]
    assert [r.reason for r in parsed.rejects if r.kind == "entity"] == [
        "blank_name", "blank_name", "wrong_type", "blank_name", "wrong_type",
    ]  # fmt: skip


def test_a_fact_without_a_subject_is_about_the_speaker_and_one_with_a_number_is_dropped() -> None:
    reply = {"facts": [{"text": "gosta de chá"}, {"subject": " ", "text": "nada"}, {"subject": 3, "text": "corre"}]}
    parsed = extract(reply)
    assert [fact.subject for fact in parsed.facts] == ["Bruna", "Bruna"]
    assert [reject.reason for reject in parsed.rejects] == ["wrong_type"]


def test_relations_in_other_shapes() -> None:
    parsed = extract(
        {
            "relations": [
                {"source": "A", "target": "B", "type": "works_at"},
                {"from": "A", "to": "C", "relation": "knows"},
                ["A", "owns", "D"],
                "A -> lives_in -> E",
                {"source": "A", "target": None, "rel_type": "knows"},
                {"source": "A", "target": "B", "rel_type": ""},
                "A knows B",
            ]
        }
    )
    assert [(r.source, r.rel_type, r.target) for r in parsed.relations] == [
        ("A", "works_at", "B"),
        ("A", "knows", "C"),
        ("A", "owns", "D"),
        ("A", "lives_in", "E"),
    ]
    assert [reject.reason for reject in parsed.rejects] == ["missing_end", "blank_rel_type", "wrong_type"]


def test_profiles_as_a_map() -> None:
    parsed = extract(
        {"facts": [], "updated_profiles": {"Clara Rezende": "Head of engineering.", "Léo": None, "Ana": "..."}}
    )
    assert [(p.name, p.profile_text) for p in parsed.profiles] == [("Clara Rezende", "Head of engineering.")]
    assert parsed.repairs == {"map_for_list": 1}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"primary": "Joy", "intensity": 0.5, "energy_level": "HIGH"},
            Emotion(primary="joy", intensity=0.5, energy_level="high"),
        ),
        ({"primary": "ecstatic", "intensity": 7, "energy_level": "max"}, Emotion(primary="neutral", intensity=1.0)),
        ({"primary": "anger", "intensity": -2}, Emotion(primary="anger", intensity=0.0)),
        ({"primary": "fear", "intensity": "0.3"}, Emotion(primary="fear", intensity=0.3)),
        ("sadness", Emotion(primary="sadness")),
        ([{"primary": "trust", "intensity": None}], Emotion(primary="trust")),
        ({"primary": None}, Emotion()),
        (5, Emotion()),
    ],
)
def test_emotion_values_are_validated(given: Any, expected: Emotion) -> None:
    assert extract({"facts": [], "emotion": given}).emotion == expected


def test_emotion_task() -> None:
    assert parse_emotion('{"emotion": {"primary": "joy"}}').primary == "joy"
    assert parse_emotion('```{"primary": "fear", "intensity": 0.2}```').primary == "fear"
    with pytest.raises(ModelError, match="no_json"):
        parse_emotion("It sounds sad.")


def test_batches_cite_messages_by_number() -> None:
    reply = {
        "facts": [
            {"message_number": 2, "text": "gosta de chá"},
            {"message_number": "1", "subject": "Ana", "text": "Ana nada"},
            {"message_number": 9, "subject": "Ana", "text": "Ana corre"},
            {"subject": "Ana", "text": "Ana dorme"},
        ],
        "relations": [{"message_number": 1, "source": "Ana", "target": "Léo", "rel_type": "knows"}],
        "emotions": [
            {"message_number": 1, "primary": "joy", "intensity": 0.5, "energy_level": "low"},
            {"message_number": 7, "primary": "joy"},
        ],
    }
    parsed = extract(reply, speakers={1: "Ana", 2: "Bia"})
    assert [(f.message_number, f.subject) for f in parsed.facts] == [(2, "Bia"), (1, "Ana")]
    assert parsed.relations[0].message_number == 1
    assert parsed.emotions == {1: Emotion(primary="joy", intensity=0.5, energy_level="low")}
    assert {(r.kind, r.reason) for r in parsed.rejects} == {
        ("fact", "unknown_message_number"),
        ("emotion", "unknown_message_number"),
    }
