"""Which stored facts a new one may be about: one query for all facts of a message (behaviour: 7; design: 5)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from worker.embedding.provider import Vectors
from worker.write.evidence import Edge
from worker.write.fact_rows import as_rows, vector_text
from worker.write.timeline import moment

# The nearest of ALL active facts of the entity: exact distances ("+ 0" keeps an approximate index out of it). A late
# message (facts that ended, or began, after its time) sees what was valid at its time and the next later version of
# each chain, retractions among them; for a live one the second branch finds nothing in its index. What held at the time
# goes first: of a matter that came up again and again, what came later fills any limit. The third branch is what says
# the very same. ``related`` stands on the same matter whatever the distance: the same attribute, or an edge
# of a kind that a person has one of at a time (a home, an employer), because "lives in Curitiba" and "moved to
# Florianópolis yesterday" are no nearer to a multilingual embedding than two unrelated sentences. (A predecessor is
# looked up as a scalar: as EXISTS it would be hashed over the whole table; evidence from the few edges on, one by one
# (OFFSET 0): a join of it began with all facts of the entity.)
CANDIDATES = text("""
WITH q AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS q (
    number integer, entity_key text, text_hash text, embedding vector, attribute_key text, rel_types text[],
    targets text[])
)
SELECT q.number, f.id, f.fact_text AS text, f.kind, f.valid_from, f.valid_to, f.confidence, f.attribute_key, f.value,
       f.text_hash = decode(q.text_hash, 'hex') AS identical, found.id = ANY (matter.ids) AS related,
       1 - (f.embedding <=> q.embedding) AS similarity
  FROM q CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(m.id), '{}') AS ids FROM (
      (SELECT a.id FROM memory_facts a
        WHERE q.attribute_key IS NOT NULL AND a.agent_id = :agent_id AND a.entity_key = q.entity_key
          AND a.valid_to IS NULL AND a.attribute_key = q.attribute_key LIMIT :k)
      UNION
      (SELECT e.id
         FROM (SELECT r.id FROM memory_entity_relationships r
                WHERE cardinality(q.rel_types) > 0 AND r.agent_id = :agent_id AND r.source_entity_key = q.entity_key
                  AND r.rel_type = ANY (q.rel_types) AND r.target_entity_key <> ALL (q.targets) OFFSET 0) r
        CROSS JOIN LATERAL (
          SELECT v.fact_id FROM memory_relationship_evidence v WHERE v.relationship_id = r.id OFFSET 0) v
        CROSS JOIN LATERAL (
          SELECT f.id, f.valid_from FROM memory_facts f
           WHERE f.id = v.fact_id AND f.entity_key = q.entity_key AND f.kind = 'fact' AND f.merged_into IS NULL
             AND (f.valid_to IS NULL OR f.valid_to > CAST(:at AS timestamptz)) OFFSET 0) e
        ORDER BY e.valid_from DESC NULLS LAST LIMIT :k)
    ) m
  ) matter CROSS JOIN LATERAL (
    SELECT unnest(matter.ids) AS id
    UNION
    (SELECT a.id FROM memory_facts a
      WHERE a.agent_id = :agent_id AND a.entity_key = q.entity_key AND a.valid_to IS NULL
        AND q.embedding IS NOT NULL
        AND (CAST(:at AS timestamptz) IS NULL OR a.valid_from IS NULL OR a.valid_from <= :at
             OR coalesce((SELECT p.valid_from FROM memory_facts p WHERE p.id = a.supersedes_fact_id),
                         '-infinity') <= :at)
      ORDER BY (a.embedding <=> q.embedding) + 0, a.valid_from NULLS FIRST, a.id LIMIT :k)
    UNION
    (SELECT c.id FROM memory_facts c
      WHERE c.agent_id = :agent_id AND c.entity_key = q.entity_key AND c.valid_to > CAST(:at AS timestamptz)
        AND q.embedding IS NOT NULL AND c.merged_into IS NULL
        AND (c.valid_from IS NULL OR c.valid_from <= :at
             OR coalesce((SELECT p.valid_from FROM memory_facts p WHERE p.id = c.supersedes_fact_id),
                         '-infinity') <= :at)
      ORDER BY (c.valid_from > CAST(:at AS timestamptz)) IS TRUE, (c.embedding <=> q.embedding) + 0,
               c.valid_from NULLS FIRST, c.id LIMIT :k)
    UNION
    (SELECT s.id FROM memory_facts s
      WHERE s.agent_id = :agent_id AND s.entity_key = q.entity_key AND s.text_hash = decode(q.text_hash, 'hex')
        AND (s.valid_to IS NULL OR s.valid_to > CAST(:at AS timestamptz)) AND s.kind = 'fact' AND s.merged_into IS NULL
        AND (CAST(:at AS timestamptz) IS NULL OR s.valid_from IS NULL OR s.valid_from <= :at
             OR coalesce((SELECT p.valid_from FROM memory_facts p WHERE p.id = s.supersedes_fact_id),
                         '-infinity') <= :at))
  ) found
  JOIN memory_facts f ON f.id = found.id
 ORDER BY q.number, similarity DESC NULLS LAST, f.id
