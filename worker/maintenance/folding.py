"""Several active facts that say one thing become one of them, which loses nothing that another knew (behaviour: 11).

Set-based: any number of pairs in a constant number of statements. Entities are their caller's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from worker.write.fact_rows import as_rows

_EXACT = "ARRAY['day', 'month', 'year']"
_PAIRS = "jsonb_to_recordset(CAST(:pairs AS jsonb)) AS p (gone uuid, kept uuid)"

LOCK = text("""
SELECT f.id FROM memory_facts f WHERE f.id = ANY (CAST(:ids AS uuid[])) AND f.valid_to IS NULL ORDER BY f.id FOR UPDATE
""")
# Every message that said one of those that go has confirmed the one that stays, in its own words.
MOVE_SAID = text(f"""
WITH gone AS (
  SELECT f.id, p.kept, f.source_event_id, f.embedding, jsonb_build_object(
           'text', f.fact_text, 'text_hash', encode(f.text_hash, 'hex'), 'confidence', f.confidence,
           'importance', f.importance, 'attribute_key', f.attribute_key, 'value', f.value,
           'source_context', f.source_context) AS wording
    FROM {_PAIRS} JOIN memory_facts f ON f.id = p.gone
), said AS (
  SELECT g.kept, g.source_event_id AS event_id, e.occurred_at, g.wording, g.embedding
    FROM gone g JOIN memory_events e ON e.id = g.source_event_id
  UNION ALL
  SELECT g.kept, c.event_id, c.occurred_at, coalesce(c.wording, g.wording), coalesce(c.embedding, g.embedding)
    FROM gone g JOIN memory_fact_confirmations c ON c.fact_id = g.id
)
INSERT INTO memory_fact_confirmations (fact_id, event_id, occurred_at, wording, embedding)
SELECT DISTINCT ON (s.kept, s.event_id) s.kept, s.event_id, s.occurred_at, s.wording, s.embedding
  FROM said s JOIN memory_facts k ON k.id = s.kept WHERE s.event_id <> k.source_event_id
 ORDER BY s.kept, s.event_id
ON CONFLICT DO NOTHING
""")  # noqa: S608
DROP_SAID = text(f"DELETE FROM memory_fact_confirmations c USING {_PAIRS} WHERE c.fact_id = p.gone")  # noqa: S608

# Invariant: the one that stays begins with the first of them (behind its own predecessor's end), and loses nothing that
# another knew; of two dates, one within the other, it has the closer one.
KEEP = text(f"""
WITH gone AS (SELECT p.kept, f.* FROM {_PAIRS} JOIN memory_facts f ON f.id = p.gone), best AS (
  SELECT kept, min(valid_from) AS valid_from, max(confidence) AS confidence, max(importance) AS importance,
         sum(user_correction_count) AS corrections, sum(retrievals) AS retrievals,
         max(last_retrieved_at) AS last_retrieved_at FROM gone GROUP BY kept
), dated AS (
  SELECT DISTINCT ON (kept) kept, event_date, event_date_precision
    FROM gone WHERE event_date IS NOT NULL
   ORDER BY kept, array_position({_EXACT}, event_date_precision), confidence DESC, id
), closer AS (
  SELECT d.*, k.event_date IS NULL OR (
           array_position({_EXACT}, d.event_date_precision) < array_position({_EXACT}, k.event_date_precision)
           AND date_trunc(k.event_date_precision, d.event_date) = date_trunc(k.event_date_precision, k.event_date)
         ) AS closer
    FROM dated d JOIN memory_facts k ON k.id = d.kept
), told AS (
  SELECT DISTINCT ON (kept) kept, attribute_key, value FROM gone WHERE attribute_key IS NOT NULL
   ORDER BY kept, confidence DESC, id
), said AS (
  SELECT b.kept, count(c.event_id) AS many, max(c.occurred_at) AS last
    FROM best b LEFT JOIN memory_fact_confirmations c ON c.fact_id = b.kept GROUP BY b.kept
)
UPDATE memory_facts k
   SET valid_from = greatest(least(k.valid_from, b.valid_from),
                             (SELECT p.valid_to FROM memory_facts p WHERE p.id = k.supersedes_fact_id)),
       confidence = greatest(k.confidence, b.confidence), importance = greatest(k.importance, b.importance),
       event_date = CASE WHEN d.closer THEN d.event_date ELSE k.event_date END,
       event_date_precision = CASE WHEN d.closer THEN d.event_date_precision ELSE k.event_date_precision END,
       attribute_key = coalesce(k.attribute_key, t.attribute_key),
       value = CASE WHEN k.attribute_key IS NULL THEN coalesce(t.value, k.value) ELSE k.value END,
       confirmations = s.many, last_confirmed_at = greatest(k.last_confirmed_at, s.last), stale_at = NULL,
       user_correction_count = k.user_correction_count + b.corrections, retrievals = k.retrievals + b.retrievals,
       last_retrieved_at = greatest(k.last_retrieved_at, b.last_retrieved_at)
  FROM best b JOIN said s ON s.kept = b.kept LEFT JOIN closer d ON d.kept = b.kept LEFT JOIN told t ON t.kept = b.kept
 WHERE k.id = b.kept
""")  # noqa: S608
# Its time in the world is in the one that stays, so it keeps none of its own: nobody finds the same thing twice.
CLOSE = text(f"""
UPDATE memory_facts f SET valid_to = coalesce(f.valid_from, mandua_now()), invalidated_at = mandua_now(),
       merged_into = p.kept FROM {_PAIRS} WHERE f.id = p.gone
""")  # noqa: S608
MOVE_EVIDENCE = text(f"""
WITH moved AS (
  DELETE FROM memory_relationship_evidence v USING {_PAIRS} WHERE v.fact_id = p.gone RETURNING v.relationship_id, p.kept
)
INSERT INTO memory_relationship_evidence (relationship_id, fact_id)
SELECT DISTINCT relationship_id, kept FROM moved ON CONFLICT DO NOTHING
""")  # noqa: S608


def lock_active(session: Session, ids: Sequence[UUID]) -> bool:
    """Lock facts in the order of their ids; False where one of them is active no longer."""
    return len(session.execute(LOCK, {"ids": list(ids)}).all()) == len(ids)


def fold_facts(session: Session, pairs: Sequence[tuple[UUID, UUID]]) -> None:
    """Close the first of each pair of locked, active facts and let the second one take over what it knew.

    Confirmations, evidence and beginning move. The caller calls ``refresh_edges`` for those that stay.
    """
    given = {"pairs": as_rows({"gone": gone, "kept": kept} for gone, kept in pairs)}
    for statement in (MOVE_SAID, DROP_SAID, KEEP, CLOSE, MOVE_EVIDENCE):
        session.execute(statement, given)
