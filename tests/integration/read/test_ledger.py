from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from sqlalchemy import Engine, text

from producer import MemoryClient
from worker.read.ledger import (
    FAILED,
    FAILURES,
    OLDEST,
    SPENT_TODAY,
    Choice,
    failures,
    last_sweep_sec,
    ledger,
    models_cooling,
    runs_of,
    workers_alive,
    workers_silent,
)
from worker.read.totals import TOTALS, totals
from worker.turns.sweep import clean_up, note_sweep
from worker.turns.totals import fold

PARKED = "state = 'parked', status = 'failed', finished_at = mandua_now(), "


def accept(url: str, count: int) -> list[UUID]:
    with MemoryClient(database_url=url, accept="database") as client:
        found = [client.enqueue("a", f"message {number}", "Rui").event_id for number in range(count)]
    return [event for event in found if event is not None]


def set_run(engine: Engine, event: UUID, assignments: str) -> None:
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE runs SET {assignments} WHERE event_id = :event"), {"event": event})


def test_an_empty_ledger(database: Engine) -> None:
    with database.connect() as connection:
        found = ledger(connection)
    assert set(found["by_status"].values()) == {0}
    assert found["oldest_waiting_sec"] is None
    assert found["failed"] == []
    assert found["lag_sec"] == {"live": 0.0, "bulk": 0.0, "job": 0.0}
    assert (found["oldest"], found["waiting"], found["today"]["total_tokens"]) == (None, {}, 0)


def test_runs_by_status_stage_and_lane(database: Engine, database_url: str) -> None:
    waiting, running, done, parked = accept(database_url, 4)
    set_run(database, running, "state = 'running', stage = 'reconcile'")
    set_run(database, done, "state = 'done', status = 'degraded', finished_at = mandua_now(), stage = 'upsert'")
    set_run(
        database, parked,
        "state = 'parked', status = 'failed', cause = 'refused', finished_at = mandua_now(), lane = 1",
    )  # fmt: skip
    set_run(database, waiting, "created_at = mandua_now() - interval '90 seconds'")
    with database.connect() as connection:
        found = ledger(connection)
        assert [row["state"] for row in runs_of(connection, [done, waiting])] == ["done", "accepted"]
    assert found["by_status"] == {"accepted": 1, "running": 1, "ok": 0, "degraded": 1, "empty": 0, "failed": 1}
    assert found["by_stage"] == {"extract": 1, "resolve": 0, "reconcile": 1, "upsert": 0, "job": 0}
    assert found["by_lane"] == {"live": 2, "bulk": 0, "job": 0}
    assert found["failed"] == [{"stage": "extract", "cause": "refused", "count": 1}]
    assert 89 <= found["oldest_waiting_sec"] <= 120
    assert found["lag_sec"] == {"live": found["oldest_waiting_sec"], "bulk": 0.0, "job": 0.0}
    assert (found["oldest"]["agent_id"], found["oldest"]["stage"]) == ("a", "extract")
    assert found["today"]["runs"] == {"degraded": 1, "failed": 1}


def test_finished_tells_only_of_runs_that_ended(database: Engine, database_url: str) -> None:
    waiting, done, parked = accept(database_url, 3)
    set_run(database, done, "state = 'done', status = 'ok', finished_at = mandua_now()")
    set_run(database, parked, "state = 'parked', status = 'failed', cause = 'refused', finished_at = mandua_now()")
    with MemoryClient(database_url=database_url, accept="database") as client:
        assert client.finished([waiting, done, parked, UUID(int=9)]) == {done: "ok", parked: "failed"}


def test_workers_are_alive_while_they_give_signs(database: Engine) -> None:
    with database.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO workers (name, heartbeat_at) VALUES"
                " ('fresh', mandua_now()), ('silent', mandua_now() - interval '1 hour')"
            )
        )
        assert [row["name"] for row in workers_alive(connection)] == ["fresh"]
        (silent,) = workers_silent(connection)
    assert silent["name"] == "silent"


def test_runs_that_were_given_back_are_counted_by_cause(database: Engine, database_url: str) -> None:
    back, again = accept(database_url, 2)
    set_run(database, back, "cause = 'spend_limit', ready_at = mandua_now() + interval '1 hour'")
    set_run(database, again, "cause = 'timeout', state = 'running'")
    with database.connect() as connection:
        found = ledger(connection)
    assert found["waiting"] == {"spend_limit": 1}, "the other one is at work again"


