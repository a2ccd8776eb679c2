"""Planning: which (agent, job) is due becomes a run in the agent's last lane. Safe when doubled, skipped or killed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine

from worker.db import engine
from worker.maintenance.job import Job
from worker.maintenance.schedule import JOBS, interval_of
from worker.settings import settings

AGENTS_A_JOB = 500

# Two beats at once: one of them plans, the other has nothing to do.
ALONE = "SELECT pg_try_advisory_xact_lock(hashtext('mandua.plan_jobs'))"

# Due: something is, nothing of this job is under way, and the last run lies an interval back or had to leave some.
DUE_AGENTS = """
SELECT a.agent_id FROM agent_seq a
 WHERE {due}
   AND NOT EXISTS (SELECT FROM runs r WHERE r.agent_id = a.agent_id AND r.job = :job AND r.finished_at IS NULL)
   AND NOT EXISTS (SELECT FROM maintenance_runs m
                    WHERE m.agent_id = a.agent_id AND m.job = :job AND m.outcome <> 'more'
                      AND m.finished_at > mandua_now() - make_interval(secs => CAST(:interval AS double precision)))
 ORDER BY a.agent_id LIMIT :many
"""

LOCK_AGENTS = """
SELECT agent_id FROM agent_seq WHERE agent_id = ANY (CAST(:agents AS text[])) ORDER BY agent_id FOR NO KEY UPDATE
"""
# Invariant: an agent has at most one unfinished run of a job (runs_one_job); seq is given under agent_seq's lock, like
# at accept.
PLACE = """
WITH wanted AS (
  SELECT w.agent_id, w.job, row_number() OVER (PARTITION BY w.agent_id ORDER BY w.place) AS nth,
         count(*) OVER (PARTITION BY w.agent_id) AS many
    FROM unnest(CAST(:agents AS text[]), CAST(:jobs AS text[])) WITH ORDINALITY AS w (agent_id, job, place)
   WHERE NOT EXISTS (SELECT FROM runs r WHERE r.agent_id = w.agent_id AND r.job = w.job AND r.finished_at IS NULL)
), turns AS (
  INSERT INTO agent_turns (agent_id) SELECT DISTINCT agent_id FROM wanted ON CONFLICT DO NOTHING
), moved AS (
  UPDATE agent_seq s
     SET next_seq = s.next_seq + w.many, wake_at = least(coalesce(s.wake_at, mandua_now()), mandua_now())
    FROM (SELECT DISTINCT agent_id, many FROM wanted) w WHERE s.agent_id = w.agent_id
  RETURNING s.agent_id, s.next_seq - w.many AS base
)
INSERT INTO runs (id, agent_id, seq, lane, kind, stage, job)
SELECT gen_random_uuid(), w.agent_id, m.base + w.nth - 1, 2, 'job', 'job', w.job
  FROM wanted w JOIN moved m ON m.agent_id = w.agent_id
ON CONFLICT (agent_id, job) WHERE job IS NOT NULL AND finished_at IS NULL DO NOTHING
RETURNING agent_id, job
"""


@dataclass(frozen=True, slots=True)
class PlacedRun:
    """A run of a job that now stands in its agent's last lane."""

    agent_id: str
    job: str


def plan_jobs(bind: Engine | None = None) -> list[str]:
    """Place the runs that are due by the schedule; returns the agents that are to be dispatched, each once."""
    with (bind or engine()).begin() as connection:
        if not connection.execute(text(ALONE)).scalar():
            return []
        wanted: list[PlacedRun] = []
        for job in JOBS:
            interval = interval_of(job.name, settings())
            if interval > 0:
                wanted += [PlacedRun(agent, job.name) for agent in due_agents(connection, job, interval=interval)]
        placed = _place(connection, wanted)
    return sorted({run.agent_id for run in placed})


def place(wanted: Sequence[PlacedRun], bind: Engine | None = None) -> list[PlacedRun]:
    """Place runs whatever the schedule says; returns those that were not under way already."""
    with (bind or engine()).begin() as connection:
        return _place(connection, wanted)


def due_agents(connection: Connection, job: Job, *, interval: float = 0.0, many: int = AGENTS_A_JOB) -> list[str]:
    """Agents for which ``job`` has something to do, has no run under way, and had none within ``interval`` seconds."""
    statement = text(DUE_AGENTS.format(due=job.due))
    parameters = {"job": job.name, "interval": interval, "many": many}
    return list(connection.execute(statement, parameters).scalars())


def _place(connection: Connection, wanted: Sequence[PlacedRun]) -> list[PlacedRun]:
    if not wanted:
        return []
    # Jobs keep the order of the schedule within an agent; agents are locked in the order of their ids.
    parameters = {"agents": [run.agent_id for run in wanted], "jobs": [run.job for run in wanted]}
    connection.execute(text(LOCK_AGENTS), {"agents": sorted(set(parameters["agents"]))})
    return [PlacedRun(row.agent_id, row.job) for row in connection.execute(text(PLACE), parameters)]
