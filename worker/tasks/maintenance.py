"""Care of the ledger itself."""

from __future__ import annotations

from producer.queues import TaskName
from worker.app import app
from worker.turns import sweep


@app.task(name=TaskName.CLEAN_UP.value)
def clean_up() -> None:
    """Remove what is kept no longer, and fold what finished into the totals."""
    sweep.clean_up()
