"""Dispatch and the sweeper."""

from __future__ import annotations

from producer.queues import TaskName
from worker.app import app
from worker.tasks.base import send_dispatch, wake
from worker.turns import sweep as sweeping


@app.task(name=TaskName.DISPATCH.value)
def dispatch(agent_id: str) -> None:
    """Give the agent's turn to its next run."""
    wake(agent_id, unless_busy=True)


@app.task(name=TaskName.SWEEP.value)
def sweep() -> None:
    """Dispatch the agents that everybody else forgot."""
    for agent_id in sweeping.due_agents():
        send_dispatch(agent_id)
    sweeping.note_sweep()
