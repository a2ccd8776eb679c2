"""Merges of entities: who went into whom, why, and exactly what moved, so that a split puts it back.

Revision ID: 0008
Revises: 0007
"""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

MERGES = """
-- moved: one object a row that the merge made, changed or took away: table, key, and the columns that differ, before
-- and after (null: the row was not there). split_at null: the merge stands.
CREATE TABLE entity_merges (
  id         uuid PRIMARY KEY,
  agent_id   text NOT NULL,
  kept_key   text NOT NULL,
  gone_key   text NOT NULL,
  merged_by  text NOT NULL CHECK (merged_by IN ('job', 'hand')),
  reason     text NOT NULL DEFAULT '',
  score      real CHECK (score BETWEEN 0 AND 1),
  moved      jsonb NOT NULL DEFAULT '[]',
  merged_at  timestamptz NOT NULL DEFAULT mandua_now(),
  split_at   timestamptz,
  CHECK (kept_key <> gone_key),
  FOREIGN KEY (agent_id, kept_key) REFERENCES memory_entities (agent_id, canonical_key) ON DELETE CASCADE,
  FOREIGN KEY (agent_id, gone_key) REFERENCES memory_entities (agent_id, canonical_key) ON DELETE CASCADE
);
-- An entity is merged into one other at a time.
CREATE UNIQUE INDEX entity_merges_standing ON entity_merges (agent_id, gone_key) WHERE split_at IS NULL;
CREATE INDEX entity_merges_gone ON entity_merges (agent_id, gone_key);
CREATE INDEX entity_merges_kept ON entity_merges (agent_id, kept_key, merged_at);

-- Entities that are alike and two, as a model said, or whoever split them: never asked about again. one < other.
CREATE TABLE memory_entities_distinct (
  agent_id   text NOT NULL,
  one_key    text COLLATE "C" NOT NULL,
  other_key  text COLLATE "C" NOT NULL,
  PRIMARY KEY (agent_id, one_key, other_key),
  CHECK (one_key < other_key),
  FOREIGN KEY (agent_id, one_key) REFERENCES memory_entities (agent_id, canonical_key) ON DELETE CASCADE,
  FOREIGN KEY (agent_id, other_key) REFERENCES memory_entities (agent_id, canonical_key) ON DELETE CASCADE
);
CREATE INDEX memory_entities_distinct_other ON memory_entities_distinct (agent_id, other_key);

ALTER TABLE memory_entities ADD COLUMN twins_sought_at timestamptz;  -- entities like it were looked for until then
CREATE INDEX memory_entities_twins_due ON memory_entities (agent_id, facts_changed_at)
  WHERE merged_into IS NULL AND facts_changed_at > coalesce(twins_sought_at, '-infinity');
"""


def upgrade() -> None:
    op.execute(MERGES)


def downgrade() -> None:
    op.execute("DROP TABLE memory_entities_distinct, entity_merges")
    op.execute("DROP INDEX memory_entities_twins_due")
    op.execute("ALTER TABLE memory_entities DROP COLUMN twins_sought_at")
