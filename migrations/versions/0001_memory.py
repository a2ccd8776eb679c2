"""The memory, the ledger of its runs, and the rules that hold them together.

Rules live here, not in code: unique keys per agent, checks on states and ranges, immutable events, one active copy of
a text, linear chains. Lock order everywhere: agent_seq, agent_turns, runs by seq, entities by key, facts by id.

Revision ID: 0001
Revises:
"""

from alembic import op

from migrations.vectors import vector_type

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

CLOCK = """
-- The one clock of the system. Tests move it with: ALTER DATABASE ... SET mandua.clock_offset = '21 days'.
CREATE FUNCTION mandua_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT now() + coalesce(nullif(current_setting('mandua.clock_offset', true), '')::interval, interval '0')
$$;
"""

EVENTS = """
CREATE TABLE memory_events (
  id              uuid PRIMARY KEY,
  agent_id        text NOT NULL CHECK (agent_id <> ''),
  speaker_name    text NOT NULL CHECK (speaker_name <> ''),
  message         text NOT NULL,
  role            text NOT NULL DEFAULT 'user' CHECK (role IN ('user', 'assistant', 'system')),
  source          text NOT NULL DEFAULT 'api',
  session_id      text,
  message_id      text,
  occurred_at     timestamptz,            -- null: nobody knows
  offset_minutes  smallint,               -- the message's own offset, so that its local date survives
  recorded_at     timestamptz NOT NULL DEFAULT mandua_now(),
  CHECK ((occurred_at IS NULL) = (offset_minutes IS NULL))
);
CREATE UNIQUE INDEX memory_events_message_id ON memory_events (agent_id, message_id) WHERE message_id IS NOT NULL;
CREATE INDEX memory_events_agent ON memory_events (agent_id, occurred_at);

-- Events are the audit trail: never changed, never deleted. Only forget, which says so in its transaction, may erase.
CREATE FUNCTION memory_events_immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('mandua.forgetting', true) = 'on' THEN
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
  END IF;
  RAISE EXCEPTION 'memory_events is immutable' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER memory_events_immutable BEFORE UPDATE OR DELETE ON memory_events
  FOR EACH ROW EXECUTE FUNCTION memory_events_immutable();
CREATE TRIGGER memory_events_no_truncate BEFORE TRUNCATE ON memory_events
  FOR EACH STATEMENT EXECUTE FUNCTION memory_events_immutable();

CREATE TABLE event_annotations (
  event_id      uuid PRIMARY KEY REFERENCES memory_events (id) ON DELETE CASCADE,
  emotion       text NOT NULL DEFAULT 'neutral',
  intensity     real NOT NULL DEFAULT 0 CHECK (intensity BETWEEN 0 AND 1),
  energy_level  text NOT NULL DEFAULT 'medium' CHECK (energy_level IN ('high', 'medium', 'low')),
  embedding     {vector}
);
"""

ENTITIES = """
CREATE TABLE memory_entities (
  agent_id              text NOT NULL,
  canonical_key         text NOT NULL CHECK (length(canonical_key) <= 128),
  entity_type           text NOT NULL CHECK (entity_type <> '' AND entity_type = lower(entity_type)),
  display_name          text NOT NULL CHECK (display_name <> ''),
  is_placeholder        boolean NOT NULL DEFAULT false,   -- known by role only ("Rafael's brother")
  profile_text          text,
  profile_source        text CHECK (profile_source IN ('model', 'facts', 'job')),
  profile_refreshed_at  timestamptz,
  facts_changed_at      timestamptz NOT NULL DEFAULT mandua_now(),
  summary_text          text,
  importance            real NOT NULL DEFAULT 0.5 CHECK (importance BETWEEN 0 AND 1),
  embedding             {vector},                          -- of the display name
  merged_into           text,
  first_seen_at         timestamptz NOT NULL DEFAULT mandua_now(),
  last_seen_at          timestamptz NOT NULL DEFAULT mandua_now(),
  PRIMARY KEY (agent_id, canonical_key),
  CHECK (starts_with(canonical_key, entity_type || ':') AND length(canonical_key) > length(entity_type) + 1),
  CHECK ((profile_text IS NULL) = (profile_source IS NULL)),
  FOREIGN KEY (agent_id, merged_into) REFERENCES memory_entities (agent_id, canonical_key)
);
CREATE INDEX memory_entities_type ON memory_entities (agent_id, entity_type);
CREATE INDEX memory_entities_merged ON memory_entities (agent_id, merged_into) WHERE merged_into IS NOT NULL;

-- First write wins: one alias of one type means one entity of an agent. Display names and slugs stand here as well.
CREATE TABLE memory_entity_aliases (
  agent_id      text NOT NULL,
  alias_folded  text NOT NULL CHECK (alias_folded <> ''),
  entity_type   text NOT NULL,
  alias         text NOT NULL,
  entity_key    text NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT mandua_now(),
  PRIMARY KEY (agent_id, alias_folded, entity_type),
  FOREIGN KEY (agent_id, entity_key) REFERENCES memory_entities (agent_id, canonical_key) ON DELETE CASCADE
);
CREATE INDEX memory_entity_aliases_entity ON memory_entity_aliases (agent_id, entity_key);
-- Prefix of a person's first name ("Carol": Carolina).
CREATE INDEX memory_entity_aliases_prefix ON memory_entity_aliases (agent_id, alias_folded text_pattern_ops);
"""

