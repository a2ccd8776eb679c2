"""``refresh_summaries``: ``summary_text``, a few sentences in English on what is true now and changed lately.

At most once a week for an entity, and only if its facts changed since; the most stale first (behaviour: 8, 11).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.orm import Session

from producer.contract import MemoryConfig
from worker.db import ReadSession
from worker.maintenance.job import Step
from worker.maintenance.profiles import aliases_of, ask, facts_of, parts_of
from worker.write.calls import Calls
from worker.write.fact_rows import as_rows

ENTITIES_A_STEP = 50

_DUE = """e.merged_into IS NULL AND e.facts_changed_at > coalesce(e.summary_refreshed_at, '-infinity')
          AND coalesce(e.summary_refreshed_at, '-infinity') < mandua_now() - interval '7 days'"""

NEXT = text(f"""
SELECT e.canonical_key AS key, e.display_name AS name, e.entity_type AS type, e.facts_changed_at AS seen,
       EXISTS (SELECT FROM memory_facts f WHERE f.agent_id = e.agent_id AND f.entity_key = e.canonical_key
                  AND f.valid_to IS NULL AND f.confidence >= :min_confidence) AS has_facts
  FROM memory_entities e WHERE e.agent_id = :agent_id AND {_DUE}
 ORDER BY e.summary_refreshed_at NULLS FIRST, e.facts_changed_at, e.canonical_key LIMIT :many
""")  # noqa: S608

# Invariant: the week begins anew for the very facts that were summed up. ``kept`` leaves the words as they are.
WRITE = text("""
UPDATE memory_entities e
   SET summary_text = CASE WHEN r.kept THEN e.summary_text ELSE r.summary END,
       summary_refreshed_at = greatest(mandua_now(), r.seen)
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (key text, seen timestamptz, summary text, kept boolean)
 WHERE e.agent_id = :agent_id AND e.canonical_key = r.key AND e.facts_changed_at = r.seen
""")


class RefreshSummaries:
    """See the module's docstring."""

    name = "refresh_summaries"
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
        """One entity's summary, of its latest facts; a model that refuses leaves the old one for another week."""
        with read() as session:
            due = _due(session, agent_id, config, ENTITIES_A_STEP)
            if not due:
                return None
            chosen = next((row for row in due if row.has_facts), None)
            facts = [] if chosen is None else facts_of(session, agent_id, chosen.key, config)
            aliases = [] if chosen is None else aliases_of(session, agent_id, chosen)
        rows = [{"key": row.key, "seen": row.seen, "kept": False} for row in due if not row.has_facts]
        if chosen is not None and fallback is not None:
            rows.append({"key": chosen.key, "seen": chosen.seen, "kept": True})
        elif chosen is not None:
            entity = {"name": chosen.name, "type": chosen.type, "aliases": aliases}
            summary = ask(calls, "entity_summary", entity, parts_of(facts)[-1])
            rows.append({"key": chosen.key, "seen": chosen.seen, "kept": False, "summary": summary})
        rows.sort(key=lambda row: str(row["key"]))

        def apply(session: Session) -> int:
            session.execute(WRITE, {"agent_id": agent_id, "rows": as_rows(rows)})
            return int(chosen is not None and fallback is None)

        return Step(apply)

    def preview(self, session: Session, agent_id: str, config: MemoryConfig) -> list[str]:
        """The entities that are due, the most stale first."""
        return [row.key for row in _due(session, agent_id, config, 100) if row.has_facts]


def _due(session: Session, agent_id: str, config: MemoryConfig, many: int) -> list[Row[Any]]:
    parameters = {"agent_id": agent_id, "min_confidence": config.min_confidence, "many": many}
    return list(session.execute(NEXT, parameters))
