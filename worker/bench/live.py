"""Live chat: how long a message takes, alone and beside an import; a burst of one agent."""

from __future__ import annotations

import time
from collections.abc import Sequence

from producer import WriteRequest
from producer.connections import poll
from worker.bench.figures import Figure, quantile
from worker.bench.scene import ALL_QUEUES, LIVE_QUEUES, PATIENCE, Scene, model
from worker.bench.workload import SPEAKER, spoken
from worker.local.errors import LocalStackError

PEOPLE = 200
SLOTS = 16

# Invariant: from accept to applied, by the database's clock.
LATENCIES = """
SELECT extract(epoch FROM r.finished_at - r.created_at)::float8 FROM runs r
 WHERE r.lane = 0 AND r.agent_id LIKE %s AND r.finished_at IS NOT NULL
"""


def live_beside_an_import(
    scene: Scene, *, messages: int = 300, a_second: float = 2.0, imported: int = 10_000, agents: int = 20
) -> list[Figure]:
    """p95 from accept to applied of ``messages`` live messages (``a_second``, 0.3 s a call), idle and beside an import
    of ``imported`` messages of one other agent, in one run."""
    scene.fresh()
    with (
        model(people=PEOPLE, latency=0.3) as answering,
        scene.workers(scene.environment(answering), (SLOTS, LIVE_QUEUES), (SLOTS, ALL_QUEUES)),
    ):
        with scene.client() as client:  # the first message of a process pays for the import of the model's library
            client.enqueue_many([_request(f"warm-{number}", number) for number in range(4 * SLOTS)], bulk=False)
        scene.until_finished(4 * SLOTS)
        scene.say(f"live: {messages} messages of {agents} agents, idle")
        idle = _chat(scene, "idle", messages, a_second, agents)
        scene.say(f"live: the same beside an import of {imported:,} messages")
        with scene.client() as client:
            for start in range(0, imported, 2_000):
                client.enqueue_many(
                    [_request("importer", number) for number in range(start, min(imported, start + 2_000))], bulk=True
                )
        before = scene.value("SELECT count(*) FROM runs WHERE lane = 1 AND finished_at IS NOT NULL")
        began = time.monotonic()
        busy = _chat(scene, "busy", messages, a_second, agents)
        bulk = scene.value("SELECT count(*) FROM runs WHERE lane = 1 AND finished_at IS NOT NULL") - before
        seconds = time.monotonic() - began
        left = scene.value("SELECT count(*) FROM runs WHERE lane = 1 AND finished_at IS NULL")
    ratio = quantile(busy, 0.95) / quantile(idle, 0.95)
    return [
        Figure("live p95 beside an import / idle", ratio, "×", at_most=1.5, note=f"{len(busy)} messages each"),
        Figure("live p50 idle", quantile(idle, 0.5), "s"),
        Figure("live p95 idle", quantile(idle, 0.95), "s"),
        Figure("live p50 beside an import", quantile(busy, 0.5), "s"),
        Figure("live p95 beside an import", quantile(busy, 0.95), "s"),
        Figure("imported meanwhile", bulk / seconds, "messages/s", note=f"{left:,} of {imported:,} still to do"),
    ]


def _chat(scene: Scene, name: str, messages: int, a_second: float, agents: int) -> Sequence[float]:
    """Send at a steady rate, whatever comes back; the latencies once all are applied."""
    with scene.client() as client:
        began = time.monotonic()
        for number in range(messages):
            time.sleep(max(0.0, began + number / a_second - time.monotonic()))
            request = _request(f"{name}-{number % agents}", number)
            handle = client.enqueue(request.agent_id, request.message, request.speaker_name)
        handle.result(PATIENCE)
    return _all_latencies(scene, f"{name}-%", messages)


def _all_latencies(scene: Scene, agents: str, many: int) -> list[float]:
    def look() -> list[float] | None:
        found = [row[0] for row in scene.rows(LATENCIES, agents)]
        return found if len(found) >= many else None

    if (latencies := poll(look, PATIENCE)) is None:
        raise LocalStackError(f"the benchmark waited {PATIENCE:.0f} s for {many} live messages")
    return latencies


def _request(agent: str, number: int) -> WriteRequest:
    return WriteRequest(agent_id=agent, message=spoken(number, PEOPLE).text, speaker_name=SPEAKER)


def burst(scene: Scene, *, messages: int = 50, latency: float = 0.5) -> list[Figure]:
    """Messages a second of one agent's live burst."""
    scene.fresh()
    with (
        model(people=PEOPLE, latency=latency) as answering,
        scene.workers(scene.environment(answering), (SLOTS, LIVE_QUEUES)),
        scene.client() as client,
    ):
        client.write("warm", spoken(0, PEOPLE).text, SPEAKER, timeout=60)
        scene.say(f"live: a burst of {messages} messages of one agent")
        client.enqueue_many([_request("burst", number) for number in range(messages)], bulk=False)
        seconds = scene.until_finished(messages + 1)
    return [Figure("one agent, live burst", messages / seconds, "messages/s", note=f"{latency} s a call")]
