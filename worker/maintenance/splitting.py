"""A merge is undone: every row that it made, changed or took away is as it was before (see ``merging``).

Row by row and column by column: what still is as the merge left it goes back to what it was; what has changed since
stays. So a split at once gives back the exact former state. One that comes later keeps what was learnt meanwhile: what
followed a fact goes where that fact goes, what was said of the survivor stays with it, and all of it is due anew.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.orm import Session

from worker.maintenance.merging import NOW, MergeRefused, separate
from worker.write.fact_rows import as_rows
from worker.write.relationships import refresh_edges

LOCK_MERGE = text("""
SELECT m.kept_key AS kept, m.gone_key AS gone, m.merged_at, m.split_at,
       (SELECT n.id FROM entity_merges n
         WHERE n.agent_id = m.agent_id AND n.split_at IS NULL AND n.id <> m.id
           AND (n.gone_key = m.kept_key OR (n.kept_key = m.kept_key AND n.merged_at > m.merged_at))
         ORDER BY n.merged_at DESC LIMIT 1) AS later
  FROM entity_merges m WHERE m.agent_id = :agent_id AND m.id = :id FOR UPDATE OF m
""")
# Whether anything has happened to the survivor since: a message that named it, a job that looked at it.
LOCK_ENTITIES = text("""
SELECT bool_or(e.canonical_key = :kept AND greatest(e.facts_changed_at, e.last_seen_at, e.profile_refreshed_at,
                 e.facts_deduped_at, e.summary_refreshed_at, e.scored_at, e.twins_sought_at) > :merged_at)
  FROM (SELECT * FROM memory_entities WHERE agent_id = :agent_id AND canonical_key IN (:kept, :gone)
         ORDER BY canonical_key FOR UPDATE) e
""")

_APART = "jsonb_to_recordset(CAST(:apart AS jsonb)) AS p (id uuid, kept uuid)"
_MOVED = """
(SELECT r.* FROM entity_merges m,
        jsonb_to_recordset(m.moved) AS r ("table" text, key jsonb, before jsonb, after jsonb) WHERE m.id = :id) r
"""
# Columns that the schema binds to each other go back together or not at all.
_BOUND = (
    '{"event_date_precision": "event_date", "invalidated_at": "valid_to", "merged_into": "valid_to", '
    '"value": "attribute_key", "profile_source": "profile_text"}'
)
# The columns of row x that still are as the merge left them, as they were before.
_PATCH = f"""
(SELECT coalesce(jsonb_object_agg(c.key, r.before -> c.key) FILTER (WHERE c.intact), '{{}}')
   FROM (SELECT c.key, bool_and(c.value = to_jsonb(x) -> c.key)
                OVER (PARTITION BY coalesce('{_BOUND}'::jsonb ->> c.key, c.key)) AS intact
           FROM jsonb_each(r.after) c) c)
"""  # noqa: S608


def _change(name: str, table: str, key: str, columns: str) -> str:
    """Give rows of ``table`` back what they had in ``columns``."""
    chosen = [f"p.{column}" for column in columns.split()]
    # What has ended since cannot begin after its end.
    chosen = [_BEGINS if column == "p.valid_from" else column for column in chosen]
    return f"""
UPDATE {table} x
   SET ({", ".join(columns.split())}) = (SELECT {", ".join(chosen)} FROM jsonb_populate_record(x, {_PATCH}) p)
  FROM {_MOVED} WHERE r."table" = '{name}' AND r.before IS NOT NULL AND r.after IS NOT NULL AND {key}
"""  # noqa: S608


_BEGINS = "CASE WHEN p.valid_from > p.valid_to THEN p.valid_to ELSE p.valid_from END"


def _remove(name: str, table: str, key: str) -> str:
    """Take away the rows of ``table`` that the merge made."""
    return f"""DELETE FROM {table} x USING {_MOVED} WHERE r."table" = '{name}' AND r.before IS NULL AND {key}"""  # noqa: S608


def _bring_back(name: str, table: str, fact: str = "fact_id") -> str:
    """Make the rows of ``table`` again that the merge took away, if what they hang on is still there."""
    return f"""
