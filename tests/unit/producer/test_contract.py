"""The door: bad input is refused in one line that says what to do; good input comes through unchanged."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.contract import (
    MAX_MESSAGE_CHARS,
    MemoryConfig,
    RequestError,
    WriteRequest,
    clean_text,
    event_id_for,
    is_blank,
)

GOOD = {"agent_id": "a", "message": "oi", "speaker_name": "Rafael"}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"agent_id": "  "}, "agent_id is blank"),
        ({"agent_id": "\u200b\ufeff"}, "agent_id is blank"),
        ({"speaker_name": "\u200d "}, "speaker_name is blank"),
        ({"agent_id": None}, "agent_id is missing"),
        ({"message": None}, "message Input should be a valid string"),
        ({"occurred_at": "2025-06-15T10:00:00"}, "occurred_at has no time zone; write it like"),
        ({"occurred_at": datetime(2025, 6, 15)}, "occurred_at has no time zone"),  # noqa: DTZ001
        ({"occurred_at": "yesterday"}, "occurred_at is not an ISO 8601 time"),
        ({"occurred_at": 5}, "occurred_at is not a time"),
        ({"message": "x" * (MAX_MESSAGE_CHARS + 1)}, "at most 200000 fit"),
        ({"speaker_name": "x" * 300}, "speaker_name is 300 characters long"),
        ({"surprise": 1}, "surprise is not a field of a message"),
        ({"source": "memory-worker"}, "is the worker's own output"),
        ({"config_overrides": {"fuzzy_threshold": None}}, "fuzzy_threshold"),
        ({"config_overrides": {"informed_extraction_topk": True}}, "informed_extraction_topk"),
        ({"recent_messages": ["a", 3]}, "recent_messages"),
        ({"role": "robot"}, "role"),
    ],
)
def test_bad_input_is_refused_in_one_line_that_names_the_field(fields, says):
    with pytest.raises(RequestError) as caught:
        WriteRequest.parse(**{**GOOD, **fields})
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_error_never_quotes_the_message():
    with pytest.raises(RequestError) as caught:
        WriteRequest.parse(**{**GOOD, "message": ["the secret is 42"], "speaker_name": " "})
    assert "42" not in str(caught.value)


@pytest.mark.parametrize("blank", ["", "  \n\t", "\u200b\u200c\u200d", "\ufeff \u2060", "\u00ad"])
def test_what_cannot_be_seen_is_blank(blank: str):
    assert is_blank(blank)
    assert WriteRequest.parse(**{**GOOD, "message": blank}).blank


def test_chr_02_a_lone_surrogate_and_a_nul_never_reach_postgres_and_a_pair_is_kept():
    assert clean_text("olha isso \ud83d <|endoftext|>") == "olha isso  <|endoftext|>"
    assert clean_text("\ud83d\ude00 a\x00b") == "😀 ab"
    assert WriteRequest.parse(**{**GOOD, "message": "a\x00b\udc00"}).message == "ab"


@given(st.text(st.characters(codec=None)))
def test_cleaned_text_can_always_be_stored(text: str):
    cleaned = clean_text(text)
    assert "\x00" not in cleaned
    cleaned.encode("utf-8")


@given(st.text(), st.text(), st.text(), st.text())
def test_event_ids_are_derived_and_do_not_collide_across_agents(agent: str, message: str, other: str, other_id: str):
    assert event_id_for(agent, message) == event_id_for(agent, message)
    if (agent, message) != (other, other_id):
        assert event_id_for(agent, message) != event_id_for(other, other_id)


def test_a_message_without_an_id_of_its_own_gets_one_once():
    assert event_id_for("a", None) != event_id_for("a", None)


def test_now_is_the_moment_of_handing_in_and_a_given_time_stays():
    assert abs(WriteRequest.parse(**GOOD).timed().occurred_at - datetime.now(UTC)) < timedelta(seconds=5)
    given_time = WriteRequest.parse(**{**GOOD, "occurred_at": "2025-06-15T23:30:00-03:00"}).timed().occurred_at
    assert given_time.isoformat() == "2025-06-15T23:30:00-03:00"
    assert WriteRequest.parse(**{**GOOD, "occurred_at": "unknown"}).timed().occurred_at == "unknown"


def test_overrides_change_only_what_they_name():
    changed = MemoryConfig().overridden({"extraction_timeout_sec": 60})
    assert changed.extraction_timeout_sec == 60.0
    assert changed.model_copy(update={"extraction_timeout_sec": 30.0}) == MemoryConfig()


def test_an_unknown_override_warns_and_is_ignored():
    with pytest.warns(UserWarning, match="unknown key 'frobnicate'"):
        assert MemoryConfig().overridden({"frobnicate": 1}) == MemoryConfig()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WriteRequest.parse(**{**GOOD, "config_overrides": {"frobnicate": 1}})


@pytest.mark.parametrize("value", [None, True, "60", [60.0]])
def test_a_wrong_type_in_an_override_is_an_error(value):
    with pytest.raises(ValueError, match="extraction_timeout_sec"):
        MemoryConfig().overridden({"extraction_timeout_sec": value})


def test_the_defaults_are_the_sources():
    config = MemoryConfig()
    assert (
        config.extraction_timeout_sec, config.enable_informed_extraction, config.informed_extraction_topk,
        config.informed_extraction_context_budget_tokens, config.fuzzy_threshold, config.enable_llm_resolution,
        config.min_confidence, config.semantic_dedup_threshold, config.reconcile_similarity_floor, config.fuzzy_floor,
    ) == (30.0, True, 10, 800, 0.85, True, 0.55, 0.85, 0.50, 0.50)  # fmt: skip
