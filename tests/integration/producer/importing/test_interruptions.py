"""Promise 1 for imports: whatever ends one, and whenever, it goes on where it stands, and every count is exact."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from producer import MemoryClient
from producer.connections import poll
from producer.importing import Options, run
from tests.integration.producer.importing.conftest import row

MESSAGES = 700

# An import in a process of its own, in steps of 100, that sends itself a signal when it is as far as told.
PROCESS = """
import os, sys
from uuid import UUID
from producer import MemoryClient
from producer.importing import Options, run, staging
run.CHUNK = staging.BLOCK = 100
url, what, phase, number, signal = sys.argv[1:]
def told(now, done, of):
    if now == phase and done == int(number):
        os.kill(os.getpid(), int(signal))
with MemoryClient(database_url=url, accept="database") as client:
    if what.startswith("/"):
        run.start(client, what, Options(), told=told)
    else:
        run.resume(client, UUID(what), told=told)
"""


def imported(url: str, what: object, phase: str, done: int, number: signal.Signals) -> int:
    process = subprocess.run(
        [sys.executable, "-c", PROCESS, url, str(what), phase, str(done), str(int(number))],
        check=False, capture_output=True, timeout=60,
    )  # fmt: skip
    return process.returncode


def exact(select: Callable[..., list[Any]], client: MemoryClient, import_id: UUID) -> None:
    """Everything is accepted once, in order, and the counts say so."""
    done = run.resume(client, import_id)
    assert (done.state, done.stopped) == ("accepted", None)
    assert (done.accepted, done.duplicates, done.rejected, done.empty, done.waiting) == (MESSAGES, 1, 2, 1, 0)
    assert select("SELECT count(*), count(DISTINCT event_id) FROM runs WHERE import_id = %s", import_id) == [
        (MESSAGES, MESSAGES)
    ]
    assert select("SELECT count(*) FROM memory_events") == [MESSAGES]
    assert select(
        "SELECT count(*) FROM (SELECT seq, row_number() OVER (PARTITION BY r.agent_id ORDER BY e.occurred_at) AS nth"
        " FROM runs r JOIN memory_events e ON e.id = r.event_id) o WHERE seq <> nth"
    ) == [0]
    again = run.start(client, Path(select("SELECT path FROM imports LIMIT 1")[0]), Options())
    assert (again.accepted, again.duplicates, again.rejected) == (0, MESSAGES + 1, 2)


def story() -> list[Any]:
    """Messages of three agents, the latest first, one of them twice, a blank one and two that are broken."""
    rows: list[Any] = [
        row(f"m{number}", f"2020-01-01T{number // 60:02}:{number % 60:02}:00Z", agent_id=f"agent {number % 3}",
            message_id=f"{number}")
        for number in reversed(range(MESSAGES))
    ]  # fmt: skip
    return [*rows[:50], "{", *rows[50:], row(" "), rows[0], "not json"]


def test_interrupted_and_killed_while_it_reads_and_while_it_accepts(
    history: Callable[..., Path], client: MemoryClient, database_url: str, select: Callable[..., list[Any]]
) -> None:
    file = history(*story())
    assert imported(database_url, file, "reading", 299, signal.SIGKILL) == -signal.SIGKILL
    ((import_id, state, stopped),) = select("SELECT id, state, stopped FROM imports")
    assert (state, stopped) == ("reading", None)
    assert select("SELECT count(*) FROM memory_events") == [0]

    assert imported(database_url, import_id, "accepting", 200, signal.SIGINT) != 0
    assert select("SELECT state, stopped, accepted FROM imports") == [("accepting", "interrupted", 200)]
    assert imported(database_url, import_id, "accepting", 400, signal.SIGKILL) == -signal.SIGKILL
    assert select("SELECT state, stopped, accepted FROM imports") == [("accepting", None, 400)]
    exact(select, client, import_id)


def test_killed_in_the_middle_of_an_accept(
    history: Callable[..., Path], client: MemoryClient, database_url: str, select: Callable[..., list[Any]]
) -> None:
    """Held up at the agents' lock: whether the server still commits that chunk or not, the counts are exact."""
    waiting = "SELECT pid FROM pg_stat_activity WHERE query LIKE '%%accept_staged%%' AND wait_event_type = 'Lock'"
    alive = "SELECT pid FROM pg_stat_activity WHERE query LIKE '%%accept_staged%%' AND pid <> pg_backend_pid()"
    select("INSERT INTO agent_seq (agent_id) VALUES ('agent 1')")
    with psycopg.connect(database_url) as other:
        other.execute("SELECT 1 FROM agent_seq FOR UPDATE")
        process = subprocess.Popen(
            [sys.executable, "-c", PROCESS, database_url, str(history(*story())), "-", "0", "0"],
            env=os.environ, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert poll(lambda: select(waiting) or None, 30)
        process.kill()
        process.wait()
    assert poll(lambda: None if select(alive) else True, 30)
    exact(select, client, select("SELECT id FROM imports")[0])
