"""A huge backlog of one agent holds up nobody: shown by order, not by time."""

from __future__ import annotations

import pytest

from producer import WriteRequest
from tests.acceptance.stack import Stack, lives_in

BACKLOG = 60
CHATS = 8


def test_live_chats_go_through_while_one_agents_import_has_hardly_begun(stack: Stack):
    """The backlog is accepted first, and every model call takes a while; still all chats end before half of it."""
    stack.model.on("informed_extraction", lives_in)
    stack.model.latency = 0.05
    with stack.client("database") as client:
        client.enqueue_many(
            WriteRequest(agent_id="importer", message=f"I live in Town{n}", speaker_name="Old") for n in range(BACKLOG)
        )
        handles = [client.enqueue(f"chat{n}", f"I live in City{n}", "Ana") for n in range(CHATS)]
        stack.worker(threads=4)
        stack.beat()
        stack.results([handle.event_id for handle in handles])
        done = stack.rows("SELECT count(*) AS n FROM runs WHERE agent_id = 'importer' AND finished_at IS NOT NULL")
    assert done[0]["n"] < BACKLOG / 2


def test_one_agents_backlog_does_not_slow_another_ones(stack: Stack):
    """Both are imports; the small one, accepted last, does not wait for the big one to end."""
    stack.model.on("informed_extraction", lives_in)
    with stack.client("database") as client:
        big = [WriteRequest(agent_id="big", message=f"I live in Town{n}", speaker_name="Old") for n in range(BACKLOG)]
        small = [WriteRequest(agent_id="small", message=f"I live in City{n}", speaker_name="Ana") for n in range(3)]
        client.enqueue_many(big)
        handles = client.enqueue_many(small)
        stack.worker(threads=4)
        stack.beat()
        stack.results([handle.event_id for handle in handles])
        done = stack.rows("SELECT count(*) AS n FROM runs WHERE agent_id = 'big' AND finished_at IS NOT NULL")
    assert done[0]["n"] < BACKLOG / 2


# RabbitMQ hands a worker of each of its queues up to its number of threads, so there it holds only behind those.
@pytest.mark.parametrize("stack", ["redis"], indirect=True)
def test_what_agents_wait_for_goes_before_extraction_ahead(stack: Stack):
    """One slot, a backlog of six agents: the first message of each is applied before any later one is extracted."""
    stack.model.on("informed_extraction", lives_in)
    with stack.client("database") as client:
        requests = [
            WriteRequest(agent_id=f"agent{agent}", message=f"I live in City{number}", speaker_name="Rafael")
            for number in range(3)
            for agent in range(6)
        ]
        handles = client.enqueue_many(requests, bulk=False)
        stack.worker(threads=1)
        stack.results([handle.event_id for handle in handles])
    extracted = [call.payload["message"] for call in stack.model.calls if call.task == "informed_extraction"]
    assert extracted[:6] == ["I live in City0"] * 6
    assert len(extracted) == 18
