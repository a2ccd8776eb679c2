from __future__ import annotations

from uuid import UUID

from sqlalchemy import Engine, text

from producer import MemoryClient
from worker.read.ledger import ledger, runs_of, workers_alive


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
    assert found["by_stage"] == {"extract": 1, "resolve": 0, "reconcile": 1, "upsert": 0}
    assert found["by_lane"] == {"live": 2, "bulk": 0, "job": 0}
    assert found["failed"] == [{"stage": "extract", "cause": "refused", "count": 1}]
    assert 89 <= found["oldest_waiting_sec"] <= 120


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
