"""Replay: a parked run comes back as a new run of the same event, in the bulk lane, with the same time and request."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import text

from worker.db import engine

# Invariant: an event has at most one unfinished run; seq is given under agent_seq's lock, like at accept.
REPLAY = """
WITH wanted AS (
  SELECT DISTINCT ON (r.event_id) r.event_id, r.agent_id, r.request, r.state
    FROM runs r WHERE r.event_id = ANY (:events) ORDER BY r.event_id, r.created_at DESC, r.seq DESC
), parked AS (
  SELECT w.*, row_number() OVER (PARTITION BY w.agent_id ORDER BY e.occurred_at, e.recorded_at, e.id) AS nth,
         count(*) OVER (PARTITION BY w.agent_id) AS many
    FROM wanted w JOIN memory_events e ON e.id = w.event_id WHERE w.state = 'parked'
), moved AS (
  UPDATE agent_seq s SET next_seq = s.next_seq + p.many, wake_at = mandua_now()
    FROM (SELECT DISTINCT agent_id, many FROM parked) p WHERE s.agent_id = p.agent_id
  RETURNING s.agent_id, s.next_seq - p.many AS base
)
INSERT INTO runs (id, event_id, agent_id, seq, lane, request)
SELECT gen_random_uuid(), p.event_id, p.agent_id, m.base + p.nth - 1, 1, p.request
  FROM parked p JOIN moved m ON m.agent_id = p.agent_id
RETURNING agent_id
"""
LOCK_AGENTS = """
SELECT agent_id FROM agent_seq WHERE agent_id IN (SELECT agent_id FROM runs WHERE event_id = ANY (:events))
 ORDER BY agent_id FOR NO KEY UPDATE
"""


def replay(events: Sequence[UUID]) -> list[str]:
    """Re-enter the parked runs of ``events``; returns the agents (one entry a run) that are to be dispatched.

    Events whose newest run is not parked are passed over.
    """
    with engine().begin() as connection:
        connection.execute(text(LOCK_AGENTS), {"events": list(events)})
        return [row.agent_id for row in connection.execute(text(REPLAY), {"events": list(events)})]
