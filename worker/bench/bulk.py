"""One agent's years of chat: one message after another, and in shared calls and turns; what each costs, and that both
leave the same memory."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from producer import WriteRequest
from worker.bench.figures import Figure
from worker.bench.scene import ALL_QUEUES, Scene, model
from worker.bench.throughput import PEOPLE
from worker.bench.workload import SPEAKER, spoken

BEGAN = datetime(2020, 1, 1, 8, tzinfo=UTC)
TASKS = ("informed_extraction", "entity_resolution", "reconciliation")

MEMORY = {
    "facts": "SELECT entity_key, fact_text, kind, valid_from, valid_to, confirmations FROM memory_facts"
             " ORDER BY 1, 2, 4, 5",
    "entities": "SELECT canonical_key, display_name FROM memory_entities ORDER BY 1",
    "aliases": "SELECT alias_folded, entity_key FROM memory_entity_aliases ORDER BY 1, 2",
    "edges": "SELECT source_entity_key, rel_type, target_entity_key, strength, valid_to"
             " FROM memory_entity_relationships ORDER BY 1, 2, 3",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Read:
    """One run: messages a second, what the model counted, runs that did not end well, and the memory."""

    rate: float
    calls: dict[str, int]
    not_ok: int
    memory: dict[str, list[tuple[Any, ...]]]


def bulk(scene: Scene, *, messages: int = 96, latency: float = 0.5, batch: int = 8) -> list[Figure]:
    """Messages a second, model calls and tokens a message, one by one and ``batch`` at a time, in this one run."""
    one = _read(scene, messages, latency, 1)
    many = _read(scene, messages, latency, batch)
    told = f"{messages:,} messages of one agent, {latency} s a call"
    figures = [
        Figure("backlog one by one", one.rate, "messages/s", note=told),
        Figure(f"backlog, batch {batch}", many.rate, "messages/s", note=told),
        Figure(f"backlog, batch {batch} / one by one", many.rate / one.rate, "×"),
    ]
    for name, found in (("one by one", one), (f"batch {batch}", many)):
        asked = {task: found.calls.get(task, 0) / messages for task in TASKS}
        shown = ", ".join(f"{task} {each:.3f}" for task, each in asked.items() if each)
        tokens = [found.calls.get(f"{way}_tokens", 0) / messages for way in ("input", "output")]
        figures += [
            Figure(f"backlog {name}: model calls a message", sum(asked.values()), note=shown),
            Figure(f"backlog {name}: tokens a message", sum(tokens), "tokens", note=f"{tokens[0]:.0f} of them input"),
        ]
    differing = sum(len(set(rows) ^ set(many.memory[kind])) for kind, rows in one.memory.items())
    rows = ", ".join(f"{len(rows):,} {kind}" for kind, rows in one.memory.items())
    return [
        *figures,
        Figure("backlog: messages that did not end well", one.not_ok + many.not_ok, at_most=0),
        Figure("backlog: rows in which the memories differ", differing, at_most=0, note=rows),
    ]


def _read(scene: Scene, messages: int, latency: float, batch: int) -> _Read:
    scene.fresh()
    requests = [
        WriteRequest(
            agent_id="a", message=spoken(number, PEOPLE).text, speaker_name=SPEAKER,
            occurred_at=BEGAN + timedelta(hours=number),
            config_overrides={"bulk_batch": batch, "bulk_turn": min(batch, 8)},
        )
        for number in range(messages)
    ]  # fmt: skip
    with model(people=PEOPLE, latency=latency) as answering:
        scene.say(f"backlog: {messages:,} messages of one agent, batch {batch}, {latency} s a call")
        with scene.workers(scene.environment(answering), (16, ALL_QUEUES), (16, ALL_QUEUES)):
            answering.reset()
            began = time.monotonic()
            with scene.client() as client:
                client.enqueue_many(requests, bulk=True)
            scene.until_finished(messages, 120 + 6 * latency * messages)
            seconds = time.monotonic() - began
        calls = answering.calls()
    not_ok = scene.value("SELECT count(*) FROM runs WHERE status <> 'ok'")
    return _Read(messages / seconds, calls, not_ok, {kind: scene.rows(query) for kind, query in MEMORY.items()})
