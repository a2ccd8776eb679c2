"""A failed message gets another try: once, in the bulk lane, without being read and paid for again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Engine, text

from producer.queues import Lane, Stage
from tests.acceptance.stack import lives_in
from tests.integration.turns.conftest import run_of
from tests.scripted_model import Fault, ScriptedModel
from worker.read.ledger import Choice, failures
from worker.turns import life
from worker.turns.dispatch import dispatch
from worker.turns.replay import replay, replay_chosen
from worker.turns.running import Applied, Moved, Parked, Waiting, run_stage
from worker.write.plans import PLAN_VERSION

Rows = Callable[..., list[dict[str, Any]]]


def work(agent: str = "a") -> list[Any]:
    """Run the agent's next run through, up to its end; the outcomes."""
    life.worker_name()
    given = dispatch(agent)
    assert given.run_id is not None
    outcomes = []
    for stage in given.stages:
        outcomes.append(run_stage(stage, given.run_id, given.fence))
        if isinstance(outcomes[-1], (Applied, Parked)):
            break
    return outcomes


@pytest.fixture
def parked_at_resolve(accepted, model: ScriptedModel, database: Engine) -> UUID:
    """An event whose message was read, and whose run an error of our own parked in resolve."""
    model.on("informed_extraction", lives_in)
    (done,) = accepted("I live in Natal")
    life.worker_name()
    given = dispatch("a")
    assert isinstance(run_stage(Stage.EXTRACT, given.run_id, given.fence), Moved)
    with database.begin() as connection:
        connection.execute(text("ALTER TABLE memory_entity_aliases RENAME TO gone"))
    assert isinstance(run_stage(Stage.RESOLVE, given.run_id, given.fence), Waiting)
    with database.begin() as connection:
        connection.execute(text("UPDATE runs SET ready_at = NULL"))
    assert isinstance(work()[-1], Parked)
    with database.begin() as connection:
        connection.execute(text("ALTER TABLE gone RENAME TO memory_entity_aliases"))
    return done.event_id


def test_a_message_that_was_read_is_not_read_again(parked_at_resolve: UUID, model: ScriptedModel, rows: Rows) -> None:
    asked = model.count("informed_extraction")
    done = replay_chosen(Choice(stage="resolve", cause="own_error"))
    assert (done.runs, dict(done.by_agent), dict(done.by_stage)) == (1, {"a": 1}, {"resolve": 1})
    assert isinstance(work()[-1], Applied)
    assert model.count("informed_extraction") == asked == 1
    assert [row["fact_text"] for row in rows("SELECT fact_text FROM memory_facts")] == ["Rafael lives in Natal"]
    assert rows("SELECT * FROM run_plans") == [], "they went with the run that used them"


def parked_with_plans(rows: Rows, database: Engine, event: UUID, version: int) -> None:
    with database.begin() as connection:
        connection.execute(
            text(
                "UPDATE runs SET state = 'parked', status = 'failed', cause = 'own_error', stage = 'upsert',"
                " finished_at = mandua_now() WHERE event_id = :event"
            ),
            {"event": event},
        )
        connection.execute(
            text(
                "INSERT INTO run_plans (run_id, extraction, resolution, reconciliation, replies, sent, vectors)"
                " VALUES (:run, jsonb_build_object('plan_version', CAST(:version AS int)), '{}', '{}',"
                " jsonb_build_object('k', 'r'), jsonb_build_object('k', true), 'v')"
            ),
            {"run": run_of(rows, event)["id"], "version": version},
        )


@pytest.mark.parametrize(("version", "stage"), [(PLAN_VERSION, "resolve"), (PLAN_VERSION - 1, "extract")])
def test_only_an_extraction_by_this_code_is_kept(
    accepted, rows: Rows, database: Engine, version: int, stage: str
) -> None:
    (done,) = accepted("one")
    imported = uuid4()
    with database.begin() as connection:
        connection.execute(text("UPDATE runs SET import_id = :imported"), {"imported": imported})
    parked_with_plans(rows, database, done.event_id, version)
    assert dict(replay_chosen(Choice(events=[done.event_id])).by_stage) == {stage: 1}
    run = run_of(rows, done.event_id)
    assert (run["stage"], run["lane"], run["state"], run["seq"]) == (stage, Lane.BULK, "accepted", 2)
    assert run["import_id"] == imported, "whose import it was is not forgotten"
    (plan,) = rows("SELECT * FROM run_plans")
    assert plan["run_id"] == run["id"]
    assert (plan["extraction"] is not None) == (stage == "resolve")
    assert (plan["resolution"], plan["reconciliation"]) == (None, None), "the memory has moved on since"
    assert (plan["replies"], plan["sent"]) == ({"k": "r"}, {})


def test_a_dry_run_counts_and_changes_nothing(accepted, rows: Rows, database: Engine) -> None:
    (done,) = accepted("one")
    parked_with_plans(rows, database, done.event_id, PLAN_VERSION)
    counted = replay_chosen(Choice(stage="upsert"), dry_run=True)
    assert (counted.runs, dict(counted.by_stage)) == (1, {"resolve": 1})
    assert len(rows("SELECT * FROM runs")) == 1


def test_many_failures_are_replayed_in_batches_each_once(
    accepted, rows: Rows, database: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.turns.replay.EVENTS_A_BATCH", 4)
    for agent in ("a", "b"):
        accepted(*[f"m{number}" for number in range(5)], agent=agent)
    with database.begin() as connection:
        connection.execute(
            text("UPDATE runs SET state = 'parked', status = 'failed', cause = 'refused', finished_at = mandua_now()")
        )
    done = replay_chosen(Choice(cause="refused", stage="extract"))
    assert (done.runs, dict(done.by_agent)) == (10, {"a": 5, "b": 5})
    assert replay_chosen(Choice(cause="refused")).runs == 0
    with database.connect() as connection:
        assert failures(connection, Choice()) == [], "a failure stands until its event gets a later run"
    placed = rows("SELECT agent_id, array_agg(seq ORDER BY seq) AS seqs FROM runs WHERE lane = 1 GROUP BY 1 ORDER BY 1")
    assert placed == [{"agent_id": agent, "seqs": [6, 7, 8, 9, 10]} for agent in ("a", "b")]


def test_a_message_that_fails_again_is_replayed_once_a_call(accepted, model: ScriptedModel, rows: Rows) -> None:
    model.on("informed_extraction", Fault.refusal())
    (done,) = accepted("I live in Natal")
    assert isinstance(work()[-1], Parked)
    assert replay_chosen(Choice(stage="extract", cause="refused")).runs == 1
    assert isinstance(work()[-1], Parked)
    assert len(rows("SELECT * FROM runs")) == 2
    model.on("informed_extraction", lives_in)
    assert replay([done.event_id]) == ["a"]
    assert isinstance(work()[-1], Applied)
    assert len(rows("SELECT * FROM memory_facts")) == 1
    assert run_of(rows, done.event_id)["state"] == "done"
