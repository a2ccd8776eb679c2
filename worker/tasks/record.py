"""Recording: the first thing that a worker does with a message, synchronously, in one short transaction."""

from __future__ import annotations

from typing import Any

from celery import Task
from celery.exceptions import Reject
from sqlalchemy.exc import SQLAlchemyError
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from producer.queues import TaskName
from worker.app import app
from worker.tasks.base import wake
from worker.turns.recording import RecordRefused, record

# Well below the visibility timeout: the message stays unacknowledged until it is recorded or goes back to its queue.
PATIENCE_SECONDS = 60


@app.task(bind=True, name=TaskName.RECORD_EVENT.value)
def record_event(self: Task, envelope: dict[str, Any]) -> None:  # noqa: ARG001
    """Record the event, place its run, dispatch its agent."""
    try:
        for attempt in Retrying(
            retry=retry_if_exception_type(SQLAlchemyError),
            wait=wait_random_exponential(multiplier=0.2, max=5),
            stop=stop_after_delay(PATIENCE_SECONDS),
            reraise=True,
        ):
            with attempt:
                agent_id = record(envelope)
    except RecordRefused as refusal:
        raise RecordRefused(str(refusal)) from None
    except SQLAlchemyError:
        # Not self.retry: a republished message would lose the mask over its arguments, or itself.
        raise Reject("database", requeue=True) from None
    if agent_id is not None:
        wake(agent_id, unless_busy=True)
