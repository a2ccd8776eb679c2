"""The ledger of runs: how much waits, where it stands, what was given up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from producer.queues import RUN_STAGES, Lane
from worker.read.rows import Reader, Row, fetch
from worker.turns.life import LIVING, periods

# status: what a finished run ended as; accepted (waits) or running for one that has not.
RUNS_COUNTED = """
SELECT coalesce(r.status, r.state) AS status, CASE WHEN r.state <> 'done' THEN r.stage END AS stage, r.lane,
       r.finished_at IS NULL AS unfinished, r.cause, count(*) AS many,
       extract(epoch FROM mandua_now() - min(r.created_at) FILTER (WHERE r.finished_at IS NULL)) AS oldest_sec
  FROM runs r GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
"""

WORKERS_ALIVE = f"""
SELECT w.name, w.started_at, w.heartbeat_at FROM workers w WHERE {LIVING} ORDER BY w.name LIMIT :many
"""  # noqa: S608

# One row an event, its newest run, in the order of the events given.
RUNS_OF_EVENTS = """
SELECT e.id AS event_id, o.state, o.stage, o.status, o.cause, r.timings, o.result
  FROM unnest(CAST(:events AS uuid[])) WITH ORDINALITY AS e (id, ordinal)
  CROSS JOIN LATERAL event_outcome(e.id) o JOIN runs r ON r.id = o.run_id
 ORDER BY e.ordinal
"""


def ledger(reader: Reader) -> dict[str, Any]:
    """Counts of all runs.

    ``by_status`` (accepted, running, ok, degraded, empty, failed), ``by_stage`` and ``by_lane`` (of runs that are
    unfinished), ``failed`` (stage, cause, count of runs that were given up) and ``oldest_waiting_sec`` (None when
    nothing waits).
    """
    status = dict.fromkeys(("accepted", "running", "ok", "degraded", "empty", "failed"), 0)
    stage = dict.fromkeys((found.value for found in RUN_STAGES), 0)
    lane = dict.fromkeys((found.name.lower() for found in Lane), 0)
    failed: dict[tuple[str, str], int] = {}
    oldest: list[float] = []
    for row in fetch(reader, RUNS_COUNTED, {}):
        status[row["status"]] += row["many"]
        if row["unfinished"]:
            stage[row["stage"]] += row["many"]
            lane[Lane(row["lane"]).name.lower()] += row["many"]
            oldest.append(float(row["oldest_sec"]))
        elif row["status"] == "failed":
            key = (row["stage"], row["cause"])
            failed[key] = failed.get(key, 0) + row["many"]
    return {
        "by_status": status,
        "by_stage": stage,
        "by_lane": lane,
        "failed": [{"stage": where, "cause": why, "count": many} for (where, why), many in sorted(failed.items())],
        "oldest_waiting_sec": round(max(oldest), 1) if oldest else None,
    }


def workers_alive(reader: Reader, *, limit: int | None = None) -> list[Row]:
    """The worker processes that gave a life sign lately: name, started_at, heartbeat_at. One that never took a
    message since its start is not among them."""
    return fetch(reader, WORKERS_ALIVE, {"many": limit, "silent_after": periods()["silent_after"]})


def runs_of(reader: Reader, events: Sequence[UUID]) -> list[Row]:
    """The newest run of each event: event_id, state, stage, status, cause, timings (ms a stage), result."""
    return fetch(reader, RUNS_OF_EVENTS, {"events": list(events)})
