"""Forgetting: what was forgotten does not come back, and nothing but a hash says what it was.

An event's id is itself a hash of agent and message id, so the list of forgotten ones holds no word. Whoever hands in a
forgotten message again is told that it is a duplicate.

Revision ID: 0009
Revises: 0008
"""

from importlib import import_module

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE forget_receipts (
  id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  kind          text NOT NULL CHECK (kind IN ('agent', 'entity', 'event')),
  salt          bytea NOT NULL,
  digest        bytea NOT NULL,        -- sha256 of salt, agent and what was forgotten: proves it to who knows the words
  counts        jsonb NOT NULL,
  forgotten_at  timestamptz NOT NULL DEFAULT mandua_now()
);

CREATE TABLE forgotten_events (
  event_id    uuid PRIMARY KEY,
  receipt_id  uuid NOT NULL REFERENCES forget_receipts (id)
);
CREATE INDEX forgotten_events_receipt ON forgotten_events (receipt_id);
"""

# A whole memory is put back with rows that point to rows of the same table: those are looked at when it is all there.
DEFERRABLE = """
ALTER TABLE memory_facts ALTER CONSTRAINT memory_facts_supersedes_fact_id_fkey DEFERRABLE;
ALTER TABLE memory_facts ALTER CONSTRAINT memory_facts_merged_into_fkey DEFERRABLE;
ALTER TABLE memory_entities ALTER CONSTRAINT memory_entities_agent_id_merged_into_fkey DEFERRABLE;
"""

# As in 0001, and: a forgotten message is a duplicate, whatever its text, and makes nothing.
ACCEPT = """
CREATE OR REPLACE FUNCTION accept_events(batch jsonb) RETURNS TABLE (ordinal integer, event_id uuid, outcome text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  agents text[];
BEGIN
  SELECT array_agg(DISTINCT item ->> 'agent_id' ORDER BY item ->> 'agent_id') INTO agents
    FROM jsonb_array_elements(batch) item;
  INSERT INTO agent_seq (agent_id) SELECT unnest(agents) ON CONFLICT DO NOTHING;
  PERFORM 1 FROM agent_seq WHERE agent_id = ANY (agents) ORDER BY agent_id FOR NO KEY UPDATE;
  INSERT INTO agent_turns (agent_id) SELECT unnest(agents) ON CONFLICT DO NOTHING;

  RETURN QUERY
  WITH item AS (
    SELECT i.ord::integer AS ord, (i.value ->> 'event_id')::uuid AS id, i.value ->> 'agent_id' AS agent_id,
           i.value ->> 'message' AS message, i.value, coalesce((i.value ->> 'lane')::smallint, 0::smallint) AS lane
      FROM jsonb_array_elements(batch) WITH ORDINALITY AS i (value, ord)
  ), gone AS (
    SELECT f.event_id FROM forgotten_events f WHERE f.event_id IN (SELECT id FROM item)
  ), inserted AS (
    INSERT INTO memory_events (id, agent_id, speaker_name, message, role, source, session_id, message_id,
                               occurred_at, offset_minutes)
    SELECT DISTINCT ON (id) id, agent_id, value ->> 'speaker_name', message, coalesce(value ->> 'role', 'user'),
           coalesce(value ->> 'source', 'api'), value ->> 'session_id', value ->> 'message_id',
           (value ->> 'occurred_at')::timestamptz, (value ->> 'offset_minutes')::smallint
      FROM item WHERE id NOT IN (SELECT event_id FROM gone) ORDER BY id, ord
    ON CONFLICT DO NOTHING
    RETURNING id, agent_id, message
  ), known AS (
    SELECT id, agent_id, message FROM inserted
    UNION ALL
    SELECT e.id, e.agent_id, e.message FROM memory_events e WHERE e.id IN (SELECT id FROM item)
  ), judged AS (
    SELECT i.*, CASE
             WHEN i.id IN (SELECT event_id FROM gone) THEN 'duplicate'
             WHEN i.id IN (SELECT id FROM inserted)
                  AND i.ord = min(i.ord) OVER (PARTITION BY i.id) THEN 'accepted'
             WHEN k.agent_id = i.agent_id AND k.message = i.message THEN 'duplicate'
             ELSE 'conflict' END AS verdict
      FROM item i LEFT JOIN known k ON k.id = i.id
  ), placed AS (
    SELECT j.*, row_number() OVER (PARTITION BY j.agent_id ORDER BY j.ord) AS nth,
           count(*) OVER (PARTITION BY j.agent_id) AS many
      FROM judged j WHERE j.verdict = 'accepted'
  ), moved AS (
    UPDATE agent_seq s
       SET next_seq = s.next_seq + p.many, wake_at = least(coalesce(s.wake_at, mandua_now()), mandua_now())
      FROM (SELECT DISTINCT agent_id, many FROM placed) p
     WHERE s.agent_id = p.agent_id
    RETURNING s.agent_id, s.next_seq - p.many AS base
  ), queued AS (
    INSERT INTO runs (id, event_id, agent_id, seq, lane, request)
    SELECT gen_random_uuid(), p.id, p.agent_id, m.base + p.nth - 1, p.lane, coalesce(p.value -> 'request', '{}')
      FROM placed p JOIN moved m ON m.agent_id = p.agent_id
  )
  SELECT j.ord, j.id, j.verdict FROM judged j ORDER BY j.ord;
END $$;
"""

OUTCOME = """
-- As in 0001; an event that was forgotten with its runs has ended, empty.
CREATE OR REPLACE FUNCTION event_outcome(event uuid)
RETURNS TABLE (run_id uuid, state text, stage text, status text, cause text, result jsonb)
LANGUAGE sql STABLE AS $$
  (SELECT r.id, r.state, r.stage, r.status, r.cause, o.result
     FROM runs r LEFT JOIN run_results o ON o.run_id = r.id
    WHERE r.event_id = event ORDER BY r.created_at DESC, r.seq DESC LIMIT 1)
  UNION ALL
  SELECT NULL, 'done', 'upsert', 'empty', NULL, jsonb_build_object('event_id', event, 'status', 'empty')
    FROM forgotten_events f WHERE f.event_id = event AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.event_id = event)
$$;

-- As in 0003; of a forgotten event nobody can say what it said: no digest.
CREATE OR REPLACE FUNCTION event_digests(events uuid[]) RETURNS TABLE (event_id uuid, agent_id text, digest bytea)
LANGUAGE sql STABLE AS $$
  SELECT e.id, e.agent_id, sha256(convert_to(e.message, 'UTF8')) FROM memory_events e
   WHERE e.id = ANY (events) AND NOT EXISTS (SELECT 1 FROM forgotten_events f WHERE f.event_id = e.id)
  UNION ALL
  SELECT f.event_id, NULL, NULL FROM forgotten_events f WHERE f.event_id = ANY (events)
$$;
"""


def upgrade() -> None:
    for part in (TABLES, DEFERRABLE, ACCEPT, OUTCOME):
        op.execute(part)


def downgrade() -> None:
    op.execute("DROP FUNCTION event_digests(uuid[])")
    op.execute("DROP FUNCTION event_outcome(uuid)")
    op.execute("DROP FUNCTION accept_events(jsonb)")
    op.execute(import_module("migrations.versions.0001_memory").ACCEPT.replace("{{}}", "{}"))
    operations = import_module("migrations.versions.0003_operations").OPERATIONS
    op.execute(operations[operations.index("CREATE FUNCTION event_digests") :])
    op.execute(DEFERRABLE.replace("DEFERRABLE", "NOT DEFERRABLE"))
    op.execute("DROP TABLE forgotten_events, forget_receipts")
