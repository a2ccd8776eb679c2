"""Putting an exported memory back (behaviour: 12): all of it or, where anything is wrong, nothing."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Any

from sqlalchemy import Engine, text
from sqlalchemy.engine import Connection

from worker.care.export import COLUMNS, FORMAT, KNOWN, ROWS_A_BATCH, WIDTH
from worker.care.tables import AGENT_TABLES, ANALYZE
from worker.db import autocommit


class RestoreError(Exception):
    """The export cannot be put back; ``str()`` is one line that says why. Nothing was changed."""


# Rows that point to others of their table come before what they point to.
DEFERRED = """
SET CONSTRAINTS memory_facts_supersedes_fact_id_fkey, memory_facts_merged_into_fkey,
  memory_entities_agent_id_merged_into_fkey DEFERRED
"""
FORGOTTEN = "SELECT count(*) FROM forgotten_events WHERE event_id = ANY (CAST(:events AS uuid[]))"
# What was redacted when it was exported stays forgotten, in a database that never knew of it, too.
REDACTED = ("forgotten", "[forgotten]")
STILL_FORGOTTEN = """
WITH redacted AS (
  SELECT e.id FROM memory_events e
   WHERE e.agent_id = :agent AND e.source = 'forgotten' AND e.message = '[forgotten]'
     AND NOT EXISTS (SELECT 1 FROM forgotten_events f WHERE f.event_id = e.id)
), receipt AS (
  INSERT INTO forget_receipts (kind, salt, digest, counts)
  SELECT 'event', :salt, sha256(CAST(:salt AS bytea) || convert_to(:agent, 'UTF8')),
         jsonb_build_object('events_redacted', count(*)) FROM redacted HAVING count(*) > 0 RETURNING id
)
INSERT INTO forgotten_events (event_id, receipt_id) SELECT d.id, r.id FROM redacted d CROSS JOIN receipt r
"""
UNFORGET = "DELETE FROM forgotten_events WHERE event_id = ANY (CAST(:events AS uuid[]))"


def restore(bind: Engine, lines: Iterable[dict[str, Any]], *, even_forgotten: bool = False) -> dict[str, int]:
    """Put back what ``export`` gave, in one transaction; returns rows by table.

    The agent must not exist. An export of an older schema is taken as long as all of its columns are there, its vectors
    have the database's width, and what it lacks has a default. Events that were forgotten since are not brought back:
    RestoreError, unless ``even_forgotten``. Needs the owner of the tables. Raises RestoreError.
    """
    reading = iter(lines)
    header = next(reading, None)
    if not isinstance(header, dict) or "mandua_export" not in header:
        raise RestoreError("this is no export of mandua: its first line says nothing of it")
    if header["mandua_export"] != FORMAT:
        raise RestoreError(f"this export has format {header['mandua_export']}; here {FORMAT} is read")
    with bind.connect() as connection, connection.begin():
        connection.execute(text("SET LOCAL statement_timeout = '30min'"))
        _check(connection, header)
        connection.execute(text(DEFERRED))
        counts = dict.fromkeys((table for table, _, _ in AGENT_TABLES), 0)
        ended: dict[str, int] | None = None
        for table, rows in _batches(reading):
            if table == "":
                ended = rows[0]
                break
            if table not in counts:
                raise RestoreError(f"this export has a table {table}, which is unknown here")
            if any(row.get("agent_id", header["agent_id"]) != header["agent_id"] for row in rows):
                raise RestoreError(f"this export has rows of {table} that are another agent's")
            if table == "memory_events":
                told = [row["id"] for row in rows if (row["source"], row["message"]) != REDACTED]
                _mind_the_forgotten(connection, told, even_forgotten=even_forgotten)
            _insert(connection, table, header["columns"][table], rows)
            counts[table] += len(rows)
        if ended != counts:
            raise RestoreError("this export is cut off or was changed: its last line counts other rows")
        connection.execute(text("SET CONSTRAINTS ALL IMMEDIATE"))
        connection.execute(text(STILL_FORGOTTEN), {"agent": header["agent_id"], "salt": secrets.token_bytes(16)})
    with autocommit(bind) as connection:
        connection.execute(text(ANALYZE))
    return counts


def _check(connection: Connection, header: dict[str, Any]) -> None:
    width = connection.execute(text(WIDTH)).scalar_one()
    if header["vectors"] != width:
        raise RestoreError(f"this export has vectors of {header['vectors']}, this database of {width}")
    for table, columns in header["columns"].items():
        unknown = set(columns) - set(connection.execute(text(COLUMNS), {"table": table}).scalar_one() or ())
        if unknown:
            raise RestoreError(
                f"this export (schema {header['schema']}) has columns of {table} that are unknown here: "
                f"{', '.join(sorted(unknown))}; run `mandua migrate`"
            )
    there = connection.execute(text(KNOWN), {"agent": header["agent_id"]}).first()
    if there is not None:
        raise RestoreError(f"agent {header['agent_id']} is there already; forget it first (`mandua forget --agent`)")


def _mind_the_forgotten(connection: Connection, events: list[str], *, even_forgotten: bool) -> None:
    many = connection.execute(text(FORGOTTEN), {"events": events}).scalar_one()
    if many and not even_forgotten:
        raise RestoreError(f"{many} messages of this export were forgotten since; --even-forgotten brings them back")
    if many:
        connection.execute(text(UNFORGET), {"events": events})


def _insert(connection: Connection, table: str, columns: list[str], rows: list[dict[str, Any]]) -> None:
    listed = ", ".join(f'"{name}"' for name in columns)
    connection.execute(
        text(
            f"INSERT INTO {table} ({listed})"  # noqa: S608
            f" SELECT {listed} FROM jsonb_populate_recordset(CAST(NULL AS {table}), CAST(:rows AS jsonb))"
        ),
        {"rows": json.dumps(rows, ensure_ascii=False)},
    )


def _batches(lines: Iterator[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Rows of one table at a time, at most 500; the last line as a table without a name."""
    for table, group in groupby(lines, key=lambda line: line.get("table", "")):
        if table == "":
            yield "", [next(group).get("end") or {}]
            return
        while rows := [line["row"] for line in islice(group, ROWS_A_BATCH)]:
            yield table, rows
