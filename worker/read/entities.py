"""Entities of an agent, with the names they go by."""

from __future__ import annotations

from worker.read.rows import Reader, Row, fetch

# fact_count: active facts with the entity as subject. aliases: as they were written, without the display name and
# without the key's own slug, which stand in the same table because names are looked up there.
ENTITIES_OF_AGENT = """
SELECT e.canonical_key, e.display_name, e.entity_type, coalesce(a.aliases, '{}') AS aliases, e.is_placeholder,
       e.profile_text, e.profile_source, e.profile_refreshed_at, e.summary_text, e.importance,
       coalesce(c.fact_count, 0) AS fact_count, e.merged_into, e.first_seen_at, e.last_seen_at
  FROM memory_entities e
  LEFT JOIN (
    SELECT n.entity_key, array_agg(DISTINCT n.alias ORDER BY n.alias) AS aliases
      FROM memory_entity_aliases n JOIN memory_entities o ON o.agent_id = n.agent_id AND o.canonical_key = n.entity_key
     WHERE n.agent_id = :agent AND n.alias <> o.display_name
       AND n.alias <> substr(n.entity_key, length(o.entity_type) + 2)
     GROUP BY n.entity_key
  ) a ON a.entity_key = e.canonical_key
  LEFT JOIN (
    SELECT f.entity_key, count(*) AS fact_count FROM memory_facts f
     WHERE f.agent_id = :agent AND f.valid_to IS NULL GROUP BY f.entity_key
  ) c ON c.entity_key = e.canonical_key
 WHERE e.agent_id = :agent AND (CAST(:everything AS boolean) OR e.merged_into IS NULL)
 ORDER BY e.entity_type, e.canonical_key LIMIT :many
"""


def entities(reader: Reader, agent_id: str, *, everything: bool = False, limit: int | None = None) -> list[Row]:
    """The entities of an agent, ordered by type and key; ``everything`` adds those merged into another."""
    return fetch(reader, ENTITIES_OF_AGENT, {"agent": agent_id, "everything": everything, "many": limit})

# The entity itself, or the one that it was merged into; UNION ends the recursion. Only its own rows are read.
ONE_ENTITY = """
WITH RECURSIVE followed AS (
  SELECT m.canonical_key, m.merged_into FROM memory_entities m WHERE m.agent_id = :agent AND m.canonical_key = :entity
  UNION
  SELECT m.canonical_key, m.merged_into FROM followed f
    JOIN memory_entities m ON m.agent_id = :agent AND m.canonical_key = f.merged_into
)
SELECT e.canonical_key, e.display_name, e.entity_type,
       ARRAY (SELECT DISTINCT n.alias FROM memory_entity_aliases n
               WHERE n.agent_id = :agent AND n.entity_key = e.canonical_key AND n.alias <> e.display_name
                 AND n.alias <> substr(n.entity_key, length(e.entity_type) + 2) ORDER BY 1) AS aliases,
       e.is_placeholder, e.profile_text, e.profile_source, e.profile_refreshed_at, e.summary_text, e.importance,
       (SELECT count(*) FROM memory_facts c
         WHERE c.agent_id = :agent AND c.entity_key = e.canonical_key AND c.valid_to IS NULL) AS fact_count,
       e.merged_into, e.first_seen_at, e.last_seen_at
  FROM followed f JOIN memory_entities e ON e.agent_id = :agent AND e.canonical_key = f.canonical_key
 WHERE e.merged_into IS NULL
"""


def get_entity(reader: Reader, agent_id: str, entity_key: str) -> Row | None:
    """One entity by its key, with the columns of ``entities``; one that was merged into another gives that other.

    >>> from worker.db import engine
    >>> with engine().connect() as connection:
    ...     get_entity(connection, "nobody-yet", "person:ana") is None
    True
    """
    found = fetch(reader, ONE_ENTITY, {"agent": agent_id, "entity": entity_key})
    return found[0] if found else None
