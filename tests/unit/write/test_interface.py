"""``worker.write`` against the source's tables: names, parameters in order, defaults, fields (behaviour: 10)."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

import worker.write as write

REQUIRED = inspect.Parameter.empty

# Transcribed from the source's programming interface; keyword-only parameters of our own stand behind "*".
FUNCTIONS = {
    "run_write_pipeline": [
        ("session", REQUIRED), ("agent_id", REQUIRED), ("message", REQUIRED), ("llm", REQUIRED),
        ("embeddings", REQUIRED), ("config", REQUIRED), ("speaker_name", REQUIRED), ("source", "api"),
        ("recent_messages", None), ("trace", None), "*", ("occurred_at", None), ("dry_run", False),
        ("session_id", None),
    ],
    "classify_input": [("text", REQUIRED)],
    "select_strategy": [("classification", REQUIRED)],
    "normalize_key": [("raw", REQUIRED)],
    "validate_proposed_key": [("key", REQUIRED), ("extra_namespaces", None)],
    "canonicalize_attribute_key": [
        ("session", REQUIRED), ("agent_id", REQUIRED), ("raw_key", REQUIRED), ("config", REQUIRED),
    ],
    "create_or_update_entity": [
        ("session", REQUIRED), ("agent_id", REQUIRED), ("canonical_key", REQUIRED), ("display_name", None),
        ("entity_type", "other"),
    ],
    "get_entity_by_key": [("session", REQUIRED), ("agent_id", REQUIRED), ("canonical_key", REQUIRED)],
    "get_entities_for_user": [("session", REQUIRED), ("agent_id", REQUIRED), ("active_only", True)],
    "is_user_correction": [("old_fact", REQUIRED), ("new_fact", REQUIRED)],
    "detect_and_record_corrections": [("session", REQUIRED), ("agent_id", REQUIRED), ("saved_facts", REQUIRED)],
    "save_pending_selection": [
        ("agent_id", REQUIRED), ("intent", REQUIRED), ("transactions", REQUIRED), ("confirmation_text", REQUIRED),
        ("edit_params", None), "*", ("session", None),
    ],
    "save_pending_execution": [
        ("agent_id", REQUIRED), ("tool_calls", REQUIRED), ("search_result", REQUIRED), ("confirmation_text", REQUIRED),
        "*", ("session", None),
    ],
    "get_pending": [("agent_id", REQUIRED), "*", ("session", None)],
    "clear_pending": [("agent_id", REQUIRED), "*", ("session", None)],
}  # fmt: skip

FIELDS = {
    "InputClassification": [
        "input_type", "char_count", "estimated_tokens", "has_headers", "has_bullets", "has_tables", "section_count",
        "line_count",
    ],
    "ExtractionStrategy": ["mode", "reason", "max_tokens_per_call", "estimated_chunks", "chunk_context_hint"],
    "CorrectionResult": ["corrections_detected", "corrected_keys", "facts_corrected_ids"],
}  # fmt: skip

VALUES = {
    "InputType": {"short", "medium", "long", "structured"},
    "ExtractionMode": {"single_shot", "chunked"},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_what_the_source_says(name: str):
    found: list[object] = []
    for parameter in inspect.signature(getattr(write, name)).parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in found:
            found.append("*")
        found.append((parameter.name, parameter.default))
    assert found == FUNCTIONS[name]


@pytest.mark.parametrize("name", FIELDS)
def test_a_result_has_the_sources_fields(name: str):
    assert [field.name for field in dataclasses.fields(getattr(write, name))] == FIELDS[name]


@pytest.mark.parametrize("name", VALUES)
def test_an_enumeration_has_the_sources_values(name: str):
    assert {member.value for member in getattr(write, name)} == VALUES[name]


def test_nothing_else_is_public_and_nothing_is_missing():
    assert set(write.__all__) == {*FUNCTIONS, *FIELDS, *VALUES}
    with pytest.raises(AttributeError, match="no attribute 'frobnicate'"):
        write.frobnicate  # noqa: B018


@pytest.mark.parametrize("name", [*FUNCTIONS, *FIELDS, *VALUES])
def test_every_public_name_says_what_it_is(name: str):
    assert (getattr(write, name).__doc__ or "").strip()
