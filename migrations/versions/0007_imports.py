"""Imports: a history is staged whole, then accepted in its order, chunk by chunk, and can be taken up again anywhere.

Rows are copied into ``import_rows`` as they are read, so that nobody's memory holds them; ``accept_staged`` hands the
next of them to ``accept_events``, which stays the one way in, and counts in the same commit. So a kill at any moment
leaves counts that are exact and an import that goes on where it was.

Revision ID: 0007
Revises: 0006
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TABLES = """
-- One row an import. reading: its rows are being staged, from the start if it is taken up again; accepting: all are
-- staged; accepted: each of them is an event, a duplicate or rejected. stopped: why nobody is at it, where known.
CREATE TABLE imports (
  id             uuid PRIMARY KEY,
  path           text NOT NULL,
  options        jsonb NOT NULL,                -- how it is read
  state          text NOT NULL DEFAULT 'reading' CHECK (state IN ('reading', 'accepting', 'accepted')),
  stopped        text CHECK (stopped IN ('interrupted', 'failed', 'cost_limit')),
  limit_usd      double precision CHECK (limit_usd > 0),
  messages       bigint NOT NULL DEFAULT 0,     -- staged, and neither blank nor rejected
  blank          bigint NOT NULL DEFAULT 0,
  accepted       bigint NOT NULL DEFAULT 0,
  duplicates     bigint NOT NULL DEFAULT 0,
  rejected       bigint NOT NULL DEFAULT 0,
  calls          bigint NOT NULL DEFAULT 0,     -- what the accepted ones are expected to cost: model calls,
  tokens         bigint NOT NULL DEFAULT 0,     -- and input tokens
  after_at       timestamptz NOT NULL DEFAULT '-infinity',   -- how far accepting has come
  after_ordinal  bigint NOT NULL DEFAULT 0,
  started_at     timestamptz NOT NULL DEFAULT mandua_now(),
  moved_at       timestamptz NOT NULL DEFAULT mandua_now(),
  CHECK (accepted + duplicates <= messages),
  CHECK (stopped IS NULL OR state <> 'accepted')
);
CREATE INDEX imports_moved ON imports (moved_at);

-- What waits to be accepted, in the order in which it happened, and what was rejected (reason), until that is written.
CREATE TABLE import_rows (
  import_id     uuid NOT NULL REFERENCES imports (id) ON DELETE CASCADE,
  at            timestamptz NOT NULL,           -- -infinity: nobody knows; infinity: now
  ordinal       bigint NOT NULL,                -- as read
  line          integer NOT NULL,
  file          text NOT NULL,
  tokens        integer NOT NULL DEFAULT 0,     -- expected input tokens; 0: costs no call
  item          jsonb,                          -- as accept_events takes it
  other_digest  bytea,                          -- of the text with its secrets masked, or unmasked, where that differs
  reason        text,
  content       text,                           -- JSON, of what was broken when it was read
  PRIMARY KEY (import_id, at, ordinal),
  CHECK (item IS NOT NULL OR reason IS NOT NULL)
);

-- Which import a run came from. No reference: the import's row may go before its runs. accept_events knows nothing of
-- imports; whoever calls it for one says so in its transaction.
ALTER TABLE runs ADD COLUMN import_id uuid DEFAULT CAST(nullif(current_setting('mandua.import', true), '') AS uuid);
CREATE INDEX runs_import ON runs (import_id) WHERE import_id IS NOT NULL;
"""

ACCEPT = """
-- accept_staged: the next rows of an import, at most `many`, and no more than are expected to cost `budget` dollars
-- (null: any). One row: how many became what, whose they are, whether any are left. No row: it is not accepting.
-- Invariant: accepted, counted and no longer staged are one commit, so nothing is handed in or counted twice.
-- Invariant: order is (at, ordinal) over the whole import. Duplicate: same id and text, but for masks.
CREATE FUNCTION accept_staged(import uuid, many integer, prompt_usd double precision, reply_usd double precision,
                              budget double precision)
