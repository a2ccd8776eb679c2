"""The graph around an entity (behaviour: 12)."""

from __future__ import annotations

from worker.read.rows import Reader, Row, fetch

MAX_DEPTH = 6
DEFAULT_MANY = 50

# Invariant: breadth first over live edges, both ways; an entity stands at its shortest distance, with the strongest of
# the edges that reach it there. Each level is the set of entities not met before (an array carries them along), so a
# dense graph costs its edges once a level, never its paths. :fan_out edges at most leave one entity.
NEIGHBOURS = """
WITH RECURSIVE level AS (
  SELECT ARRAY[CAST(:entity AS text)] AS met, ARRAY[CAST(:entity AS text)] AS keys, 0 AS depth,
         CAST(NULL AS jsonb) AS ways
  UNION ALL
  SELECT l.met || n.keys, n.keys, l.depth + 1, n.ways
    FROM level l
   CROSS JOIN LATERAL (
     SELECT array_agg(b.key) AS keys, jsonb_agg(jsonb_build_object('key', b.key, 'edge', b.id, 'via', b.via)) AS ways
       FROM (SELECT DISTINCT ON (o.key) o.key, o.id, o.via
               FROM unnest(l.keys) AS k (via)
              CROSS JOIN LATERAL (
                SELECT a.id, k.via, CASE WHEN a.source_entity_key = k.via THEN a.target_entity_key
                                         ELSE a.source_entity_key END AS key, a.strength
                  FROM (SELECT r.* FROM memory_entity_relationships r
                         WHERE r.agent_id = :agent AND r.source_entity_key = k.via AND r.valid_to IS NULL
                        UNION ALL
                        SELECT r.* FROM memory_entity_relationships r
                         WHERE r.agent_id = :agent AND r.target_entity_key = k.via AND r.valid_to IS NULL) a
                 ORDER BY a.strength DESC, a.updated_at DESC, a.id LIMIT :fan_out) o
              WHERE o.key <> ALL (l.met) ORDER BY o.key, o.strength DESC, o.id) b) n
   WHERE l.depth < :depth AND n.keys IS NOT NULL AND cardinality(l.met) <= :many
)
SELECT w.key AS entity_key, n.display_name, n.entity_type, n.profile_text, l.depth, w.via AS via_entity_key,
       r.source_entity_key, r.rel_type, r.target_entity_key, r.strength, r.valid_from, r.evidence_fact_id,
       f.fact_text AS evidence_text
  FROM level l CROSS JOIN LATERAL jsonb_to_recordset(l.ways) AS w (key text, edge uuid, via text)
  JOIN memory_entities n ON n.agent_id = :agent AND n.canonical_key = w.key
  JOIN memory_entity_relationships r ON r.id = w.edge
  LEFT JOIN memory_facts f ON f.id = r.evidence_fact_id
 ORDER BY l.depth, r.strength DESC, w.key LIMIT :many
"""


def neighbours(
    reader: Reader,
    agent_id: str,
    entity_key: str,
    *,
    depth: int = 1,
    limit: int = DEFAULT_MANY,
    fan_out: int = DEFAULT_MANY,
) -> list[Row]:
    """The entities around one, nearest first, then by the strength of the edge (behaviour: 12).

    Follows live edges in both directions, breadth first, ``depth`` steps (1 to 6), at most ``fan_out`` edges from one
    entity, the strongest ones, and ``limit`` entities. Each row is an entity (``entity_key``, ``display_name``,
    ``entity_type``, ``profile_text``), its ``depth``, the edge that reaches it (``source_entity_key``, ``rel_type``,
    ``target_entity_key``, ``strength`` 0 to 1, ``valid_from``) from ``via_entity_key``, and the fact on which that
    stands (``evidence_fact_id``, ``evidence_text``). Raises ValueError for a depth out of range.

    >>> from worker.db import engine
    >>> with engine().connect() as connection:
    ...     neighbours(connection, "nobody-yet", "person:ana", depth=2)
    []
    """
    if not 1 <= depth <= MAX_DEPTH:
        raise ValueError(f"depth is {depth}; it must be between 1 and {MAX_DEPTH}")
    return fetch(
        reader, NEIGHBOURS,
        {"agent": agent_id, "entity": entity_key, "depth": depth, "many": limit, "fan_out": fan_out},
    )  # fmt: skip
