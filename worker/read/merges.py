"""Merges of an agent's entities: who went into whom, why, and whether it was undone."""

from __future__ import annotations

from worker.read.rows import Reader, Row, fetch

MERGES_OF_AGENT = """
SELECT m.id, m.kept_key, m.gone_key, m.merged_by, m.reason, m.score, jsonb_array_length(m.moved) AS rows_moved,
       m.merged_at, m.split_at
  FROM entity_merges m
 WHERE m.agent_id = :agent AND (CAST(:everything AS boolean) OR m.split_at IS NULL)
 ORDER BY m.merged_at DESC, m.id LIMIT :many
"""


def merges(reader: Reader, agent_id: str, *, everything: bool = False, limit: int | None = None) -> list[Row]:
    """The merges that stand, the newest first; ``everything`` adds those that were undone."""
    return fetch(reader, MERGES_OF_AGENT, {"agent": agent_id, "everything": everything, "many": limit})