FACTS = """
CREATE TABLE memory_facts (
  id                     uuid PRIMARY KEY,
  agent_id               text NOT NULL,
  entity_key             text NOT NULL,
  fact_text              text NOT NULL CHECK (btrim(fact_text) <> ''),
  text_hash              bytea NOT NULL,     -- of the folded text: what "identical" means
  embedding              {vector},
  confidence             real NOT NULL CHECK (confidence BETWEEN 0 AND 1),
  importance             real NOT NULL DEFAULT 0.5 CHECK (importance BETWEEN 0 AND 1),
  kind                   text NOT NULL DEFAULT 'fact' CHECK (kind IN ('fact', 'retraction')),
  attribute_key          text,
  value                  text,
  event_date             date,
  event_date_precision   text CHECK (event_date_precision IN ('day', 'month', 'year')),
  speaker                text,
  source_context         text,
  source_event_id        uuid NOT NULL REFERENCES memory_events (id),
  valid_from             timestamptz,        -- null: unknown, older than anything dated
  valid_from_known       boolean GENERATED ALWAYS AS (valid_from IS NOT NULL) STORED,
  valid_to               timestamptz,
  ingested_at            timestamptz NOT NULL DEFAULT mandua_now(),
  invalidated_at         timestamptz,
  last_confirmed_at      timestamptz,
  confirmations          integer NOT NULL DEFAULT 0,
  user_correction_count  integer NOT NULL DEFAULT 0,
  supersedes_fact_id     uuid REFERENCES memory_facts (id),
  merged_into            uuid REFERENCES memory_facts (id),
  FOREIGN KEY (agent_id, entity_key) REFERENCES memory_entities (agent_id, canonical_key),
  CHECK ((valid_to IS NULL) = (invalidated_at IS NULL)),
  CHECK (valid_to >= valid_from),
  CHECK ((event_date IS NULL) = (event_date_precision IS NULL)),
  CHECK (kind = 'fact' OR valid_to IS NOT NULL),      -- a retraction is a dated ending, never active
  CHECK (supersedes_fact_id <> id)
);
-- One active copy of a text, whatever happens in code.
CREATE UNIQUE INDEX memory_facts_one_active ON memory_facts (agent_id, entity_key, text_hash) WHERE valid_to IS NULL;
-- Chains are linear: a fact has at most one successor.
CREATE UNIQUE INDEX memory_facts_one_successor ON memory_facts (supersedes_fact_id)
  WHERE supersedes_fact_id IS NOT NULL;
CREATE INDEX memory_facts_active ON memory_facts (agent_id, entity_key) WHERE valid_to IS NULL;
CREATE INDEX memory_facts_entity ON memory_facts (agent_id, entity_key, valid_from);
CREATE INDEX memory_facts_event ON memory_facts (source_event_id);
CREATE INDEX memory_facts_merged ON memory_facts (merged_into) WHERE merged_into IS NOT NULL;
-- What a late message asks for: what was still true, or began, after its time. Nothing, for a live one.
CREATE INDEX memory_facts_closed ON memory_facts (agent_id, entity_key, valid_to) WHERE valid_to IS NOT NULL;

-- Every later message that said a fact again, and when. A late correction from between two of them splits the fact in
-- two versions, as if history had come in order; without these rows it could not know where the second one begins.
CREATE TABLE memory_fact_confirmations (
  fact_id      uuid NOT NULL REFERENCES memory_facts (id) ON DELETE CASCADE,
  event_id     uuid NOT NULL REFERENCES memory_events (id) ON DELETE CASCADE,
  occurred_at  timestamptz,
  PRIMARY KEY (fact_id, event_id)
);
CREATE INDEX memory_fact_confirmations_event ON memory_fact_confirmations (event_id);

CREATE TABLE memory_fact_entity_links (
  fact_id     uuid NOT NULL REFERENCES memory_facts (id) ON DELETE CASCADE,
  agent_id    text NOT NULL,
  entity_key  text NOT NULL,
  is_primary  boolean NOT NULL DEFAULT false,
  PRIMARY KEY (fact_id, entity_key),
  FOREIGN KEY (agent_id, entity_key) REFERENCES memory_entities (agent_id, canonical_key)
);
CREATE INDEX memory_fact_entity_links_entity ON memory_fact_entity_links (agent_id, entity_key);
CREATE UNIQUE INDEX memory_fact_entity_links_primary ON memory_fact_entity_links (fact_id) WHERE is_primary;
"""