RETURNS TABLE (accepted bigint, duplicates bigint, rejected bigint, agents text[], more boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  now_at timestamptz;
  now_ordinal bigint;
  batch jsonb;   -- null: nothing is left, or nothing that the budget allows
  times timestamptz[];
  ordinals bigint[];
BEGIN
  SELECT after_at, after_ordinal INTO now_at, now_ordinal FROM imports WHERE id = import AND state = 'accepting'
     FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;

  SELECT jsonb_agg(item ORDER BY at, ordinal), array_agg(at ORDER BY at, ordinal),
         array_agg(ordinal ORDER BY at, ordinal)
    INTO batch, times, ordinals
    FROM (SELECT n.*, sum(CASE WHEN tokens > 0 THEN tokens * prompt_usd + reply_usd ELSE 0 END)
                      OVER (ORDER BY at, ordinal) AS usd
            FROM (SELECT at, ordinal, tokens, item FROM import_rows
                   WHERE import_id = import AND (at, ordinal) > (now_at, now_ordinal) AND reason IS NULL
                   ORDER BY at, ordinal LIMIT many) n) priced
   WHERE budget IS NULL OR usd <= budget;

  IF batch IS NOT NULL THEN
    PERFORM set_config('mandua.import', import::text, true);
    WITH judged AS (
      SELECT s.at, s.ordinal, s.tokens, s.item ->> 'agent_id' AS agent_id,
             CASE WHEN d.outcome = 'conflict' AND EXISTS (
                    SELECT 1 FROM memory_events e
                     WHERE e.id = d.event_id AND e.agent_id = s.item ->> 'agent_id'
                       AND sha256(convert_to(e.message, 'UTF8')) = s.other_digest) THEN 'duplicate'
                  ELSE d.outcome END AS verdict
        FROM accept_events(batch) d
        JOIN unnest(times, ordinals) WITH ORDINALITY AS n (at, ordinal, place) ON n.place = d.ordinal
        JOIN import_rows s ON s.import_id = import AND s.at = n.at AND s.ordinal = n.ordinal
    ), gone AS (
      DELETE FROM import_rows s USING judged j
       WHERE s.import_id = import AND s.at = j.at AND s.ordinal = j.ordinal AND j.verdict <> 'conflict'
    ), kept AS (
      UPDATE import_rows s SET reason = 'conflict' FROM judged j
       WHERE s.import_id = import AND s.at = j.at AND s.ordinal = j.ordinal AND j.verdict = 'conflict'
    ), counted AS (
      SELECT count(*) FILTER (WHERE verdict = 'accepted') AS accepted,
             count(*) FILTER (WHERE verdict = 'duplicate') AS duplicates,
             count(*) FILTER (WHERE verdict = 'conflict') AS rejected,
             coalesce(array_agg(DISTINCT agent_id) FILTER (WHERE verdict = 'accepted'), '{}') AS agents,
             count(*) FILTER (WHERE verdict = 'accepted' AND tokens > 0) AS calls,
             coalesce(sum(tokens) FILTER (WHERE verdict = 'accepted'), 0) AS tokens
        FROM judged
    ), noted AS (
      UPDATE imports i
         SET accepted = i.accepted + c.accepted, duplicates = i.duplicates + c.duplicates,
             rejected = i.rejected + c.rejected, messages = i.messages - c.rejected,
             calls = i.calls + c.calls, tokens = i.tokens + c.tokens,
             after_at = times[cardinality(times)], after_ordinal = ordinals[cardinality(ordinals)],
             moved_at = mandua_now()
        FROM counted c WHERE i.id = import
    )
    SELECT c.accepted, c.duplicates, c.rejected, c.agents INTO accepted, duplicates, rejected, agents FROM counted c;
  END IF;
  SELECT EXISTS (SELECT 1 FROM imports i JOIN import_rows s ON s.import_id = i.id
                  WHERE i.id = import AND (s.at, s.ordinal) > (i.after_at, i.after_ordinal) AND s.reason IS NULL)
    INTO more;
  IF NOT more THEN
    UPDATE imports SET state = 'accepted', stopped = NULL, moved_at = mandua_now() WHERE id = import;
  END IF;
  accepted := coalesce(accepted, 0);
  duplicates := coalesce(duplicates, 0);
  rejected := coalesce(rejected, 0);
  agents := coalesce(agents, '{}');
  RETURN NEXT;
END $$;

-- How the messages of an import ended, by the newest run of each (`unfinished` among them), and what they have cost.
CREATE FUNCTION import_outcome(import uuid) RETURNS TABLE (status text, messages bigint, cost_usd double precision)
LANGUAGE sql STABLE AS $$
  SELECT status, count(*) FILTER (WHERE newest), coalesce(sum(usd), 0)
    FROM (SELECT coalesce(r.status, 'unfinished') AS status, CAST(r.usage ->> 'cost_usd' AS double precision) AS usd,
                 row_number() OVER (PARTITION BY r.event_id ORDER BY r.created_at DESC, r.seq DESC) = 1 AS newest
            FROM runs r WHERE r.import_id = import) found
   GROUP BY status
$$;

-- What an import rejected, while it stands there, in the order of the files.
CREATE FUNCTION import_rejects(import uuid)
RETURNS TABLE (file text, line integer, reason text, content text, item jsonb) LANGUAGE sql STABLE AS $$
  SELECT file, line, reason, content, item FROM import_rows
   WHERE import_id = import AND reason IS NOT NULL ORDER BY file, line, ordinal
$$;

-- Everything that is staged for an import goes: it is read anew, or it is through and its rejects are written.
CREATE FUNCTION clear_import(import uuid) RETURNS void LANGUAGE sql AS $$
  DELETE FROM import_rows WHERE import_id = import
$$;
"""


def upgrade() -> None:
    op.execute(TABLES)
    op.execute(ACCEPT)


def downgrade() -> None:
    op.execute("DROP FUNCTION clear_import(uuid), import_rejects(uuid), import_outcome(uuid)")
    op.execute("DROP FUNCTION accept_staged(uuid, integer, double precision, double precision, double precision)")
    op.execute("DROP INDEX runs_import")
    op.execute("ALTER TABLE runs DROP COLUMN import_id")
    op.execute("DROP TABLE import_rows, imports")
