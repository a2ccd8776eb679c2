"""The end of a run: its plans applied, its result kept, all in the caller's transaction, which also frees the turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from producer.contract import Status
from worker.turns import hold as holding
from worker.turns.hold import Bill, Start
from worker.turns.telling import told
from worker.write.applied import Applied
from worker.write.calls import CallUsage
from worker.write.message import Message
from worker.write.result import build_result, trace_of
from worker.write.stages import Plans
from worker.write.told import ToldCalls


def bill(start: Start, usage: CallUsage) -> Bill:
    """The run's usage, and what was added to it since ``start``."""
    before = CallUsage.model_validate(start.row.usage)
    return Bill(
        usage.model_dump_json(),
        usage.input_tokens + usage.wasted_input_tokens - before.input_tokens - before.wasted_input_tokens,
        usage.output_tokens + usage.wasted_output_tokens - before.output_tokens - before.wasted_output_tokens,
        (usage.cost_usd or 0.0) - (before.cost_usd or 0.0),
    )


def finish(
    session: Session,
    start: Start,
    message: Message,
    plans: Plans,
    applied: Applied,
    usage: CallUsage,
    timings: Mapping[str, float],
    calls: ToldCalls,
    **more: Any,
) -> Status:
    """Mark the run done with its result, trace and bill; returns its status. ``timings``: milliseconds of the stages
    that ended now; ``more`` goes into the trace's entry. Raises LostHold: roll back."""
    extraction, resolution, reconciliation = plans.ready()
    taken = {**start.row.timings, **timings}
    result = build_result(message, extraction, resolution, reconciliation, applied, usage, taken)
    trace = result.pipeline or trace_of(extraction, resolution, reconciliation, applied, taken)
    usage.note_reading(result.repairs, [item.reason for item in result.rejected])
    holding.finish(
        session.connection(), start.hold, status=result.status, result=result.model_dump_json(),
        bill=bill(start, usage), timings=timings,
        told=told(start, calls, "applied", steps=[step.model_dump(mode="json") for step in trace.steps], **more),
    )  # fmt: skip
    return result.status
