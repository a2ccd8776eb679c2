"""Facts of an agent: the active ones, or every version that there ever was."""

from __future__ import annotations

from producer.contract import MemoryConfig
from worker.read.rows import Reader, Row, fetch

MIN_CONFIDENCE = MemoryConfig().min_confidence

_COLUMNS = """
  f.id, f.entity_key, f.fact_text, f.confidence, f.importance, f.kind, f.attribute_key, f.value,
  f.event_date, f.event_date_precision, f.valid_from, f.valid_from_known, f.valid_to, f.ingested_at,
  f.invalidated_at, f.last_confirmed_at, f.supersedes_fact_id, f.merged_into, f.source_event_id, f.speaker,
  f.source_context
"""

# Shown by default: what is believed now. A retraction is closed from its first moment, so it never shows here.
_SHOWN = "(CAST(:everything AS boolean) OR (f.valid_to IS NULL AND f.confidence >= :min_confidence))"

# By subject, then by time in the world; an unknown beginning is older than any known one.
_ORDER = "ORDER BY f.entity_key, f.valid_from NULLS FIRST, f.ingested_at, f.id LIMIT :many"

FACTS_OF_AGENT = f"SELECT {_COLUMNS} FROM memory_facts f WHERE f.agent_id = :agent AND {_SHOWN} {_ORDER}"  # noqa: S608

# The links hold the subject as well; it is asked for by itself because links are written fail-safe.
FACTS_OF_ENTITY = f"""
SELECT {_COLUMNS} FROM memory_facts f
 WHERE f.agent_id = :agent AND {_SHOWN}
   AND f.id IN (SELECT l.fact_id FROM memory_fact_entity_links l
                 WHERE l.agent_id = :agent AND l.entity_key = :entity
                UNION ALL
                SELECT s.id FROM memory_facts s WHERE s.agent_id = :agent AND s.entity_key = :entity)
 {_ORDER}
"""  # noqa: S608


def facts(
    reader: Reader,
    agent_id: str,
    *,
    entity_key: str | None = None,
    everything: bool = False,
    min_confidence: float = MIN_CONFIDENCE,
    limit: int | None = None,
) -> list[Row]:
    """The facts of an agent, ordered by subject and by when they became true.

    By default those that are active and at least ``min_confidence`` sure; ``everything`` adds closed versions,
    retractions and doubtful ones. ``entity_key`` keeps those that are about the entity or mention it through a link.
    """
    parameters = {
        "agent": agent_id,
        "entity": entity_key,
        "everything": everything,
        "min_confidence": min_confidence,
        "many": limit,
    }
    return fetch(reader, FACTS_OF_AGENT if entity_key is None else FACTS_OF_ENTITY, parameters)
