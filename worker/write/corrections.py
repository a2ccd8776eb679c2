"""Corrections: the same attribute, another value (behaviour: 10).

The pipeline counts them itself as it closes versions (``worker.write.timeline``); ``detect_and_record_corrections`` is
for callers who store facts on their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from worker.write.names import fold

# Each new fact with the one that it supersedes, of one agent, in one question.
SUPERSEDED = text("""
SELECT n.id, n.attribute_key, n.value, o.id AS old_id, o.attribute_key AS old_key, o.value AS old_value
  FROM memory_facts n JOIN memory_facts o ON o.id = n.supersedes_fact_id AND o.agent_id = n.agent_id
 WHERE n.agent_id = :agent_id AND n.id = ANY (CAST(:ids AS uuid[]))
 ORDER BY o.id
""")

# Rows are locked in the order of their ids, as everywhere.
COUNT_CORRECTIONS = text("""
WITH old AS (
  SELECT f.id FROM memory_facts f WHERE f.agent_id = :agent_id AND f.id = ANY (CAST(:ids AS uuid[]))
   ORDER BY f.id FOR UPDATE
)
UPDATE memory_facts f SET user_correction_count = f.user_correction_count + 1 FROM old WHERE f.id = old.id
""")


@dataclass(slots=True)
class CorrectionResult:
    """What was corrected: how many facts, which attribute keys, and the ids of the old facts."""

    corrections_detected: int = 0
    corrected_keys: list[str] = field(default_factory=list)
    facts_corrected_ids: list[str] = field(default_factory=list)


def is_user_correction(old_fact: object, new_fact: object) -> bool:
    """Whether ``new_fact`` corrects ``old_fact``: the same attribute_key, another value.

    Facts are anything with ``attribute_key`` and ``value`` (as attributes or keys). Values that differ only in case,
    accents or punctuation are one; without a value on both sides nothing is corrected.

    >>> lives = {"attribute_key": "person.city", "value": "Natal"}
    >>> is_user_correction(lives, {**lives, "value": "Recife"}), is_user_correction(lives, {**lives, "value": "NATAL"})
    (True, False)
    """
    key, value = _of(old_fact, "attribute_key"), _of(old_fact, "value")
    new_key, new_value = _of(new_fact, "attribute_key"), _of(new_fact, "value")
    if not key or key != new_key or value is None or new_value is None:
        return False
    return fold(str(value)) != fold(str(new_value))


def detect_and_record_corrections(session: Session, agent_id: str, saved_facts: Sequence[Any]) -> CorrectionResult:
    """Find which of ``saved_facts`` supersede a fact of the same attribute and another value, and count it on that one.

    ``saved_facts`` are stored facts: objects or mappings with an ``id``, or the ids. Each call counts again, in the
    caller's transaction; what ``run_write_pipeline`` and the workers store is counted already. asyncio callers use
    ``await async_session.run_sync(detect_and_record_corrections, …)``.

    >>> from worker.db import engine
    >>> with Session(engine()) as session:
    ...     detect_and_record_corrections(session, "ana", []).corrections_detected
    0
    """
    ids = [str(_of(fact, "id") or fact) for fact in saved_facts]
    result = CorrectionResult()
    if not ids:
        return result
    for row in session.execute(SUPERSEDED, {"agent_id": agent_id, "ids": ids}):
        old = {"attribute_key": row.old_key, "value": row.old_value}
        if str(row.old_id) not in result.facts_corrected_ids and is_user_correction(old, row):
            result.corrections_detected += 1
            result.facts_corrected_ids.append(str(row.old_id))
            if row.attribute_key not in result.corrected_keys:
                result.corrected_keys.append(row.attribute_key)
    if result.facts_corrected_ids:
        session.execute(COUNT_CORRECTIONS, {"agent_id": agent_id, "ids": result.facts_corrected_ids})
    return result


def _of(fact: object, name: str) -> Any:
    return fact.get(name) if isinstance(fact, Mapping) else getattr(fact, name, None)
