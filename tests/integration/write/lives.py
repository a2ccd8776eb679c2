"""A person's life as messages with dates, told in any order through the real pipeline, and what is remembered of it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine, text

from producer.accepting import accept, envelope
from producer.contract import MemoryConfig, WriteRequest
from producer.queues import Lane, Stage
from worker.embedding.provider import EmbeddingProvider
from worker.llm.provider import LLMProvider
from worker.turns.dispatch import dispatch
from worker.turns.running import Applied, Moved, run_stage
from worker.write.pipeline import run_write_pipeline

BORN = datetime(2001, 3, 5, 12, tzinfo=UTC)

ACTIVE = """
SELECT fact_text FROM memory_facts WHERE agent_id = :agent AND valid_to IS NULL ORDER BY 1
"""
INTERVALS = """
SELECT fact_text, kind, valid_from, valid_to FROM memory_facts WHERE agent_id = :agent ORDER BY 3, 1, 4
"""
EDGES = """
SELECT source_entity_key, rel_type, target_entity_key, valid_from, valid_to FROM memory_entity_relationships
 WHERE agent_id = :agent ORDER BY 1, 2, 3
"""
CHAINS = """
SELECT o.fact_text, o.valid_from, n.fact_text, n.valid_from FROM memory_facts n
  JOIN memory_facts o ON o.id = n.supersedes_fact_id WHERE n.agent_id = :agent ORDER BY 2, 1, 4, 3
"""


@dataclass(frozen=True)
class Memory:
    """What is left of a life, comparable between two agents. Times are days since it began."""

    active: list[str]
    intervals: list[tuple[Any, ...]]
    edges: list[tuple[Any, ...]]
    chains: list[tuple[Any, ...]]

    def differences(self, other: Memory) -> list[str]:
        """Everything in which two memories are not alike, for a failing test to print."""
        found = []
        for name in ("active", "intervals", "edges", "chains"):
            mine, theirs = getattr(self, name), getattr(other, name)
            found += [f"{name}: only in the first: {row}" for row in mine if row not in theirs]
            found += [f"{name}: only in the second: {row}" for row in theirs if row not in mine]
        return found


def when(number: int) -> datetime:
    """The time of the life's message ``number``: a month after the one before."""
    return BORN + timedelta(days=30 * number)


def remembered(engine: Engine, agent: str) -> Memory:
    """The memory of an agent."""
    with engine.connect() as connection:

        def rows(query: str) -> list[tuple[Any, ...]]:
            found = connection.execute(text(query), {"agent": agent})
            return [tuple(_day(value) for value in row) for row in found]

        return Memory([row[0] for row in rows(ACTIVE)], rows(INTERVALS), rows(EDGES), rows(CHAINS))


def _day(value: Any) -> Any:
    return (value - BORN).days if isinstance(value, datetime) else value


def told_in_process(
    engine: Engine, llm: LLMProvider, embeddings: EmbeddingProvider, life: Sequence[str], order: Sequence[int]
) -> Memory:
    """Tell ``life`` in ``order`` by ``run_write_pipeline``, a transaction a message."""
    from sqlalchemy.orm import Session

    agent = f"agent-{uuid.uuid4().hex[:8]}"
    for number in order:
        with Session(engine) as session:
            result = run_write_pipeline(
                session, agent, life[number], llm, embeddings, MemoryConfig(), "Rafael", occurred_at=when(number)
            )
            session.commit()
        assert result["status"] in ("ok", "empty"), result
    return remembered(engine, agent)


def told_to_workers(
    engine: Engine, life: Sequence[str], order: Sequence[int], lanes: Sequence[Lane], *, turn: int | None = None
) -> Memory:
    """Accept ``life`` in ``order``, each message in its lane, then run every stage as a worker does. ``turn``: so many
    messages of the bulk lane a turn, extracted ahead."""
    agent = f"agent-{uuid.uuid4().hex[:8]}"
    with engine.connect() as connection:
        for number in order:
            request = WriteRequest(
                agent_id=agent, message=life[number], speaker_name="Rafael", occurred_at=when(number),
                config_overrides={"bulk_turn": turn or 1},
            )  # fmt: skip
            accept(connection.connection.driver_connection, [envelope(request, lanes[number])])
        connection.connection.commit()
    drain(agent, ahead=turn is not None)
    return remembered(engine, agent)


def drain(agent: str, *, ahead: bool = False) -> int:
    """Run the agent's turns one after another until nothing is left; returns how many there were. ``ahead``: what is
    sent ahead is extracted before each."""
    done = 0
    while (given := dispatch(agent)).run_id is not None:
        for run_id, _ in given.ahead if ahead else ():
            run_stage(Stage.EXTRACT, run_id, None)
        for stage in given.stages:
            outcome = run_stage(stage, given.run_id, given.fence)
            assert isinstance(outcome, (Moved, Applied)), outcome
            if isinstance(outcome, Applied):
                assert outcome.status in ("ok", "empty"), outcome
                break
        done += 1
    return done
