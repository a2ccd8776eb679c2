"""The scene of the chaos: servers and processes that may be killed, producers that do not give up, a look at it all.

Nothing here waits for a time to pass; everything waits for a row, a process or a message to be there.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

from producer import MemoryClient
from producer.client import ClientError
from tests.chaos.billing import BillingModel
from tests.chaos.story import Said
from worker.local import proc
from worker.local.postgres import EmbeddedPostgres
from worker.local.processes import Backoff, ProcessRunner
from worker.local.procfile import ProcessLine
from worker.local.valkey import EmbeddedValkey

PATIENCE = 240.0

# Deaths are noticed within seconds, and not where a busy machine is only slow.
INTERVALS = {
    "MANDUA_HEARTBEAT_SEC": "0.5",
    "MANDUA_SILENT_AFTER_SEC": "4",
    "MANDUA_RESEND_AFTER_SEC": "5",
    "MANDUA_SWEEP_SEC": "1",
    "MANDUA_RETRY_BASE_SEC": "0.1",
}

_WORKER = (
    "celery -A worker.app worker --pool {pool} --concurrency {many} -n {pool}@%h --without-gossip --without-mingle"
    " -Q turns,record,live,ahead,maintenance,bulk,bulk_ahead"
)
LINES = [
    ProcessLine("threads", _WORKER.format(pool="threads", many=8)),
    ProcessLine("prefork", _WORKER.format(pool="prefork", many=3)),
    ProcessLine("beat", "celery -A worker.app beat"),
]
WORKERS = ("threads", "prefork")

AT_WORK = """
SELECT worker FROM agent_turns WHERE stage_token IS NOT NULL
UNION ALL SELECT ahead_worker FROM runs WHERE ahead_token IS NOT NULL AND finished_at IS NULL
"""
HELD = "SELECT worker, run_id FROM agent_turns WHERE stage_token IS NOT NULL"
STANDING = """
SELECT state, stage, cause, error_code, count(*) AS many, max(waits) AS waits, max(ready_at) - now() AS ready
  FROM runs GROUP BY 1, 2, 3, 4
"""
COUNTS = """
SELECT (SELECT count(*) FROM memory_events) AS events,
       count(*) FILTER (WHERE r.kind = 'message') AS runs,
       count(r.finished_at) FILTER (WHERE r.kind = 'message') AS finished,
       count(*) FILTER (WHERE r.kind = 'job' AND r.finished_at IS NULL) AS jobs_under_way
  FROM runs r
"""


@dataclass
class Scene:
    """Everything that takes part. ``log`` tells what happened when, in seconds since the beginning."""

    postgres: EmbeddedPostgres
    valkey: EmbeddedValkey
    model: BillingModel
    runner: ProcessRunner
    log: list[str] = field(default_factory=list)
    producers: list[Producer] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        """Note what happens."""
        self.log.append(f"{time.monotonic() - self.began:6.1f} s  {text}")
        print(self.log[-1], flush=True)

    def rows(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        """Rows as dicts. Raises psycopg.OperationalError while the database is down."""
        with psycopg.connect(self.postgres.url, row_factory=dict_row, connect_timeout=5) as connection:
            return connection.execute(query, parameters or None).fetchall()

    def failed(self) -> bool:
        """Whether a producer gave up, so that there is nothing to wait for."""
        return any(producer.error is not None for producer in self.producers)

    def counts(self) -> dict[str, int]:
        """How many events, runs of messages and finished ones there are, and how many jobs are under way."""
        return self.rows(COUNTS)[0]

    def until(self, look: Callable[[], Any], what: str, timeout: float = PATIENCE) -> bool:
        """Ask ``look`` until it answers something true; False after ``timeout`` seconds. A database that is down
        answers nothing."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self.failed():
                return False
            try:
                if look():
                    return True
            except psycopg.OperationalError:
                pass
            time.sleep(0.03)
        self.say(f"waited in vain: {what}; {self.look()}")
        return False

    def look(self) -> str:
        """How it stands, for whoever reads the log."""
        try:
            return "; ".join(str(dict(row)) for row in self.rows(STANDING))
        except psycopg.OperationalError as error:
            return f"no database ({type(error).__name__})"

    def pids(self, name: str) -> set[int]:
        """The processes of one line: Celery's main one, its children, and a run's own."""
        main = self.runner.pids().get(name)
        return set() if main is None else {main, *proc.group_members(main)}

    def at_work(self, name: str) -> set[int]:
        """Those of them that are in the middle of a stage just now."""
        pids = self.pids(name)
        return {pid for row in self.rows(AT_WORK) if (pid := int(row["worker"].split(":")[1])) in pids}

    def held(self, name: str) -> list[UUID]:
        """The runs that they hold the turn of, and are at work on."""
        pids = self.pids(name)
        return [row["run_id"] for row in self.rows(HELD) if int(row["worker"].split(":")[1]) in pids]

    def unfinished(self, runs: Sequence[UUID]) -> bool:
        """Whether any of ``runs`` is."""
        return bool(self.rows("SELECT 1 FROM runs WHERE id = ANY (%s) AND finished_at IS NULL", list(runs)))


