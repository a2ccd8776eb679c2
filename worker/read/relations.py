"""Edges between the entities of an agent."""

from __future__ import annotations

from worker.read.rows import Reader, Row, fetch

RELATIONS_OF_AGENT = """
SELECT r.id, r.source_entity_key, r.target_entity_key, r.rel_type, r.strength, r.evidence_fact_id, r.valid_from,
       r.valid_to, r.invalidated_at, r.created_at, r.updated_at
  FROM memory_entity_relationships r
 WHERE r.agent_id = :agent AND (CAST(:everything AS boolean) OR r.valid_to IS NULL)
 ORDER BY r.source_entity_key, r.rel_type, r.target_entity_key LIMIT :many
"""


def relations(reader: Reader, agent_id: str, *, everything: bool = False, limit: int | None = None) -> list[Row]:
    """The edges of an agent, ordered by source, type and target; ``everything`` adds those that ended."""
    return fetch(reader, RELATIONS_OF_AGENT, {"agent": agent_id, "everything": everything, "many": limit})
