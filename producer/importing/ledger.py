"""The ``imports`` row: what an import is, how far it is, and who is at it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID, uuid4

import psycopg
from psycopg.rows import dict_row

from producer.contract import RequestError
from producer.errors import ClientError
from producer.importing.options import Options
from producer.importing.pricing import Price

State = Literal["reading", "accepting", "accepted"]
Stopped = Literal["interrupted", "failed", "cost_limit"]
Connection = psycopg.Connection[Any]

BEGIN = "INSERT INTO imports (id, path, options, limit_usd) VALUES (%s, %s, %s, %s)"
LOAD = """
SELECT id, path, options, state, stopped, limit_usd, messages, blank, accepted, duplicates, rejected, calls, tokens,
       started_at, moved_at
  FROM imports WHERE id = %s
"""
LISTED = """
SELECT id, path, state, stopped, messages, accepted, duplicates, rejected, started_at, moved_at
  FROM imports ORDER BY started_at DESC, id LIMIT %s
"""
RESUME = "UPDATE imports SET stopped = NULL, limit_usd = coalesce(%s, limit_usd) WHERE id = %s"
STOP = "UPDATE imports SET stopped = %s, moved_at = mandua_now() WHERE id = %s AND state <> 'accepted'"
OUTCOME = "SELECT status, messages, cost_usd FROM import_outcome(%s)"
REJECTS = "SELECT file, line, reason, content, item FROM import_rejects(%s)"
CLEAR = "SELECT clear_import(%s)"

# Invariant: one process is at an import. The lock goes with its connection, so one that was killed leaves none.
LOCK = "SELECT pg_try_advisory_lock(hashtextextended(CAST(%s AS text), 0))"
UNLOCK = "SELECT pg_advisory_unlock(hashtextextended(CAST(%s AS text), 0))"

ACCEPT = "SELECT accepted, duplicates, rejected, agents, more FROM accept_staged(%s, %s, %s, %s, %s)"

# The time in which messages were before the workers, gaps left out, over the last 2,000 that finished within the last
# ten minutes; what waited longer than these took counts from the first of them on. Jobs are lane 2.
RATE = """
WITH recent AS (
  SELECT created_at, finished_at FROM runs
   WHERE finished_at > mandua_now() - interval '10 minutes' AND lane < 2 ORDER BY finished_at DESC LIMIT 2000
), spans AS (
  SELECT greatest(created_at, min(finished_at) OVER ()) AS begun, finished_at FROM recent
), ordered AS (
  SELECT begun, finished_at, max(finished_at) OVER (
           ORDER BY begun, finished_at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered FROM spans
)
SELECT count(*), extract(epoch FROM sum(greatest(interval '0', finished_at - greatest(begun, covered)))) FROM ordered
"""
# Fewer say nothing.
ENOUGH = 10


@dataclass(frozen=True, slots=True)
class Record:
    """An import as its row has it. ``calls`` and ``tokens`` are what the accepted messages are expected to cost."""

    id: UUID
    path: str
    options: dict[str, Any]
    state: State
    stopped: Stopped | None
    limit_usd: float | None
    messages: int
    blank: int
    accepted: int
    duplicates: int
    rejected: int
    calls: int
    tokens: int
    started_at: datetime
    moved_at: datetime

    @property
    def handled(self) -> int:
        """How many of the staged messages are events or duplicates by now."""
        return self.accepted + self.duplicates


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one step of accepting did. ``more``: messages are left."""

    accepted: int
    duplicates: int
    rejected: int
    agents: list[str]
    more: bool

    @property
    def rows(self) -> int:
        """How many messages it took."""
        return self.accepted + self.duplicates + self.rejected


def begin(connection: Connection, path: str, options: Options, limit_usd: float | None) -> UUID:
    """Make the row of a new import; returns its id."""
    import_id = uuid4()
    connection.execute(BEGIN, [import_id, path, json.dumps(options.dump()), limit_usd])
    return import_id


def load(connection: Connection, import_id: UUID) -> Record:
    """The import as it stands. Raises RequestError where there is none of this id."""
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(LOAD, [import_id]).fetchone()
    if row is None:
        raise RequestError(f"there is no import {import_id}; `mandua imports` lists them")
    return Record(**row)


def listed(connection: Connection, limit: int) -> list[dict[str, Any]]:
    """The newest imports: id, path, state, stopped, messages, accepted, duplicates, rejected, started_at, moved_at."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(LISTED, [limit]).fetchall()


@contextmanager
def alone(connection: Connection, import_id: UUID) -> Iterator[None]:
    """Be the only one at an import. Raises ClientError where somebody else is."""
    (got,) = connection.execute(LOCK, [str(import_id)]).fetchone() or (False,)
    if not got:
        raise ClientError(f"another process is at import {import_id}; let it end, or end it")
    try:
        yield
    finally:
        if not connection.closed and not connection.broken:
            connection.execute(UNLOCK, [str(import_id)])


def accept_chunk(
    connection: Connection, import_id: UUID, many: int, price: Price | None, budget: float | None
) -> Chunk | None:
    """Accept the next ``many`` messages, no more than are expected to cost ``budget`` US dollars (None: any).

    None where the import is not accepting.
    """
    token, reply = (price.token, price.reply) if price is not None else (0.0, 0.0)
    row = connection.execute(ACCEPT, [import_id, many, token, reply, budget]).fetchone()
    return None if row is None else Chunk(*row)


def rate(connection: Connection) -> float | None:
    """Messages that all workers together get through in a second, while they have any; None where few did lately."""
    many, seconds = connection.execute(RATE).fetchone() or (0, None)
    return (many - 1) / float(seconds) if many >= ENOUGH and seconds else None


def outcome(connection: Connection, import_id: UUID) -> tuple[dict[str, int], float]:
    """How the accepted messages ended, by status (``unfinished`` among them), and what they have cost, in US dollars.

    Runs that were removed when their time was over (MANDUA_KEEP_RUNS_DAYS) are in neither.
    """
    rows = connection.execute(OUTCOME, [import_id]).fetchall()
    return {status: many for status, many, _ in rows}, sum((usd for _, _, usd in rows), 0.0)
