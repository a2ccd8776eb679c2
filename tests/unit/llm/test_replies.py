"""The tolerant parser, by the kinds of broken replies that models are known to send."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from worker.llm.items import Emotion, ExtractedEntity, ParsedExtraction
from worker.llm.provider import Cause, ModelError
from worker.llm.replies import parse_extraction


def extract(reply: Any, speaker: str = "Bruna", **options: Any) -> ParsedExtraction:
    return parse_extraction(
        reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False), speaker, **options
    )


def texts(parsed: ParsedExtraction) -> list[str]:
    return [fact.text for fact in parsed.facts]


def refused(reply: Any, **options: Any) -> str:
    with pytest.raises(ModelError) as caught:
        extract(reply, **options)
    assert caught.value.cause is Cause.BAD_REPLY
    return caught.value.detail


FACT = {"subject": "Bruna", "text": "Bruna mora em Maceió", "action": "NEW"}
OTHER = {"subject": "Léo", "text": "Léo é primo da Bruna", "action": "NEW"}


def test_a_whole_reply_is_read_without_repairs() -> None:
    reply = {
        "entities": [{"name": "Clara Rezende", "type": "Person", "aliases": ["Clara"]}],
        "facts": [
            {
                "subject": "Clara Rezende",
                "text": "Clara Rezende joined Orion Tech as head of engineering",
                "action": "UPDATE",
                "confidence_level": "explicit_statement",
                "importance_category": "relationship_change",
                "event_date": "2025-06-14",
                "event_date_precision": "day",
                "attribute_key": "work.employer",
                "value": "Orion Tech",
            }
        ],
        "relations": [{"source": "Clara Rezende", "target": "Orion Tech", "rel_type": "works_at"}],
        "updated_profiles": [{"name": "Clara Rezende", "profile_text": "Head of engineering at Orion Tech."}],
        "emotion": {"primary": "joy", "intensity": 0.4, "energy_level": "high"},
    }
    parsed = extract(reply)
    assert parsed.repairs == {}
    assert parsed.rejects == []
    assert parsed.entities == [ExtractedEntity(name="Clara Rezende", type="person", aliases=["Clara"])]
    (fact,) = parsed.facts
    assert (fact.action, fact.confidence, fact.importance) == ("UPDATE", 0.95, 0.90)
    assert (fact.event_date, fact.event_date_precision) == (date(2025, 6, 14), "day")
    assert (fact.attribute_key, fact.value) == ("work.employer", "Orion Tech")
    assert parsed.relations[0].rel_type == "works_at"
    assert parsed.profiles[0].profile_text == "Head of engineering at Orion Tech."
    assert parsed.emotion == Emotion(primary="joy", intensity=0.4, energy_level="high")
    assert ParsedExtraction.model_validate_json(parsed.model_dump_json()) == parsed


def test_jsn_01_a_cut_reply_keeps_its_whole_items_and_drops_the_half_one() -> None:
    reply = (
        '```json\n{"entities":[{"name":"Bruna","type":"person"}],"facts":[{"subject":"Bruna",'
        '"text":"Bruna mora em Maceió","action":"NEW"},{"subject":"Bru'
    )
    parsed = extract(reply)
    assert texts(parsed) == ["Bruna mora em Maceió"]
    assert [entity.name for entity in parsed.entities] == ["Bruna"]
    assert parsed.cut


@pytest.mark.parametrize("cut", range(30, 150, 7))
def test_jsn_01_no_half_sentence_ever_becomes_a_fact(cut: int) -> None:
    whole = json.dumps({"facts": [FACT, OTHER]}, ensure_ascii=False)
    first_ends = whole.index("}") + 1
    if cut < first_ends:
        assert refused(whole[:cut]) == "cut_empty"
    else:
        assert texts(extract(whole[:cut])) == ["Bruna mora em Maceió", "Léo é primo da Bruna"][: whole[:cut].count("}")]


def test_jsn_01_a_cut_profile_map_and_a_cut_list_of_strings_lose_the_half_string() -> None:
    parsed = extract('{"facts": ["Bruna mora em Maceió", "Bruna tem um ga')
    assert texts(parsed) == ["Bruna mora em Maceió"]
    parsed = extract(
        '{"facts": ["Bruna mora em Maceió"], "updated_profiles": {"Bruna": "Lives in Maceió.", "Léo": "Is a cou'
    )
    assert [profile.name for profile in parsed.profiles] == ["Bruna"]


def test_jsn_02_backticks_inside_a_string_stay() -> None:
    reply = '```json\n{"facts":[{"subject":"Bruna","text":"Bruna usa ```pip install x``` no CI","action":"NEW"}]}\n```'
    parsed = extract(reply)
    assert texts(parsed) == ["Bruna usa ```pip install x``` no CI"]
    assert parsed.repairs == {"fence_removed": 1}


def test_jsn_02_a_fence_inside_a_string_of_an_unfenced_reply() -> None:
    assert texts(extract({"facts": [{"subject": "B", "text": 'B sent ```json {"a": 1}``` to C'}]})) == [
        'B sent ```json {"a": 1}``` to C'
    ]


@pytest.mark.parametrize(
    "frame",
    [
        "```json\n%s\n```",
        "```\n%s\n```\nLet me know if you need more!",
        "Sure! Here is the [JSON] for {Bruna}:\n```json\n%s\n```",
        "Here you are: %s Hope this helps :-}",
        "\ufeff  %s  ",
        '<think>Maybe {"facts": [{"subject": "X", "text": "X is wrong"}]}?</think>\n%s',
        "json\n%s",
    ],
)
def test_prose_fences_and_reasoning_around_the_json_are_dropped(frame: str) -> None:
    parsed = extract(frame % json.dumps({"facts": [FACT]}, ensure_ascii=False))
    assert texts(parsed) == ["Bruna mora em Maceió"]


def test_jsn_05_strings_and_keys_and_other_names_where_fact_objects_should_be() -> None:
    parsed = extract('{"facts":["Bruna mora em Maceió",{"Bruna tem um gato":""},{"fact":"Bruna nada"}]}')
    assert texts(parsed) == ["Bruna mora em Maceió", "Bruna tem um gato", "Bruna nada"]
    assert {fact.subject for fact in parsed.facts} == {"Bruna"}
    assert parsed.repairs["string_item"] == 1
    assert parsed.repairs["key_as_fact"] == 1
    assert parsed.repairs["renamed_key"] == 1
    assert parsed.repairs["missing_subject"] == 3


@pytest.mark.parametrize(
    "echo",
    [
        '{"$defs":{"F":{"type":"object"}},"properties":{"facts":{"type":"array"}},"type":"object"}',
        '{"facts": {"type": "array", "items": {"$ref": "#/$defs/F"}}}',
        '{"type": "object", "properties": {"entities": {"type": "array"}}, "required": ["entities"]}',
        '[{"type": "object", "properties": {"entities": {"type": "array"}}}]',
        '```json\n{"$schema": "https://json-schema.org/x", "type": "object", "properties": {}}\n```',
        '{"entities": {"type": "array"}, "facts": {"type": "array"}, "emotion": {"type": "object"}}',
    ],
)
def test_jsn_06_a_schema_echo_is_a_failure_and_not_zero_facts(echo: str) -> None:
    assert refused(echo) == "schema_echo"


def test_jsn_06_data_under_properties_is_data() -> None:
    assert texts(extract({"type": "object", "properties": {"facts": [FACT]}})) == ["Bruna mora em Maceió"]


def test_jsn_08_a_list_at_the_top_is_unwrapped() -> None:
    parsed = extract([{"facts": [FACT]}])
    assert texts(parsed) == ["Bruna mora em Maceió"]
    assert parsed.repairs == {"list_at_top": 1}


@pytest.mark.parametrize(
    "reply",
    [
        [FACT, OTHER],
        [{"facts": [FACT]}, {"facts": [OTHER]}],
        {"result": {"facts": [FACT, OTHER]}},
        {"response": json.dumps({"facts": [FACT, OTHER]})},
        {"Facts": [FACT, OTHER]},
        {"facts": {"1": FACT, "2": OTHER}},
        {"facts": [[FACT, OTHER]]},
        json.dumps({"facts": [FACT]}) + "\n" + json.dumps({"facts": [OTHER]}),
        json.dumps(FACT) + "\n" + json.dumps(OTHER),
        f'{{"facts": [{json.dumps(FACT)}], "facts": [{json.dumps(OTHER)}]}}',
        str({"facts": [FACT, OTHER]}),
        json.dumps({"facts": [FACT, OTHER]})[:-2] + ",]}",
    ],
)
def test_both_facts_are_found_whatever_the_whole_looks_like(reply: Any) -> None:
    assert texts(extract(reply)) == [FACT["text"], OTHER["text"]]


def test_jsn_11_degenerate_texts_are_rejected_with_their_reasons() -> None:
    reply = {"facts": [{**FACT, "text": text} for text in ("...", "-", "", "  ", "N/A", "…", None, "\u200b")]}
    parsed = extract(reply)
    assert parsed.facts == []
    assert [reject.reason for reject in parsed.rejects] == [
        "degenerate_text", "degenerate_text", "empty_text", "empty_text", "degenerate_text", "degenerate_text",
        "empty_text", "degenerate_text",
    ]  # fmt: skip


def test_los_06_a_rejected_fact_shifts_nothing() -> None:
    reply = {
        "facts": [
            {"subject": "Bruna", "text": "...", "confidence": 0.1},
            {"subject": "Bruna", "text": "Bruna nasceu em Olinda", "confidence": 0.9},
            {"subject": "Léo", "text": "Léo é primo da Bruna", "confidence": 0.7},
        ]
    }
    parsed = extract(reply)
    assert [(f.subject, f.text, f.confidence) for f in parsed.facts] == [
        ("Bruna", "Bruna nasceu em Olinda", 0.9),
        ("Léo", "Léo é primo da Bruna", 0.7),
    ]
    assert [(reject.kind, reject.index) for reject in parsed.rejects] == [("fact", 0)]


@pytest.mark.parametrize(
    "reply", ["Claro! Anotado.", "", "   ", "null", "42", '"Anotado"', "I am sorry {name}.", "[note]", "{"]
)
def test_los_04_no_json_is_a_failure(reply: str) -> None:
    assert refused(reply) in ("no_json", "wrong_shape", "cut_empty")


@pytest.mark.parametrize(
    "reply", [{}, {"facts": 5}, {"error": "overloaded"}, {"message": "ok"}, [1, 2], {"facts": True}]
)
def test_json_without_anything_that_was_asked_for_is_a_failure(reply: Any) -> None:
    assert refused(reply) == "wrong_shape"


@pytest.mark.parametrize(
    "reply", [{"facts": []}, {"facts": None, "entities": None}, [], {"entities": [], "emotion": None}]
)
def test_nothing_found_is_no_failure(reply: Any) -> None:
    parsed = extract(reply)
    assert (parsed.entities, parsed.facts, parsed.relations, parsed.profiles) == ([], [], [], [])


def test_a_quote_too_many_costs_neither_its_neighbour_nor_its_own_sentence() -> None:
    reply = (
        '{"facts":[{"subject":"Ana","text":"Ana mede 5" a mais"},{"subject":"Bia","text":"Bia mora em Natal"},'
        '{"subject":"Caio","text":"Caio disse "oi" ontem"}]}'
    )
    parsed = extract(reply)
    assert "Bia mora em Natal" in texts(parsed)
    assert 'Ana mede 5" a mais' in texts(parsed)
    assert not any("subject" in text for text in texts(parsed))


def test_chr_02_nul_and_lone_surrogates_never_come_through() -> None:
    parsed = extract(
        '{"facts": [{"subject": "Bru\\u0000na", "text": "Bruna diz \\ud83d <|endoftext|> \\ud83d\\ude00 oi"}]}'
    )
    assert (parsed.facts[0].subject, parsed.facts[0].text) == ("Bruna", "Bruna diz <|endoftext|> 😀 oi")
    parsed.model_dump_json().encode("utf-8")


def test_rejects_and_repairs_never_quote_the_reply() -> None:
    parsed = extract(
        {"facts": [{"subject": "SECRET", "text": None}, {"SECRET": ["x"]}], "entities": [{"name": ["SECRET"]}]}
    )
    assert parsed.rejects
    assert "SECRET" not in json.dumps([reject.model_dump() for reject in parsed.rejects]) + json.dumps(parsed.repairs)


def test_runaway_replies_end_quickly() -> None:
    assert refused("[" * 50_000) in ("no_json", "wrong_shape", "cut_empty")
    assert refused('{"a":' * 20_000) in ("no_json", "wrong_shape", "cut_empty")
    assert refused("x" * 2_000_000) == "too_long"
    assert refused('{"facts":["' + '"x ' * 100_000) == "no_json"
    many = {"facts": [{"subject": "B", "text": f"B counts {n}"} for n in range(2000)]}
    assert len(extract(json.dumps(many)[:-10]).facts) == 1999
