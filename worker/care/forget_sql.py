"""The statements of ``forget``, in their order. All work on three temporary tables: what goes."""

from __future__ import annotations

# Before the agent: that is the order in which an import that goes on takes them.
LOCK_IMPORTS = "SELECT 1 FROM imports ORDER BY id FOR UPDATE"

# Nothing of the agent is accepted, begun or applied meanwhile: accept locks agent_seq first, every stage the turn.
LOCK_AGENT = "SELECT 1 FROM agent_seq WHERE agent_id = :agent FOR UPDATE"

# Invariant: whoever was at work on the agent holds nothing any more, and what has not ended starts over: its plans, and
# what it was sent, may quote what goes. A job begins again from what is due.
TAKE_TURN = """
WITH turn AS (
  UPDATE agent_turns SET fence = fence + 1, run_id = NULL, stage_token = NULL, worker = NULL, lease_until = NULL,
         version = version + 1 WHERE agent_id = :agent
), begun AS (
  UPDATE runs SET state = 'accepted', stage = CASE kind WHEN 'job' THEN 'job' ELSE 'extract' END, starts = 0,
         failures = 0, fallback = NULL, ahead_token = NULL, ahead_worker = NULL, ahead_until = NULL,
         ahead_sent_at = NULL
   WHERE agent_id = :agent AND finished_at IS NULL
), carried AS (
  UPDATE runs SET request = '{}' WHERE agent_id = :agent AND kind = 'job' AND request <> '{}'
), plans AS (
  DELETE FROM run_plans p USING runs r WHERE r.id = p.run_id AND r.agent_id = :agent
), woken AS (
  UPDATE agent_seq SET wake_at = mandua_now() WHERE agent_id = :agent
)
SELECT 1
"""

TABLES = """
CREATE TEMPORARY TABLE going_entities (key text PRIMARY KEY) ON COMMIT DROP;
CREATE TEMPORARY TABLE going_events (id uuid PRIMARY KEY) ON COMMIT DROP;
CREATE TEMPORARY TABLE going_facts (id uuid PRIMARY KEY) ON COMMIT DROP;
CREATE TEMPORARY TABLE going_stamps (at timestamptz PRIMARY KEY) ON COMMIT DROP
"""

# The entity, the one that it was merged into, and all that were merged into that.
SAME_ENTITY = """
WITH RECURSIVE up AS (
  SELECT canonical_key, merged_into FROM memory_entities WHERE agent_id = :agent AND canonical_key = :entity
  UNION
  SELECT e.canonical_key, e.merged_into FROM up JOIN memory_entities e
      ON e.agent_id = :agent AND (e.canonical_key = up.merged_into OR e.merged_into = up.canonical_key)
)
INSERT INTO going_entities SELECT canonical_key FROM up
"""

# The names of what goes, folded as everything is compared here. A person's first name is one of them where nobody else
# is called so: that is whom the pipeline would take it for.
NAMES = """
SELECT DISTINCT mandua_folded(n.name) FROM (
  SELECT a.alias AS name FROM memory_entity_aliases a JOIN going_entities g ON g.key = a.entity_key
   WHERE a.agent_id = :agent
  UNION ALL
  SELECT e.display_name FROM memory_entities e JOIN going_entities g ON g.key = e.canonical_key
   WHERE e.agent_id = :agent
  UNION ALL
  SELECT replace(split_part(g.key, ':', 2), '_', ' ') FROM going_entities g
  UNION ALL
  SELECT split_part(e.display_name, ' ', 1) FROM memory_entities e JOIN going_entities g ON g.key = e.canonical_key
   WHERE e.agent_id = :agent AND e.entity_type = 'person' AND NOT e.is_placeholder
     AND NOT EXISTS (SELECT 1 FROM memory_entity_aliases o
                      WHERE o.agent_id = :agent AND o.entity_type = 'person'
                        AND o.entity_key NOT IN (SELECT key FROM going_entities)
                        AND split_part(mandua_folded(o.alias), ' ', 1)
                          = mandua_folded(split_part(e.display_name, ' ', 1)))
) n
"""
# Names of others that hold such a name ("São Paulo", where Paulo is forgotten): theirs, unless they are known by it
# only ("Paulo's brother"), which is somebody who goes along.
PLACEHOLDERS = """
INSERT INTO going_entities
SELECT e.canonical_key FROM memory_entities e
 WHERE e.agent_id = :agent AND e.is_placeholder AND mandua_folded(e.display_name) ~ :names
ON CONFLICT DO NOTHING
"""
LONGER_NAMES = """
SELECT DISTINCT mandua_folded(a.alias), a.entity_key
  FROM memory_entity_aliases a JOIN memory_entities e ON e.agent_id = a.agent_id AND e.canonical_key = a.entity_key
 WHERE a.agent_id = :agent AND a.entity_key NOT IN (SELECT key FROM going_entities)
   AND mandua_folded(a.alias) ~ :names AND mandua_folded(e.display_name) ~ :names
"""


