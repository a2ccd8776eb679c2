"""Care of the ledger itself, and the background jobs."""

from __future__ import annotations

from producer.queues import Stage, TaskName
from worker.app import app
from worker.maintenance import planning
from worker.tasks.base import StageTask, send_dispatch
from worker.turns import sweep


@app.task(name=TaskName.CLEAN_UP.value)
def clean_up() -> None:
    """Remove what is kept no longer, and fold what finished into the totals."""
    sweep.clean_up()


@app.task(name=TaskName.PLAN_JOBS.value)
def plan_jobs() -> None:
    """Give each job that is due a run in its agent's last lane."""
    for agent_id in planning.plan_jobs():
        send_dispatch(agent_id)


@app.task(base=StageTask, bind=True, name=TaskName.JOB_STEP.value)
def job_step(self: StageTask, run_id: str, fence: int) -> None:
    """One bounded step of a job."""
    self.run_stage(Stage.JOB, run_id, fence)
