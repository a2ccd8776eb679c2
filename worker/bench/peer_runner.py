"""Runs in the peer's own environment: the same messages through the in-process original, measured the same way.

Reads one JSON object (``database_url``, ``model_url``, ``messages``, ``writers``, ``fill``) and prints one. Imports
nothing of ours but the benchmark's words and vectors, which need only the standard library.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from worker.bench.model import vector

WIDTH = 1536  # fixed in the peer's schema


async def fill(engine: Any, agent: str, facts: list[list[str]], names: list[str]) -> None:
    """Store facts and people as if they had been read before."""
    from arandu.models import MemoryEntity, MemoryEntityAlias, MemoryFact, MemoryFactEntityLink
    from sqlalchemy import insert, text

    now = datetime.now(UTC)
    keys = {name: "person:" + name.lower().replace(" ", "_") for name in names}
    async with engine.begin() as connection:
        await connection.execute(
            insert(MemoryEntity),
            [
                {"agent_id": agent, "canonical_key": key, "display_name": name, "entity_type": "person"}
                for name, key in keys.items()
            ],
        )
        await connection.execute(
            insert(MemoryEntityAlias),
            [
                {
                    "agent_id": agent,
                    "alias": name.lower(),
                    "canonical_entity_key": key,
                    "canonical_entity_type": "person",
                }
                for name, key in keys.items()
            ],
        )
        for start in range(0, len(facts), 1_000):
            rows = [
                {
                    "id": uuid.uuid4(),
                    "agent_id": agent,
                    "entity_type": "person",
                    "entity_key": keys[name],
                    "entity_name": name,
                    "fact_text": said,
                    "valid_from": now,
                    "confidence": 0.95,
                    "embedding_vec": memoryview(vector(said, WIDTH)).cast("f").tolist(),
                }
                for name, said in facts[start : start + 1_000]
            ]
            await connection.execute(insert(MemoryFact), rows)
            await connection.execute(
                insert(MemoryFactEntityLink),
                [
                    {"fact_id": row["id"], "entity_key": row["entity_key"], "is_primary": True, "agent_id": agent}
                    for row in rows
                ],
            )
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(text("ANALYZE"))


async def run(asked: dict[str, Any]) -> dict[str, float]:
    """Write the messages with so many writers at once; what that took."""
    from arandu import MemoryClient
    from arandu.providers.openai import OpenAIProvider
    from sqlalchemy import event

    provider = OpenAIProvider(api_key="scripted", model="scripted", embedding_model="scripted-embedding")
    memory = MemoryClient(asked["database_url"], provider, provider)
    await memory.initialize()
    engine = memory._engine
    if asked["fill"]:
        await fill(engine, asked["messages"][0]["agent"], asked["fill"]["facts"], asked["fill"]["names"])
    statements = 0

    def note(*_: Any) -> None:
        nonlocal statements
        statements += 1

    event.listen(engine.sync_engine, "before_cursor_execute", note)
    queue = list(reversed(asked["messages"]))
    failed = 0

    async def writer() -> None:
        nonlocal failed
        while queue:
            said = queue.pop()
            try:
                result = await memory.write(said["agent"], said["text"], said["speaker"])
                failed += not result.success
            except Exception:
                failed += 1

    cpu, began = time.process_time(), time.perf_counter()
    database = await _database_cpu(engine)
    await asyncio.gather(*(writer() for _ in range(asked["writers"])))
    many = len(asked["messages"])
    return {
        "seconds": time.perf_counter() - began, "cpu": (time.process_time() - cpu) / many, "failed": failed,
        "database": (await _database_cpu(engine) - database) / many, "statements": statements / many,
    }  # fmt: skip


async def _database_cpu(engine: Any) -> float:
    from sqlalchemy import text

    async with engine.connect() as connection:
        pids = (
            (await connection.execute(text("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")))
            .scalars()
            .all()
        )
    total = 0.0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(json.load(sys.stdin)))))
