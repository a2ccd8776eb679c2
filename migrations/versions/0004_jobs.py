"""Background jobs: runs of their own kind, what each of them did, and what makes an entity or a fact due.

A job works in steps that take the agent's turn like a message's stage. What is due stands in the rows themselves, so a
job that is doubled, killed or skipped finds the same work again, and none that was done.

Revision ID: 0004
Revises: 0003
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

RUNS = """
ALTER TABLE runs DROP CONSTRAINT runs_stage_check,
  ADD CONSTRAINT runs_stage_check CHECK (stage IN ('extract', 'resolve', 'reconcile', 'upsert', 'job')),
  ADD COLUMN job text,
  ADD CONSTRAINT runs_job_check CHECK ((kind = 'job') = (job IS NOT NULL) AND (kind = 'job') = (stage = 'job'));
-- At most one unfinished run per agent and job, however many beats plan.
CREATE UNIQUE INDEX runs_one_job ON runs (agent_id, job) WHERE job IS NOT NULL AND finished_at IS NULL;
-- Whether a job that failed has run since.
CREATE INDEX runs_job ON runs (agent_id, job, seq) WHERE job IS NOT NULL;

-- What each run of a job did; it outlives the run. finished_at null: it goes on. outcome: done (nothing is due any
-- more), more (it had its share, the rest is for the next run), failed.
CREATE TABLE maintenance_runs (
  run_id         uuid PRIMARY KEY,
  job            text NOT NULL,
  agent_id       text NOT NULL REFERENCES agent_seq (agent_id) ON DELETE CASCADE,
  started_at     timestamptz NOT NULL,
  finished_at    timestamptz,
  steps          integer NOT NULL DEFAULT 0,
  items          integer NOT NULL DEFAULT 0,
  input_tokens   bigint NOT NULL DEFAULT 0,
  output_tokens  bigint NOT NULL DEFAULT 0,
  cost_usd       double precision,
  outcome        text CHECK (outcome IN ('done', 'more', 'failed')),
  cause          text,
  CHECK ((finished_at IS NULL) = (outcome IS NULL)),
  CHECK ((cause IS NOT NULL) = (outcome IS NOT DISTINCT FROM 'failed'))
) WITH (fillfactor = 70);
CREATE INDEX maintenance_runs_last ON maintenance_runs (agent_id, job, finished_at);
"""

DUE = """
ALTER TABLE memory_entities
  ADD COLUMN facts_deduped_at      timestamptz,   -- near-duplicates among its facts were looked for until then
  ADD COLUMN scored_at             timestamptz,
  ADD COLUMN summary_refreshed_at  timestamptz;
-- What is due, and nothing else, stands in these.
CREATE INDEX memory_entities_profile_due ON memory_entities (agent_id, facts_changed_at)
  WHERE merged_into IS NULL AND facts_changed_at > coalesce(profile_refreshed_at, '-infinity');
CREATE INDEX memory_entities_dedup_due ON memory_entities (agent_id, facts_changed_at)
  WHERE merged_into IS NULL AND facts_changed_at > coalesce(facts_deduped_at, '-infinity');
CREATE INDEX memory_entities_scored ON memory_entities (agent_id, scored_at NULLS FIRST) WHERE merged_into IS NULL;

ALTER TABLE memory_facts
  ADD COLUMN salience           real CHECK (salience BETWEEN 0 AND 1),   -- importance, weighed by use and age
  ADD COLUMN stale_at           timestamptz,                             -- since when nothing speaks for it any more
  ADD COLUMN retrievals         integer NOT NULL DEFAULT 0,
  ADD COLUMN last_retrieved_at  timestamptz;

-- Near-duplicates that a model (or a refusal) said are two: never asked about again. one < other.
CREATE TABLE memory_facts_distinct (
  fact_id   uuid NOT NULL REFERENCES memory_facts (id) ON DELETE CASCADE,
  other_id  uuid NOT NULL REFERENCES memory_facts (id) ON DELETE CASCADE,
  PRIMARY KEY (fact_id, other_id),
  CHECK (fact_id < other_id)
);
CREATE INDEX memory_facts_distinct_other ON memory_facts_distinct (other_id);
"""


def upgrade() -> None:
    op.execute(RUNS)
    op.execute(DUE)


def downgrade() -> None:
    # Before there were jobs there was no stage of theirs: their runs go with it.
    op.execute("DELETE FROM runs WHERE kind = 'job'")
    op.execute("DROP TABLE memory_facts_distinct, maintenance_runs")
    op.execute(
        "ALTER TABLE memory_facts DROP COLUMN salience, DROP COLUMN stale_at, DROP COLUMN retrievals,"
        " DROP COLUMN last_retrieved_at"
    )
    op.execute("DROP INDEX memory_entities_profile_due, memory_entities_dedup_due, memory_entities_scored")
    op.execute(
        "ALTER TABLE memory_entities DROP COLUMN facts_deduped_at, DROP COLUMN scored_at,"
        " DROP COLUMN summary_refreshed_at"
    )
    op.execute("DROP INDEX runs_job, runs_one_job")
    op.execute(
        "ALTER TABLE runs DROP CONSTRAINT runs_job_check, DROP COLUMN job, DROP CONSTRAINT runs_stage_check,"
        " ADD CONSTRAINT runs_stage_check CHECK (stage IN ('extract', 'resolve', 'reconcile', 'upsert'))"
    )