def named(text: str) -> str:
    """SQL: whether ``text`` names what goes, other than within a longer name of somebody else's."""
    return f"regexp_replace(mandua_folded({text}), :longer, ' ', 'g') ~ :names"


FACTS_OF_ENTITIES = f"""
INSERT INTO going_facts
SELECT f.id FROM memory_facts f
 WHERE f.agent_id = :agent
   AND (f.entity_key IN (SELECT key FROM going_entities) OR {named("f.fact_text")} OR {named("coalesce(f.value, '')")}
        OR EXISTS (SELECT 1 FROM memory_fact_entity_links l JOIN going_entities g ON g.key = l.entity_key
                    WHERE l.fact_id = f.id AND l.agent_id = :agent))
"""  # noqa: S608
# Invariant: an event that names what goes, anywhere, or that said a fact about it, is redacted whole.
EVENTS_OF_ENTITIES = f"""
INSERT INTO going_events
SELECT e.id FROM memory_events e
 WHERE e.agent_id = :agent
   AND ({named("concat_ws(' ', e.message, e.speaker_name, e.session_id, e.source, e.message_id)")}
        OR EXISTS (SELECT 1 FROM memory_facts f JOIN going_facts g ON g.id = f.id WHERE f.source_event_id = e.id)
        OR EXISTS (SELECT 1 FROM memory_fact_confirmations c JOIN going_facts g ON g.id = c.fact_id
                    WHERE c.event_id = e.id))
"""  # noqa: S608

THIS_EVENT = "INSERT INTO going_events SELECT id FROM memory_events WHERE agent_id = :agent AND id = :event"

# What one apply wrote has one time: it tells which entities and aliases a message brought.
STAMPS = """
INSERT INTO going_stamps
SELECT r.finished_at FROM runs r JOIN going_events g ON g.id = r.event_id WHERE r.state = 'done'
UNION SELECT f.ingested_at FROM memory_facts f JOIN going_events g ON g.id = f.source_event_id WHERE f.agent_id = :agent
"""
# A fact that another message said as well is that one's from now on, in its words and from its time on.
HAND_ON = """
WITH heir AS (
  SELECT DISTINCT ON (c.fact_id) c.fact_id, c.event_id, c.occurred_at, nullif(c.wording, 'null') AS wording, c.embedding
    FROM memory_fact_confirmations c JOIN memory_facts f ON f.id = c.fact_id
    JOIN going_events g ON g.id = f.source_event_id
   WHERE f.agent_id = :agent AND c.event_id NOT IN (SELECT id FROM going_events)
     AND (f.valid_to IS NULL OR c.occurred_at IS NULL OR c.occurred_at <= f.valid_to)
   ORDER BY c.fact_id, c.occurred_at NULLS FIRST, c.event_id
), handed AS (
  UPDATE memory_facts f
     SET source_event_id = h.event_id, valid_from = h.occurred_at, speaker = e.speaker_name,
         confirmations = greatest(f.confirmations - 1, 0), fact_text = coalesce(h.wording ->> 'text', f.fact_text),
         text_hash = coalesce(decode(h.wording ->> 'text_hash', 'hex'), f.text_hash),
         embedding = CASE WHEN h.wording IS NULL THEN f.embedding ELSE coalesce(h.embedding, f.embedding) END,
         value = CASE WHEN h.wording IS NULL THEN f.value ELSE h.wording ->> 'value' END
    FROM heir h JOIN memory_events e ON e.id = h.event_id WHERE f.id = h.fact_id RETURNING f.id, f.source_event_id
)
DELETE FROM memory_fact_confirmations c USING handed h WHERE c.fact_id = h.id AND c.event_id = h.source_event_id
"""
FACTS_OF_EVENTS = """
INSERT INTO going_facts
SELECT f.id FROM memory_facts f JOIN going_events g ON g.id = f.source_event_id WHERE f.agent_id = :agent
"""

