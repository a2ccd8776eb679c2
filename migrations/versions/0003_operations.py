"""What the people who run it look at: totals that outlive finished runs, when each duty was last done, failures.

Counters for metrics cannot be counted from ``runs`` alone, because finished runs are removed one day; and not by adding
to a total with every finish either, because all workers would then queue for the same few rows. So finished runs are
folded into totals every few minutes, and a reader adds those that finished since.

Revision ID: 0003
Revises: 0002
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

OPERATIONS = """
-- When each duty was last done ("sweep"), and up to which finished_at runs stand in run_totals ("folded").
CREATE TABLE ledger_marks (
  name  text PRIMARY KEY,
  at    timestamptz NOT NULL
) WITH (fillfactor = 50);
INSERT INTO ledger_marks VALUES ('folded', 'epoch');

-- Sums over finished runs, by the day (UTC) on which they finished.
CREATE TABLE run_totals (
  day     date NOT NULL,
  metric  text NOT NULL,
  label   text NOT NULL DEFAULT '',
  detail  text NOT NULL DEFAULT '',
  value   double precision NOT NULL,
  PRIMARY KEY (day, metric, label, detail)
);

-- Failures. Of the columns that change often, none is here, not even in the predicate: updates stay HOT.
CREATE INDEX runs_failed ON runs (finished_at) WHERE status = 'failed';

-- Whether a message is the one that was stored, for a producer that may not read what others wrote.
CREATE FUNCTION event_digests(events uuid[]) RETURNS TABLE (event_id uuid, agent_id text, digest bytea)
LANGUAGE sql STABLE AS $$
  SELECT e.id, e.agent_id, sha256(convert_to(e.message, 'UTF8')) FROM memory_events e WHERE e.id = ANY (events)
$$;
"""


def upgrade() -> None:
    op.execute(OPERATIONS)


def downgrade() -> None:
    op.execute("DROP FUNCTION event_digests(uuid[])")
    op.execute("DROP INDEX runs_failed")
    op.execute("DROP TABLE run_totals, ledger_marks")