def environment(
    postgres: EmbeddedPostgres, valkey: EmbeddedValkey, model: BillingModel, config: Path, more: Mapping[str, str]
) -> dict[str, str]:
    """What the processes get to see."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MANDUA_")}
    return {
        **kept, **model.environment(embeddings=True), **INTERVALS, "DATABASE_URL": postgres.url,
        "MANDUA_BROKER_URL": valkey.url, "MANDUA_CONFIG": str(config), **more,
    }  # fmt: skip


def runner(env: Mapping[str, str], logs: Path) -> ProcessRunner:
    """Both pools and beat, each started again when it ends."""
    return ProcessRunner(
        LINES, env, cwd=Path(__file__).parents[2], log_dir=logs, backoff=Backoff(first=0.1, longest=1.0), grace=20
    )


class Producer(threading.Thread):
    """A backend that hands its messages in, in order, and sends again whatever was not confirmed."""

    def __init__(self, scene: Scene, said: Sequence[Said], *, by_worker: bool, ahead: int) -> None:
        super().__init__(daemon=True)
        self._scene = scene
        self._batches = _batches([item for item in said if item.by_worker is by_worker])
        self._by_worker = by_worker
        self._ahead = ahead
        self.statuses: dict[str, str] = {}
        self.error: BaseException | None = None

    def run(self) -> None:
        """Hand everything in; at most ``ahead`` messages may be unfinished when a batch goes out."""
        accept: Literal["worker", "database"] = "worker" if self._by_worker else "database"
        try:
            with MemoryClient(self._scene.valkey.url, self._scene.postgres.url, accept=accept) as client:
                for batch in self._batches:
                    self._scene.until(lambda: self._unfinished() < self._ahead, "room for more messages")
                    self._hand_in(client, batch)
        except BaseException as error:
            self.error = error
            self._scene.say(f"a producer gave up: {''.join(traceback.format_exception(error))}")

    def _unfinished(self) -> int:
        counts = self._scene.counts()
        return counts["runs"] - counts["finished"]

    def _hand_in(self, client: MemoryClient, batch: Sequence[Said]) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                handles = client.enqueue_many(
                    [item.request() for item in batch], bulk=batch[0].bulk, resend=self._by_worker, timeout=10
                )
            except ClientError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)  # as a producer that tries again: nothing tells it that a server is back
                continue
            for item, handle in zip(batch, handles, strict=True):
                refused = isinstance(handle, Exception)
                self.statuses[item.message_id] = type(handle).__name__ if refused else handle.status
            return


def _batches(said: Sequence[Said]) -> list[list[Said]]:
    """Batches of one lane, no agent twice in one: what is sent in the same instant has no order of its own."""
    turns = sorted({item.turn for item in said})
    return [
        batch
        for turn in turns
        for bulk in (False, True)
        if (batch := [item for item in said if item.turn == turn and item.bulk is bulk])
    ]
