"""Promises 1 to 3 against real kills: nothing lost, nothing doubled, in order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tests.acceptance.stack import Stack, lives_in
from tests.scripted_model import EMBEDDING

STAGES = ("extract", "resolve", "reconcile", "upsert")


@contextmanager
def stuck_at_upsert(stack: Stack) -> Iterator[None]:
    """Hold every upsert at its first fact."""
    with psycopg.connect(stack.database_url) as connection:
        connection.execute("LOCK TABLE memory_facts IN SHARE ROW EXCLUSIVE MODE")
        yield
        connection.rollback()


def at_stage(stack: Stack, agent: str, stage: str) -> bool:
    """Whether the agent's turn is at work in ``stage`` just now."""
    return bool(
        stack.rows(
            "SELECT 1 FROM runs r JOIN agent_turns t ON t.run_id = r.id"
            " WHERE r.agent_id = %s AND r.stage = %s AND t.stage_token IS NOT NULL",
            agent,
            stage,
        )
    )


@pytest.mark.parametrize("stage", STAGES)
def test_kill_9_of_the_worker_in_each_stage_loses_nothing_and_doubles_nothing(stack: Stack, stage: str):
    stack.model.on("informed_extraction", lives_in)
    stack.model.on("reconciliation", lambda payload: {
        "decisions": [{"fact_number": fact["number"], "reason": "moved", "action": "UPDATE",
                       "existing_number": fact["existing"][0]["number"]} for fact in payload["facts"]]
    })  # fmt: skip
    stack.beat()
    victim = stack.worker()
    with stack.client() as client:
        client.write("a", "I live in Natal", "Rafael")
        if stage == "upsert":
            with stuck_at_upsert(stack):
                handle = client.enqueue("a", "I live in Recife", "Rafael")
                stack.until(lambda: at_stage(stack, "a", stage))
                victim.kill()
        else:
            task = {"extract": "informed_extraction", "resolve": EMBEDDING, "reconcile": "reconciliation"}[stage]
            if stage == "resolve":
                # The extraction's own embeddings come first; the names of the resolution are embedded next.
                before = stack.model.hold("informed_extraction")
                handle = client.enqueue("a", "I live in Recife", "Rafael")
                before.wait_arrived()
                hold = stack.model.hold(EMBEDDING)
                before.release()
                stack.until(lambda: at_stage(stack, "a", stage) or (hold.pass_through() and False))
            else:
                hold = stack.model.hold(task)
                handle = client.enqueue("a", "I live in Recife", "Rafael")
            hold.wait_arrived()
            assert at_stage(stack, "a", stage)
            victim.kill()
            hold.release()
        following = client.enqueue("a", "I live in Belém", "Rafael")
        stack.worker()
        first, second = stack.results([handle.event_id, following.event_id])
    assert (first.status, second.status) == ("ok", "ok")
    assert stack.facts("a") == ["Rafael lives in Belém"]
    assert stack.rows("SELECT count(*) AS n FROM memory_facts")[0]["n"] == 3
    assert stack.rows("SELECT version FROM agent_turns")[0]["version"] == 3