INSERT INTO {table} SELECT p.* FROM {_MOVED} CROSS JOIN LATERAL jsonb_populate_record(NULL::{table}, r.before) p
 WHERE r."table" = '{name}' AND r.after IS NULL
   AND (p.{fact} IS NULL OR EXISTS (SELECT FROM memory_facts f WHERE f.id = p.{fact}))
ON CONFLICT DO NOTHING
"""  # noqa: S608


_FACTS, _LINKS, _EDGES = "memory_facts", "memory_fact_entity_links", "memory_entity_relationships"
_SAID, _HOLDS, _ALIASES = "memory_fact_confirmations", "memory_relationship_evidence", "memory_entity_aliases"
_BY_ID = "x.id = (r.key ->> 'id')::uuid"
_BY_EVENT = "x.fact_id = (r.key ->> 'fact_id')::uuid AND x.event_id = (r.key ->> 'event_id')::uuid"
_BY_NAME = "x.fact_id = (r.key ->> 'fact_id')::uuid AND x.entity_key = r.key ->> 'entity_key'"
_BY_FACT = "x.relationship_id = (r.key ->> 'relationship_id')::uuid AND x.fact_id = (r.key ->> 'fact_id')::uuid"
_BY_KEY = "x.agent_id = :agent_id AND x.canonical_key = r.key ->> 'canonical_key'"
_BY_ALIAS = (
    "x.agent_id = :agent_id AND x.alias_folded = r.key ->> 'alias_folded' AND x.entity_type = r.key ->> 'entity_type'"
)

_OF_ENTITY = (
    "display_name embedding is_placeholder profile_text profile_source summary_text first_seen_at last_seen_at "
    "facts_changed_at facts_deduped_at merged_into"
)
_OF_FACT = (
    "entity_key valid_from valid_to invalidated_at merged_into confidence importance event_date event_date_precision "
    "attribute_key value confirmations last_confirmed_at stale_at user_correction_count retrievals last_retrieved_at"
)
_OF_EDGE = (
    "source_entity_key target_entity_key strength evidence_fact_id valid_from valid_to invalidated_at created_at "
    "updated_at"
)

# Entities before what refers to them, facts before edges; in each table what is there makes room first.
UNDO = [
    text(statement)
    for statement in (
        _change("entity", "memory_entities", _BY_KEY, _OF_ENTITY),
        _change("alias", _ALIASES, _BY_ALIAS, "entity_key"),
        _remove("said", _SAID, _BY_EVENT),
        _bring_back("said", _SAID),
        _change("fact", _FACTS, _BY_ID, _OF_FACT),
        _remove("link", _LINKS, _BY_NAME),
        _change("link", _LINKS, _BY_NAME, "is_primary"),
        _bring_back("link", _LINKS),
        # A fact that has become part of it since may have held the edge up, too.
        _remove("evidence", _HOLDS, _BY_FACT) + " AND NOT EXISTS (SELECT FROM memory_facts f"
        " WHERE f.merged_into = x.fact_id AND f.invalidated_at > :merged_at)",
        _change("edge", _EDGES, _BY_ID, _OF_EDGE),
        _bring_back("edge", _EDGES, "evidence_fact_id"),
        _bring_back("evidence", _HOLDS),
    )
]

_TOUCHED = f"""
x.agent_id = :agent_id AND (x.source_entity_key IN (:kept, :gone) OR x.target_entity_key IN (:kept, :gone)
                            OR x.id IN (SELECT (r.key ->> 'id')::uuid FROM {_MOVED} WHERE r."table" = 'edge'))
