"""What each start of a stage leaves behind for ``mandua trace``: its calls, and how it ended (issue 8).

An entry is a JSON object: ``run``, ``stage``, ``begun_at``, ``outcome`` (planned, applied, waits, parked), ``calls``;
``fallback``, ``cause``, ``code``, ``delay`` where there are any; ``steps``, the PipelineTrace, once applied.
"""

from __future__ import annotations

import json
from typing import Any

from worker.settings import settings
from worker.turns.hold import Start
from worker.write.told import ToldCalls

NOTHING = "[]"


def told(start: Start, calls: ToldCalls, outcome: str, **more: Any) -> str:
    """The entry of a start as a JSON list of one; an empty list where MANDUA_KEEP_TRACES is 0."""
    if not settings().keep_traces:
        return NOTHING
    entry = {
        "run": str(start.hold.run_id),
        "stage": start.hold.stage.value,
        "ahead": start.hold.ahead,
        "begun_at": start.row.begun_at.isoformat(),
        "attempt": int(start.row.attempts),
        "outcome": outcome,
        "calls": calls.calls(),
        "calls_left_out": calls.left_out,
        **{name: value for name, value in more.items() if value is not None},
    }
    return json.dumps([entry], ensure_ascii=False, default=str)
