"""Memory of a worker while messages go through: flat after warm-up, whatever the number of messages."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import redis

from producer import WriteRequest
from worker.bench.figures import Figure
from worker.bench.scene import ALL_QUEUES, Scene, model
from worker.bench.throughput import PEOPLE
from worker.bench.workload import SPEAKER, spoken

# Bytes on disk with indexes, by what they are of.
BYTES = """
SELECT CASE WHEN relname IN ('runs', 'run_plans', 'run_results', 'spending', 'model_health') THEN 'ledger'
            WHEN relname IN ('memory_events', 'event_annotations') THEN 'events'
            WHEN relname LIKE 'memory_fact%' THEN 'facts' WHEN relname LIKE 'memory_entit_%' THEN 'entities and edges'
            WHEN relname LIKE 'memory_relationship%' THEN 'entities and edges' ELSE 'others' END,
       sum(pg_total_relation_size(c.oid))::bigint
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND relkind = 'r' GROUP BY 1
"""
SLOTS = 16
AGENTS = 40
CHUNK = 500  # handed in at a time, so that the broker is no part of what is measured
# Warm-up: pools, prepared statements, and caches of some 4,000 texts fill up.
WARM = 5_000
ENOUGH = 10_000  # a shorter run shows how much the warm-up takes, and decides nothing
PAGE = 4096
# More than so much a thousand messages is no noise of an allocator (20,000 messages: 5 MB).
FLAT_KIB = 256


def worker_memory(scene: Scene, *, messages: int = 1_500) -> list[Figure]:
    """Resident memory of one worker process of 16 slots over ``messages`` of 40 agents, the model without latency."""
    scene.fresh()
    samples: list[tuple[int, float]] = []
    commands = _commands(scene)
    with model(people=PEOPLE, latency=0.0) as answering:
        scene.say(f"memory: {messages:,} messages through one worker process")
        with scene.workers(scene.environment(answering), (SLOTS, ALL_QUEUES)) as (worker,), scene.client() as client:
            began = time.monotonic()
            for start in range(0, messages, CHUNK):
                asked = [
                    WriteRequest(
                        agent_id=f"m{number % AGENTS}", message=spoken(number, PEOPLE).text, speaker_name=SPEAKER
                    )
                    for number in range(start, min(messages, start + CHUNK))
                ]
                client.enqueue_many(asked, bulk=False)
                scene.until_finished(start + len(asked))
                samples.append((start + len(asked), resident(worker.process.pid)))
                if start // CHUNK % 10 == 9:
                    scene.say(f"memory: {samples[-1][0]:,} messages, {samples[-1][1]:.1f} MiB")
            rate = messages / (time.monotonic() - began)
    stored, commands = dict(scene.rows(BYTES)), _commands(scene) - commands
    warm = [sample for sample in samples if sample[0] >= min(WARM, messages / 2)]
    return [
        Figure("memory of a worker, warm", warm[0][1], "MiB", note=f"after {warm[0][0]:,} messages, {SLOTS} slots"),
        Figure("memory of a worker, at the end", warm[-1][1], "MiB", note=f"after {messages:,}, {rate:.1f} messages/s"),
        Figure("growth of a warm worker", slope(warm) * 1024, "KiB/1,000 messages",
               at_most=FLAT_KIB if messages >= ENOUGH else None, note="" if messages >= ENOUGH else "not warm yet"),
        Figure("database, bytes of a message", sum(stored.values()) / messages, "bytes",
               note=", ".join(f"{kind} {size / messages:,.0f}" for kind, size in sorted(stored.items()))),
        Figure("broker commands of a message", commands / messages, ""),
    ]  # fmt: skip


def _commands(scene: Scene) -> int:
    """Commands that the broker has served so far."""
    with redis.Redis.from_url(scene.valkey.url) as broker:
        return int(cast("dict[str, int]", broker.info("stats"))["total_commands_processed"])


def resident(pid: int) -> float:
    """Resident memory of a process, MiB."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * PAGE / 2**20


def slope(samples: Sequence[tuple[int, float]]) -> float:
    """MiB a thousand messages, by least squares; 0 of fewer than two samples."""
    many = len(samples)
    if many < 2:
        return 0.0
    middle = sum(number for number, _ in samples) / many
    mean = sum(size for _, size in samples) / many
    above = sum((number - middle) * (size - mean) for number, size in samples)
    return 1000 * above / sum((number - middle) ** 2 for number, _ in samples)