"""  # noqa: S608
# What held up an edge that is back, and has become part of another fact since, holds it up as that; so does what an
# edge stood on last, where nothing else is left of what held it up.
HOLD_ON = text(f"""
WITH RECURSIVE back AS (
  SELECT x.relationship_id, x.fact_id FROM {_MOVED} JOIN {_HOLDS} x ON {_BY_FACT}
   WHERE r."table" = 'evidence' AND r.after IS NULL
  UNION
  SELECT x.id, x.evidence_fact_id FROM {_EDGES} x
   WHERE {_TOUCHED} AND x.evidence_fact_id IS NOT NULL
     AND NOT EXISTS (SELECT FROM {_HOLDS} v WHERE v.relationship_id = x.id)
), way AS (
  SELECT relationship_id, fact_id, fact_id AS held_by FROM back
  UNION
  SELECT w.relationship_id, w.fact_id, f.merged_into FROM way w JOIN memory_facts f ON f.id = w.held_by
   WHERE f.merged_into IS NOT NULL
), now AS (
  SELECT w.* FROM way w JOIN memory_facts f ON f.id = w.held_by WHERE f.merged_into IS NULL
), gone AS (
  DELETE FROM {_HOLDS} v USING now n
   WHERE v.relationship_id = n.relationship_id AND v.fact_id = n.fact_id AND n.held_by <> n.fact_id
)
INSERT INTO {_HOLDS} (relationship_id, fact_id) SELECT DISTINCT relationship_id, held_by FROM now
ON CONFLICT DO NOTHING
""")  # noqa: S608
# Edges that are not as what they stand on is by now.
OFF = text(f"""
SELECT x.id FROM {_EDGES} x JOIN {_HOLDS} v ON v.relationship_id = x.id JOIN memory_facts f ON f.id = v.fact_id
 WHERE {_TOUCHED}
 GROUP BY x.id HAVING (x.valid_to IS NULL) <> bool_or(f.valid_to IS NULL)
     OR NOT coalesce(bool_or(f.id = x.evidence_fact_id AND (f.valid_to IS NULL) = (x.valid_to IS NULL)), false)
""")  # noqa: S608
# A text that both had was one meanwhile: what ended it has ended both.
END_TOO = text(f"""
UPDATE memory_facts f SET valid_to = greatest(k.valid_to, f.valid_from), invalidated_at = k.invalidated_at
  FROM {_MOVED} JOIN memory_facts k ON k.id = (r.after ->> 'merged_into')::uuid
 WHERE r."table" = 'fact' AND f.id = (r.key ->> 'id')::uuid AND f.valid_to IS NULL AND k.valid_to IS NOT NULL
""")  # noqa: S608
# A later version of a fact that goes back goes with it, and takes its link along.
FOLLOW = text("""
WITH RECURSIVE later AS (
  SELECT n.id FROM memory_facts f JOIN memory_facts n ON n.supersedes_fact_id = f.id AND n.entity_key = :kept
   WHERE f.agent_id = :agent_id AND f.entity_key = :gone
  UNION
  SELECT n.id FROM later l JOIN memory_facts n ON n.supersedes_fact_id = l.id AND n.entity_key = :kept
), moved AS (
  UPDATE memory_facts f SET entity_key = :gone FROM later l WHERE f.id = l.id RETURNING f.id
)
UPDATE memory_fact_entity_links x SET entity_key = :gone FROM moved
 WHERE x.fact_id = moved.id AND x.entity_key = :kept
   AND NOT EXISTS (SELECT FROM memory_fact_entity_links o WHERE o.fact_id = x.fact_id AND o.entity_key = :gone)
