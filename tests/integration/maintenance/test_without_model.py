"""score_importance, mark_stale, promote_attributes: no model; and refresh_summaries, once a week."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text

from tests.integration.maintenance.conftest import RunJob
from tests.scripted_model import Fault, ScriptedModel

SUMMARY = "SELECT summary_text FROM memory_entities WHERE canonical_key = 'person:rafael'"


@pytest.fixture
def lived(process, model: ScriptedModel) -> ScriptedModel:
    """Two facts of agent a."""
    process("I live in Curitiba")
    process("I work at Orion Tech")
    return model


def test_scores_weigh_what_is_known_and_a_second_run_finds_none_due(lived, run_job: RunJob, rows, later):
    calls = len(lived.calls)
    assert run_job("score_importance")["items"] == len(rows("SELECT 1 FROM memory_entities"))
    scores = {row["canonical_key"]: row["importance"] for row in
              rows("SELECT canonical_key, importance FROM memory_entities")}  # fmt: skip
    assert max(scores, key=lambda key: scores[key]) == "person:rafael"
    fresh = rows("SELECT id, salience FROM memory_facts WHERE valid_to IS NULL ORDER BY id")
    assert all(row["salience"] is not None for row in fresh)
    assert run_job("score_importance")["items"] == 0
    later("30 days")
    assert run_job("score_importance")["items"] == len(scores)
    aged = rows("SELECT id, salience FROM memory_facts WHERE valid_to IS NULL ORDER BY id")
    assert all(old["salience"] < new["salience"] for old, new in zip(aged, fresh, strict=True))
    assert len(lived.calls) == calls


def test_what_nobody_said_for_long_fades_and_a_confirmation_clears_it_at_once(
    lived, run_job: RunJob, rows, later, process
):
    facts = len(rows("SELECT 1 FROM memory_facts WHERE valid_to IS NULL"))
    assert run_job("mark_stale")["items"] == 0
    later("800 days")
    assert run_job("mark_stale")["items"] == facts
    assert run_job("mark_stale")["items"] == 0
    process("I live in Curitiba")
    assert rows("SELECT fact_text FROM memory_facts WHERE valid_to IS NULL AND stale_at IS NULL") == [
        {"fact_text": "Rafael lives in Curitiba"}
    ]


def test_what_was_asked_for_again_lives_again(lived, run_job: RunJob, rows, later, database: Engine):
    later("800 days")
    run_job("mark_stale")
    with database.begin() as connection:
        connection.execute(text("UPDATE memory_facts SET last_retrieved_at = mandua_now(), retrievals = 1"))
    assert run_job("mark_stale")["items"] > 0
    assert rows("SELECT 1 FROM memory_facts WHERE stale_at IS NOT NULL") == []


def test_keys_that_are_ripe_are_promoted_once(lived, run_job: RunJob, rows, database: Engine):
    with database.begin() as connection:
        query = "INSERT INTO memory_attribute_registry (agent_id, attribute_key, sightings) VALUES "
        connection.execute(text(query + "('a', 'person.ripe', 3), ('a', 'person.green', 2), ('b', 'person.ripe', 9)"))
    assert run_job("promote_attributes")["items"] == 1
    assert rows("SELECT agent_id, attribute_key FROM memory_attribute_registry WHERE is_active") == [
        {"agent_id": "a", "attribute_key": "person.ripe"}
    ]
    assert run_job("promote_attributes")["items"] == 0


def test_a_summary_is_written_once_a_week_and_only_if_something_changed(lived, run_job: RunJob, rows, later, process):
    lived.on("entity_summary", lambda p: {"text": f"{len(p['facts'])} facts"})
    assert run_job("refresh_summaries")["items"] == 1
    (first,) = rows(SUMMARY)
    assert first["summary_text"].endswith(" facts")
    process("I work at Lumen Labs and I have a dog")
    assert run_job("refresh_summaries")["items"] == 0, "not within a week"
    later("8 days")
    assert run_job("refresh_summaries")["items"] >= 1
    later("16 days")
    calls = len(lived.calls)
    assert run_job("refresh_summaries")["items"] == 0, "nothing changed"
    assert len(lived.calls) == calls


def test_a_model_that_refuses_leaves_the_old_summary(lived, run_job: RunJob, rows, later, process):
    lived.on("entity_summary", {"text": "the old one"})
    run_job("refresh_summaries")
    process("I have a dog")
    later("8 days")
    lived.on("entity_summary", Fault.refusal())
    assert run_job("refresh_summaries")["items"] == 0
    assert rows(SUMMARY) == [{"summary_text": "the old one"}]
