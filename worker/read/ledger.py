"""The ledger of runs: how much waits, where it stands, what was given up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from producer.queues import RUN_STAGES, Lane, Stage
from worker.read.rows import Reader, Row, fetch
from worker.read.totals import totals
from worker.turns.life import LIVING, periods

# The whole backlog is counted, by its partial index; finished runs are not read at all.
# waits_for: why a run that was given back waits (it is accepted, and has a cause).
UNFINISHED = """
SELECT r.lane, r.state, r.stage, CASE WHEN r.state = 'accepted' THEN r.cause END AS waits_for, count(*) AS many
  FROM runs r WHERE r.finished_at IS NULL GROUP BY 1, 2, 3, 4
"""

# One row a lane that has something unfinished: the run that has waited longest.
OLDEST = """
SELECT l.lane, r.agent_id, r.stage, r.cause, extract(epoch FROM mandua_now() - r.created_at) AS waited_sec
  FROM unnest(CAST(:lanes AS smallint[])) AS l (lane)
  CROSS JOIN LATERAL (
    SELECT o.agent_id, o.stage, o.cause, o.created_at FROM runs o
     WHERE o.finished_at IS NULL AND o.lane = l.lane ORDER BY o.created_at LIMIT 1) r
"""

# A failure stands until its event gets a later run, or its job. By index: runs_failed, runs_event, runs_job.
STANDS = """
r.status = 'failed' AND NOT EXISTS (
  SELECT 1 FROM runs n WHERE n.event_id = r.event_id AND (n.created_at, n.seq) > (r.created_at, r.seq))
AND NOT EXISTS (SELECT 1 FROM runs n WHERE n.agent_id = r.agent_id AND n.job = r.job AND n.seq > r.seq)
"""
FAILED = f"SELECT r.stage, r.cause, count(*) AS many FROM runs r WHERE {STANDS} GROUP BY 1, 2"  # noqa: S608

CHOSEN = """
  (CAST(:stage AS text) IS NULL OR r.stage = :stage) AND (CAST(:cause AS text) IS NULL OR r.cause = :cause)
  AND (CAST(:agent AS text) IS NULL OR r.agent_id = :agent)
  AND (CAST(:since AS timestamptz) IS NULL OR r.finished_at >= :since)
  AND (CAST(:events AS uuid[]) IS NULL OR r.event_id = ANY (CAST(:events AS uuid[])))
"""
# Newest first. A message that was refused before it became an event of its own (its id is another one's) is here as
# stage `record`; there is nothing to replay.
FAILURES = f"""
SELECT * FROM (
  SELECT r.event_id, r.agent_id, r.stage, r.cause, r.error_code, r.attempts, r.finished_at AS since
    FROM runs r WHERE {STANDS} AND {CHOSEN}
  UNION ALL
  SELECT r.event_id, r.agent_id, r.stage, r.cause, NULL, 1, r.finished_at
    FROM (SELECT event_id, agent_id, 'record' AS stage, cause, recorded_at AS finished_at FROM failed_records) r
   WHERE {CHOSEN}
) f ORDER BY since DESC, event_id LIMIT :many
"""  # noqa: S608

# What the spend limits are measured against: calls of unfinished runs are in it.
SPENT_TODAY = """
SELECT coalesce(sum(s.input_tokens), 0) AS input_tokens, coalesce(sum(s.output_tokens), 0) AS output_tokens,
       coalesce(sum(s.cost_usd), 0) AS cost_usd
  FROM spending s WHERE s.day = (mandua_now() AT TIME ZONE 'UTC')::date
"""

# A model that is to be left alone just now, why, and for how long.
MODELS_COOLING = """
SELECT m.model, m.cause, extract(epoch FROM m.cool_until - mandua_now()) AS seconds
  FROM model_health m WHERE m.cool_until > mandua_now() ORDER BY m.model
"""

LAST_SWEEP = "SELECT extract(epoch FROM mandua_now() - at) AS age FROM ledger_marks WHERE name = 'sweep'"

WORKERS_ALIVE = f"""
SELECT w.name, w.started_at, w.heartbeat_at FROM workers w WHERE {LIVING} ORDER BY w.name LIMIT :many
"""  # noqa: S608

# A worker that ended politely has taken its row away; the rows of others are removed after an hour.
WORKERS_SILENT = f"""
SELECT w.name, extract(epoch FROM mandua_now() - w.heartbeat_at) AS silent_sec FROM workers w
 WHERE NOT ({LIVING}) ORDER BY w.name LIMIT :many
"""  # noqa: S608

# One row an event, its newest run, in the order of the events given.
RUNS_OF_EVENTS = """
SELECT e.id AS event_id, o.state, o.stage, o.status, o.cause, r.timings, o.result
  FROM unnest(CAST(:events AS uuid[])) WITH ORDINALITY AS e (id, ordinal)
  CROSS JOIN LATERAL event_outcome(e.id) o JOIN runs r ON r.id = o.run_id
 ORDER BY e.ordinal
"""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which failures: all conditions that are set hold. ``since`` is when the run was given up, or later."""

    stage: str | None = None
    cause: str | None = None
    agent_id: str | None = None
    since: datetime | None = None
    events: Sequence[UUID] | None = None

    def parameters(self) -> dict[str, Any]:
        """The parameters of CHOSEN."""
        return {"stage": self.stage, "cause": self.cause, "agent": self.agent_id, "since": self.since,
                "events": None if self.events is None else list(self.events)}  # fmt: skip