RELATIONSHIPS = """
CREATE TABLE memory_entity_relationships (
  id                 uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  agent_id           text NOT NULL,
  source_entity_key  text NOT NULL,
  target_entity_key  text NOT NULL,
  rel_type           text NOT NULL CHECK (rel_type ~ '^[^[:space:][:upper:]]+$'),
  strength           real NOT NULL DEFAULT 0.8 CHECK (strength BETWEEN 0 AND 1),
  evidence_fact_id   uuid REFERENCES memory_facts (id),
  valid_from         timestamptz,
  valid_to           timestamptz,
  invalidated_at     timestamptz,
  created_at         timestamptz NOT NULL DEFAULT mandua_now(),
  updated_at         timestamptz NOT NULL DEFAULT mandua_now(),
  UNIQUE (agent_id, source_entity_key, target_entity_key, rel_type),
  FOREIGN KEY (agent_id, source_entity_key) REFERENCES memory_entities (agent_id, canonical_key),
  FOREIGN KEY (agent_id, target_entity_key) REFERENCES memory_entities (agent_id, canonical_key),
  CHECK (source_entity_key <> target_entity_key),
  CHECK ((valid_to IS NULL) = (invalidated_at IS NULL)),
  CHECK (valid_to IS NOT NULL OR evidence_fact_id IS NOT NULL)   -- a live edge stands on a fact
);
CREATE INDEX memory_entity_relationships_target ON memory_entity_relationships (agent_id, target_entity_key);
CREATE INDEX memory_entity_relationships_evidence ON memory_entity_relationships (evidence_fact_id);

-- Every fact that ever held an edge up. An edge is a function of these rows: live while one of them is.
CREATE TABLE memory_relationship_evidence (
  relationship_id  uuid NOT NULL REFERENCES memory_entity_relationships (id) ON DELETE CASCADE,
  fact_id          uuid NOT NULL REFERENCES memory_facts (id) ON DELETE CASCADE,
  PRIMARY KEY (relationship_id, fact_id)
);
CREATE INDEX memory_relationship_evidence_fact ON memory_relationship_evidence (fact_id);
"""

CARE = """
CREATE TABLE memory_attribute_registry (
  agent_id       text NOT NULL,
  attribute_key  text NOT NULL CHECK (length(attribute_key) <= 64),
  sightings      integer NOT NULL DEFAULT 1 CHECK (sightings > 0),
  is_active      boolean NOT NULL DEFAULT false,
  first_seen_at  timestamptz NOT NULL DEFAULT mandua_now(),
  PRIMARY KEY (agent_id, attribute_key)
);

CREATE TABLE pending_operations (
  agent_id    text PRIMARY KEY,
  kind        text NOT NULL CHECK (kind IN ('selection', 'execution')),
  payload     jsonb NOT NULL,
  expires_at  timestamptz NOT NULL
);
"""

