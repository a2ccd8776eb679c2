"""Two entities become one: aliases, facts, links, edges, evidence and profile move to the survivor, in one transaction.

What is merged keeps its row and points to the survivor, so that its key still leads there. The caller holds the
agent's turn. ``entity_merges`` keeps every row that was made, changed or taken away, in the columns that differ;
``splitting`` puts it back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Row, text
from sqlalchemy.orm import Session

from worker.maintenance.folding import fold_facts
from worker.write.fact_rows import as_rows
from worker.write.relationships import refresh_edges

MAX_REASON_CHARS = 500


class MergeRefused(Exception):
    """A merge or split that cannot be; ``str()`` says why in one line, with keys and ids only."""


LOCK_ENTITIES = text("""
SELECT e.canonical_key AS key, e.merged_into FROM memory_entities e
 WHERE e.agent_id = :agent_id AND e.canonical_key IN (:kept, :gone) ORDER BY e.canonical_key FOR UPDATE
""")

# What the merge is about to touch, locked in the order of ids. A twin is an active text that both have: there can be
# one active copy only. An edge is touched for its ends, or because a twin holds it up.
LOCK_FACTS = text("""
WITH twin AS (
  SELECT g.id AS gone, k.id AS kept
    FROM memory_facts g JOIN memory_facts k ON k.agent_id = g.agent_id AND k.text_hash = g.text_hash
   WHERE g.agent_id = :agent_id AND g.entity_key = :gone AND k.entity_key = :kept AND g.valid_to IS NULL
     AND k.valid_to IS NULL
)
SELECT f.id, t.kept AS twin FROM memory_facts f LEFT JOIN twin t ON t.gone = f.id
 WHERE f.agent_id = :agent_id AND (f.entity_key = :gone OR f.id IN (SELECT kept FROM twin))
 ORDER BY f.id FOR UPDATE OF f
""")
LINKED = text("SELECT fact_id FROM memory_fact_entity_links WHERE agent_id = :agent_id AND entity_key = :gone")
LOCK_EDGES = text("""
SELECT r.id FROM memory_entity_relationships r
 WHERE r.agent_id = :agent_id
   AND (r.source_entity_key IN (:kept, :gone) OR r.target_entity_key IN (:kept, :gone)
        OR r.id IN (SELECT v.relationship_id FROM memory_relationship_evidence v
                     WHERE v.fact_id = ANY (CAST(:twins AS uuid[]))))
 ORDER BY r.id FOR UPDATE
""")

# All rows that the merge may touch, as they are: t the table, k the key, r the columns. Texts and vectors of facts do
# not change, so they are not in it.
_ROWS = """
SELECT 'entity' AS t, jsonb_build_object('canonical_key', e.canonical_key) AS k, to_jsonb(e) AS r
  FROM memory_entities e
 WHERE e.agent_id = :agent_id AND (e.canonical_key IN (:kept, :gone) OR e.merged_into IN (:kept, :gone))
UNION ALL
SELECT 'alias', jsonb_build_object('alias_folded', a.alias_folded, 'entity_type', a.entity_type), to_jsonb(a)
  FROM memory_entity_aliases a WHERE a.agent_id = :agent_id AND a.entity_key IN (:kept, :gone)
UNION ALL
SELECT 'fact', jsonb_build_object('id', f.id), to_jsonb(f) - '{fact_text,text_hash,embedding,valid_from_known}'::text[]
  FROM memory_facts f WHERE f.id = ANY (CAST(:facts AS uuid[]))
UNION ALL
SELECT 'said', jsonb_build_object('fact_id', c.fact_id, 'event_id', c.event_id), to_jsonb(c)
  FROM memory_fact_confirmations c WHERE c.fact_id = ANY (CAST(:twins AS uuid[]))
UNION ALL
SELECT 'link', jsonb_build_object('fact_id', l.fact_id, 'entity_key', l.entity_key), to_jsonb(l)
  FROM memory_fact_entity_links l
 WHERE l.fact_id = ANY (CAST(:linked AS uuid[])) AND l.entity_key IN (:kept, :gone)
UNION ALL
SELECT 'edge', jsonb_build_object('id', r.id), to_jsonb(r)
  FROM memory_entity_relationships r WHERE r.id = ANY (CAST(:edges AS uuid[]))
UNION ALL
SELECT 'evidence', to_jsonb(v), to_jsonb(v)
  FROM memory_relationship_evidence v WHERE v.relationship_id = ANY (CAST(:edges AS uuid[]))
