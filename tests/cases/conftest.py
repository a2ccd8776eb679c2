"""What the shared cases are tried on: the whole pipeline, in this process, over a real database and a scripted model.

A message is recorded, dispatched and taken through its stages as a worker does it, retries included. The model answers
over HTTP by ``task``; its embeddings are scripted too. What a case does not script, the offline reader answers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from producer.accepting import envelope
from producer.contract import WriteRequest, WriteResult
from tests.conftest import bound, fresh_database
from tests.scripted_model import ScriptedModel
from worker.db import autocommit
from worker.local.postgres import EmbeddedPostgres
from worker.turns import life
from worker.turns.dispatch import dispatch
from worker.turns.recording import record
from worker.turns.running import Applied, Moved, Parked, run_stage

OUTCOME = "SELECT state, stage, cause, result FROM event_outcome(:event)"
_numbers = itertools.count(1)
AT = "2025-03-18T15:00:00+00:00"  # a Tuesday; the time at which most cases are said


class Memory:
    """One agent's memory: messages go in by ``write``, and what is stored can be looked at."""

    def __init__(self, model: ScriptedModel, agent: str = "case") -> None:
        self.model = model
        self.agent = agent

    def write(self, said: str, speaker: str = "Bruna", *, at: str | None = AT, **fields: Any) -> WriteResult:
        """Write one message and return what became of it; ``at=None`` says that nobody knows the time."""
        request = WriteRequest.parse(
            agent_id=self.agent, message=said, speaker_name=speaker, occurred_at=at or "unknown", **fields
        )
        item = envelope(request)
        record(item.model_dump(mode="json"))
        for _ in range(12):  # a try that waits is given back and dispatched again
            given = dispatch(self.agent)
            if given.run_id is None:
                break
            for stage in given.stages:
                outcome = run_stage(stage, given.run_id, given.fence)
                if isinstance(outcome, Applied | Parked):
                    return self.outcome(item.event_id)
                if not isinstance(outcome, Moved):
                    break
        raise AssertionError(f"the message came to no end: {self.rows('SELECT state, stage, cause FROM runs')}")

    def outcome(self, event_id: Any) -> WriteResult:
        """The WriteResult of an event, or the failure of its run."""
        (row,) = self.rows(OUTCOME, event=event_id)
        if row["state"] == "parked":
            error = f"{row['stage']}: {row['cause']}"
            return WriteResult(event_id=event_id, status="failed", success=False, error=error)
        return WriteResult.model_validate(row["result"])

    def rows(self, query: str, **values: Any) -> list[dict[str, Any]]:
        """Rows of a query; ``:agent`` is bound where it is named."""
        bound = {"agent": self.agent, **values} if ":agent" in query else values
        with autocommit() as connection:
            return [dict(row) for row in connection.execute(text(query), bound).mappings()]

    def facts(self, min_confidence: float = 0.55) -> list[dict[str, Any]]:
        """Active facts that readers see, in the order of their texts."""
        return self.rows(
            "SELECT * FROM memory_facts WHERE agent_id = :agent AND valid_to IS NULL AND kind = 'fact'"
            " AND confidence >= :least ORDER BY fact_text",
            least=min_confidence,
        )

    def texts(self, min_confidence: float = 0.55) -> list[str]:
        """The texts of ``facts``."""
        return [fact["fact_text"] for fact in self.facts(min_confidence)]

    def fact(self, said: str) -> dict[str, Any]:
        """The one stored fact with this text, active or not, however doubtful."""
        (found,) = self.rows("SELECT * FROM memory_facts WHERE agent_id = :agent AND fact_text = :said", said=said)
        return found

    def entity_keys(self) -> list[str]:
        """The keys of all entities."""
        found = self.rows("SELECT canonical_key FROM memory_entities WHERE agent_id = :agent ORDER BY canonical_key")
        return [row["canonical_key"] for row in found]

    def edges(self) -> set[tuple[str, str, str]]:
        """Live edges."""
        return {
            (row["source_entity_key"], row["rel_type"], row["target_entity_key"])
            for row in self.rows(
                "SELECT * FROM memory_entity_relationships WHERE agent_id = :agent AND valid_to IS NULL"
            )
        }

    def everything(self, *, but: tuple[str, ...] = ()) -> str:
        """Every row of every table as text: what must not be in there was never stored."""
        tables = [row["name"] for row in self.rows(
            "SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = 'public' AND c.relkind = 'r'"
        )]  # fmt: skip
        dump = [self.rows(f"SELECT t::text AS whole FROM {name} t") for name in tables if name not in but]
        return "\n".join(row["whole"] for rows in dump for row in rows)


@pytest.fixture(scope="module")
def case_database(postgres: EmbeddedPostgres, template: str) -> Iterator[str]:
    """One database for the cases of a module; each case has an agent of its own."""
    with fresh_database(postgres.url, template) as url:
        yield url


@pytest.fixture
def memory(case_database: str, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    """An empty memory whose models are the scripted ones; a failure is retried at once."""
    for name, value in {**scripted.environment(embeddings=True), "MANDUA_RETRY_BASE_SEC": "0"}.items():
        monkeypatch.setenv(name, value)
    life.leave()
    with bound(case_database, monkeypatch):
        life.worker_name()
        yield Memory(scripted, f"case-{next(_numbers)}")
        life.leave()
    assert scripted.errors == []
