"""``dedup_facts``: near-duplicate active facts of one entity become one (behaviour: 11).

Neighbours are found in SQL, among pairs of which one fact is new since the entity was last looked at. What their words
forbid (polarity, numbers, dates, another value of the same attribute) is no duplicate; the rest is asked about, a group
a step. The richest fact stays, as it is worded; the others are closed and point to it. What a model said are two is
never asked about again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.orm import Session

from producer.contract import MemoryConfig
from worker.db import ReadSession
from worker.llm.verdicts import parse_fact_merge
from worker.maintenance.folding import fold_facts, lock_active
from worker.maintenance.job import Step
from worker.write.calls import Calls
from worker.write.extraction.claims import stems
from worker.write.fact_rows import as_rows
from worker.write.names import fold
from worker.write.polarity import one_dated_closer, same_claim_possible
from worker.write.relationships import refresh_edges

ENTITIES_A_STEP = 10
FACTS_A_GROUP = 6

_DUE = "e.merged_into IS NULL AND e.facts_changed_at > coalesce(e.facts_deduped_at, '-infinity')"

NEXT = text(f"""
SELECT e.canonical_key AS key, e.facts_changed_at AS seen, e.facts_deduped_at AS since
  FROM memory_entities e WHERE e.agent_id = :agent_id AND {_DUE}
 ORDER BY e.facts_changed_at, e.canonical_key LIMIT :many
""")  # noqa: S608

# Exact distances within one entity. A pair is looked at once: when the later one of it came in.
PAIRS = text("""
SELECT a.id AS one, b.id AS other, 1 - (a.embedding <=> b.embedding) AS similarity
  FROM memory_facts a JOIN memory_facts b
    ON b.agent_id = a.agent_id AND b.entity_key = a.entity_key AND b.valid_to IS NULL AND b.id <> a.id
 WHERE a.agent_id = :agent_id AND a.entity_key = :key AND a.valid_to IS NULL
   AND (CAST(:since AS timestamptz) IS NULL OR a.ingested_at > :since)
   AND (b.ingested_at <= CAST(:since AS timestamptz) OR a.id < b.id)
   AND (a.embedding <=> b.embedding) <= 1 - CAST(:threshold AS double precision)
   AND NOT EXISTS (SELECT FROM memory_facts_distinct d
                    WHERE d.fact_id = least(a.id, b.id) AND d.other_id = greatest(a.id, b.id))
 ORDER BY similarity DESC, a.id, b.id LIMIT 500
""")
FACTS = text("""
SELECT f.id, f.fact_text AS text, f.event_date, f.event_date_precision, f.attribute_key, f.value, f.confidence,
       f.confirmations
  FROM memory_facts f WHERE f.id = ANY (CAST(:ids AS uuid[]))
""")

TOUCH = text("""
UPDATE memory_entities SET facts_changed_at = mandua_now()
 WHERE agent_id = :agent_id AND canonical_key = :key RETURNING facts_changed_at
""")
SEPARATE = text("""
INSERT INTO memory_facts_distinct (fact_id, other_id)
SELECT least(r.one, r.other), greatest(r.one, r.other)
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (one uuid, other uuid)
ON CONFLICT DO NOTHING
""")
# Invariant: an entity is done with if its facts are those that were looked at.
DONE = text("""
UPDATE memory_entities e SET facts_deduped_at = greatest(mandua_now(), r.seen)
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (key text, seen timestamptz)
 WHERE e.agent_id = :agent_id AND e.canonical_key = r.key AND e.facts_changed_at = r.seen
""")


class DedupFacts:
    """See the module's docstring."""

    name = "dedup_facts"
    due = f"EXISTS (SELECT FROM memory_entities e WHERE e.agent_id = a.agent_id AND {_DUE})"

    def plan(
        self,
        agent_id: str,
        carried: Mapping[str, Any],  # noqa: ARG002
        read: ReadSession,
        calls: Calls,
        config: MemoryConfig,
        *,
        fallback: str | None,
    ) -> Step | None:
        """One group; the entities before it that have none are done with."""
        with read() as session:
            due = list(session.execute(NEXT, {"agent_id": agent_id, "many": ENTITIES_A_STEP}))
            if not due:
                return None
            clean: list[Row[Any]] = []
            group: list[Row[Any]] = []
            for entity in due:
                group = _group(session, agent_id, entity, config)
                if group:
                    break
                clean.append(entity)
        if not group:
            return Step(lambda session: _done(session, agent_id, clean))
        key = due[len(clean)].key
        same = fallback is None and _ask(calls, group)

        def apply(session: Session) -> int:
            _done(session, agent_id, clean)
            return merge(session, agent_id, key, group) if same else _separate(session, group)

        return Step(apply)

    def preview(self, session: Session, agent_id: str, config: MemoryConfig) -> list[str]:
        """The first group of each entity that is due."""
        lines: list[str] = []
        for entity in session.execute(NEXT, {"agent_id": agent_id, "many": 100}):
            group = _group(session, agent_id, entity, config)
            if group:
                lines.append(f"{entity.key}: " + " | ".join(fact.text for fact in group))
        return lines


