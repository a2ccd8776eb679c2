"""``mark_stale``: facts that nothing speaks for any more are marked, and unmarked when something does (behaviour: 11).

Vitality is the confidence, halved every 180 days since the fact was last said or asked for (each confirmation makes
that half as long again, up to ten), and divided by one more than its corrections. A confirmation clears the mark at
once, where it is stored; what was asked for again is cleared here. No model.
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

STALE_BELOW = 0.2
FACTS_A_STEP = 500

VITALITY = """
(f.confidence / (1 + f.user_correction_count)
 * power(0.5, greatest(0, extract(epoch FROM mandua_now()
     - coalesce(greatest(f.valid_from, f.last_confirmed_at, f.last_retrieved_at), f.ingested_at)) / 86400.0)
   / (180.0 * (1 + 0.5 * least(f.confirmations, 10)))))
"""
# Invariant: due is what is marked and lives, or is not and does not; doing it twice changes nothing.
_DUE = f"f.valid_to IS NULL AND (f.stale_at IS NULL) = ({VITALITY} < {STALE_BELOW})"

NEXT = text(f"""
SELECT f.id, f.fact_text AS text, f.stale_at IS NULL AS fades FROM memory_facts f
 WHERE f.agent_id = :agent_id AND {_DUE} ORDER BY f.id LIMIT :many
""")  # noqa: S608
MARK = text(f"""
WITH due AS (
  SELECT f.id FROM memory_facts f WHERE f.id = ANY (CAST(:ids AS uuid[])) AND {_DUE} ORDER BY f.id FOR UPDATE
)
UPDATE memory_facts f SET stale_at = CASE WHEN f.stale_at IS NULL THEN mandua_now() END FROM due WHERE f.id = due.id
""")  # noqa: S608


class MarkStale:
    """See the module's docstring."""

    name = "mark_stale"
    due = f"EXISTS (SELECT FROM memory_facts f WHERE f.agent_id = a.agent_id AND {_DUE})"

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
        """The next facts whose mark is wrong by now."""
        with read() as session:
            ids = [row.id for row in session.execute(NEXT, {"agent_id": agent_id, "many": FACTS_A_STEP})]
        if not ids:
            return None
        return Step(lambda session: int(session.execute(MARK, {"ids": ids}).rowcount))  # type: ignore[attr-defined]

    def preview(self, session: Session, agent_id: str, config: MemoryConfig) -> list[str]:  # noqa: ARG002
        """The facts, and which way their mark goes."""
        rows = session.execute(NEXT, {"agent_id": agent_id, "many": 100})
        return [f"{'fades' if row.fades else 'lives again'}: {row.text}" for row in rows]