# Profiles and summaries were written from facts that go: they are due again, from what is left.
PROFILES = f"""
UPDATE memory_entities e
   SET profile_text = NULL, profile_source = NULL, profile_refreshed_at = NULL, summary_text = NULL,
       summary_refreshed_at = NULL, facts_changed_at = mandua_now()
 WHERE e.agent_id = :agent AND (e.profile_text IS NOT NULL OR e.summary_text IS NOT NULL)
   AND (EXISTS (SELECT 1 FROM memory_fact_entity_links l JOIN going_facts g ON g.id = l.fact_id
                 WHERE l.agent_id = :agent AND l.entity_key = e.canonical_key)
        OR EXISTS (SELECT 1 FROM memory_facts f JOIN going_facts g ON g.id = f.id
                    WHERE f.agent_id = :agent AND f.entity_key = e.canonical_key)
        OR {named("concat_ws(' ', e.profile_text, e.summary_text)")})
"""  # noqa: S608

# Edges: those of what goes, and those that only facts that go held up. The others stand on what is left.
EDGES_TOUCHED = """
SELECT DISTINCT v.relationship_id FROM memory_relationship_evidence v JOIN going_facts g ON g.id = v.fact_id
"""
DROP_EVIDENCE = "DELETE FROM memory_relationship_evidence v USING going_facts g WHERE g.id = v.fact_id"
DROP_EDGES = """
DELETE FROM memory_entity_relationships r
 WHERE r.agent_id = :agent
   AND (r.source_entity_key IN (SELECT key FROM going_entities)
        OR r.target_entity_key IN (SELECT key FROM going_entities)
        OR (r.id = ANY (CAST(:edges AS uuid[]))
            AND NOT EXISTS (SELECT 1 FROM memory_relationship_evidence v JOIN memory_facts f ON f.id = v.fact_id
                             WHERE v.relationship_id = r.id AND f.kind = 'fact')))
"""

UNLINK_FACTS = """
UPDATE memory_facts f
   SET supersedes_fact_id = CASE WHEN f.supersedes_fact_id IN (SELECT id FROM going_facts) THEN NULL
                                 ELSE f.supersedes_fact_id END,
       merged_into = CASE WHEN f.merged_into IN (SELECT id FROM going_facts) THEN NULL ELSE f.merged_into END
 WHERE f.agent_id = :agent
   AND (f.supersedes_fact_id IN (SELECT id FROM going_facts) OR f.merged_into IN (SELECT id FROM going_facts))
"""
DROP_FACTS = "DELETE FROM memory_facts f USING going_facts g WHERE g.id = f.id"
UNNAME_SPEAKERS = f"""
UPDATE memory_facts f SET speaker = NULL
 WHERE f.agent_id = :agent AND f.speaker IS NOT NULL AND {named("f.speaker")}
"""  # noqa: S608
DROP_SAID = f"""
DELETE FROM memory_fact_confirmations c USING memory_facts f
 WHERE f.id = c.fact_id AND f.agent_id = :agent
   AND ((CAST(:whole AS boolean) AND c.event_id IN (SELECT id FROM going_events)) OR {named("c.wording::text")})
"""  # noqa: S608
DROP_REVISIONS = f"""
DELETE FROM memory_fact_revisions r USING memory_facts f
 WHERE f.id = r.fact_id AND f.agent_id = :agent
   AND ((r.was ->> 'source_event_id')::uuid IN (SELECT id FROM going_events) OR {named("r.was::text")})
"""  # noqa: S608

# Entities that no other message named and that nothing speaks of any more, and names that it brought.
ORPHANS = """
INSERT INTO going_entities
SELECT e.canonical_key FROM memory_entities e JOIN going_stamps s ON s.at = e.first_seen_at
 WHERE e.agent_id = :agent AND e.last_seen_at IN (SELECT at FROM going_stamps)
   AND NOT EXISTS (SELECT 1 FROM memory_facts f WHERE f.agent_id = :agent AND f.entity_key = e.canonical_key)
   AND NOT EXISTS (SELECT 1 FROM memory_fact_entity_links l
                    WHERE l.agent_id = :agent AND l.entity_key = e.canonical_key)
   AND NOT EXISTS (SELECT 1 FROM memory_entity_relationships r
                    WHERE r.agent_id = :agent AND e.canonical_key IN (r.source_entity_key, r.target_entity_key))
   AND NOT EXISTS (SELECT 1 FROM memory_entities m WHERE m.agent_id = :agent AND m.merged_into = e.canonical_key)
ON CONFLICT DO NOTHING
"""
DROP_ALIASES_BROUGHT = """
DELETE FROM memory_entity_aliases a USING memory_entities e
 WHERE a.agent_id = :agent AND e.agent_id = :agent AND e.canonical_key = a.entity_key
   AND a.created_at IN (SELECT at FROM going_stamps) AND e.first_seen_at NOT IN (SELECT at FROM going_stamps)
   AND a.alias <> e.display_name
"""
DROP_ALIASES_NAMING = f"""
DELETE FROM memory_entity_aliases a USING memory_entities e
 WHERE a.agent_id = :agent AND e.agent_id = :agent AND e.canonical_key = a.entity_key
   AND {named("a.alias")} AND a.alias <> e.display_name
"""  # noqa: S608
DROP_ENTITIES = """
WITH gone AS (
  DELETE FROM memory_entities e USING going_entities g WHERE e.agent_id = :agent AND e.canonical_key = g.key RETURNING 1
)
SELECT count(*) FROM gone
"""

