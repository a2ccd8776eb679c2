"""The benchmark's servers and processes: embedded, in a folder of their own, gone afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import redis

from producer import MemoryClient
from worker import schema
from worker.local.errors import LocalStackError
from worker.local.postgres import EmbeddedPostgres
from worker.local.valkey import EmbeddedValkey

ROOT = Path(__file__).parents[2]
PATIENCE = 900.0

# As the Procfile has them, with the slots that a measurement asks for.
WORKER = (
    "worker", "--pool", "threads", "--without-gossip", "--without-mingle",
)  # fmt: skip
ALL_QUEUES = "turns,live,record,ahead,maintenance,bulk,bulk_ahead"
LIVE_QUEUES = "turns,record,live,ahead,maintenance"


class Model:
    """The model's process; see ``worker.bench.model``."""

    def __init__(self, *, people: int, latency: float, width: int = 384) -> None:
        arguments = ["--people", str(people), "--latency", str(latency), "--width", str(width)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "worker.bench.model", *arguments],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}/v1"

    def calls(self) -> dict[str, int]:
        """How many calls of each kind came in since the last reset, and their tokens."""
        with urllib.request.urlopen(f"{self.url}/calls") as reply:
            counted: dict[str, int] = json.load(reply)
        return counted

    def reset(self) -> None:
        """Count from here."""
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/reset", method="POST", data=b"{}")).close()

    def environment(self) -> dict[str, str]:
        """What makes a process use this model, embeddings included."""
        return {
            "MANDUA_LLM_MODEL": "openai/scripted", "OPENAI_API_KEY": "scripted", "OPENAI_BASE_URL": self.url,
            "OPENAI_API_BASE": self.url, "MANDUA_EMBEDDING_MODEL": "openai/scripted-embedding",
            "MANDUA_EMBEDDING_DIMENSIONS": "384", "NO_PROXY": "127.0.0.1,localhost",
        }  # fmt: skip

    def stop(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


class Celery:
    """One ``celery`` process whose output is watched for a line."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], *, app: str = "worker.app"
    ) -> None:
        program = str(Path(sys.executable).parent / "celery")
        self._tail: list[str] = []
        self.process = subprocess.Popen(
            [program, "-A", app, *arguments], cwd=ROOT, env={**os.environ, **environment},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        self._ready = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._tail = [*self._tail[-30:], line]
            if " ready" in line:
                self._ready.set()
        self._ready.set()

    def wait_ready(self, seconds: float = 60.0) -> None:
        """Wait until it says that it is ready. Raises LocalStackError when it does not."""
        if not self._ready.wait(seconds) or self.process.poll() is not None:
            raise LocalStackError("a worker of the benchmark did not start:\n" + "".join(self._tail))

    def stop(self) -> None:
        """End it, at once if it does not drain within a minute."""
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass
class Scene:
    """Servers, a database of its own for each measurement, and the processes that it started."""

    postgres: EmbeddedPostgres
    valkey: EmbeddedValkey
    folder: Path
    database_url: str = ""
    say: Callable[[str], None] = lambda _: None
    processes: list[Celery] = field(default_factory=list)
    _numbers: int = 0

    def fresh(self, *, migrated: bool = True) -> str:
        """A new database and an empty broker; returns the database's address."""
        self._numbers += 1
        name = f"bench{self._numbers}"
        with psycopg.connect(self.postgres.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        self.database_url = f"{self.postgres.url.rpartition('/')[0]}/{name}"
        if migrated:
            schema.upgrade(self.database_url)
        with redis.Redis.from_url(self.valkey.url) as broker:
            broker.flushdb()
        return self.database_url

    def environment(self, model: Model | None = None, **more: str) -> dict[str, str]:
        """What a process of this measurement gets to see."""
        return {
            "DATABASE_URL": self.database_url, "MANDUA_BROKER_URL": self.valkey.url, "MANDUA_LOG_LEVEL": "INFO",
            "MANDUA_JOB_PLAN_SEC": "86400", **(model.environment() if model else {}), **more,
        }  # fmt: skip

    @contextlib.contextmanager
    def workers(
        self, environment: Mapping[str, str], *shapes: tuple[int, str], app: str = "worker.app"
    ) -> Iterator[list[Celery]]:
        """Workers of (slots, queues) and a beat, ready; ended afterwards."""
        started = [
            Celery([*WORKER, "--concurrency", str(slots), "-n", f"w{number}@%h", "-Q", queues], environment, app=app)
            for number, (slots, queues) in enumerate(shapes)
        ]
        beat = Celery(["beat", "--schedule", str(self.folder / f"beat{self._numbers}")], environment)
        try:
            for worker in started:
                worker.wait_ready()
            yield started
        finally:
            for process in [*started, beat]:
                process.stop()

    def client(self, accept: Any = "database") -> MemoryClient:
        """A producer's client."""
        return MemoryClient(self.valkey.url, self.database_url, accept=accept)

    def value(self, query: str, *parameters: Any) -> Any:
        """The first column of the first row."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            row = connection.execute(query, parameters or None).fetchone()
        return row[0] if row else None

    def rows(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """All rows."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            return connection.execute(query, parameters or None).fetchall()

    def until_finished(self, many: int, seconds: float = PATIENCE) -> float:
        """Wait until ``many`` runs of messages have finished; returns how many seconds that took."""
        began = time.monotonic()
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            while True:
                row = connection.execute("SELECT count(*) FROM runs WHERE finished_at IS NOT NULL").fetchone()
                if row and row[0] >= many:
                    return time.monotonic() - began
                if time.monotonic() - began > seconds:
                    raise LocalStackError(f"the benchmark waited {seconds:.0f} s for {many} messages, {row} are done")
                time.sleep(0.05)


def cache_folder() -> Path:
    """Where the benchmark keeps what takes long to make."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mandua" / "bench"


@contextlib.contextmanager
def scene(say: Callable[[str], None]) -> Iterator[Scene]:
    """The servers; as durable as ``mandua up`` has them."""
    with tempfile.TemporaryDirectory(prefix="mandua-bench-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        postgres, valkey = EmbeddedPostgres(folder / "postgres", durable=True), EmbeddedValkey(folder / "valkey")
        try:
            postgres.start()
            valkey.start()
            yield Scene(postgres, valkey, folder, say=say)
        finally:
            valkey.stop()
            postgres.stop()


@contextlib.contextmanager
def model(**options: Any) -> Iterator[Model]:
    """The model, until the block ends."""
    made = Model(**options)
    try:
        yield made
    finally:
        made.stop()