"""
NOTE_BEFORE = text(f"""
INSERT INTO entity_merges (id, agent_id, kept_key, gone_key, merged_by, reason, score, moved)
SELECT :id, :agent_id, :kept, :gone, :merged_by, :reason, :score, jsonb_agg(to_jsonb(x)) FROM ({_ROWS}) x
""")  # noqa: S608
# Invariant: undoing what stands here, row by row, gives back the memory as it was before.
NOTE_MOVED = text(f"""
UPDATE entity_merges m SET moved = coalesce((
  SELECT jsonb_agg(jsonb_build_object(
           'table', coalesce(o.t, n.t), 'key', coalesce(o.k, n.k),
           'before', CASE WHEN n.r IS NULL THEN o.r ELSE (
              SELECT jsonb_object_agg(c.key, c.value) FROM jsonb_each(o.r) c WHERE c.value <> n.r -> c.key) END,
           'after', CASE WHEN o.r IS NULL THEN n.r ELSE (
              SELECT jsonb_object_agg(c.key, c.value) FROM jsonb_each(n.r) c WHERE c.value <> o.r -> c.key) END))
    FROM jsonb_to_recordset(m.moved) AS o (t text, k jsonb, r jsonb)
    FULL JOIN ({_ROWS}) n ON n.t = o.t AND n.k = o.k
   WHERE o.r IS DISTINCT FROM n.r), '[]')
 WHERE m.id = :id
""")  # noqa: S608

MOVE_FACTS = text("UPDATE memory_facts SET entity_key = :kept WHERE agent_id = :agent_id AND entity_key = :gone")
MOVE_ALIASES = text(
    "UPDATE memory_entity_aliases SET entity_key = :kept WHERE agent_id = :agent_id AND entity_key = :gone"
)
# A fact that names both names one now.
MOVE_LINKS = text("""
WITH gone AS (
  DELETE FROM memory_fact_entity_links WHERE agent_id = :agent_id AND entity_key = :gone RETURNING fact_id, is_primary
)
INSERT INTO memory_fact_entity_links AS l (fact_id, agent_id, entity_key, is_primary)
SELECT fact_id, :agent_id, :kept, is_primary FROM gone
ON CONFLICT (fact_id, entity_key) DO UPDATE SET is_primary = l.is_primary OR excluded.is_primary
""")

# Nobody is related to himself.
DROP_LOOPS = text("""
DELETE FROM memory_entity_relationships
 WHERE agent_id = :agent_id AND source_entity_key IN (:kept, :gone) AND target_entity_key IN (:kept, :gone)
""")
# An edge that both have is one: the survivor's, held up by the facts of both and as strong as the stronger one.
JOIN_EDGES = text("""
WITH pair AS (
  SELECT g.id AS gone, g.strength, g.created_at, k.id AS kept
    FROM memory_entity_relationships g JOIN memory_entity_relationships k
      ON k.agent_id = g.agent_id AND k.rel_type = g.rel_type
     AND k.source_entity_key = CASE g.source_entity_key WHEN :gone THEN :kept ELSE g.source_entity_key END
     AND k.target_entity_key = CASE g.target_entity_key WHEN :gone THEN :kept ELSE g.target_entity_key END
   WHERE g.agent_id = :agent_id AND :gone IN (g.source_entity_key, g.target_entity_key)
), held AS (
  INSERT INTO memory_relationship_evidence (relationship_id, fact_id)
  SELECT p.kept, v.fact_id FROM pair p JOIN memory_relationship_evidence v ON v.relationship_id = p.gone
  ON CONFLICT DO NOTHING
), stronger AS (
  UPDATE memory_entity_relationships k
     SET strength = greatest(k.strength, p.strength), created_at = least(k.created_at, p.created_at)
    FROM pair p WHERE k.id = p.kept
), dropped AS (
  DELETE FROM memory_entity_relationships r USING pair p WHERE r.id = p.gone
)
SELECT kept FROM pair
""")
MOVE_EDGES = text("""
UPDATE memory_entity_relationships
   SET source_entity_key = CASE source_entity_key WHEN :gone THEN :kept ELSE source_entity_key END,
       target_entity_key = CASE target_entity_key WHEN :gone THEN :kept ELSE target_entity_key END
 WHERE agent_id = :agent_id AND :gone IN (source_entity_key, target_entity_key)
