"""The sweeper: finds what the broker or a dead worker has dropped. Everything else may be lost, Postgres is not."""

from __future__ import annotations

from sqlalchemy import text

from worker.db import autocommit
from worker.turns.dispatch import UNDER_WAY
from worker.turns.life import LIVING, periods

# Invariant: an agent with something unfinished has a wake_at, so it is found here once its turn is free, its holder
# dead or its task lost. Oldest first, so that nobody starves.
DUE_AGENTS = f"""
SELECT s.agent_id
  FROM agent_seq s JOIN agent_turns t ON t.agent_id = s.agent_id LEFT JOIN workers w ON w.name = t.worker
 WHERE s.wake_at <= mandua_now() - interval '1 second'
   AND CASE WHEN t.run_id IS NULL THEN true
            WHEN t.stage_token IS NULL
              THEN NOT ({UNDER_WAY})
            ELSE NOT (t.lease_until > mandua_now() AND coalesce({LIVING}, false)) END
 ORDER BY s.wake_at LIMIT :many
"""  # noqa: S608

FORGET_WORKERS = "DELETE FROM workers WHERE heartbeat_at < mandua_now() - interval '1 hour'"
FORGET_DRY_RUNS = "DELETE FROM dry_runs WHERE created_at < mandua_now() - interval '10 minutes'"
FORGET_RECORDS = "DELETE FROM failed_records WHERE recorded_at < mandua_now() - interval '7 days'"


def due_agents(many: int = 500) -> list[str]:
    """Agents that wait for a dispatch which nobody will send, oldest first."""
    with autocommit() as connection:
        return list(connection.execute(text(DUE_AGENTS), {"many": many, **periods()}).scalars())


def clean_up() -> None:
    """Remove rows that only mattered for minutes: workers long gone, dry runs, refused records."""
    with autocommit() as connection:
        for statement in (FORGET_WORKERS, FORGET_DRY_RUNS, FORGET_RECORDS):
            connection.execute(text(statement))
