"""Facts of an agent: what is believed now, what was true then, what was believed then (behaviour: 12)."""

from __future__ import annotations

from datetime import datetime

from producer.contract import MemoryConfig
from worker.read.rows import Reader, Row, fetch

MIN_CONFIDENCE = MemoryConfig().min_confidence

COLUMNS = """
  f.id, f.entity_key, f.fact_text, f.confidence, f.importance, f.kind, f.attribute_key, f.value,
  f.event_date, f.event_date_precision, f.valid_from, f.valid_from_known, f.valid_to, f.ingested_at,
  f.invalidated_at, f.last_confirmed_at, f.supersedes_fact_id, f.merged_into, f.source_event_id, f.speaker,
  f.source_context
"""

NOW = "memory_facts f"
# Invariant: a row as it stood at :known_at. That is the oldest revision replaced since, or the row itself; an ending
# that came later had not come. What was learnt later is not there at all.
THEN = """
(SELECT k.*, CASE WHEN k.ended_at <= :known_at THEN k.ended END AS valid_to,
        CASE WHEN k.ended_at <= :known_at THEN k.ended_at END AS invalidated_at,
        CASE WHEN k.ended_at <= :known_at THEN k.merged END AS merged_into
   FROM (SELECT w.id, w.agent_id, w.entity_key, w.fact_text, w.confidence, w.importance, w.kind, w.attribute_key,
                w.value, w.event_date, w.event_date_precision, w.valid_from,
                w.valid_from IS NOT NULL AS valid_from_known, w.valid_to AS ended, w.ingested_at,
                w.invalidated_at AS ended_at, w.supersedes_fact_id, w.merged_into AS merged, w.source_event_id,
                w.speaker, w.source_context, n.embedding,
                CASE WHEN w.last_confirmed_at <= :known_at THEN w.last_confirmed_at END AS last_confirmed_at
           FROM memory_facts n
           LEFT JOIN LATERAL (SELECT r.was FROM memory_fact_revisions r
                               WHERE r.fact_id = n.id AND r.replaced_at > :known_at
                               ORDER BY r.replaced_at, r.id LIMIT 1) r ON true
          CROSS JOIN LATERAL jsonb_populate_record(n, coalesce(r.was, '{}')) w
          WHERE n.agent_id = :agent AND n.ingested_at <= :known_at) k) f
"""

# Shown: what is sure enough, and true: now (its end is open), or at :as_of. An unknown beginning is before any time.
# What was merged into another tells nothing of its own. A retraction is no fact. :closed lets ended ones in, as far as
# they began by :as_of.
SHOWN = """
(f.confidence >= :min_confidence AND f.kind = 'fact' AND f.merged_into IS NULL
 AND CASE WHEN CAST(:as_of AS timestamptz) IS NULL THEN CAST(:closed AS boolean) OR f.valid_to IS NULL
          ELSE (f.valid_from IS NULL OR f.valid_from <= :as_of)
               AND (CAST(:closed AS boolean) OR f.valid_to IS NULL OR f.valid_to > :as_of) END)
"""
ABOUT = """
(CAST(:entity AS text) IS NULL OR f.id IN (
   SELECT l.fact_id FROM memory_fact_entity_links l WHERE l.agent_id = :agent AND l.entity_key = :entity
   UNION ALL
   SELECT s.id FROM memory_facts s WHERE s.agent_id = :agent AND s.entity_key = :entity))
"""  # The links hold the subject as well; it is asked for by itself because links are written fail-safe.

# By subject, then by time in the world; an unknown beginning is older than any known one.
_ORDER = "ORDER BY f.entity_key, f.valid_from NULLS FIRST, f.ingested_at, f.id LIMIT :many OFFSET :skipped"

GET_FACTS = f"SELECT {COLUMNS} FROM {NOW} WHERE f.agent_id = :agent AND {SHOWN} AND {ABOUT} {_ORDER}"  # noqa: S608
GET_FACTS_KNOWN = f"SELECT {COLUMNS} FROM {THEN} WHERE {SHOWN} AND {ABOUT} {_ORDER}"  # noqa: S608

EVERYTHING = f"SELECT {COLUMNS} FROM {NOW} WHERE f.agent_id = :agent AND {ABOUT} {_ORDER}"  # noqa: S608


def get_facts(
    reader: Reader,
    agent_id: str,
    *,
    entity_key: str | None = None,
    min_confidence: float = MIN_CONFIDENCE,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
    include_closed: bool = False,
    limit: int | None = None,
    offset: int = 0,
) -> list[Row]:
    """The facts of an agent (behaviour: 12), ordered by subject and by when they became true.

    By default those that are believed to be true now and at least ``min_confidence`` (0 to 1) sure. ``as_of``: those
    that were true then, in the world. ``known_at``: as the system believed at that time, whatever it has learnt since;
    both together: what it believed then to be true at ``as_of``. ``include_closed`` adds versions that have ended (by
    ``as_of``). ``entity_key`` keeps facts that are about the entity or mention it. ``limit`` and ``offset`` page.

    Rows are dictionaries with the columns of ``memory_facts`` (vectors and counters left out); times carry a zone. A
    time without zone raises ValueError, a database that does not answer SQLAlchemyError.

    >>> from worker.db import engine
    >>> with engine().connect() as connection:
    ...     [row["fact_text"] for row in get_facts(connection, "nobody-yet", limit=10)]
    []
    """
    parameters = moments(as_of, known_at) | {
        "agent": agent_id, "entity": entity_key, "min_confidence": min_confidence, "closed": include_closed,
        "many": limit, "skipped": offset,
    }  # fmt: skip
    return fetch(reader, GET_FACTS if known_at is None else GET_FACTS_KNOWN, parameters)


def facts(
    reader: Reader,
    agent_id: str,
    *,
    entity_key: str | None = None,
    everything: bool = False,
    min_confidence: float = MIN_CONFIDENCE,
    limit: int | None = None,
    offset: int = 0,
) -> list[Row]:
    """As ``get_facts``; ``everything`` gives every row: ended, withdrawn, merged and doubtful ones too."""
    if not everything:
        return get_facts(
            reader, agent_id, entity_key=entity_key, min_confidence=min_confidence, limit=limit, offset=offset
        )
    return fetch(reader, EVERYTHING, {"agent": agent_id, "entity": entity_key, "many": limit, "skipped": offset})


def moments(as_of: datetime | None, known_at: datetime | None) -> dict[str, datetime | None]:
    """The two times as parameters. Raises ValueError for one without zone: nobody knows which moment it means."""
    for name, moment in (("as_of", as_of), ("known_at", known_at)):
        if moment is not None and moment.utcoffset() is None:
            raise ValueError(f"{name} has no zone; write it like 2025-06-15T23:30:00-03:00")
    return {"as_of": as_of} | ({} if known_at is None else {"known_at": known_at})
