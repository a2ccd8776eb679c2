"""The four stages of a run, and extraction ahead of the turn."""

from __future__ import annotations

from uuid import UUID

from producer.queues import Stage, TaskName
from worker.app import app
from worker.tasks.base import StageTask
from worker.turns import dry


@app.task(base=StageTask, bind=True, name=TaskName.EXTRACT.value)
def extract(self: StageTask, run_id: str, fence: int) -> None:
    """What does the message say?"""
    self.run_stage(Stage.EXTRACT, run_id, fence)


@app.task(base=StageTask, bind=True, name=TaskName.EXTRACT_AHEAD.value)
def extract_ahead(self: StageTask, run_id: str) -> None:
    """The same, ahead of the turn."""
    self.run_stage(Stage.EXTRACT, run_id, None)


@app.task(base=StageTask, bind=True, name=TaskName.RESOLVE.value)
def resolve(self: StageTask, run_id: str, fence: int) -> None:
    """Who is meant?"""
    self.run_stage(Stage.RESOLVE, run_id, fence)


@app.task(base=StageTask, bind=True, name=TaskName.RECONCILE.value)
def reconcile(self: StageTask, run_id: str, fence: int) -> None:
    """What is new, changed, known, withdrawn?"""
    self.run_stage(Stage.RECONCILE, run_id, fence)


@app.task(base=StageTask, bind=True, name=TaskName.UPSERT.value)
def upsert(self: StageTask, run_id: str, fence: int) -> None:
    """Apply the plan, mark the run done, pass the turn on."""
    self.run_stage(Stage.UPSERT, run_id, fence)


@app.task(name=TaskName.DRY_RUN.value)
def dry_run(run_id: str) -> None:
    """What would be extracted, for somebody who waits for it."""
    dry.dry_run(UUID(run_id))
