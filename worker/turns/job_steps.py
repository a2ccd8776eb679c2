"""A step of a job under the agent's turn: planned with nothing held open, applied with the release of the turn.

It is one stage, begun once: a worker that dies between plan and apply has changed nothing, and the next start asks for
no reply again that was kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlalchemy.orm import Session

from producer.contract import MemoryConfig
from worker.db import ReadSession, autocommit, engine, sql
from worker.maintenance.job import Step
from worker.maintenance.schedule import job_named
from worker.turns import hold as holding
from worker.turns.hold import Bill, Start
from worker.write.calls import Calls, CallUsage

# A run has its share and ends; what is left is planned again, behind the agent's other jobs.
STEPS_A_RUN = 100

# Invariant: one row a run. Tokens and cost are the run's whole usage; steps and items add up.
RECORD = """
INSERT INTO maintenance_runs AS m (run_id, job, agent_id, started_at, finished_at, steps, items, input_tokens,
                                   output_tokens, cost_usd, outcome, cause)
VALUES (:run, :job, :agent, :begun_at, CASE WHEN CAST(:outcome AS text) IS NOT NULL THEN mandua_now() END, :steps,
        :items, :input_tokens, :output_tokens, :cost_usd, :outcome, :cause)
ON CONFLICT (run_id) DO UPDATE
   SET steps = m.steps + excluded.steps, items = m.items + excluded.items, input_tokens = excluded.input_tokens,
       output_tokens = excluded.output_tokens, cost_usd = excluded.cost_usd, finished_at = excluded.finished_at,
       outcome = excluded.outcome, cause = excluded.cause
RETURNING steps, items
"""


def plan(start: Start, read: ReadSession, calls: Calls, config: MemoryConfig, *, fallback: str | None) -> Step | None:
    """The step that the run is at; None where nothing is due any more. Raises ModelError."""
    carried: Mapping[str, object] = start.row.request.get("carried") or {}
    return job_named(start.row.job).plan(start.hold.agent_id, carried, read, calls, config, fallback=fallback)


def apply(start: Start, step: Step | None, usage: CallUsage, bill: Bill, timings: Mapping[str, float]) -> None:
    """Apply a step, record it and free the turn: one commit. Without a step the run is done. Raises LostHold."""
    with Session(engine()) as session, session.begin():
        connection = session.connection()
        holding.lock_for_apply(connection, start.hold)
        items = 0 if step is None else step.apply(session)
        done = start.row.request.get("steps", 0) + (step is not None)
        outcome = "done" if step is None else "more" if done >= STEPS_A_RUN else None
        row = connection.execute(sql(RECORD), _record(start, usage, int(step is not None), items, outcome)).one()
        if outcome is not None:
            result = json.dumps({"job": start.row.job, "steps": row.steps, "items": row.items, "outcome": outcome})
            holding.finish(connection, start.hold, status="ok", result=result, bill=bill, timings=timings)
        else:
            carried = {} if step is None else dict(step.carried)
            request = json.dumps({"steps": done, "carried": carried}, ensure_ascii=False, default=str)
            holding.step(connection, start.hold, request=request, bill=bill, timings=timings)


def note_failure(start: Start, usage: CallUsage, cause: str) -> None:
    """Record that the run was given up, and why."""
    with autocommit() as connection:
        connection.execute(sql(RECORD), _record(start, usage, 0, 0, "failed", cause))


def _record(
    start: Start, usage: CallUsage, steps: int, items: int, outcome: str | None, cause: str | None = None
) -> dict[str, object]:
    return {
        "run": start.hold.run_id, "job": start.row.job, "agent": start.hold.agent_id, "begun_at": start.row.begun_at,
        "steps": steps, "items": items, "outcome": outcome, "cause": cause,
        "input_tokens": usage.input_tokens + usage.wasted_input_tokens,
        "output_tokens": usage.output_tokens + usage.wasted_output_tokens,
        "cost_usd": None if usage.unpriced else usage.cost_usd,
    }  # fmt: skip
