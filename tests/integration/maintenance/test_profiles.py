"""consolidate_entity_profiles: what is due, what is written, and what a second run does: nothing."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, text

from producer.queues import Stage
from tests.integration.maintenance.conftest import RunJob, one_step, take_turn
from tests.scripted_model import Fault, ScriptedModel
from worker.maintenance import profiles
from worker.maintenance.planning import PlacedRun, place
from worker.turns import hold as holding
from worker.turns.running import Applied, Waiting, run_stage

JOB = "consolidate_entity_profiles"
PROFILES = "SELECT canonical_key, profile_text, profile_source FROM memory_entities ORDER BY 1"


@pytest.fixture
def said(process, model: ScriptedModel) -> Any:
    """Messages of agent a, written; the scripted model writes profiles that say how many facts it was given."""
    model.on("entity_profile", lambda p: {"text": f"{p['entity']['name']}: " + " | ".join(
        fact["text"] for fact in p["facts"])})  # fmt: skip
    process("I live in Curitiba")
    process("I work at Orion Tech")
    return process


def test_the_profile_replaces_the_seeded_one_and_is_made_of_all_active_facts(said, run_job: RunJob, rows, model):
    done = run_job(JOB)
    (rafael,) = [row for row in rows(PROFILES) if row["canonical_key"] == "person:rafael"]
    assert rafael["profile_source"] == "job"
    assert "Curitiba" in rafael["profile_text"]
    assert "Orion Tech" in rafael["profile_text"]
    assert (done["outcome"], done["items"]) == ("done", 1)
    assert done["input_tokens"] > 0
    assert model.count("entity_profile") == 1


def test_a_second_run_does_nothing_and_calls_no_model(said, run_job: RunJob, rows, model):
    run_job(JOB)
    before, calls = rows("SELECT * FROM memory_entities ORDER BY canonical_key"), len(model.calls)
    done = run_job(JOB)
    assert (done["outcome"], done["items"], done["input_tokens"]) == ("done", 0, 0)
    assert len(model.calls) == calls
    assert rows("SELECT * FROM memory_entities ORDER BY canonical_key") == before


def test_a_closed_fact_makes_the_profile_due_at_once_and_it_is_not_in_the_next(said, run_job: RunJob, rows, model):
    run_job(JOB)
    said("I no longer live in Curitiba")
    assert rows("SELECT 1 FROM memory_entities WHERE canonical_key = 'person:rafael'"
                " AND facts_changed_at > profile_refreshed_at")  # fmt: skip
    run_job(JOB)
    (rafael,) = [row for row in rows(PROFILES) if row["canonical_key"] == "person:rafael"]
    assert "lives in Curitiba" not in rafael["profile_text"]


def test_an_entity_whose_facts_are_all_closed_has_no_profile(said, run_job: RunJob, rows, database: Engine, model):
    run_job(JOB)
    with database.begin() as connection:
        connection.execute(text("UPDATE memory_facts SET valid_to = greatest(valid_from, mandua_now()),"
                                " invalidated_at = mandua_now()"))  # fmt: skip
        connection.execute(text("UPDATE memory_entities SET facts_changed_at = mandua_now()"
                                " WHERE canonical_key = 'person:rafael'"))  # fmt: skip
    calls = len(model.calls)
    run_job(JOB)
    (rafael,) = [row for row in rows(PROFILES) if row["canonical_key"] == "person:rafael"]
    assert (rafael["profile_text"], rafael["profile_source"], len(model.calls)) == (None, None, calls)


def test_only_what_changed_is_asked_about(said, run_job: RunJob, database: Engine, model: ScriptedModel):
    with database.begin() as connection:
        connection.execute(text(
            "INSERT INTO memory_entities (agent_id, canonical_key, entity_type, display_name)"
            " SELECT 'a', 'person:p' || n, 'person', 'P' || n FROM generate_series(1, 1000) n"))  # fmt: skip
        connection.execute(text(
            "INSERT INTO memory_facts (id, agent_id, entity_key, fact_text, text_hash, confidence, source_event_id,"
            " valid_from) SELECT gen_random_uuid(), 'a', 'person:p' || n, 'P' || n || ' sings', sha256(n::text::bytea),"
            " 0.9, (SELECT id FROM memory_events LIMIT 1), now() FROM generate_series(1, 1000) n"))  # fmt: skip
        connection.execute(text("UPDATE memory_entities SET profile_refreshed_at = mandua_now()"))
        connection.execute(text(
            "UPDATE memory_entities SET facts_changed_at = mandua_now() + interval '1 ms'"
            " WHERE canonical_key IN (SELECT 'person:p' || n FROM generate_series(1, 10) n)"))  # fmt: skip
    done = run_job(JOB)
    assert (model.count("entity_profile"), done["items"], done["steps"]) == (10, 10, 10)


def test_many_facts_are_folded_in_parts_one_a_turn(said, run_job: RunJob, rows, model, monkeypatch):
    monkeypatch.setattr(profiles, "PART_TOKENS", 1)
    done = run_job(JOB)
    (rafael,) = [row for row in rows(PROFILES) if row["canonical_key"] == "person:rafael"]
    facts = len(rows("SELECT 1 FROM memory_facts WHERE entity_key = 'person:rafael' AND valid_to IS NULL"))
    assert facts == model.count("entity_profile") == done["steps"]
    assert "Curitiba" in rafael["profile_text"]
    assert "Orion Tech" in rafael["profile_text"]


def test_killed_between_plan_and_apply_it_ends_the_same_and_pays_once(said, rows, model, monkeypatch, database):
    place([PlacedRun("a", JOB)])
    given = take_turn()

    class Killed(BaseException):
        """Nobody catches it, like a kill."""

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(holding, "lock_for_apply", die)
        with pytest.raises(Killed):
            run_stage(Stage.JOB, given.run_id, given.fence)
    assert {row["profile_source"] for row in rows(PROFILES)} <= {None, "model", "facts"}
    with database.begin() as connection:
        connection.execute(text("UPDATE agent_turns SET lease_until = mandua_now() - interval '1 s'"))
    assert isinstance(one_step(), Applied)
    assert isinstance(one_step(), Applied)
    assert model.count("entity_profile") == 1, "the reply was kept"
    (rafael,) = [row for row in rows(PROFILES) if row["canonical_key"] == "person:rafael"]
    assert rafael["profile_source"] == "job"
    (done,) = rows("SELECT * FROM maintenance_runs")
    assert (done["outcome"], done["items"]) == ("done", 1)
    assert rows("SELECT sum(input_tokens) AS n FROM maintenance_runs") == rows(
        "SELECT sum((usage ->> 'input_tokens')::bigint) AS n FROM runs WHERE kind = 'job'")  # fmt: skip


def test_facts_that_change_while_the_model_writes_leave_it_due(said, rows, model, database: Engine):
    def meanwhile(payload: dict[str, Any]) -> dict[str, str]:
        with database.begin() as connection:  # somebody without the turn
            connection.execute(text("UPDATE memory_entities SET facts_changed_at = mandua_now() + interval '1 s'"))
        return {"text": "too late"}

    model.on("entity_profile", meanwhile)
    place([PlacedRun("a", JOB)])
    assert isinstance(one_step(), Applied)
    assert "too late" not in {row["profile_text"] for row in rows(PROFILES)}


def test_a_model_that_refuses_leaves_the_facts_themselves_and_the_next_entity_gets_its_turn(said, run_job, rows, model):
    model.on("entity_profile", Fault.refusal())
    done = run_job(JOB)
    (rafael,) = [row for row in rows(PROFILES) if row["canonical_key"] == "person:rafael"]
    assert rafael["profile_source"] == "facts"
    assert "Orion Tech" in rafael["profile_text"]
    assert done["outcome"] == "done"


def test_a_model_that_does_not_answer_lets_the_run_wait_in_its_place(said, rows, model):
    model.queue("entity_profile", Fault.status(503))
    place([PlacedRun("a", JOB)])
    assert isinstance(one_step(), Waiting)
    assert rows("SELECT state, cause FROM runs WHERE kind = 'job'") == [
        {"state": "accepted", "cause": "provider_error"}
    ]