# Invariant: of a redacted event, its id, its agent and its times are left.
REDACT_EVENTS = """
UPDATE memory_events e
   SET message = '[forgotten]', speaker_name = '[forgotten]', session_id = NULL, message_id = NULL, source = 'forgotten'
  FROM going_events g WHERE g.id = e.id
"""
DROP_ANNOTATIONS = "DELETE FROM event_annotations a USING going_events g WHERE g.id = a.event_id"
# Their runs have ended, with nothing; there is nothing left to replay.
END_RUNS = """
WITH ended AS (
  UPDATE runs r SET state = 'done', status = CASE r.state WHEN 'done' THEN r.status ELSE 'empty' END, cause = NULL,
         error_code = NULL, ready_at = NULL, request = '{}', finished_at = coalesce(r.finished_at, mandua_now())
    FROM going_events g WHERE g.id = r.event_id RETURNING r.id, r.event_id, r.status
)
INSERT INTO run_results (run_id, result)
SELECT id, jsonb_build_object('event_id', event_id, 'status', status) FROM ended
ON CONFLICT (run_id) DO UPDATE SET result = excluded.result, trace = '[]'
"""
# Requests of other runs quote earlier messages; their traces quote the memory; their results may list what went.
CLEAN_REQUESTS = f"""
UPDATE runs r
   SET request = r.request || jsonb_build_object('recent_messages', (
         SELECT coalesce(jsonb_agg(m.said ORDER BY m.place), '[]')
           FROM jsonb_array_elements_text(r.request -> 'recent_messages') WITH ORDINALITY AS m (said, place)
          WHERE NOT {named("m.said")} AND m.said <> ALL (CAST(:texts AS text[]))))
 WHERE r.agent_id = :agent AND jsonb_array_length(coalesce(r.request -> 'recent_messages', '[]')) > 0
"""  # noqa: S608
# What a speaker is also called, where it holds a forgotten name.
CLEAN_ALIASES = f"""
UPDATE runs r SET request = r.request - 'speaker_aliases'
 WHERE r.agent_id = :agent AND r.request ? 'speaker_aliases' AND {named("r.request ->> 'speaker_aliases'")}
"""  # noqa: S608
DROP_TRACES = """
UPDATE run_results o SET trace = '[]' FROM runs r WHERE r.id = o.run_id AND r.agent_id = :agent AND o.trace <> '[]'
"""
CLEAN_RESULTS = f"""
UPDATE run_results o
   SET result = jsonb_strip_nulls(jsonb_build_object(
                  'event_id', r.event_id, 'status', r.status, 'tokens_used', o.result -> 'tokens_used'))
  FROM runs r
 WHERE r.id = o.run_id AND r.agent_id = :agent AND r.event_id IS NOT NULL
   AND ({named("o.result::text")}
        OR EXISTS (SELECT 1 FROM going_facts g WHERE position(g.id::text IN o.result::text) > 0)
        OR EXISTS (SELECT 1 FROM going_entities g WHERE position(to_json(g.key)::text IN o.result::text) > 0))
"""  # noqa: S608
# What a merge moved is kept as it was, for a split: it quotes rows that go.
DROP_MERGES = f"""
DELETE FROM entity_merges m
 WHERE m.agent_id = :agent
   AND ({named("m.moved::text")} OR {named("m.reason")}
        OR EXISTS (SELECT 1 FROM going_facts g WHERE position(g.id::text IN m.moved::text) > 0)
        OR EXISTS (SELECT 1 FROM going_events g WHERE position(g.id::text IN m.moved::text) > 0))
"""  # noqa: S608