def test_failures_by_stage_cause_agent_and_time(database: Engine, database_url: str) -> None:
    old, young, fine = accept(database_url, 3)
    set_run(database, old, PARKED + "stage = 'resolve', cause = 'own_error', error_code = 'KeyError', attempts = 2")
    set_run(database, old, "finished_at = mandua_now() - interval '2 hours'")
    set_run(database, young, PARKED + "cause = 'refused', attempts = 1")
    set_run(database, fine, "state = 'done', status = 'ok', finished_at = mandua_now()")
    with database.connect() as connection:

        def found(**chosen: object) -> list[UUID]:
            return [row["event_id"] for row in failures(connection, Choice(**chosen))]  # type: ignore[arg-type]

        assert found() == [young, old], "the newest first"
        assert found(stage="resolve") == found(cause="own_error") == [old]
        assert found(stage="resolve", cause="refused") == found(agent_id="b") == []
        assert found(since=datetime.now(UTC) - timedelta(hours=1)) == [young]
        assert found(events=[old, fine]) == [old]
        assert len(failures(connection, Choice(), limit=1)) == 1
        (row,) = failures(connection, Choice(stage="resolve"))
    assert set(row) == {"event_id", "agent_id", "stage", "cause", "error_code", "attempts", "since"}
    assert (row["agent_id"], row["attempts"], row["error_code"]) == ("a", 2, "KeyError")


def test_a_message_that_was_refused_at_the_door_is_a_failure_of_record(database: Engine) -> None:
    with database.begin() as connection:
        connection.execute(
            text("INSERT INTO failed_records (event_id, agent_id, cause) VALUES (:event, 'a', 'conflict')"),
            {"event": UUID(int=7)},
        )
        (row,) = failures(connection, Choice(stage="record"))
    assert (row["event_id"], row["cause"]) == (UUID(int=7), "conflict")


USAGE = {
    "input_tokens": 100, "output_tokens": 10, "wasted_input_tokens": 5, "cost_usd": 0.25, "embedding_calls": 2,
    "by_task": {"informed_extraction": 1}, "waits": {"timeout": 2}, "repairs": {"code_fence": 1},
    "rejects": {"wrong_type": 3},
}  # fmt: skip


def finish(engine: Engine, event: UUID, ago: str) -> None:
    set_run(
        engine, event,
        f"state = 'done', status = 'ok', finished_at = mandua_now() - interval '{ago}', "
        f"usage = '{json.dumps(USAGE)}', timings = '{{\"extract\": 300, \"upsert\": 120000}}'".replace(":", "\\:"),
    )  # fmt: skip


def test_totals_are_the_same_before_and_after_folding_and_outlive_the_runs(
    database: Engine, database_url: str
) -> None:
    long_ago, earlier, now = accept(database_url, 3)
    finish(database, long_ago, "40 days")
    finish(database, earlier, "10 minutes")
    finish(database, now, "1 second")
    with database.connect() as connection:
        before = totals(connection)
        connection.rollback()
        assert fold(many=1)
        assert fold(many=1)
        assert not fold(), "what finished just now is left for later"
        assert totals(connection) == before
        connection.rollback()
        clean_up()
        assert connection.execute(text("SELECT count(*) FROM runs")).scalar() == 2, "kept for 30 days"
        assert totals(connection) == before
        assert totals(connection, today=True)[("runs", "ok", "")] <= 2
    assert before[("runs", "ok", "")] == 3
    assert before[("tokens", "input", "")] == 300
    assert before[("tokens_wasted", "input", "")] == 15
    assert before[("cost_usd", "", "")] == 0.75
    assert before[("llm_calls", "informed_extraction", "")] == 3
    assert before[("waits", "timeout", "")] == 6
    assert before[("repairs", "code_fence", "")] == 3
    assert before[("rejects", "wrong_type", "")] == 9
    assert before[("stage_seconds", "extract", "3")] == 3, "0.3 s: above 0.25, up to 0.5"
    assert before[("stage_seconds", "upsert", "10")] == 3, "above the last bound"
    assert before[("stage_seconds_sum", "upsert", "")] == 360


def test_the_sweepers_last_time_and_the_models_left_alone(database: Engine) -> None:
    with database.connect() as connection:
        assert last_sweep_sec(connection) is None
        connection.rollback()
        note_sweep()
        assert last_sweep_sec(connection) is not None
        connection.rollback()
        connection.execute(
            text(
                "INSERT INTO model_health (model, cool_until, cause) VALUES"
                " ('m', mandua_now() + interval '1 minute', 'model_unavailable'),"
                " ('n', mandua_now() - interval '1 minute', 'rate_limited')"
            )
        )
        (model,) = models_cooling(connection)
    assert (model["model"], model["cause"]) == ("m", "model_unavailable")
    assert 50 < model["seconds"] <= 60


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (OLDEST, "runs_waiting"),
        (FAILED, "runs_failed"),
        (FAILURES, "runs_failed"),
        (TOTALS, "runs_finished"),
        (SPENT_TODAY, "spending_pkey"),
    ],
)
def test_no_question_of_an_operator_reads_finished_runs_that_it_is_not_about(
    database: Engine, statement: str, index: str
) -> None:
    parameters = {"lanes": [0, 1, 2], "many": 100, "today": False, **Choice().parameters()}
    with database.begin() as connection:
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        wanted = {name: value for name, value in parameters.items() if f":{name}" in statement}
        plan = "\n".join(connection.execute(text("EXPLAIN " + statement), wanted).scalars())
    assert index in plan, plan
    assert "Seq Scan on runs" not in plan, plan