LEDGER = """
-- Accept locks this row; nothing else does for long. A sequence's order would not be commit order.
CREATE TABLE agent_seq (
  agent_id  text PRIMARY KEY,
  next_seq  bigint NOT NULL DEFAULT 1,
  wake_at   timestamptz            -- somebody should look at this agent then; null: nothing unfinished
);
CREATE INDEX agent_seq_wake ON agent_seq (wake_at) WHERE wake_at IS NOT NULL;

-- Who may change an agent's memory now. The fence only grows; whoever holds an older one writes nothing any more.
CREATE TABLE agent_turns (
  agent_id       text PRIMARY KEY REFERENCES agent_seq (agent_id) ON DELETE CASCADE,
  run_id         uuid,             -- null: free
  fence          bigint NOT NULL DEFAULT 0,
  stage_token    uuid,             -- of the start that is at work; null: a task is under way in the broker
  worker         text,
  lease_until    timestamptz,
  dispatched_at  timestamptz,
  redispatches   smallint NOT NULL DEFAULT 0,
  version        bigint NOT NULL DEFAULT 0,   -- +1 by every apply
  CHECK (stage_token IS NULL OR (run_id IS NOT NULL AND worker IS NOT NULL AND lease_until IS NOT NULL))
) WITH (fillfactor = 70);

CREATE TABLE runs (
  id             uuid PRIMARY KEY,
  event_id       uuid REFERENCES memory_events (id) ON DELETE CASCADE,
  agent_id       text NOT NULL REFERENCES agent_seq (agent_id) ON DELETE CASCADE,
  seq            bigint NOT NULL,
  lane           smallint NOT NULL CHECK (lane BETWEEN 0 AND 2),
  kind           text NOT NULL DEFAULT 'message' CHECK (kind IN ('message', 'job')),
  state          text NOT NULL DEFAULT 'accepted' CHECK (state IN ('accepted', 'running', 'done', 'parked')),
  stage          text NOT NULL DEFAULT 'extract' CHECK (stage IN ('extract', 'resolve', 'reconcile', 'upsert')),
  starts         smallint NOT NULL DEFAULT 0 CHECK (starts >= 0),     -- begun and neither ended nor given back
  failures       smallint NOT NULL DEFAULT 0 CHECK (failures >= 0),   -- counted against the message, this stage
  waits          smallint NOT NULL DEFAULT 0 CHECK (waits >= 0),      -- in a row, this stage: sets the next delay
  attempts       integer NOT NULL DEFAULT 0,
  fallback       text,              -- the cause that made this stage fall back, while it does
  ready_at       timestamptz,
  status         text CHECK (status IN ('ok', 'degraded', 'empty', 'failed')),
  cause          text,
  error_code     text,
  request        jsonb NOT NULL DEFAULT '{{}}',
  usage          jsonb NOT NULL DEFAULT '{{}}',
  timings        jsonb NOT NULL DEFAULT '{{}}',
  ahead_sent_at  timestamptz,
  ahead_token    uuid,
  ahead_worker   text,
  ahead_until    timestamptz,
  created_at     timestamptz NOT NULL DEFAULT mandua_now(),
  finished_at    timestamptz,
  UNIQUE (agent_id, seq),
  CHECK ((finished_at IS NOT NULL) = (state IN ('done', 'parked'))),
  CHECK ((state = 'done') = (status IS NOT NULL AND status <> 'failed')),
  CHECK (state <> 'parked' OR (status = 'failed' AND cause IS NOT NULL)),
  CHECK ((kind = 'message') = (event_id IS NOT NULL))
) WITH (fillfactor = 70);
-- The only index that a run's life touches, and only at its two ends, so that updates between them stay HOT.
CREATE INDEX runs_unfinished ON runs (agent_id, lane, seq) WHERE finished_at IS NULL;
-- The lag of a lane: how long its oldest unfinished run has waited.
CREATE INDEX runs_waiting ON runs (lane, created_at) WHERE finished_at IS NULL;
CREATE INDEX runs_event ON runs (event_id, created_at);
CREATE INDEX runs_finished ON runs (finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE run_plans (
  run_id          uuid PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
  extraction      jsonb,
  resolution      jsonb,
  reconciliation  jsonb,
  vector_texts    jsonb NOT NULL DEFAULT '[]',
  vectors         bytea NOT NULL DEFAULT '',
  replies         jsonb NOT NULL DEFAULT '{{}}',   -- call key -> reply (and its cost, until the run has it)
  sent            jsonb NOT NULL DEFAULT '{{}}',   -- call key -> times sent without a reply that anybody has
  memory_version  bigint
);

CREATE TABLE run_results (
  run_id  uuid PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
  result  jsonb NOT NULL
);

-- A dry run stores no event, fact or entity: only its own request and answer, for minutes.
CREATE TABLE dry_runs (
  id          uuid PRIMARY KEY,
  request     jsonb NOT NULL,
  result      jsonb,
  created_at  timestamptz NOT NULL DEFAULT mandua_now()
);

CREATE TABLE workers (
  name          text PRIMARY KEY,
  started_at    timestamptz NOT NULL DEFAULT mandua_now(),
  heartbeat_at  timestamptz NOT NULL DEFAULT mandua_now()
);

-- How each model is, shared by all workers. answered_at: when it last answered anybody; an error counts against a
-- message only if the model is well otherwise. While cool_until lies ahead nobody calls it: told to wait (429), or
-- unusable (wrong key, unknown model, exhausted quota). tokens: its bucket of calls; below zero they are reserved.
CREATE TABLE model_health (
  model        text PRIMARY KEY,
  answered_at  timestamptz,
  cool_until   timestamptz,
  cause        text,
  trips        smallint NOT NULL DEFAULT 0,   -- in a row: sets the next pause
  tokens       double precision,
  refilled_at  timestamptz,
  CHECK ((cool_until IS NULL) = (cause IS NULL))
) WITH (fillfactor = 50);

-- What each agent has cost on each day (UTC), wasted calls included: what a spend limit is measured against.
CREATE TABLE spending (
  day            date NOT NULL,
  agent_id       text NOT NULL,
  input_tokens   bigint NOT NULL DEFAULT 0,
  output_tokens  bigint NOT NULL DEFAULT 0,
  cost_usd       double precision NOT NULL DEFAULT 0,
  PRIMARY KEY (day, agent_id)
) WITH (fillfactor = 70);

CREATE TABLE failed_records (
  event_id     uuid PRIMARY KEY,
  agent_id     text NOT NULL,
  cause        text NOT NULL,
  recorded_at  timestamptz NOT NULL DEFAULT mandua_now()
);
"""

