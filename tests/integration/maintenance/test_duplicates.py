"""dedup_facts: what a failed reconciliation left becomes one, and nothing that its fact knew is lost."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from producer.queues import Stage
from tests.integration.maintenance.conftest import RunJob, one_step, take_turn
from tests.scripted_model import Fault, ScriptedModel
from worker.maintenance.planning import PlacedRun, place
from worker.turns import hold as holding
from worker.turns.running import Applied, run_stage

JOB = "dedup_facts"
PLAIN = "Rafael works at Orion Tech"
RICH = "Rafael works at Orion Tech as head of engineering"
ACTIVE = "SELECT fact_text FROM memory_facts WHERE valid_to IS NULL AND kind = 'fact' ORDER BY 1"


@pytest.fixture
def say(process, model: ScriptedModel) -> Any:
    """Messages of agent a that are extracted as they are, each near all others."""

    def do(*texts: str) -> None:
        for said in texts:
            model.vector(said, [1.0, *[0.0] * (model.dimensions - 1)])
            model.on("informed_extraction", {
                "entities": [{"name": "Orion Tech", "type": "organization", "aliases": []}],
                "facts": [{"subject": "Rafael", "text": said, "confidence_level": "explicit_statement"}],
                "relations": [{"source": "Rafael", "target": "Orion Tech", "rel_type": "works_at"}],
            })  # fmt: skip
            process(said)

    return do


def settled(rows: Any) -> list[dict[str, Any]]:
    """The end state that matters, ids and times aside."""
    return rows("SELECT f.fact_text, f.valid_to IS NULL AS active, k.fact_text AS kept, f.confirmations,"
                " (SELECT count(*) FROM memory_relationship_evidence v WHERE v.fact_id = f.id) AS holds"
                " FROM memory_facts f LEFT JOIN memory_facts k ON k.id = f.merged_into ORDER BY 1")  # fmt: skip


@pytest.fixture
def doubled(say: Any, model: ScriptedModel, rows: Any) -> ScriptedModel:
    """Two near-duplicates, the poorer one first."""
    model.on("reconciliation", lambda p: {"decisions": [
        {"fact_number": fact["number"], "reason": "", "action": "ADD", "existing_number": None} for fact in p["facts"]
    ]})  # fmt: skip
    say(PLAIN, RICH)
    assert [row["fact_text"] for row in rows(ACTIVE)] == [PLAIN, RICH]
    model.on("fact_merge", {"reason": "the same", "same": True, "text": "a third wording"})
    return model


def test_the_richer_one_stays_and_takes_over_confirmations_evidence_and_beginning(doubled, run_job: RunJob, rows):
    began = rows("SELECT min(valid_from) AS at FROM memory_facts")[0]["at"]
    done = run_job(JOB)
    assert (done["outcome"], done["items"], doubled.count("fact_merge")) == ("done", 1, 1)
    assert settled(rows) == [
        {"fact_text": PLAIN, "active": False, "kept": RICH, "confirmations": 0, "holds": 0},
        {"fact_text": RICH, "active": True, "kept": None, "confirmations": 1, "holds": 1},
    ]
    (kept,) = rows("SELECT id, valid_from FROM memory_facts WHERE valid_to IS NULL")
    assert kept["valid_from"] == began
    assert rows("SELECT evidence_fact_id, valid_to FROM memory_entity_relationships") == [
        {"evidence_fact_id": kept["id"], "valid_to": None}
    ]
    (said,) = rows("SELECT wording ->> 'text' AS text, embedding IS NOT NULL AS placed FROM memory_fact_confirmations")
    assert said == {"text": PLAIN, "placed": True}
    due = "SELECT canonical_key AS key FROM memory_entities WHERE facts_changed_at > facts_deduped_at - interval '1 h'"
    assert {"key": "person:rafael"} in rows(due + " AND profile_refreshed_at IS NULL")


def test_a_second_run_does_nothing_and_calls_no_model(doubled, run_job: RunJob, rows):
    run_job(JOB)
    before, calls = settled(rows), len(doubled.calls)
    assert (run_job(JOB)["items"], len(doubled.calls), settled(rows)) == (0, calls, before)


def test_what_a_model_says_are_two_is_never_asked_again(doubled, run_job: RunJob, rows, say):
    doubled.on("fact_merge", {"reason": "two", "same": False, "text": ""})
    assert run_job(JOB)["items"] == 0
    say("Rafael sings well")  # something new about the same entity, equally near
    run_job(JOB)
    asked = [{fact["text"] for fact in call.payload["facts"]} for call in doubled.calls if call.task == "fact_merge"]
    assert asked[0] == {PLAIN, RICH}
    assert len(asked) == 3
    assert not any({PLAIN, RICH} <= texts for texts in asked[1:])
    assert len(rows(ACTIVE)) == 3


def test_what_the_words_forbid_is_not_even_asked_about(say, model, run_job: RunJob, rows):
    model.on("reconciliation", lambda p: {"decisions": [
        {"fact_number": fact["number"], "reason": "", "action": "ADD", "existing_number": None} for fact in p["facts"]
    ]})  # fmt: skip
    say("Rafael worked at Orion Tech for 3 years", "Rafael worked at Orion Tech for 5 years")
    before = len(rows(ACTIVE))
    run_job(JOB)
    assert (model.count("fact_merge"), len(rows(ACTIVE))) == (0, before)


def test_a_model_that_refuses_leaves_both(doubled, run_job: RunJob, rows):
    doubled.on("fact_merge", Fault.refusal())
    assert (run_job(JOB)["outcome"], len(rows(ACTIVE))) == ("done", 2)
    assert run_job(JOB)["steps"] == 0


def test_killed_between_plan_and_apply_it_ends_the_same(doubled, rows, monkeypatch, database):
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
    assert len(rows(ACTIVE)) == 2
    with database.begin() as connection:
        connection.execute(text("UPDATE agent_turns SET lease_until = mandua_now() - interval '1 s'"))
    assert isinstance(one_step(), Applied)
    assert [row["fact_text"] for row in rows(ACTIVE)] == [RICH]
    assert doubled.count("fact_merge") == 1, "the reply was kept"


def test_a_fact_and_one_that_dates_it_closer_are_one_with_the_closer_date(say, model, run_job: RunJob, rows, database):
    model.on("reconciliation", lambda p: {"decisions": [
        {"fact_number": fact["number"], "reason": "", "action": "ADD", "existing_number": None} for fact in p["facts"]
    ]})  # fmt: skip
    model.on("fact_merge", {"reason": "the same", "same": True, "text": ""})
    rich = "Rafael joined Orion Tech in 2020 as head of engineering in Lisbon"
    say("Rafael joined Orion Tech on 5 March 2020", rich, "Rafael joined Orion Tech in 2019")
    dates = {"on 5 March 2020": ("2020-03-05", "day"), "in 2020 as%": ("2020-01-01", "year"),
             "in 2019": ("2019-01-01", "year")}  # fmt: skip
    with database.begin() as connection:
        for words, (date, precision) in dates.items():
            query = "UPDATE memory_facts SET event_date = :d, event_date_precision = :p WHERE fact_text LIKE :w"
            connection.execute(text(query), {"d": date, "p": precision, "w": f"%{words}"})
    assert run_job(JOB)["items"] == 1
    assert [row["fact_text"] for row in rows(ACTIVE)] == ["Rafael joined Orion Tech in 2019", rich]
    query = "SELECT event_date::text AS d, event_date_precision AS p FROM memory_facts WHERE fact_text = :t"
    (kept,) = rows(query, t=rich)
    assert kept == {"d": "2020-03-05", "p": "day"}


def test_chr_04_facts_keep_their_language_through_the_job(say, model, run_job: RunJob, rows):
    """The model answers in English; what stays is what was said."""
    model.on("reconciliation", lambda p: {"decisions": [
        {"fact_number": fact["number"], "reason": "", "action": "ADD", "existing_number": None} for fact in p["facts"]
    ]})  # fmt: skip
    model.on("fact_merge", lambda p: {
        "reason": "", "text": "Rafael drinks soy milk every morning",
        "same": len({"favorita" in fact["text"] for fact in p["facts"]}) == 1,
    })  # fmt: skip
    say("Rafael每天早上喝豆浆", "Rafael每天早上在家喝豆浆")
    assert run_job(JOB)["items"] == 1
    assert [row["fact_text"] for row in rows(ACTIVE)] == ["Rafael每天早上在家喝豆浆"]
    say("A cor favorita de Rafael é grená", "A cor favorita de Rafael é o grená escuro")
    run_job(JOB)
    assert "A cor favorita de Rafael é o grená escuro" in {row["fact_text"] for row in rows(ACTIVE)}
    assert not any("morning" in row["fact_text"] for row in rows(ACTIVE))
