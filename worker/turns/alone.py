"""One stage of one run in a process of its own: ``python -m worker.turns.alone STAGE RUN_ID FENCE``.

Prints the outcome as one JSON line. The worker that started it tells Celery.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from uuid import UUID

from producer.queues import Stage
from worker import logs
from worker.turns.life import leave
from worker.turns.running import Stale, run_stage


def main(arguments: list[str]) -> int:
    """Run the stage named by ``arguments``; 0 unless the process dies."""
    logs.set_up()
    stage, run_id, fence = arguments
    outcome = run_stage(Stage(stage), UUID(run_id), int(fence) if fence else None, alone=True)
    told = {} if isinstance(outcome, Stale) else asdict(outcome)
    print(json.dumps({"kind": type(outcome).__name__, **told}))
    leave()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
