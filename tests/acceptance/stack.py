"""A whole product for a test: its own database, broker, scripted model, real worker and beat processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

import psycopg
import redis
from psycopg.rows import dict_row

from producer import MemoryClient, WriteResult
from producer.queues import is_rabbitmq
from tests.processes import CeleryProcess, start_beat, start_worker
from tests.rabbitmq import RabbitMQ
from tests.scripted_model import ScriptedModel

T = TypeVar("T")

# Deaths are noticed within seconds here; a real deployment takes the defaults.
QUICK = {
    "MANDUA_HEARTBEAT_SEC": "0.5",
    "MANDUA_SILENT_AFTER_SEC": "2.5",
    "MANDUA_RESEND_AFTER_SEC": "3",
    "MANDUA_SWEEP_SEC": "1",
    "MANDUA_RETRY_BASE_SEC": "0.1",
    "MANDUA_JOB_PLAN_SEC": "3600",  # no background job takes a turn in a test that is not about it
}


@dataclass
class Stack:
    """Addresses, the model, and the processes that were started here."""

    database_url: str
    broker_url: str
    model: ScriptedModel
    processes: list[CeleryProcess] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)  # of this test's own

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process of this stack gets to see."""
        return {
            **self.model.environment(embeddings=True),
            **QUICK,
            **self.settings,
            "DATABASE_URL": self.database_url,
            "MANDUA_BROKER_URL": self.broker_url,
        }

    def worker(self, **options: Any) -> CeleryProcess:
        """Start a worker and wait until it is ready."""
        process = start_worker(self.environment, **options)
        self.processes.append(process)
        return process

    def beat(self) -> CeleryProcess:
        """Start beat."""
        process = start_beat(self.environment)
        self.processes.append(process)
        return process

    def client(self, accept: Any = "worker") -> MemoryClient:
        """A client as a chat backend has one."""
        return MemoryClient(self.broker_url, self.database_url, accept=accept)

    def forget_broker(self) -> None:
        """Empty the broker, as if its disk was lost."""
        if is_rabbitmq(self.broker_url):
            RabbitMQ(self.broker_url).forget_all()
        else:
            with redis.Redis.from_url(self.broker_url) as broker:
                broker.flushdb()

    def rows(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        """Rows as dicts."""
        with psycopg.connect(self.database_url, row_factory=dict_row) as connection:
            return connection.execute(query, parameters or None).fetchall()

    def facts(self, agent: str) -> list[str]:
        """The active facts of an agent, oldest first."""
        found = self.rows(
            "SELECT fact_text FROM memory_facts WHERE agent_id = %s AND valid_to IS NULL ORDER BY ingested_at, id",
            agent,
        )
        return [row["fact_text"] for row in found]

    def until(self, look: Callable[[], T], timeout: float = 45.0) -> T:
        """Ask ``look`` until it answers something true. Raises TimeoutError with what the processes last printed."""
        deadline = time.monotonic() + timeout
        while not (found := look()):
            if time.monotonic() > deadline:
                tails = "\n---\n".join(process.output[-3000:] for process in self.processes)
                raise TimeoutError(f"still {found!r} after {timeout} s\n{tails}")
            time.sleep(0.02)
        return found

    def results(self, events: list[UUID], timeout: float = 60.0) -> list[WriteResult]:
        """The results of events, all of them waited for."""
        with self.client() as client:
            return [self.until(lambda event=event: client.result(event), timeout) for event in events]

    def close(self) -> None:
        """End every process, the last started first."""
        for process in reversed(self.processes):
            process.stop()


@contextmanager
def running(database_url: str, broker_url: str) -> Iterator[Stack]:
    """A stack without processes; those that the test starts are ended here."""
    with ScriptedModel() as model:
        stack = Stack(database_url, broker_url, model)
        try:
            yield stack
        finally:
            stack.close()


def lives_in(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A reply to "I live in PLACE": one person, one place, one fact, one relation."""
    speaker, place = payload["speaker"], payload["message"].removeprefix("I live in ").strip(" .")
    return {
        "entities": [
            {"name": speaker, "type": "person", "aliases": []},
            {"name": place, "type": "place", "aliases": []},
        ],
        "facts": [
            {
                "subject": speaker, "text": f"{speaker} lives in {place}", "action": "NEW",
                "confidence_level": "explicit_statement", "importance_category": "relationship_change",
            }
        ],
        "relations": [{"source": speaker, "target": place, "rel_type": "lives_in"}],
        "updated_profiles": [],
        "emotion": {"primary": "neutral", "intensity": 0.0, "energy_level": "medium"},
    }  # fmt: skip
