"""JSN: replies that are not what was asked for, each over HTTP and through the whole pipeline to what is stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases.conftest import Memory
from tests.cases.replies import entity, extraction, fact
from tests.scripted_model import EMBEDDING

SAID = "Moro em Maceió."
LIVES = {"subject": "Bruna", "text": "Bruna mora em Maceió", "action": "NEW", "confidence": 0.95}


def blind(memory: Memory, text: str = "Bruna mora em Maceió") -> None:
    """Script a blind fallback that works."""
    memory.model.on("entity_scan", {"entities": [entity("Bruna"), entity("Maceió", "place")]})
    memory.model.on("fact_extraction", {"facts": [fact("Bruna", text)]})
    memory.model.on("relation_extraction", {"relations": []})
    memory.model.on("emotion", {"emotion": {"primary": "joy", "intensity": 0.5, "energy_level": "high"}})


@pytest.mark.parametrize(
    "raw",
    [
        '```json\n{"entities":[{"name":"Bruna","type":"person"}],"facts":[{"subject":"Bruna","text":"Bruna mora em '
        'Maceió","action":"NEW"},{"subject":"Bru',
        '{"facts":[{"subject":"Bruna","text":"Bruna mora em Maceió","action":"NEW"},{"subject":"Bruna","text":"Br',
        'Claro:\n```\n[{"subject":"Bruna","text":"Bruna mora em Maceió","action":"NEW"},',
    ],
)
def test_jsn_01_of_a_cut_reply_the_whole_items_stay(memory: Memory, raw: str) -> None:
    memory.model.on("informed_extraction", raw)
    result = memory.write(SAID)
    assert memory.texts() == ["Bruna mora em Maceió"]
    assert result.repairs["cut_reply"] == 1


def test_jsn_01_cut_before_its_first_item_it_is_asked_again(memory: Memory) -> None:
    memory.model.queue(
        "informed_extraction", '```json\n{"facts":[{"subject":"Bru', extraction([LIVES], [entity("Bruna")])
    )
    assert memory.write(SAID).status == "ok"
    assert memory.texts() == ["Bruna mora em Maceió"]
    assert memory.model.count("informed_extraction") == 2


@pytest.mark.parametrize("text", ["Bruna usa ```pip install x``` no CI", "Bruna usa `pip` e ```json {}``` no CI"])
@pytest.mark.parametrize("frame", ["```json\n%s\n```", "%s", "Pronto!\n```\n%s\n```\nMais alguma coisa?"])
def test_jsn_02_backticks_inside_a_string_stay(memory: Memory, text: str, frame: str) -> None:
    whole = json.dumps({"facts": [{"subject": "Bruna", "text": text, "action": "NEW"}]})
    memory.model.on("informed_extraction", frame % whole)
    memory.write(text.replace("Bruna usa", "Uso"))
    assert memory.texts() == [text]


def test_jsn_05_strings_and_keys_become_facts_about_the_speaker(memory: Memory) -> None:
    memory.model.on(
        "informed_extraction", '{"facts":["Bruna mora em Maceió",{"Bruna tem um gato":""},{"fact":"Bruna nada"}]}'
    )
    result = memory.write("Moro em Maceió, tenho um gato e nado.")
    assert memory.texts() == ["Bruna mora em Maceió", "Bruna nada", "Bruna tem um gato"]
    assert {row["entity_key"] for row in memory.facts()} == {"person:bruna"}
    assert (result.repairs["string_item"], result.repairs["key_as_fact"], result.repairs["missing_subject"]) == (
        1,
        1,
        3,
    )


def test_jsn_05_what_is_nothing_at_all_is_rejected_and_costs_no_neighbour(memory: Memory) -> None:
    bad: list[Any] = [None, 7, [], {"subject": "Bruna"}, {"subject": 3, "text": "x"}, True, {"text": ["a"]}]
    memory.model.on("informed_extraction", {"facts": [*bad, LIVES], "entities": [None, {"name": None}, "Bruna"]})
    result = memory.write(SAID)
    assert memory.texts() == ["Bruna mora em Maceió"]
    assert len([item for item in result.rejected if item.kind == "fact"]) == len(bad)
    assert result.status == "ok"


@pytest.mark.parametrize(
    "raw",
    [
        '{"$defs":{"F":{"type":"object"}},"properties":{"facts":{"type":"array"}},"type":"object"}',
        '{"type":"object","required":["facts"],"properties":{"facts":{"type":"array","items":{"type":"object"}}}}',
        '```json\n{"facts": {"type": "array", "items": {"$ref": "#/$defs/F"}}}\n```',
    ],
)
def test_jsn_06_an_echo_of_the_schema_falls_back_and_is_no_emptiness(memory: Memory, raw: str) -> None:
    memory.model.on("informed_extraction", raw)
    blind(memory)
    result = memory.write(SAID)
    assert memory.texts() == ["Bruna mora em Maceió"]
    assert result.status == "degraded"
    assert [(item.fell_back_to, item.cause) for item in result.degradations] == [("blind", "bad_reply")]
    assert memory.model.count("informed_extraction") == 2


@pytest.mark.parametrize(
    "value",
    [
        [{"facts": [LIVES]}],
        [LIVES],
        [[{"facts": [LIVES]}]],
        {"result": {"facts": [LIVES]}},
        {"facts": {"0": LIVES}},
        [{"entities": [entity("Bruna")]}, {"facts": [LIVES]}],
        json.dumps({"facts": [LIVES]}),
    ],
)
def test_jsn_08_a_list_at_the_top_is_unwrapped(memory: Memory, value: Any) -> None:
    memory.model.on("informed_extraction", json.dumps(value))
    memory.write(SAID)
    assert memory.texts() == ["Bruna mora em Maceió"]


@pytest.mark.parametrize(
    ("raw", "updated", "counted"),
    [
        ('action="UPDATE"', True, None),
        ('{"decision":"Update "}', True, None),
        ('{"decisions":[{"fact_number":1,"action":" update","existing_number":1}]}', True, "enum_drift"),
        ('{"decision":"MERGE"}', False, "unknown_action"),
        ('{"decisions":[{"fact_number":1,"action":"action=keep","existing_number":1}]}', False, "unknown_action"),
        ('{"decisions":[{"fact_number":1,"action":null,"existing_number":1}]}', False, "unknown_action"),
    ],
)
def test_jsn_10_drifting_actions_are_read_and_unknown_ones_add(
    memory: Memory, raw: str, updated: bool, counted: str | None
) -> None:
    old, new = "Bruna mora em Maceió", "Bruna mora em Olinda"
    for text, vector in ((old, [1.0, 0.0]), (new, [0.7, 0.714])):
        memory.model.vector(text, vector + [0.0] * 382)
    memory.model.queue(
        "informed_extraction",
        extraction([fact("Bruna", old)], [entity("Bruna")]),
        extraction([fact("Bruna", new)], [entity("Bruna")]),
    )
    memory.model.on("reconciliation", raw)
    memory.write(SAID)
    result = memory.write("Moro em Olinda.", at="2025-04-01T10:00:00+00:00")
    assert memory.model.count("reconciliation") == 1
    assert memory.texts() == ([new] if updated else [old, new])
    if counted:
        assert result.repairs[counted] == 1


def test_jsn_11_what_says_nothing_is_rejected_before_it_is_embedded(memory: Memory) -> None:
    texts = ["...", "-", "", "  ", "—", "N/A", "null", "\u200b", "？"]
    facts = [{"subject": "Bruna", "text": text, "action": "NEW", "confidence": 0.95} for text in texts]
    memory.model.on("informed_extraction", extraction(facts))
    result = memory.write(SAID)
    assert (result.status, memory.texts(0)) == ("empty", [])
    assert len([item for item in result.rejected if item.kind == "fact"]) == len(texts)
    embedded = [text for call in memory.model.calls if call.task == EMBEDDING for text in call.payload["texts"]]
    assert embedded == [SAID]