""")


# Invariant: a live edge stands on an active fact, whichever entity that is about.
STANDING = text("""
SELECT r.source_entity_key, r.target_entity_key, r.rel_type, r.evidence_fact_id
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS q (source text, target text, rel_type text)
  JOIN memory_entity_relationships r
    ON r.agent_id = :agent_id AND r.source_entity_key = q.source AND r.target_entity_key = q.target
   AND r.rel_type = q.rel_type AND r.valid_to IS NULL
""")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stored fact near a new one. ``similarity`` is a cosine; None where either has no vector. ``related``: about the
    same matter by its attribute or its edge, however far apart the words are."""

    id: UUID
    text: str
    kind: str
    valid_from: datetime | None
    valid_to: datetime | None
    confidence: float
    attribute_key: str | None
    value: str | None
    identical: bool
    related: bool
    similarity: float | None

    def later_than(self, at: datetime | None) -> bool:
        """Whether it began after ``at``, so that a fact of that time can never supersede it."""
        return moment(self.valid_from) > moment(at)


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for: a text of an entity, with its vector where there is one; its attribute, the kinds of its
    edges that a person has one of at a time, and where those lead: another target is another value."""

    number: int
    entity_key: str
    text_hash: bytes
    vector: Vectors | None
    attribute_key: str | None = None
    rel_types: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()


def find_candidates(
    session: Session, agent_id: str, queries: Sequence[Query], at: datetime | None, limit: int
) -> dict[int, list[Candidate]]:
    """The candidates of each query by its number, nearest first; at most ``limit`` of each kind and the same text."""
    found: dict[int, list[Candidate]] = {query.number: [] for query in queries}
    if not queries:
        return found
    rows = as_rows(
        {
            "number": query.number,
            "entity_key": query.entity_key,
            "text_hash": query.text_hash,
            "embedding": vector_text(query.vector),
            "attribute_key": query.attribute_key,
            "rel_types": list(query.rel_types),
            "targets": list(query.targets),
        }
        for query in queries
    )
    for row in session.execute(CANDIDATES, {"agent_id": agent_id, "at": at, "k": limit, "rows": rows}).mappings():
        fields = dict(row)
        number, similarity = fields.pop("number"), fields.pop("similarity")
        if similarity is not None and math.isnan(similarity):
            similarity = None
        found[number].append(Candidate(similarity=similarity, **fields))
    return found


def standing_evidence(session: Session, agent_id: str, edges: Iterable[Edge]) -> dict[Edge, UUID]:
    """Of ``edges``, those that are live, each with the active fact that it stands on."""
    rows = as_rows({"source": source, "target": target, "rel_type": rel_type} for source, target, rel_type in edges)
    found = session.execute(STANDING, {"agent_id": agent_id, "rows": rows})
    return {(source, target, rel_type): fact_id for source, target, rel_type, fact_id in found}
