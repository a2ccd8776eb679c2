"""Entities, aliases and the annotation of the event, one statement each for all of a message (behaviour: 6 and 2)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from worker.write.calls import VectorCache
from worker.write.extraction import embedding_text
from worker.write.fact_rows import as_rows, vector_text
from worker.write.message import Message
from worker.write.names import fold
from worker.write.plans import Extraction, ResolvedEntity

_UNNAMED = ("placeholder", "role")

# Invariant: rows are locked in the order of their keys. Whatever pruned an entity since it was resolved, it is there
# again afterwards, so that no link can miss it. A placeholder takes the first real name; a real name stays.
UPSERT_ENTITIES = text("""
INSERT INTO memory_entities AS e (agent_id, canonical_key, entity_type, display_name, is_placeholder, embedding,
                                  facts_changed_at, first_seen_at, last_seen_at)
SELECT :agent_id, r.key, r.entity_type, r.display_name, r.is_placeholder, r.embedding, :now, :now, :now
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (
         key text, entity_type text, display_name text, is_placeholder boolean, embedding vector)
 ORDER BY r.key
ON CONFLICT (agent_id, canonical_key) DO UPDATE
   SET last_seen_at = greatest(e.last_seen_at, excluded.last_seen_at),
       is_placeholder = e.is_placeholder AND (excluded.is_placeholder OR excluded.display_name = e.display_name),
       display_name = CASE WHEN e.is_placeholder AND NOT excluded.is_placeholder THEN excluded.display_name
                           ELSE e.display_name END,
       embedding = CASE WHEN e.is_placeholder AND NOT excluded.is_placeholder
                        THEN coalesce(excluded.embedding, e.embedding)
                        ELSE coalesce(e.embedding, excluded.embedding) END
""")

# First write wins, whoever it was.
INSERT_ALIASES = text("""
INSERT INTO memory_entity_aliases (agent_id, alias_folded, entity_type, alias, entity_key, created_at)
SELECT :agent_id, r.folded, r.entity_type, r.alias, r.key, :now
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (folded text, entity_type text, alias text, key text)
 ORDER BY r.folded, r.entity_type
ON CONFLICT DO NOTHING
""")

ANNOTATE_EVENT = text("""
INSERT INTO event_annotations AS a (event_id, emotion, intensity, energy_level, embedding)
SELECT r.event_id, r.emotion, r.intensity, r.energy_level, r.embedding
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (
         event_id uuid, emotion text, intensity real, energy_level text, embedding vector)
ON CONFLICT (event_id) DO UPDATE
   SET emotion = excluded.emotion, intensity = excluded.intensity, energy_level = excluded.energy_level,
       embedding = coalesce(excluded.embedding, a.embedding)
""")


def upsert_entities(
    session: Session, agent_id: str, entities: Sequence[ResolvedEntity], vectors: VectorCache, now: datetime
) -> None:
    """Store every resolved entity, new or not, and register its aliases, display name and slug."""
    rows = _entity_rows(entities, vectors)
    if not rows:
        return
    session.execute(UPSERT_ENTITIES, {"agent_id": agent_id, "now": now, "rows": as_rows(rows)})
    aliases = _alias_rows(entities)
    if aliases:
        session.execute(INSERT_ALIASES, {"agent_id": agent_id, "now": now, "rows": as_rows(aliases)})


def annotate_event(session: Session, message: Message, extraction: Extraction, vectors: VectorCache) -> None:
    """Store what the message sounded like beside the event, which itself never changes."""
    row = {**extraction.emotion.model_dump(), "event_id": message.event_id}
    row |= {"emotion": row.pop("primary"), "embedding": vector_text(vectors.get(embedding_text(message)))}
    session.execute(ANNOTATE_EVENT, {"rows": as_rows([row])})


def _entity_rows(entities: Sequence[ResolvedEntity], vectors: VectorCache) -> list[dict[str, Any]]:
    """One row a key: names that resolved to one entity are one row, a real name goes before a role's."""
    by_key: dict[str, ResolvedEntity] = {}
    for entity in entities:
        known = by_key.get(entity.key)
        if known is None or (known.method in _UNNAMED and entity.method not in _UNNAMED):
            by_key[entity.key] = entity
    return [
        {
            "key": key,
            "entity_type": key.partition(":")[0],
            "display_name": entity.display_name,
            "is_placeholder": entity.method in _UNNAMED,
            "embedding": vector_text(vectors.get(entity.display_name)),
        }
        for key, entity in sorted(by_key.items())
    ]


def _alias_rows(entities: Sequence[ResolvedEntity]) -> list[dict[str, Any]]:
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for entity in entities:
        kind, _, slug = entity.key.partition(":")
        for alias in (entity.display_name, *entity.aliases, slug):
            folded = fold(alias)
            if folded:
                row = {"folded": folded, "entity_type": kind, "alias": alias, "key": entity.key}
                rows.setdefault((folded, kind), row)
    return list(rows.values())
