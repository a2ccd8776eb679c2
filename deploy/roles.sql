-- Least privilege in Postgres. Run it as the owner of mandua's tables (who migrates), in mandua's database, after every
-- `mandua migrate`; it may be run as often as you like:
--
--   psql "$OWNER_URL" -v ON_ERROR_STOP=1 -f deploy/roles.sql
--   CREATE ROLE chat LOGIN PASSWORD '…' IN ROLE mandua_producer;       -- yours, one for each program
--
--   mandua_producer  hands messages in and asks what became of them. It reads no message, no fact and no entity; what it
--                    is told is the result of an event whose id it knows.
--   mandua_worker    does the work. It neither changes tables nor an event once recorded.
--   mandua_operator  looks after it: `mandua status`, `watch`, `failures`, `metrics`. Coded causes, counts and ids; no text.
--                    `mandua replay` makes runs and needs mandua_worker.
--
-- Only the owner migrates, and only the owner can erase events: `mandua forget` and `mandua restore` need it.

DO $$
DECLARE
  wanted text;
BEGIN
  FOREACH wanted IN ARRAY ARRAY['mandua_producer', 'mandua_worker', 'mandua_operator'] LOOP
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = wanted) THEN
      EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
    END IF;
  END LOOP;
END $$;

-- Nobody has anything that is not said below.
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC, mandua_producer, mandua_worker, mandua_operator;
REVOKE ALL ON FUNCTION accept_events(jsonb), event_outcome(uuid), event_digests(uuid[]),
  accept_staged(uuid, integer, double precision, double precision, double precision), import_outcome(uuid),
  import_rejects(uuid), clear_import(uuid) FROM PUBLIC;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO mandua_producer, mandua_worker, mandua_operator;

-- The door. These run with their owner's rights, so that a producer needs none on the tables behind them; the fixed
-- search_path keeps anybody from putting a table of their own in front of ours.
ALTER FUNCTION accept_events(jsonb) SECURITY DEFINER SET search_path = public, pg_temp;
ALTER FUNCTION event_outcome(uuid) SECURITY DEFINER SET search_path = public, pg_temp;
ALTER FUNCTION event_digests(uuid[]) SECURITY DEFINER SET search_path = public, pg_temp;
ALTER FUNCTION accept_staged(uuid, integer, double precision, double precision, double precision)
  SECURITY DEFINER SET search_path = public, pg_temp;
ALTER FUNCTION import_outcome(uuid) SECURITY DEFINER SET search_path = public, pg_temp;
ALTER FUNCTION import_rejects(uuid) SECURITY DEFINER SET search_path = public, pg_temp;
ALTER FUNCTION clear_import(uuid) SECURITY DEFINER SET search_path = public, pg_temp;
GRANT EXECUTE ON FUNCTION accept_events(jsonb), event_outcome(uuid), event_digests(uuid[]),
  accept_staged(uuid, integer, double precision, double precision, double precision), import_outcome(uuid),
  import_rejects(uuid), clear_import(uuid)
  TO mandua_producer, mandua_worker;

-- What MemoryClient reads beside them: whether an event is there, whether it was refused, how far the workers lag.
GRANT SELECT (id) ON memory_events TO mandua_producer;
GRANT SELECT (event_id, cause) ON failed_records TO mandua_producer;
GRANT SELECT (event_id) ON forgotten_events TO mandua_producer;
GRANT SELECT (lane, created_at, finished_at) ON runs TO mandua_producer;
-- A dry run's own question and answer, gone after minutes. Leave these two lines out where producers make none.
GRANT INSERT (id, request), DELETE ON dry_runs TO mandua_producer;
GRANT SELECT (id, result) ON dry_runs TO mandua_producer;

-- Imports: where their files lie and how they are read. Rows are copied in; out they come only through the functions
-- above, to whoever knows the import's id. Leave these two lines out where producers import nothing.
GRANT SELECT, INSERT, UPDATE ON imports TO mandua_producer;
GRANT INSERT ON import_rows TO mandua_producer;

GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO mandua_worker;
REVOKE UPDATE, DELETE ON memory_events FROM mandua_worker;
REVOKE INSERT, UPDATE, DELETE ON forgotten_events, forget_receipts FROM mandua_worker;

-- The ledger without requests (which quote recent messages), plans and results.
GRANT SELECT (id, event_id, agent_id, seq, lane, kind, job, state, stage, starts, failures, waits, attempts, fallback,
              ready_at, status, cause, error_code, usage, timings, created_at, finished_at, import_id)
  ON runs TO mandua_operator;
GRANT SELECT (id, path, state, stopped, limit_usd, messages, blank, accepted, duplicates, rejected, calls, tokens,
              started_at, moved_at)
  ON imports TO mandua_operator;
GRANT SELECT ON agent_seq, agent_turns, workers, model_health, spending, failed_records, ledger_marks, run_totals,
  maintenance_runs
  TO mandua_operator;

-- The migration's own table: workers and `mandua doctor` look at the revision.
DO $$
BEGIN
  IF to_regclass('public.alembic_version') IS NOT NULL THEN
    GRANT SELECT ON alembic_version TO mandua_worker, mandua_operator;
    REVOKE INSERT, UPDATE, DELETE ON alembic_version FROM mandua_worker;
  END IF;
END $$;
