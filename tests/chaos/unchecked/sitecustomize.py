"""The negative control of the chaos test: first on the workers' PYTHONPATH, it takes the checks out of the ledger.

Python imports it at start. As soon as ``worker.turns.hold`` is loaded, its statements lose every condition that asks
whether a start still has the right to write: fence, start token, whose turn it is, and whether the run is finished.
What is left is a chain of Celery tasks with retries. A condition that is no longer found in the source is an error,
since a control that controls nothing would pass unnoticed.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from types import ModuleType

HOLD = "worker.turns.hold"
CONDITIONS = {
    "BEGIN": (
        " AND t.run_id = r.id AND t.fence = :fence\n"
        "     AND r.stage = :stage AND r.finished_at IS NULL AND t.stage_token IS NULL"
    ),
    "_MINE": " AND run_id = :run AND fence = :fence AND stage_token = :token",
    "_RELEASE_STAGE": " AND run_id = :run AND fence = :fence AND stage_token = :token",
    "_FREE_TURN": " AND run_id = :run AND fence = :fence AND stage_token = :token",
    "FINISH_TURN": " AND run_id = :run AND fence = :fence AND stage_token = :token",
    "_ADVANCE": " AND stage = :stage AND finished_at IS NULL",
    "FINISH_RUN": " AND finished_at IS NULL",
}
RESULT_ONCE = ("CAST(:told AS jsonb))\n)", "CAST(:told AS jsonb)) ON CONFLICT DO NOTHING\n)")


def _without_checks(module: ModuleType) -> None:
    for name, condition in CONDITIONS.items():
        statement = getattr(module, name)
        if condition not in statement:
            raise ImportError(f"{HOLD}.{name} has another condition; see {__file__}")
        setattr(module, name, statement.replace(condition, ""))
    module.FINISH_RUN = module.FINISH_RUN.replace(*RESULT_ONCE)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds ``worker.turns.hold`` where the others find it, and changes it once it is loaded."""

    def find_spec(self, fullname, path=None, target=None):  # noqa: ARG002
        if fullname != HOLD:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def load_and_change(module: ModuleType) -> None:
            load(module)
            _without_checks(module)

        spec.loader.exec_module = load_and_change
        return spec


sys.meta_path.insert(0, _Finder())
