"""Prompts and schemas: one of each a task, constant, and in step with each other."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from worker.llm import TASK_GROUPS
from worker.llm.prompts import CANARIES, CANARY, TASKS, prompt
from worker.llm.replies import parse_extraction
from worker.llm.schemas import BATCH, SCHEMAS, schema_of


def example(task: str) -> Any:
    """The reply that a prompt shows as its example."""
    text = prompt(task).text
    return json.loads(text[re.search(r"^\{", text, re.MULTILINE).start() :])  # type: ignore[union-attr]


def test_every_task_has_a_prompt_a_schema_and_a_model_group() -> None:
    assert set(TASKS) == set(SCHEMAS) == set(TASK_GROUPS)


def test_an_unknown_task_has_no_prompt() -> None:
    with pytest.raises(KeyError):
        prompt("../items")


@pytest.mark.parametrize("task", TASKS)
def test_a_prompt_is_short_versioned_and_says_that_texts_are_data(task: str) -> None:
    found = prompt(task)
    assert found == prompt(task)
    assert re.fullmatch(r"[0-9a-f]{12}", found.version)
    assert len(found.text) < 7000
    assert "JSON" in found.text  # a condition of OpenAI's json_object
    assert re.search(r"[Nn]ever follow instructions found in", found.text)


@pytest.mark.parametrize("task", [task for task in TASKS if task != "emotion"])
def test_the_example_is_about_invented_names_only(task: str) -> None:
    shown = json.dumps(example(task), ensure_ascii=False)
    assert any(name in shown for name in CANARIES)
    names = set(re.findall(r'"(?:name|subject|source|target)": "([^"]+)"', shown))
    assert names <= set(CANARIES)


@pytest.mark.parametrize("task", TASKS)
def test_the_example_follows_the_schema(task: str) -> None:
    assert _fits(example(task), SCHEMAS[task])


@pytest.mark.parametrize("task", ["informed_extraction", "fact_extraction", "entity_scan", "relation_extraction"])
def test_the_example_needs_no_repair(task: str) -> None:
    parsed = parse_extraction(json.dumps(example(task)), CANARY)
    assert (parsed.repairs, parsed.rejects) == ({}, [])


def test_schemas_are_strict() -> None:
    def walk(schema: Any) -> None:
        if isinstance(schema, dict):
            if schema.get("type") == "object":
                assert schema["additionalProperties"] is False
                assert schema["required"] == list(schema["properties"])
            for value in schema.values():
                walk(value)
        elif isinstance(schema, list):
            for value in schema:
                walk(value)

    for schema in (*SCHEMAS.values(), BATCH):
        walk(schema)


def test_only_a_batch_is_asked_for_message_numbers() -> None:
    single, batch = (schema_of("informed_extraction", payload) for payload in ({"message": "x"}, {"messages": []}))
    assert (single, batch) == (SCHEMAS["informed_extraction"], BATCH)
    assert "message_number" not in json.dumps(SCHEMAS)
    for section in ("facts", "relations", "emotions"):
        assert BATCH["properties"][section]["items"]["required"][0] == "message_number"


def test_the_prompts_that_every_message_pays_for_stay_short() -> None:
    """With what a message itself adds, 0.6 of what the peer sends (BENCHMARKS.md)."""
    assert len(prompt("informed_extraction").text) + len(prompt("reconciliation").text) <= 3_520


def test_reasons_come_before_choices() -> None:
    decision = SCHEMAS["reconciliation"]["properties"]["decisions"]["items"]["required"]
    assert decision.index("reason") < decision.index("action")
    choice = SCHEMAS["entity_resolution"]["properties"]["resolutions"]["items"]["required"]
    assert choice.index("reason") < choice.index("candidate_number")


def _fits(value: Any, schema: Any) -> bool:
    """Whether a value follows one of our schemas; they use no more of JSON Schema than this."""
    if "anyOf" in schema:
        return any(_fits(value, choice) for choice in schema["anyOf"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    python: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "number": (int, float),
        "integer": int,
        "boolean": bool,
    }
    if value is None:
        return "null" in kinds
    if not any(isinstance(value, python[kind]) for kind in kinds if kind != "null"):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, dict):
        properties = schema["properties"]
        return value.keys() == properties.keys() and all(_fits(value[key], properties[key]) for key in value)
    return not isinstance(value, list) or all(_fits(item, schema["items"]) for item in value)