""")

# Invariant: merged_into leads to a living entity in one step, however many merges there were. Everything is due for the
# survivor: its profile, and near-duplicates among what are now its facts.
MERGE_ENTITIES = text("""
WITH given AS (
  SELECT * FROM memory_entities WHERE agent_id = :agent_id AND canonical_key = :gone
), survives AS (
  UPDATE memory_entities k
     SET display_name = CASE WHEN k.is_placeholder AND NOT g.is_placeholder THEN g.display_name
                             ELSE k.display_name END,
         embedding = CASE WHEN k.is_placeholder AND NOT g.is_placeholder THEN g.embedding
                          ELSE coalesce(k.embedding, g.embedding) END,
         is_placeholder = k.is_placeholder AND g.is_placeholder,
         profile_text = coalesce(k.profile_text, g.profile_text),
         profile_source = coalesce(k.profile_source, g.profile_source),
         summary_text = coalesce(k.summary_text, g.summary_text),
         first_seen_at = least(k.first_seen_at, g.first_seen_at),
         last_seen_at = greatest(k.last_seen_at, g.last_seen_at),
         facts_changed_at = mandua_now(), facts_deduped_at = NULL
    FROM given g WHERE k.agent_id = :agent_id AND k.canonical_key = :kept
)
UPDATE memory_entities SET merged_into = :kept
 WHERE agent_id = :agent_id AND (canonical_key = :gone OR merged_into = :gone)
""")
NOW = text("SELECT mandua_now()")


@dataclass(frozen=True, slots=True)
class _Scope:
    """What a merge touches: ids of facts, of twins, of facts that name the one that goes, and of edges."""

    facts: list[UUID]
    pairs: list[tuple[UUID, UUID]]
    linked: list[UUID]
    edges: list[UUID]

    @property
    def twins(self) -> list[UUID]:
        """The facts of all pairs."""
        return [fact for pair in self.pairs for fact in pair]


def merge_entities(
    session: Session, agent_id: str, kept: str, gone: str, *, by: str, reason: str = "", score: float | None = None
) -> UUID:
    """Merge ``gone`` into ``kept`` inside the caller's transaction, which holds the agent's turn; returns the merge.

    ``by`` is ``job`` or ``hand``, ``score`` a likeness from 0 to 1. Raises MergeRefused where one of the two does not
    exist or is merged already.
    """
    names = {"agent_id": agent_id, "kept": kept, "gone": gone}
    _lock_entities(session, names)
    scope = _lock(session, names)
    merge_id = uuid4()
    given: dict[str, Any] = {
        **names, "id": merge_id, "merged_by": by, "reason": reason[:MAX_REASON_CHARS], "score": score,
        "facts": scope.facts, "twins": scope.twins, "linked": scope.linked, "edges": scope.edges,
    }  # fmt: skip
    session.execute(NOTE_BEFORE, given)
    if scope.pairs:
        fold_facts(session, scope.pairs)
    for statement in (MOVE_FACTS, MOVE_ALIASES, MOVE_LINKS, DROP_LOOPS):
        session.execute(statement, names)
    joined = list(session.execute(JOIN_EDGES, names).scalars())
    session.execute(MOVE_EDGES, names)
    refresh_edges(session, joined, scope.twins, session.execute(NOW).scalar_one())
    session.execute(MERGE_ENTITIES, names)
    session.execute(NOTE_MOVED, given)
    return merge_id


def _lock_entities(session: Session, names: dict[str, str]) -> None:
    if names["kept"] == names["gone"]:
        raise MergeRefused("an entity cannot be merged into itself")
    found: dict[str, Row[Any]] = {row.key: row for row in session.execute(LOCK_ENTITIES, names)}
    for key in (names["kept"], names["gone"]):
        if key not in found:
            raise MergeRefused(f"there is no entity {key} (see `mandua entities`)")
        if found[key].merged_into is not None:
            raise MergeRefused(f"{key} is merged into {found[key].merged_into} already")


def _lock(session: Session, names: dict[str, str]) -> _Scope:
    facts = list(session.execute(LOCK_FACTS, names))
    pairs = [(row.id, row.twin) for row in facts if row.twin is not None]
    linked = list(session.execute(LINKED, names).scalars())
    twins = [fact for pair in pairs for fact in pair]
    edges = list(session.execute(LOCK_EDGES, {**names, "twins": twins}).scalars())
    return _Scope([row.id for row in facts], pairs, linked, edges)


SEPARATE = text("""
INSERT INTO memory_entities_distinct (agent_id, one_key, other_key)
SELECT :agent_id, least(r.one COLLATE "C", r.other), greatest(r.one COLLATE "C", r.other)
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (one text, other text)
ON CONFLICT DO NOTHING
""")


def separate(session: Session, agent_id: str, one: str, other: str) -> None:
    """Note that two entities are two, so that no job asks about them again."""
    session.execute(SEPARATE, {"agent_id": agent_id, "rows": as_rows([{"one": one, "other": other}])})
