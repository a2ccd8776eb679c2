"""The sweeper: finds what the broker or a dead worker has dropped. Everything else may be lost, Postgres is not."""

from __future__ import annotations

from worker.db import autocommit, sql
from worker.settings import settings
from worker.turns.dispatch import UNDER_WAY
from worker.turns.life import LIVING, periods
from worker.turns.totals import fold

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

# Invariant: the mark only moves on, however many beats there are. `mandua doctor` and an alert look at its age.
NOTE_SWEEP = """
INSERT INTO ledger_marks AS m (name, at) VALUES ('sweep', mandua_now())
ON CONFLICT (name) DO UPDATE SET at = greatest(m.at, excluded.at)
"""

FORGET_WORKERS = "DELETE FROM workers WHERE heartbeat_at < mandua_now() - interval '1 hour'"
FORGET_DRY_RUNS = "DELETE FROM dry_runs WHERE created_at < mandua_now() - interval '10 minutes'"
FORGET_JOBS = "DELETE FROM maintenance_runs WHERE finished_at < mandua_now() - interval '90 days'"
FORGET_SPENDING = "DELETE FROM spending WHERE day < (mandua_now() AT TIME ZONE 'UTC')::date - 90"
# What is still staged goes with it; it was not touched for as long as runs are kept.
FORGET_IMPORTS = "DELETE FROM imports WHERE moved_at < mandua_now() - make_interval(secs => :keep_sec)"
FORGET_RECORDS = "DELETE FROM failed_records WHERE recorded_at < mandua_now() - interval '7 days'"

# Invariant: only what is folded into the totals goes; a failure stays until a later run of its event has ended well.
# Its result and plans go with a run. Bounded, and two at once take different runs.
FORGET_RUNS = """
DELETE FROM runs WHERE id IN (
  SELECT r.id FROM runs r
   WHERE r.finished_at < mandua_now() - make_interval(secs => CAST(:keep_sec AS double precision))
     AND r.finished_at <= (SELECT at FROM ledger_marks WHERE name = 'folded')
     AND (r.status <> 'failed'
          OR EXISTS (SELECT 1 FROM runs n WHERE n.event_id = r.event_id AND n.state = 'done' AND n.seq > r.seq)
          OR EXISTS (SELECT 1 FROM runs n WHERE n.agent_id = r.agent_id AND n.job = r.job AND n.seq > r.seq))
   ORDER BY r.finished_at LIMIT :many FOR UPDATE SKIP LOCKED)
"""
RUNS_A_BATCH, BATCHES = 1_000, 20

DAY = 86_400.0


def due_agents(many: int = 500) -> list[str]:
    """Agents that wait for a dispatch which nobody will send, oldest first."""
    with autocommit() as connection:
        return list(connection.execute(sql(DUE_AGENTS), {"many": many, **periods()}).scalars())


def note_sweep() -> None:
    """Note that the sweeper has just been at work."""
    with autocommit() as connection:
        connection.execute(sql(NOTE_SWEEP))


def clean_up() -> None:
    """Remove what only mattered for minutes (workers long gone, dry runs, refused records), what jobs did and agents
    spent more than 90 days ago, and, older than MANDUA_KEEP_RUNS_DAYS, imports that stood still and runs that ended
    well, at most 20,000 a time. What finished lately is folded into the totals first.
    """
    with autocommit() as connection:
        for statement in (FORGET_WORKERS, FORGET_DRY_RUNS, FORGET_RECORDS, FORGET_JOBS, FORGET_SPENDING):
            connection.execute(sql(statement))
    for _ in range(BATCHES):
        if not fold():
            break
    keep = settings().keep_runs_days * DAY
    with autocommit() as connection:
        connection.execute(sql(FORGET_IMPORTS), {"keep_sec": keep})
        for _ in range(BATCHES):
            gone = connection.execute(sql(FORGET_RUNS), {"keep_sec": keep, "many": RUNS_A_BATCH}).rowcount
            if gone < RUNS_A_BATCH:
                break
