"""A deadlock is nobody's fault: the upsert that was chosen as its victim is tried again, and nothing is rejected."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, text

from producer.queues import Stage
from tests.integration.turns.conftest import Accept, run_of
from worker.turns import life
from worker.turns.dispatch import dispatch
from worker.turns.running import Applied, Moved, Waiting, run_stage
from worker.write.policy import DATABASE

BLOCKED = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def planned(agent: str) -> tuple[Any, int]:
    """Run an agent's head up to its upsert; returns the run and its fence."""
    given = dispatch(agent)
    assert given.run_id is not None
    assert given.fence is not None
    for stage in given.stages[:-1]:
        assert isinstance(run_stage(stage, given.run_id, given.fence), Moved)
    return given.run_id, given.fence


def test_ops_07_the_victim_of_a_deadlock_is_applied_later(
    database: Engine, accepted: Accept, rows: Callable[..., list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    life.worker_name()
    accepted("I live in Curitiba.")
    run, fence = planned("a")
    assert run_stage(Stage.UPSERT, run, fence) == Applied("a", "ok")
    (event,) = accepted("I moved to Lima.")
    run, fence = planned("a")
    outcomes: list[Any] = []
    with database.connect() as intruder:
        intruder.execute(text("SET LOCAL deadlock_timeout = '20s'"))  # so that the other side is the victim
        intruder.execute(text("SELECT 1 FROM memory_facts WHERE agent_id = 'a' FOR UPDATE"))
        upsert = threading.Thread(target=lambda: outcomes.append(run_stage(Stage.UPSERT, run, fence)))
        upsert.start()
        deadline = time.monotonic() + 10
        while not rows(BLOCKED)[0]["count"]:
            assert time.monotonic() < deadline, "the upsert never waited for a lock"
        # Entities before facts is the rule; this is the other way round.
        intruder.execute(text("UPDATE memory_entities SET importance = 0.4 WHERE agent_id = 'a'"))
        upsert.join(20)
        intruder.rollback()
    (outcome,) = outcomes
    assert isinstance(outcome, Waiting), outcome
    assert (outcome.cause, outcome.error_code) == (DATABASE, "DeadlockDetected 40P01")
    assert rows("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")[0]["deadlocks"] >= 1
    assert rows("SELECT fact_text FROM memory_facts WHERE valid_to IS NULL") == [
        {"fact_text": "Rafael lives in Curitiba"}
    ]
    deadline = time.monotonic() + 30
    while (given := dispatch("a")).run_id is None:
        assert time.monotonic() < deadline, "the run never became ready again"
    assert given.stages == (Stage.UPSERT,)
    assert run_stage(Stage.UPSERT, given.run_id, given.fence) == Applied("a", "ok")
    assert rows("SELECT fact_text FROM memory_facts WHERE valid_to IS NULL") == [{"fact_text": "Rafael moved to Lima"}]
    done = run_of(rows, event.event_id)
    assert (done["state"], done["status"], done["failures"]) == ("done", "ok", 0)