# Imports: what is staged and would come in one day, what was rejected, and how the import is called.
_IMPORT_OF_AGENT = """
(i.options ->> 'agent_id' = :agent OR EXISTS (SELECT 1 FROM runs r WHERE r.import_id = i.id AND r.agent_id = :agent))
"""
DROP_STAGED = f"""
WITH gone AS (
  DELETE FROM import_rows s USING imports i
   WHERE i.id = s.import_id
     AND ((s.item ->> 'agent_id' = :agent AND {named("(s.item - 'request')::text")})
          OR ({_IMPORT_OF_AGENT} AND {named("concat_ws(' ', s.file, s.content)")}))
  RETURNING (s.item ->> 'event_id')::uuid AS id
)
INSERT INTO going_events SELECT DISTINCT id FROM gone WHERE id IS NOT NULL ON CONFLICT DO NOTHING
"""  # noqa: S608
CLEAN_STAGED = f"""
UPDATE import_rows s
   SET item = jsonb_set(s.item, '{{request,recent_messages}}', (
         SELECT coalesce(jsonb_agg(m.said ORDER BY m.place), '[]')
           FROM jsonb_array_elements_text(s.item -> 'request' -> 'recent_messages')
                WITH ORDINALITY AS m (said, place)
          WHERE NOT {named("m.said")} AND m.said <> ALL (CAST(:texts AS text[]))))
 WHERE s.item ->> 'agent_id' = :agent
   AND jsonb_array_length(coalesce(s.item -> 'request' -> 'recent_messages', '[]')) > 0
"""  # noqa: S608
CLEAN_STAGED_ALIASES = f"""
UPDATE import_rows s SET item = s.item #- '{{request,speaker_aliases}}'
 WHERE s.item ->> 'agent_id' = :agent AND {named("s.item #>> '{{request,speaker_aliases}}'")}
"""  # noqa: S608
UNNAME_IMPORTS = f"""
UPDATE imports i
   SET path = CASE WHEN {named("i.path")} THEN '[forgotten]' ELSE i.path END,
       options = CASE WHEN {named("i.options::text")} THEN (i.options - 'speaker') || '{{"speakers": {{}}}}'
                      ELSE i.options END
 WHERE {_IMPORT_OF_AGENT} AND {named("concat_ws(' ', i.path, i.options)")}
"""  # noqa: S608
ALL_STAGED = """
WITH gone AS (
  DELETE FROM import_rows s WHERE s.item ->> 'agent_id' = :agent RETURNING (s.item ->> 'event_id')::uuid AS id
)
INSERT INTO going_events SELECT DISTINCT id FROM gone WHERE id IS NOT NULL ON CONFLICT DO NOTHING
"""

DROP_PENDING = "DELETE FROM pending_operations WHERE agent_id = :agent"
DROP_DRY_RUNS = "DELETE FROM dry_runs WHERE request ->> 'agent_id' = :agent"

RECEIPT = """
INSERT INTO forget_receipts (kind, salt, digest, counts)
VALUES (:kind, :salt, :digest, CAST(:counts AS jsonb)) RETURNING id, forgotten_at
"""
TOMBSTONES = """
INSERT INTO forgotten_events (event_id, receipt_id)
SELECT id, :receipt FROM going_events UNION SELECT unnest(CAST(:queued AS uuid[])), :receipt
ON CONFLICT DO NOTHING
"""

# A whole agent: everything that has its name on it, in the order of the references.
WHOLE_AGENT = (
    ("staged", ALL_STAGED),
    ("imports", f"DELETE FROM imports i WHERE {_IMPORT_OF_AGENT}"),  # noqa: S608
    ("relations", "DELETE FROM memory_entity_relationships WHERE agent_id = :agent"),
    ("unlinked", "UPDATE memory_facts SET supersedes_fact_id = NULL, merged_into = NULL WHERE agent_id = :agent"),
    ("facts", "DELETE FROM memory_facts WHERE agent_id = :agent"),
    ("unmerged", "UPDATE memory_entities SET merged_into = NULL WHERE agent_id = :agent"),
    ("entities", "DELETE FROM memory_entities WHERE agent_id = :agent"),
    ("runs", "DELETE FROM runs WHERE agent_id = :agent"),
    ("events", "DELETE FROM memory_events WHERE agent_id = :agent"),
    ("pending", DROP_PENDING),
    ("attributes", "DELETE FROM memory_attribute_registry WHERE agent_id = :agent"),
    ("dry_runs", DROP_DRY_RUNS),
    ("spending", "DELETE FROM spending WHERE agent_id = :agent"),
    ("refused", "DELETE FROM failed_records WHERE agent_id = :agent"),
    ("jobs", "DELETE FROM maintenance_runs WHERE agent_id = :agent"),
    ("turns", "DELETE FROM agent_seq WHERE agent_id = :agent"),
)
