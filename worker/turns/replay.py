"""Replay: a parked run comes back as a new run of the same event, in the bulk lane, with the same time and request.

It goes on from where its plans still hold. The extraction is kept if it was made by this version of the code, so that a
message that was read is not paid for again. Who is meant and what is new are asked anew in any case: the agent's memory
has moved on since, and no plan but the extraction may be older than its turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.engine import Engine

from worker.db import autocommit, engine, sql
from worker.read.ledger import CHOSEN, STANDS, Choice
from worker.write.plans import PLAN_VERSION

EVENTS_A_BATCH = 500

_FROM_STAGE = "CASE WHEN p.extraction ->> 'plan_version' = :plan_version THEN 'resolve' ELSE 'extract' END"

# Invariant: an event has at most one unfinished run; seq is given under agent_seq's lock, like at accept. The plans
# move to the new run: replies that were kept stand, calls that were sent are the old run's affair.
REPLAY = f"""
WITH wanted AS (
  SELECT DISTINCT ON (r.event_id) r.id, r.event_id, r.agent_id, r.request, r.state, r.import_id
    FROM runs r WHERE r.event_id = ANY (:events) ORDER BY r.event_id, r.created_at DESC, r.seq DESC
), parked AS (
  SELECT w.*, {_FROM_STAGE} AS from_stage,
         row_number() OVER (PARTITION BY w.agent_id ORDER BY e.occurred_at, e.recorded_at, e.id) AS nth,
         count(*) OVER (PARTITION BY w.agent_id) AS many
    FROM wanted w JOIN memory_events e ON e.id = w.event_id LEFT JOIN run_plans p ON p.run_id = w.id
   WHERE w.state = 'parked'
), moved AS (
  UPDATE agent_seq s SET next_seq = s.next_seq + p.many, wake_at = mandua_now()
    FROM (SELECT DISTINCT agent_id, many FROM parked) p WHERE s.agent_id = p.agent_id
  RETURNING s.agent_id, s.next_seq - p.many AS base
), placed AS (
  INSERT INTO runs (id, event_id, agent_id, seq, lane, stage, request, import_id)
  SELECT gen_random_uuid(), p.event_id, p.agent_id, m.base + p.nth - 1, 1, p.from_stage, p.request, p.import_id
    FROM parked p JOIN moved m ON m.agent_id = p.agent_id
  RETURNING id, event_id, agent_id, stage
), plans AS (
  UPDATE run_plans o SET run_id = n.id, resolution = NULL, reconciliation = NULL, sent = '{{}}',
         extraction = CASE WHEN n.stage = 'resolve' THEN o.extraction END
    FROM placed n JOIN parked p ON p.event_id = n.event_id WHERE o.run_id = p.id
)
SELECT agent_id, stage FROM placed
"""  # noqa: S608
LOCK_AGENTS = """
SELECT agent_id FROM agent_seq WHERE agent_id IN (SELECT agent_id FROM runs WHERE event_id = ANY (:events))
 ORDER BY agent_id FOR NO KEY UPDATE
"""

# Invariant: what was parked after ``until`` is not taken, so that a message that fails again is not replayed for ever.
CHOOSE = f"""
SELECT r.event_id, r.agent_id, {_FROM_STAGE} AS stage FROM runs r LEFT JOIN run_plans p ON p.run_id = r.id
 WHERE {STANDS} AND r.event_id IS NOT NULL AND {CHOSEN} AND r.finished_at <= :until
 ORDER BY r.finished_at, r.event_id LIMIT :many
"""  # noqa: S608
NOW = "SELECT mandua_now()"


@dataclass
class Replayed:
    """What a replay did: runs by the stage they go on from, and by agent."""

    by_stage: Counter[str] = field(default_factory=Counter)
    by_agent: Counter[str] = field(default_factory=Counter)

    @property
    def runs(self) -> int:
        """How many runs were made."""
        return self.by_stage.total()

    def add(self, rows: Sequence[Row[tuple[str, str]]]) -> None:
        """Count runs: rows with agent_id and stage."""
        self.by_stage.update(row.stage for row in rows)
        self.by_agent.update(row.agent_id for row in rows)


def replay(events: Sequence[UUID]) -> list[str]:
    """Re-enter the parked runs of ``events``; returns the agents (one entry a run) that are to be dispatched.

    Events whose newest run is not parked are passed over.
    """
    return [row.agent_id for row in _replay(events)]


def replay_chosen(choice: Choice, *, dry_run: bool = False, bind: Engine | None = None) -> Replayed:
    """Re-enter all failures of ``choice`` that stand when this is called, the oldest first, 500 in a transaction.

    ``dry_run`` only counts them. The agents are to be dispatched by the caller; else the sweeper finds them.
    """
    found = Replayed()
    with autocommit(bind) as connection:
        parameters = {**choice.parameters(), "until": connection.execute(sql(NOW)).scalar_one(),
                      "plan_version": str(PLAN_VERSION)}  # fmt: skip
        if dry_run:
            found.add(connection.execute(sql(CHOOSE), {**parameters, "many": None}).all())
            return found
    while True:
        with autocommit(bind) as connection:
            chosen = connection.execute(sql(CHOOSE), {**parameters, "many": EVENTS_A_BATCH}).all()
        made = _replay([row.event_id for row in chosen], bind)
        found.add(made)
        if not made:  # nothing is left, or somebody else replays the same
            return found


def _replay(events: Sequence[UUID], bind: Engine | None = None) -> Sequence[Row[tuple[str, str]]]:
    parameters = {"events": list(events), "plan_version": str(PLAN_VERSION)}
    with (bind or engine()).begin() as connection:
        connection.execute(sql(LOCK_AGENTS), parameters)
        return connection.execute(sql(REPLAY), parameters).all()