""")
# What was made one across the two is two again: it lives while the one that it went into does, else it ended with it.
REOPEN = text("""
WITH apart AS (
  SELECT f.id, k.id AS kept, f.valid_from, k.valid_to, k.invalidated_at,
         k.valid_to IS NULL AND NOT EXISTS (
           SELECT FROM memory_facts o WHERE o.agent_id = f.agent_id AND o.entity_key = f.entity_key
              AND o.text_hash = f.text_hash AND o.valid_to IS NULL) AS lives
    FROM memory_facts f JOIN memory_facts k ON k.id = f.merged_into
   WHERE f.agent_id = :agent_id AND f.entity_key IN (:kept, :gone) AND k.entity_key IN (:kept, :gone)
     AND k.entity_key <> f.entity_key
)
UPDATE memory_facts f
   SET valid_to = CASE WHEN NOT a.lives THEN greatest(coalesce(a.valid_to, mandua_now()), a.valid_from) END,
       invalidated_at = CASE WHEN NOT a.lives THEN coalesce(a.invalidated_at, mandua_now()) END, merged_into = NULL
  FROM apart a WHERE f.id = a.id
RETURNING f.id, a.kept
""")
# It takes back what was said in its words, and the edges that it held up: its entity's, and those of neither.
SAY_AGAIN = text(f"""
WITH back AS (
  DELETE FROM memory_fact_confirmations c USING {_APART} JOIN memory_facts f ON f.id = p.id
   WHERE c.fact_id = p.kept AND c.wording ->> 'text_hash' = encode(f.text_hash, 'hex')
  RETURNING f.id, f.source_event_id, c.event_id, c.occurred_at
)
INSERT INTO memory_fact_confirmations (fact_id, event_id, occurred_at)
SELECT id, event_id, occurred_at FROM back WHERE event_id <> source_event_id
ON CONFLICT DO NOTHING
""")  # noqa: S608
HOLD_AGAIN = text(f"""
WITH held AS (
  SELECT v.relationship_id, p.id, p.kept, k.entity_key IN (r.source_entity_key, r.target_entity_key) AS theirs,
         f.entity_key IN (r.source_entity_key, r.target_entity_key) AS its
    FROM {_APART} JOIN memory_facts f ON f.id = p.id JOIN memory_facts k ON k.id = p.kept
    JOIN memory_relationship_evidence v ON v.fact_id = p.kept
    JOIN memory_entity_relationships r ON r.id = v.relationship_id
), gone AS (
  DELETE FROM memory_relationship_evidence v USING held h
   WHERE v.relationship_id = h.relationship_id AND v.fact_id = h.kept AND h.its AND NOT h.theirs
)
INSERT INTO memory_relationship_evidence (relationship_id, fact_id)
SELECT relationship_id, id FROM held WHERE its OR NOT theirs
ON CONFLICT DO NOTHING
""")  # noqa: S608
# An edge that went back and that a fact of the survivor has asserted since is the survivor's as well.
ASSERT_AGAIN = text("""
WITH since AS (
  SELECT r.id, v.fact_id, r.rel_type, r.strength, f.valid_from,
         CASE r.source_entity_key WHEN :gone THEN :kept ELSE r.source_entity_key END AS source,
         CASE r.target_entity_key WHEN :gone THEN :kept ELSE r.target_entity_key END AS target
    FROM memory_entity_relationships r JOIN memory_relationship_evidence v ON v.relationship_id = r.id
    JOIN memory_facts f ON f.id = v.fact_id AND f.ingested_at > :merged_at AND f.entity_key <> :gone
   WHERE r.agent_id = :agent_id AND :gone IN (r.source_entity_key, r.target_entity_key)
), edge AS (
  INSERT INTO memory_entity_relationships AS e (agent_id, source_entity_key, target_entity_key, rel_type, strength,
                                                evidence_fact_id)
  SELECT DISTINCT ON (source, target, rel_type) :agent_id, source, target, rel_type, strength, fact_id
    FROM since WHERE source <> target ORDER BY source, target, rel_type, fact_id
  ON CONFLICT (agent_id, source_entity_key, target_entity_key, rel_type) DO UPDATE SET updated_at = mandua_now()
  RETURNING e.id, e.source_entity_key, e.target_entity_key, e.rel_type
), gone AS (
  DELETE FROM memory_relationship_evidence v USING since s WHERE v.relationship_id = s.id AND v.fact_id = s.fact_id
)
INSERT INTO memory_relationship_evidence (relationship_id, fact_id)
SELECT e.id, s.fact_id FROM since s JOIN edge e
    ON (e.source_entity_key, e.target_entity_key, e.rel_type) = (s.source, s.target, s.rel_type)
