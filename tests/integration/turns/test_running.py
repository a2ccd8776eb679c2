"""How a stage ends, cause by cause (behaviour: 4), and that nothing of the database is held while a model thinks."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DataError, OperationalError

from producer.connections import poll
from producer.queues import Stage
from tests.acceptance.stack import lives_in
from tests.integration.turns.conftest import run_of
from tests.scripted_model import EMBEDDING, Fault, ScriptedModel
from worker import settings
from worker.local.postgres import EmbeddedPostgres
from worker.turns.causes import classify
from worker.turns.dispatch import dispatch
from worker.turns.running import Applied, Moved, Parked, Stale, Waiting, run_stage

GIBBERISH = "Claro! Anotado."


pytestmark = pytest.mark.usefixtures("no_long_waits")


@pytest.fixture
def write(accepted: Any, database: Engine, model: ScriptedModel) -> Callable[..., list[Any]]:
    """Accept a message and run its agent until the run is done or parked; returns how each start ended."""

    def do(said: str, agent: str = "a", overrides: dict[str, Any] | None = None, most: int = 30) -> list[Any]:
        (event,) = accepted(said, agent=agent)
        if overrides:
            with database.begin() as connection:
                connection.execute(
                    text("UPDATE runs SET request = jsonb_set(request, '{config_overrides}', CAST(:o AS jsonb))"
                         " WHERE event_id = :e"),
                    {"o": json.dumps(overrides), "e": event.event_id},
                )  # fmt: skip
        outcomes: list[Any] = []
        while len(outcomes) < most:
            given = dispatch(agent)
            if given.run_id is None:
                if given.wait is None:
                    return outcomes
                continue
            for stage in given.stages:
                outcomes.append(run_stage(stage, given.run_id, given.fence))
                if not isinstance(outcomes[-1], Moved):
                    break
        return outcomes

    return do


def read_blind(model: ScriptedModel, fact: str) -> None:
    """Script the blind way: one person, one fact about him."""
    model.on("entity_scan", {"entities": [{"name": "Rafael", "type": "person", "aliases": []}]})
    model.on("fact_extraction", {"facts": [{"subject": "Rafael", "text": fact, "action": "NEW",
                                            "confidence_level": "explicit_statement"}]})  # fmt: skip
    model.on("relation_extraction", {"relations": []})
    model.on("emotion", {"emotion": {"primary": "neutral", "intensity": 0.0, "energy_level": "medium"}})


def causes(outcomes: list[Any]) -> list[str]:
    """The causes of the starts that did not move on."""
    return [outcome.cause for outcome in outcomes if isinstance(outcome, (Waiting, Parked))]


def result_of(rows: Any, agent: str = "a") -> dict[str, Any]:
    """The newest WriteResult of an agent."""
    return rows(
        "SELECT o.result FROM run_results o JOIN runs r ON r.id = o.run_id WHERE r.agent_id = :a"
        " ORDER BY r.seq DESC LIMIT 1",
        a=agent,
    )[0]["result"]


def test_a_plain_message_goes_through_its_four_stages(write, model: ScriptedModel, rows):
    model.on("informed_extraction", lives_in)
    outcomes = write("I live in Natal")
    assert [type(outcome) for outcome in outcomes] == [Moved, Moved, Moved, Applied]
    assert result_of(rows)["status"] == "ok"
    assert rows("SELECT * FROM run_plans") == []


def test_los_04_an_unusable_reply_is_asked_once_more_then_read_blind_and_degraded(write, model: ScriptedModel, rows):
    model.on("informed_extraction", GIBBERISH)
    read_blind(model, "Rafael adora jabuticaba")
    outcomes = write("Adoro jabuticaba.")
    assert causes(outcomes) == ["bad_reply"]
    assert model.count("informed_extraction") == 2
    result = result_of(rows)
    assert (result["status"], [d["cause"] for d in result["degradations"]]) == ("degraded", ["bad_reply"])
    assert [fact["fact_text"] for fact in result["facts_added"]] == ["Rafael adora jabuticaba"]


def test_los_04_if_the_blind_way_fails_too_the_run_is_parked_and_never_looks_empty(write, model: ScriptedModel, rows):
    for task in ("informed_extraction", "entity_scan", "fact_extraction", "relation_extraction", "emotion"):
        model.on(task, GIBBERISH)
    outcomes = write("Adoro jabuticaba.")
    assert outcomes[-1] == Parked("a", "bad_reply", outcomes[-1].error_code)
    (run,) = rows("SELECT status, stage, cause FROM runs")
    assert run == {"status": "failed", "stage": "extract", "cause": "bad_reply"}


def test_a_timeout_is_retried_twice_then_read_blind(write, model: ScriptedModel, rows):
    model.on("informed_extraction", Fault.timeout(20))
    read_blind(model, "Rafael mora em Natal")
    outcomes = write("Moro em Natal.", overrides={"extraction_timeout_sec": 1.0})
    assert causes(outcomes) == ["timeout", "timeout"]
    assert model.count("informed_extraction") == 3
    assert result_of(rows)["status"] == "degraded"


def test_a_refusal_is_parked_at_once_and_the_agent_goes_on(write, model: ScriptedModel, rows):
    model.queue("informed_extraction", Fault.refusal())
    outcomes = write("something the policy forbids")
    assert causes(outcomes) == ["refused"]
    assert model.count() == 1, "a refusal is never retried, and not read blind"
    model.on("informed_extraction", lives_in)
    assert isinstance(write("I live in Natal")[-1], Applied)


@pytest.mark.parametrize("fault", [Fault.status(429, retry_after=0), Fault.status(500), Fault.disconnect()])
def test_what_is_the_providers_fault_waits_as_long_as_it_takes(write, model: ScriptedModel, rows, fault: Fault):
    model.on("informed_extraction", lives_in)
    model.queue("informed_extraction", *[fault] * 6)
    outcomes = write("I live in Natal")
    assert len(causes(outcomes)) == 6
    assert isinstance(outcomes[-1], Applied)
    assert rows("SELECT failures FROM runs") == [{"failures": 0}]


def test_a_wrong_key_waits_too_and_says_so(write, model: ScriptedModel, rows):
    model.on("informed_extraction", Fault.status(401))
    outcomes = write("I live in Natal", most=3)
    assert set(causes(outcomes)) == {"model_unavailable"}
    (run,) = rows("SELECT state, cause FROM runs")
    assert run == {"state": "accepted", "cause": "model_unavailable"}


def test_when_reconciliation_fails_the_fact_is_added_and_the_run_degraded(write, model: ScriptedModel, rows):
    model.on("informed_extraction", lives_in)
    write("I live in Natal")
    model.on("reconciliation", GIBBERISH)
    outcomes = write("I live in Recife")
    assert causes(outcomes) == ["bad_reply"]
    result = result_of(rows)
    assert (result["status"], result["degradations"][0]["stage"]) == ("degraded", "reconcile")
    assert len(rows("SELECT * FROM memory_facts WHERE valid_to IS NULL")) == 2
    assert rows("SELECT count(*) AS n FROM runs WHERE starts > 0")[0]["n"] == 0


def test_an_embedding_outage_waits_and_asks_the_model_only_once(write, model: ScriptedModel, rows):
    model.on("informed_extraction", lives_in)
    model.queue(EMBEDDING, Fault.status(500), Fault.status(500))
    outcomes = write("I live in Natal")
    assert set(causes(outcomes)) == {"provider_error"}
    assert isinstance(outcomes[-1], Applied)
    assert model.count("informed_extraction") == 1, "the reply was kept"


def test_our_own_error_is_parked_after_two_tries(write, model: ScriptedModel, rows, database: Engine):
    model.on("informed_extraction", lives_in)
    with database.begin() as connection:
        connection.execute(text("ALTER TABLE memory_entity_aliases RENAME TO gone"))
    outcomes = write("I live in Natal")
    assert causes(outcomes) == ["own_error", "own_error"]
    assert outcomes[-1].error_code == "UndefinedTable 42P01"


def test_plans_of_another_version_start_over(write, accepted, model: ScriptedModel, rows, database: Engine):
    model.on("informed_extraction", lives_in)
    accepted("I live in Natal")
    given = dispatch("a")
    assert run_stage(Stage.EXTRACT, given.run_id, given.fence) == Moved("a")
    with database.begin() as connection:
        connection.execute(text("UPDATE run_plans SET extraction = extraction || '{\"plan_version\": 0}'"))
    assert run_stage(Stage.RESOLVE, given.run_id, given.fence) == Waiting("a", "replanned", "replanned", 0.0)
    assert write("I live in Recife")[-1] == Applied("a", "ok")
    assert {row["status"] for row in rows("SELECT status FROM runs")} == {"ok"}


def test_a_start_under_an_old_fence_does_nothing(accepted, model: ScriptedModel):
    accepted("I live in Natal")
    given = dispatch("a")
    assert run_stage(Stage.EXTRACT, given.run_id, given.fence - 1) == Stale()
    assert model.calls == []


def test_a_deadlock_is_waited_out_and_both_land(write, model: ScriptedModel, rows, database: Engine, database_url: str):
    """OPS-07: a transaction of somebody else locks facts in the other order."""
    model.on("informed_extraction", lives_in)
    write("I live in Natal")
    with psycopg.connect(database_url) as other:
        other.execute("SET deadlock_timeout = '60s'")  # so that it is always ours that is chosen
        other.execute("SELECT 1 FROM memory_facts FOR UPDATE")
        done: list[list[Any]] = []
        thread = threading.Thread(target=lambda: done.append(write("I live in Recife")))
        thread.start()
        waiting = "SELECT count(*) AS n FROM pg_locks WHERE NOT granted"
        while not rows(waiting)[0]["n"]:
            thread.join(0.02)
        other.execute("SELECT 1 FROM memory_entities WHERE canonical_key = 'person:rafael' FOR UPDATE")
        other.commit()
        thread.join(60)
    assert causes(done[0]) == ["database"]
    assert isinstance(done[0][-1], Applied)


@pytest.mark.parametrize("task", ["informed_extraction", EMBEDDING, "reconciliation"])
def test_no_connection_is_held_while_a_model_thinks(write, model: ScriptedModel, database: Engine, task: str):
    """Promise 5, at every kind of outside call: nothing is checked out of the pool, no transaction is open."""
    model.on("informed_extraction", lives_in)
    write("I live in Natal")
    hold = model.hold(task)
    thread = threading.Thread(target=write, args=("I live in Recife",))
    thread.start()
    hold.wait_arrived()
    checked_out = database.pool.checkedout()  # type: ignore[attr-defined]
    hold.release()
    thread.join(30)
    assert checked_out == 0


def test_a_start_that_could_not_be_given_back_ends_with_the_next_beat(
    accepted, model: ScriptedModel, rows, database: Engine, postgres: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
):
    """The database is away while a model answers, and its worker lives on: nobody waits for the lease to run out."""
    monkeypatch.setenv("MANDUA_HEARTBEAT_SEC", "0.02")
    settings.settings.cache_clear()
    model.on("informed_extraction", lives_in)
    accepted("I live in Natal")
    given = dispatch("a")
    outcome: list[Any] = []
    name = database.url.database
    with psycopg.connect(postgres.url, autocommit=True) as server:
        with model.hold("informed_extraction") as hold:
            thread = threading.Thread(
                target=lambda: outcome.append(run_stage(Stage.EXTRACT, given.run_id, given.fence))
            )
            thread.start()
            hold.wait_arrived()
            server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            server.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", (name,))
        thread.join(30)
        assert isinstance(outcome[0], Waiting)
        server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    ended = "SELECT count(*) AS n FROM agent_turns WHERE stage_token IS NOT NULL AND lease_until <= mandua_now()"
    assert poll(lambda: rows(ended)[0]["n"] or None, 10) == 1
    taken = dispatch("a")
    assert taken.run_id == given.run_id
    assert [type(run_stage(stage, taken.run_id, taken.fence)) for stage in taken.stages][-1] is Applied


def test_a_lost_hold_writes_nothing(accepted, model: ScriptedModel, rows, database: Engine):
    """A worker that was taken for dead while it waited for its model finds its fence old, and stores no plan."""
    model.on("informed_extraction", lives_in)
    (event,) = accepted("I live in Natal")
    given = dispatch("a")
    outcome: list[Any] = []
    with model.hold("informed_extraction") as hold:
        thread = threading.Thread(target=lambda: outcome.append(run_stage(Stage.EXTRACT, given.run_id, given.fence)))
        thread.start()
        hold.wait_arrived()
        with database.begin() as connection:
            connection.execute(text("UPDATE agent_turns SET fence = fence + 1, stage_token = NULL"))
    thread.join(30)
    assert outcome == [Stale()]
    assert run_of(rows, event.event_id)["stage"] == "extract"
    assert rows("SELECT extraction FROM run_plans")[0]["extraction"] is None


def test_a_value_that_the_driver_refuses_is_our_own_error_and_a_silent_connection_is_not():
    """Without a SQLSTATE the server has said nothing: only a broken connection is worth waiting for."""
    refused = DataError("x", None, psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"))
    broken = OperationalError("x", None, psycopg.OperationalError("consuming input failed"))
    assert [classify(error)[0] for error in (refused, broken)] == ["own_error", "database"]
