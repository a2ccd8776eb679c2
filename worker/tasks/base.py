"""The one Task base: how the end of a stage is told to Celery, and how wake-ups are published.

What Flower shows follows from here: a stage that waits is RETRY with its cause, one that gave up is FAILURE with
``stage: cause``, both under the task's name, with ids as arguments and no text of anybody.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from typing import Any
from uuid import UUID

import structlog
from celery import Task, chain, signature
from celery.exceptions import Retry
from sqlalchemy.exc import SQLAlchemyError

from producer.connections import publishing
from producer.errors import BrokerDown
from producer.queues import AHEAD_QUEUE, STAGE_QUEUE, STAGE_TASKS, QueueName, Stage, TaskName, is_rabbitmq
from worker.app import app
from worker.turns.dispatch import Dispatched, dispatch, is_busy
from worker.turns.running import Alone, Applied, Moved, Outcome, Parked, Stale, Waiting, blame, run_stage

log = structlog.get_logger()

# Longer than a stage may take, so that a process of its own is ended only when it is stuck.
ALONE_SECONDS = 170

# Signals by which somebody ends a process who has nothing against its message.
_ASKED_TO_END = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class StageFailed(Exception):
    """A run was parked at a stage. ``str()`` is ``stage: cause (code)``; the details stand in ``runs``."""


class StageTask(Task):  # type: ignore[misc]
    """A task that runs a stage of a run."""

    abstract = True

    def run_stage(self, stage: Stage, run_id: str, fence: int | None) -> None:
        """Run the stage and conclude it. Raises Retry when the run waits, StageFailed when it was parked."""
        outcome = run_stage(stage, UUID(run_id), fence)
        if isinstance(outcome, Alone):
            outcome = run_alone(stage, run_id, fence)
        self.conclude(stage, outcome, ahead=fence is None)

    def conclude(self, stage: Stage, outcome: Outcome, *, ahead: bool) -> None:
        """Tell Celery how a stage ended. The chain goes on only after Moved."""
        if isinstance(outcome, Moved):
            if ahead or outcome.others:
                # Nothing was freed. A dispatch would wait for the turn's row while the holder applies, to find it held.
                wake(outcome.agent_id, unless_busy=True)
            return
        self.request.chain = None
        if isinstance(outcome, (Stale, Alone)):
            return
        wake(outcome.agent_id)
        if isinstance(outcome, Waiting):
            raise Retry(f"{stage.value}: {outcome.cause}", when=outcome.delay) from None
        if isinstance(outcome, Parked):
            raise StageFailed(f"{stage.value}: {outcome.cause} ({outcome.error_code})") from None


def wake(agent_id: str, *, unless_busy: bool = False) -> None:
    """Dispatch ``agent_id`` here and now and publish what follows. Errors are logged: the sweeper does it again.

    ``unless_busy``: nothing was freed, something may have been added; where somebody is at work, that can wait.
    """
    try:
        if unless_busy and is_busy(agent_id):
            return
        publish(dispatch(agent_id))
    except (SQLAlchemyError, BrokerDown) as error:
        log.warning("wake_failed", agent=agent_id, error=type(error).__name__)


def publish(dispatched: Dispatched) -> None:
    """Publish the chain of a dispatched run, extractions ahead, and a later look where the head is not ready.

    Raises BrokerDown.
    """
    with publishing():
        if dispatched.run_id is not None:
            queue = STAGE_QUEUE[dispatched.lane].value
            arguments = (str(dispatched.run_id), dispatched.fence)
            links = [
                signature(STAGE_TASKS[stage].value, args=arguments, immutable=True, app=app).set(queue=queue)
                for stage in dispatched.stages
            ]
            (chain(*links, app=app) if len(links) > 1 else links[0]).apply_async()
        for run_id, lane in dispatched.ahead:
            app.send_task(TaskName.EXTRACT_AHEAD.value, args=(str(run_id),), queue=AHEAD_QUEUE[lane].value)
    if dispatched.wait is not None:
        send_dispatch(dispatched.agent_id, countdown=dispatched.wait + 0.01)


def send_dispatch(agent_id: str, countdown: float | None = None) -> None:
    """Publish a dispatch of ``agent_id``, ``countdown`` seconds from now (RabbitMQ: in whole seconds, rounded up).

    Raises BrokerDown.
    """
    if countdown is not None and is_rabbitmq(app.conf.broker_url):
        countdown = math.ceil(countdown)  # its delayed queues know no less, and less than one is an error
    with publishing():
        app.send_task(TaskName.DISPATCH.value, args=(agent_id,), queue=QueueName.TURNS.value, countdown=countdown)


def run_alone(stage: Stage, run_id: str, fence: int | None) -> Outcome:
    """Run the stage in a process of its own: a message that kills its process takes no other along."""
    command = [sys.executable, "-m", "worker.turns.alone", stage.value, run_id, "" if fence is None else str(fence)]
    try:
        ended = subprocess.run(
            command, stdout=subprocess.PIPE, timeout=ALONE_SECONDS, check=False, env=dict(os.environ)
        )
    except subprocess.TimeoutExpired:
        return blame(UUID(run_id), fence)
    if ended.returncode < 0 and -ended.returncode not in _ASKED_TO_END:
        return blame(UUID(run_id), fence)
    if ended.returncode != 0:
        return Stale()  # its lease ends, the sweeper finds it, and the death is counted
    kinds: dict[str, Any] = {kind.__name__: kind for kind in (Moved, Applied, Waiting, Parked, Stale)}
    told = json.loads(ended.stdout.decode().strip().splitlines()[-1])
    outcome: Outcome = kinds[told.pop("kind")](**told)
    return outcome