def merge(session: Session, agent_id: str, key: str, group: Sequence[Row[Any]]) -> int:
    """Make one of ``group``, facts of one entity, inside the caller's transaction; returns how many were closed.

    Nothing is done where one of them is active no longer.
    """
    kept = max(group, key=_richness).id
    pairs = [(fact.id, kept) for fact in group if fact.id != kept]
    if not lock_active(session, [fact.id for fact in group]):
        return 0
    fold_facts(session, pairs)
    now = session.execute(TOUCH, {"agent_id": agent_id, "key": key}).scalar_one()
    refresh_edges(session, [], [kept], now)
    return len(pairs)


def _richness(fact: Row[Any]) -> tuple[int, int, float, int, str]:
    """By what one of several duplicates stays: content words, then date and attribute, confidence, confirmations."""
    more = (fact.event_date is not None) + (fact.attribute_key is not None)
    return len(stems(fact.text)), more, float(fact.confidence), int(fact.confirmations), str(fact.id)


def _group(session: Session, agent_id: str, entity: Row[Any], config: MemoryConfig) -> list[Row[Any]]:
    """Facts of the entity each of which may say the same as each other, the nearest two first; empty if there are
    none."""
    found = session.execute(
        PAIRS,
        {"agent_id": agent_id, "key": entity.key, "since": entity.since, "threshold": config.semantic_dedup_threshold},
    ).all()
    ids = list(dict.fromkeys(fact_id for pair in found for fact_id in (pair.one, pair.other)))
    facts: dict[UUID, Row[Any]] = {row.id: row for row in session.execute(FACTS, {"ids": ids})} if ids else {}
    near = [(pair.one, pair.other) for pair in found if _may_be_one(facts[pair.one], facts[pair.other])]
    if not near:
        return []
    pairs = {frozenset(pair) for pair in near}
    group = list(near[0])
    for fact_id in ids:
        if len(group) < FACTS_A_GROUP and all(frozenset((fact_id, member)) in pairs for member in group):
            group.append(fact_id)
    return [facts[fact_id] for fact_id in group]


def _may_be_one(one: Row[Any], other: Row[Any]) -> bool:
    """Whether nothing forbids that two facts are one; a date may be told more exactly by one of them."""
    if not _dates_agree(one, other):
        return False
    if one.value and other.value and one.attribute_key == other.attribute_key and fold(one.value) != fold(other.value):
        return False
    return same_claim_possible(one.text, other.text) or one_dated_closer(one.text, other.text)


def _dates_agree(one: Row[Any], other: Row[Any]) -> bool:
    """Whether one event date lies within the other: March 2020 within 2020."""
    if not (one.event_date and other.event_date):
        return True
    known = min(_DATE_PARTS[row.event_date_precision] for row in (one, other))
    return bool(one.event_date.timetuple()[:known] == other.event_date.timetuple()[:known])


_DATE_PARTS = {"year": 1, "month": 2, "day": 3}


def _ask(calls: Calls, group: Sequence[Row[Any]]) -> bool:
    payload = {"facts": [{"number": n, "text": fact.text} for n, fact in enumerate(group, start=1)]}
    return calls.ask("fact_merge", payload, lambda completion: parse_fact_merge(completion.text).same)


def _separate(session: Session, group: Sequence[Row[Any]]) -> int:
    """Note that the last of ``group`` is another fact than the rest, so that the next group is smaller by it."""
    pairs = [(fact.id, group[-1].id) for fact in group[:-1]]
    session.execute(SEPARATE, {"rows": as_rows({"one": one, "other": other} for one, other in pairs)})
    return 0


def _done(session: Session, agent_id: str, entities: Sequence[Row[Any]]) -> int:
    if entities:
        rows = sorted(({"key": row.key, "seen": row.seen} for row in entities), key=lambda row: str(row["key"]))
        session.execute(DONE, {"agent_id": agent_id, "rows": as_rows(rows)})
    return 0
