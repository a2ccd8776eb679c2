"""``score_importance``: how much an entity matters, and how salient its facts are; no model (behaviour: 11).

An entity: how much is known of it, how lately anything was said, how often it was asked for, and how many live edges it
has. A fact: the importance that its message gave it (which stays), weighed by the same. Recency halves in 30 days.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from producer.contract import MemoryConfig
from worker.db import ReadSession
from worker.maintenance.job import Step
from worker.write.calls import Calls

ENTITIES_A_STEP = 200

# Once a day for everybody, since recency moves; at once for those whose facts changed.
_DUE = """e.merged_into IS NULL AND (e.scored_at IS NULL OR e.scored_at < mandua_now() - interval '1 day'
          OR e.facts_changed_at > e.scored_at)"""

NEXT = text(f"""
SELECT e.canonical_key FROM memory_entities e WHERE e.agent_id = :agent_id AND {_DUE}
 ORDER BY e.scored_at NULLS FIRST, e.canonical_key LIMIT :many
""")  # noqa: S608

_RECENCY = "power(0.5, greatest(0, extract(epoch FROM mandua_now() - {last}) / 86400.0) / 30.0)"
_LAST_SAID = "coalesce(greatest(f.valid_from, f.last_confirmed_at, f.last_retrieved_at), f.ingested_at)"

# Invariant: a score is a function of rows and clock, so doing it twice is doing it once.
SCORE_ENTITIES = text(f"""
WITH due AS (
  SELECT e.canonical_key AS key, e.last_seen_at FROM memory_entities e
   WHERE e.agent_id = :agent_id AND e.canonical_key = ANY (CAST(:keys AS text[])) ORDER BY 1 FOR UPDATE
), known AS (
  SELECT d.key, count(f.id) AS facts, coalesce(sum(f.retrievals), 0) AS retrievals,
         coalesce(max({_LAST_SAID}), d.last_seen_at) AS last
    FROM due d LEFT JOIN memory_facts f
      ON f.agent_id = :agent_id AND f.entity_key = d.key AND f.valid_to IS NULL
   GROUP BY d.key, d.last_seen_at
), near AS (
  SELECT d.key, (SELECT count(*) FROM memory_entity_relationships r
                  WHERE r.agent_id = :agent_id AND r.source_entity_key = d.key AND r.valid_to IS NULL)
              + (SELECT count(*) FROM memory_entity_relationships r
                  WHERE r.agent_id = :agent_id AND r.target_entity_key = d.key AND r.valid_to IS NULL) AS edges
    FROM due d
)
UPDATE memory_entities e
   SET importance = least(1, 0.35 * (1 - exp(-k.facts / 10.0)) + 0.30 * {_RECENCY.format(last="k.last")}
                           + 0.20 * (1 - exp(-n.edges / 5.0)) + 0.15 * (1 - exp(-k.retrievals / 10.0))),
       scored_at = greatest(mandua_now(), e.facts_changed_at)
  FROM known k JOIN near n USING (key)
 WHERE e.agent_id = :agent_id AND e.canonical_key = k.key
""")  # noqa: S608
SCORE_FACTS = text(f"""
WITH due AS (
  SELECT f.id FROM memory_facts f WHERE f.agent_id = :agent_id AND f.entity_key = ANY (CAST(:keys AS text[]))
     AND f.valid_to IS NULL ORDER BY f.id FOR UPDATE
)
UPDATE memory_facts f
   SET salience = f.importance * (0.4 + 0.3 * {_RECENCY.format(last=_LAST_SAID)}
                    + 0.1 * (1 - exp(-f.confirmations / 3.0)) + 0.1 * (1 - exp(-f.retrievals / 5.0))
                    + 0.1 * (1 - exp(-(SELECT count(*) FROM memory_entity_relationships r
                                        WHERE r.evidence_fact_id = f.id AND r.valid_to IS NULL))))
  FROM due WHERE f.id = due.id
""")  # noqa: S608


class ScoreImportance:
    """See the module's docstring."""

    name = "score_importance"
    due = f"EXISTS (SELECT FROM memory_entities e WHERE e.agent_id = a.agent_id AND {_DUE})"

    def plan(
        self,
        agent_id: str,
        carried: Mapping[str, Any],  # noqa: ARG002
        read: ReadSession,
        calls: Calls,  # noqa: ARG002
        config: MemoryConfig,  # noqa: ARG002
        *,
        fallback: str | None,  # noqa: ARG002
    ) -> Step | None:
        """The next entities, those never scored first, with their facts."""
        with read() as session:
            keys = list(session.execute(NEXT, {"agent_id": agent_id, "many": ENTITIES_A_STEP}).scalars())
        if not keys:
            return None

        def apply(session: Session) -> int:
            parameters = {"agent_id": agent_id, "keys": keys}
            scored = session.execute(SCORE_ENTITIES, parameters)
            session.execute(SCORE_FACTS, parameters)
            return int(scored.rowcount)  # type: ignore[attr-defined]

        return Step(apply)

    def preview(self, session: Session, agent_id: str, config: MemoryConfig) -> list[str]:  # noqa: ARG002
        """The entities that are due."""
        return list(session.execute(NEXT, {"agent_id": agent_id, "many": 100}).scalars())
