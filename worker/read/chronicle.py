"""Facts in time: the versions of one, and all that happened to an agent or an entity (behaviour: 12)."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from worker.read.facts import ABOUT, COLUMNS
from worker.read.rows import Reader, Row, fetch

# Invariant: the whole chain whichever of its versions is asked for: what it supersedes, what supersedes it, what was
# merged into one of them. UNION ends the recursion; every step is by index. Each version has the messages that said it.
HISTORY = f"""
WITH RECURSIVE chain AS (
  SELECT c.id, c.supersedes_fact_id, c.merged_into FROM memory_facts c WHERE c.agent_id = :agent AND c.id = :fact
  UNION
  SELECT n.id, n.supersedes_fact_id, n.merged_into
    FROM chain c CROSS JOIN LATERAL (
      SELECT p.* FROM memory_facts p WHERE p.id = c.supersedes_fact_id
      UNION ALL SELECT s.* FROM memory_facts s WHERE s.supersedes_fact_id = c.id
      UNION ALL SELECT m.* FROM memory_facts m WHERE m.merged_into = c.id
      UNION ALL SELECT k.* FROM memory_facts k WHERE k.id = c.merged_into) n
   WHERE n.agent_id = :agent
)
SELECT {COLUMNS}, s.sources
  FROM chain c JOIN memory_facts f ON f.id = c.id
 CROSS JOIN LATERAL (
   SELECT jsonb_agg(jsonb_build_object(
            'event_id', e.id, 'occurred_at', e.occurred_at, 'speaker', e.speaker_name, 'message', e.message,
            'said', w.said, 'words', coalesce(w.wording ->> 'text', f.fact_text))
            ORDER BY w.said DESC, e.occurred_at NULLS FIRST, e.id) AS sources
     FROM (SELECT f.source_event_id AS event_id, 'first' AS said, CAST(NULL AS jsonb) AS wording
           UNION ALL
           SELECT n.event_id, 'again', nullif(n.wording, 'null') FROM memory_fact_confirmations n WHERE n.fact_id = f.id
          ) w JOIN memory_events e ON e.id = w.event_id
 ) s
 ORDER BY f.valid_from NULLS FIRST, f.ingested_at, f.id
"""  # noqa: S608

# What began, what ended, what was withdrawn, in the order of the world. Where the message names a date of its own
# (event_date) a fact stands there as well as at the time when it was told.
TIMELINE = f"""
SELECT t.at, t.change, f.id AS fact_id, f.entity_key, f.fact_text, f.confidence, f.event_date, f.event_date_precision,
       f.supersedes_fact_id, f.source_event_id, e.speaker_name AS source_speaker, e.message AS source_message
  FROM memory_facts f JOIN memory_events e ON e.id = f.source_event_id
 CROSS JOIN LATERAL (
   SELECT f.valid_from AS at, CASE f.kind WHEN 'fact' THEN 'began' ELSE 'withdrawn' END AS change
   UNION ALL
   SELECT f.valid_to, 'ended' WHERE f.kind = 'fact' AND f.valid_to IS NOT NULL
 ) t
 WHERE f.agent_id = :agent AND f.merged_into IS NULL AND f.confidence >= :min_confidence AND {ABOUT}
   AND (CAST(:since AS timestamptz) IS NULL OR t.at >= :since)
   AND (CAST(:until AS timestamptz) IS NULL OR t.at < :until)
 ORDER BY t.at NULLS FIRST, t.change DESC, f.ingested_at, f.id LIMIT :many OFFSET :skipped
"""  # noqa: S608


def history(reader: Reader, agent_id: str, fact_id: UUID) -> list[Row]:
    """All versions of a fact, the oldest first, whichever of them is named (behaviour: 12); [] for an unknown one.

    Rows are those of ``get_facts``, closed ones and those merged into another included, with ``sources``: the messages
    that said the version (``event_id``, ``occurred_at``, ``speaker``, ``message``; ``said`` is ``first`` or ``again``,
    ``words`` how that message put it).

    >>> from uuid import UUID
    >>> from worker.db import engine
    >>> with engine().connect() as connection:
    ...     history(connection, "nobody-yet", UUID(int=1))
    []
    """
    return fetch(reader, HISTORY, {"agent": agent_id, "fact": fact_id})


def timeline(
    reader: Reader,
    agent_id: str,
    *,
    entity_key: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    min_confidence: float = 0.0,
    limit: int | None = None,
    offset: int = 0,
) -> list[Row]:
    """What happened, in the order of the world: a row for each fact that ``began``, ``ended`` or was ``withdrawn``.

    ``at`` is when (None, and first, where nobody knows); the fact is given with its source message. ``since`` is
    included, ``until`` is not; either leaves out what has no time.

    >>> from worker.db import engine
    >>> with engine().connect() as connection:
    ...     timeline(connection, "nobody-yet", entity_key="person:ana")
    []
    """
    return fetch(
        reader, TIMELINE,
        {"agent": agent_id, "entity": entity_key, "since": since, "until": until, "min_confidence": min_confidence,
         "many": limit, "skipped": offset},
    )  # fmt: skip
