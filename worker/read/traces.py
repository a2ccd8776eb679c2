"""What became of a message, stage by stage (issue 8): what was sent, answered, repaired, decided and stored."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from worker.read.rows import Reader, Row, fetch

EVENT = """
SELECT e.id AS event_id, e.agent_id, e.speaker_name, e.role, e.message, e.source, e.session_id, e.message_id,
       e.occurred_at, e.recorded_at, a.emotion, a.intensity, a.energy_level
  FROM memory_events e LEFT JOIN event_annotations a ON a.event_id = e.id WHERE e.id = :event
"""

# A run that is done has its trace and result; one that is not, or was given up, its plans so far. What a replay took
# over moved along with the plans: each entry says of which run it is.
RUNS = """
SELECT r.id AS run_id, r.seq, r.lane, r.state, r.stage, r.status, r.cause, r.error_code, r.attempts, r.created_at,
       r.finished_at, r.ready_at, r.timings, r.usage, r.request, o.result, coalesce(o.trace, '[]') AS trace,
       coalesce(p.told, '[]') AS told, p.extraction, p.resolution, p.reconciliation
  FROM runs r LEFT JOIN run_results o ON o.run_id = r.id LEFT JOIN run_plans p ON p.run_id = r.id
 WHERE r.event_id = :event ORDER BY r.created_at, r.seq
"""

# Facts that the message made, or said again.
STORED = """
SELECT f.id, f.entity_key, f.fact_text, f.confidence, f.kind, f.valid_from, f.valid_to, f.invalidated_at,
       f.supersedes_fact_id, 'made' AS how FROM memory_facts f WHERE f.source_event_id = :event
UNION ALL
SELECT f.id, f.entity_key, f.fact_text, f.confidence, f.kind, f.valid_from, f.valid_to, f.invalidated_at,
       f.supersedes_fact_id, 'confirmed' FROM memory_fact_confirmations c JOIN memory_facts f ON f.id = c.fact_id
 WHERE c.event_id = :event
 ORDER BY 10 DESC, 2, 3
"""

PLANS = ("extraction", "resolution", "reconciliation")


def trace(reader: Reader, event_id: UUID) -> dict[str, Any] | None:
    """The whole story of a message; None if there is no such event.

    ``event``: the message itself. ``runs``, the first first: state, stage, status, cause, usage, timings (ms a stage),
    ``starts`` (every time a stage was begun and ended: ``outcome``, its ``calls`` with what was ``sent`` and the
    ``reply`` or the ``cause``), ``plans`` (of a run that is not done), ``result`` (the WriteResult: repairs, rejected,
    degradations), ``steps`` (resolutions with scores, decisions with reasons). ``stored``: the facts that the message
    made or confirmed, as they are now. Texts are masked as everywhere; starts that died left nothing but their count
    (``attempts``).

    >>> from uuid import UUID
    >>> from worker.db import engine
    >>> with engine().connect() as connection:
    ...     trace(connection, UUID(int=1)) is None
    True
    """
    events = fetch(reader, EVENT, {"event": event_id})
    if not events:
        return None
    runs = fetch(reader, RUNS, {"event": event_id})
    entries = [entry for row in runs for entry in (*row["trace"], *row["told"])]
    return {
        "event": events[0],
        "runs": [_run(row, [entry for entry in entries if entry["run"] == str(row["run_id"])]) for row in runs],
        "stored": fetch(reader, STORED, {"event": event_id}),
    }


def _run(row: Row, starts: list[dict[str, Any]]) -> dict[str, Any]:
    plans = {name: row[name] for name in PLANS if row[name] is not None}
    told = {name: value for name, value in row.items() if name not in ("trace", "told", *PLANS)}
    steps = [step for start in starts for step in start.pop("steps", ())]
    return {**told, "starts": sorted(starts, key=lambda start: str(start["begun_at"])), "steps": steps, "plans": plans}