ACCEPT = """
-- accept_events: the only way in. For a batch of messages, in order: the event, its place among the agent's runs, the
-- run. Outcome per item: accepted; duplicate (same id, same text: nothing is made); conflict (same id, other text).
-- Invariant: seq follows commit order per agent, because agent_seq is locked first, many agents in agent_id order.
CREATE FUNCTION accept_events(batch jsonb) RETURNS TABLE (ordinal integer, event_id uuid, outcome text)
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
  ), inserted AS (
    INSERT INTO memory_events (id, agent_id, speaker_name, message, role, source, session_id, message_id,
                               occurred_at, offset_minutes)
    SELECT DISTINCT ON (id) id, agent_id, value ->> 'speaker_name', message, coalesce(value ->> 'role', 'user'),
           coalesce(value ->> 'source', 'api'), value ->> 'session_id', value ->> 'message_id',
           (value ->> 'occurred_at')::timestamptz, (value ->> 'offset_minutes')::smallint
      FROM item ORDER BY id, ord
    ON CONFLICT DO NOTHING
    RETURNING id, agent_id, message
  ), known AS (
    SELECT id, agent_id, message FROM inserted
    UNION ALL
    SELECT e.id, e.agent_id, e.message FROM memory_events e WHERE e.id IN (SELECT id FROM item)
  ), judged AS (
    SELECT i.*, CASE
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
    SELECT gen_random_uuid(), p.id, p.agent_id, m.base + p.nth - 1, p.lane, coalesce(p.value -> 'request', '{{}}')
      FROM placed p JOIN moved m ON m.agent_id = p.agent_id
  )
  SELECT j.ord, j.id, j.verdict FROM judged j ORDER BY j.ord;
END $$;

-- What became of an event: its newest run. A producer needs no more than this function and accept_events.
CREATE FUNCTION event_outcome(event uuid)
RETURNS TABLE (run_id uuid, state text, stage text, status text, cause text, result jsonb)
LANGUAGE sql STABLE AS $$
  SELECT r.id, r.state, r.stage, r.status, r.cause, o.result
    FROM runs r LEFT JOIN run_results o ON o.run_id = r.id
   WHERE r.event_id = event ORDER BY r.created_at DESC, r.seq DESC LIMIT 1
$$;
"""

TABLES = (
    "failed_records, spending, model_health, workers, dry_runs, run_results, run_plans, runs, agent_turns, agent_seq, "
    "pending_operations, memory_attribute_registry, memory_relationship_evidence, memory_entity_relationships, "
    "memory_fact_entity_links, memory_fact_confirmations, memory_facts, memory_entity_aliases, memory_entities, "
    "event_annotations, memory_events"
)


def upgrade() -> None:
    vector = vector_type()
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    for part in (CLOCK, EVENTS, ENTITIES, FACTS, RELATIONSHIPS, CARE, LEDGER, ACCEPT):
        op.execute(part.replace("{vector}", vector).replace("{{}}", "{}"))


def downgrade() -> None:
    op.execute("DROP FUNCTION event_outcome(uuid)")
    op.execute("DROP FUNCTION accept_events(jsonb)")
    op.execute(f"DROP TABLE {TABLES}")
    op.execute("DROP FUNCTION memory_events_immutable()")
    op.execute("DROP FUNCTION mandua_now()")
