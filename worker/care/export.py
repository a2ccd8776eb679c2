"""A memory as JSON lines, whole: every row of the agent, as the database has it (behaviour: 12)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Engine, text

from worker import schema
from worker.care.tables import AGENT_TABLES

FORMAT = 1
ROWS_A_BATCH = 500

# Generated columns are made anew where the rows are put back.
COLUMNS = """
SELECT array_agg(c.column_name::text ORDER BY c.ordinal_position) FROM information_schema.columns c
 WHERE c.table_schema = 'public' AND c.table_name = :table AND c.is_generated = 'NEVER'
   AND NOT (c.is_identity = 'YES')
"""
WIDTH = """
SELECT format_type(atttypid, atttypmod) FROM pg_attribute
 WHERE attrelid = 'memory_facts'::regclass AND attname = 'embedding'
"""
KNOWN = "SELECT 1 FROM agent_seq WHERE agent_id = :agent"


def export(bind: Engine, agent_id: str) -> Iterator[dict[str, Any]]:
    """Everything of an agent, as objects that are one JSON line each, read in one snapshot.

    The first is the header: ``mandua_export`` (the version of this format), ``schema`` (the revision of the database),
    ``vectors`` (their type), ``agent_id``, ``columns`` by table. Then ``{"table", "row"}``, tables in an order in which
    they can be put back; times are ISO with offset, vectors text, bytes hex. The last is ``{"end": rows by table}``:
    without it the file is cut off. Holds a batch of 500 rows, never the memory. Raises LookupError for an agent of whom
    there is nothing.
    """
    revision = schema.head()
    with bind.connect().execution_options(isolation_level="REPEATABLE READ") as connection, connection.begin():
        connection.execute(text("SET TRANSACTION READ ONLY"))
        connection.execute(text("SET LOCAL timezone = 'UTC'"))
        connection.execute(text("SET LOCAL statement_timeout = '30min'"))
        if connection.execute(text(KNOWN), {"agent": agent_id}).first() is None:
            raise LookupError(f"there is no agent {agent_id}")
        columns = {
            table: connection.execute(text(COLUMNS), {"table": table}).scalar_one() for table, _, _ in AGENT_TABLES
        }
        yield {"mandua_export": FORMAT, "schema": revision, "vectors": connection.execute(text(WIDTH)).scalar_one(),
               "agent_id": agent_id, "columns": columns}  # fmt: skip
        counts: dict[str, int] = {}
        for table, which, order in AGENT_TABLES:
            listed = ", ".join(f't."{name}"' for name in columns[table])
            query = f"SELECT to_jsonb(o) FROM (SELECT {listed} FROM {table} t WHERE {which} ORDER BY {order}) o"  # noqa: S608
            streamed = connection.execution_options(stream_results=True, yield_per=ROWS_A_BATCH)
            counts[table] = 0
            for row in streamed.execute(text(query), {"agent": agent_id}).scalars():
                counts[table] += 1
                yield {"table": table, "row": row}
        yield {"end": counts}