def ledger(reader: Reader) -> dict[str, Any]:
    """Counts of runs.

    ``by_status``: messages, accepted and running now; ok, degraded and empty since ever; failed: those that stand, jobs
    too. ``by_stage`` and ``by_lane`` are of unfinished runs, ``waiting`` of those that were given back, by cause.
    ``failed``: stage, cause, count. ``lag_sec``: by lane, the age of the oldest unfinished run in seconds, 0 where
    there is none; ``oldest``: that run's agent_id, lane, stage, cause, waited_sec (None when nothing waits), and
    ``oldest_waiting_sec`` its age. ``today``: see ``spent_today``.
    """
    status = dict.fromkeys(("accepted", "running", "ok", "degraded", "empty", "failed"), 0)
    stage = dict.fromkeys((found.value for found in (*RUN_STAGES, Stage.JOB)), 0)
    lane = dict.fromkeys((found.name.lower() for found in Lane), 0)
    waiting: dict[str, int] = {}
    for row in fetch(reader, UNFINISHED, {}):
        if row["stage"] != Stage.JOB:
            status[row["state"]] += row["many"]
        stage[row["stage"]] += row["many"]
        lane[Lane(row["lane"]).name.lower()] += row["many"]
        if row["waits_for"] is not None:
            waiting[row["waits_for"]] = waiting.get(row["waits_for"], 0) + row["many"]
    failed = [
        {"stage": row["stage"], "cause": row["cause"], "count": row["many"]} for row in fetch(reader, FAILED, {})
    ]
    ever = totals(reader)
    for name in ("ok", "degraded", "empty"):
        status[name] = round(ever.get(("runs", name, ""), 0.0))
    status["failed"] = sum(item["count"] for item in failed)
    lag = oldest_by_lane(reader)
    oldest = max(lag.values(), key=lambda row: row["waited_sec"], default=None)
    return {
        "by_status": status,
        "by_stage": stage,
        "by_lane": lane,
        "waiting": dict(sorted(waiting.items())),
        "failed": sorted(failed, key=lambda item: (item["stage"], item["cause"])),
        "lag_sec": {name: lag[name]["waited_sec"] if name in lag else 0.0 for name in lane},
        "oldest": oldest,
        "oldest_waiting_sec": oldest["waited_sec"] if oldest else None,
        "today": spent_today(reader),
    }


def oldest_by_lane(reader: Reader) -> dict[str, Row]:
    """The run of each lane that has waited longest, by the lane's name: agent_id, lane, stage, cause, waited_sec."""
    found = fetch(reader, OLDEST, {"lanes": [int(lane) for lane in Lane]})
    rows = [{**row, "lane": Lane(row["lane"]).name.lower(), "waited_sec": round(float(row["waited_sec"]), 1)}
            for row in found]  # fmt: skip
    return {row["lane"]: row for row in rows}


def spent_today(reader: Reader) -> dict[str, Any]:
    """Today (UTC): finished ``runs`` by status; input, output and total tokens and ``cost_usd`` of all calls (those
    paid twice included, those whose price is not known left out of the cost); ``wasted_tokens`` of finished runs."""
    found = totals(reader, today=True)
    runs: dict[str, int] = {}
    for (metric, label, _), value in found.items():
        if metric == "runs":
            runs[label] = runs.get(label, 0) + round(value)
    (spent,) = fetch(reader, SPENT_TODAY, {})
    return {
        "runs": dict(sorted(runs.items())),
        "input_tokens": int(spent["input_tokens"]),
        "output_tokens": int(spent["output_tokens"]),
        "total_tokens": int(spent["input_tokens"] + spent["output_tokens"]),
        "wasted_tokens": round(sum(found.get(("tokens_wasted", label, ""), 0.0) for label in ("input", "output"))),
        "cost_usd": round(float(spent["cost_usd"]), 6),
    }


def models_cooling(reader: Reader) -> list[Row]:
    """The models that all workers leave alone now: model, cause (rate_limited, model_unavailable), seconds left."""
    return [{**row, "seconds": round(float(row["seconds"]), 1)} for row in fetch(reader, MODELS_COOLING, {})]


def failures(reader: Reader, choice: Choice, *, limit: int | None = None) -> list[Row]:
    """The failures that stand, newest first: event_id, agent_id, stage, cause, error_code, attempts, since."""
    return fetch(reader, FAILURES, {**choice.parameters(), "many": limit})


def last_sweep_sec(reader: Reader) -> float | None:
    """How many seconds ago the sweeper was last at work; None if it never was."""
    rows = fetch(reader, LAST_SWEEP, {})
    return max(0.0, round(float(rows[0]["age"]), 1)) if rows else None


def workers_alive(reader: Reader, *, limit: int | None = None) -> list[Row]:
    """The worker processes that gave a life sign lately: name, started_at, heartbeat_at. One that never took a
    message since its start is not among them."""
    return fetch(reader, WORKERS_ALIVE, {"many": limit, "silent_after": periods()["silent_after"]})


def workers_silent(reader: Reader, *, limit: int | None = None) -> list[Row]:
    """The worker processes that went silent within the last hour without leaving: name, silent_sec."""
    return fetch(reader, WORKERS_SILENT, {"many": limit, "silent_after": periods()["silent_after"]})


def runs_of(reader: Reader, events: Sequence[UUID]) -> list[Row]:
    """The newest run of each event: event_id, state, stage, status, cause, timings (ms a stage), result."""
    return fetch(reader, RUNS_OF_EVENTS, {"events": list(events)})