ON CONFLICT DO NOTHING
""")
# Every edge that was touched, and every other that stands on a fact of the two.
EDGES = text(f"""
SELECT x.id FROM {_EDGES} x WHERE {_TOUCHED}
UNION
SELECT v.relationship_id FROM memory_facts f JOIN {_HOLDS} v ON v.fact_id = f.id
 WHERE f.agent_id = :agent_id AND f.entity_key IN (:kept, :gone)
""")  # noqa: S608
TOUCH = text("""
UPDATE memory_entities SET facts_changed_at = mandua_now(), facts_deduped_at = NULL
 WHERE agent_id = :agent_id AND canonical_key IN (:kept, :gone)
""")
COUNT = text("""
UPDATE memory_facts f SET confirmations = s.many
  FROM (SELECT f.id, (SELECT count(*) FROM memory_fact_confirmations c WHERE c.fact_id = f.id) AS many
          FROM memory_facts f WHERE f.agent_id = :agent_id AND f.entity_key IN (:kept, :gone)) s
 WHERE f.id = s.id AND f.confirmations <> s.many
""")
CLOSE = text("UPDATE entity_merges SET split_at = mandua_now() WHERE id = :id")


def split_entities(session: Session, agent_id: str, merge_id: UUID) -> tuple[str, str]:
    """Undo a merge inside the caller's transaction, which holds the agent's turn; returns the survivor and the other.

    The two are never again merged by a job. Raises MergeRefused where there is no such merge, it is undone already, or
    a later merge of the survivor stands: those are undone first.
    """
    merge = _lock_merge(session, agent_id, merge_id)
    given: dict[str, Any] = {
        "agent_id": agent_id, "id": merge_id, "kept": merge.kept, "gone": merge.gone, "merged_at": merge.merged_at,
    }  # fmt: skip
    stirred = bool(session.execute(LOCK_ENTITIES, given).scalar())
    for statement in UNDO:
        session.execute(statement, given)
    if stirred:
        _keep_what_came_since(session, given)
    session.execute(HOLD_ON, given)
    edges = session.execute(EDGES if stirred else OFF, given).scalars().all()
    if edges:
        refresh_edges(session, edges, [], session.execute(NOW).scalar_one())
    separate(session, agent_id, merge.kept, merge.gone)
    session.execute(CLOSE, given)
    return merge.kept, merge.gone


def _lock_merge(session: Session, agent_id: str, merge_id: UUID) -> Row[Any]:
    merge = session.execute(LOCK_MERGE, {"agent_id": agent_id, "id": merge_id}).one_or_none()
    if merge is None:
        raise MergeRefused(f"there is no merge {merge_id} (see `mandua entities merges`)")
    if merge.split_at is not None:
        raise MergeRefused(f"merge {merge_id} is undone already")
    if merge.later is not None:
        raise MergeRefused(f"{merge.kept} was merged again since; undo merge {merge.later} first")
    return merge


def _keep_what_came_since(session: Session, given: dict[str, Any]) -> None:
    session.execute(END_TOO, given)
    session.execute(FOLLOW, given)
    apart = [dict(row) for row in session.execute(REOPEN, given).mappings()]
    for statement in (SAY_AGAIN, HOLD_AGAIN):
        session.execute(statement, {"apart": as_rows(apart)})
    session.execute(ASSERT_AGAIN, given)
    session.execute(COUNT, given)
    session.execute(TOUCH, given)
