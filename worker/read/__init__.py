"""Reading the memory and its ledger. Each function takes an open connection or session and returns plain rows.

Rows are dictionaries whose keys are the column names, so that the CLI's JSON, an export and a test all say the same
word for the same thing. asyncio callers use ``await async_session.run_sync(get_facts, …)``. The names below load when
they are first used; the ledger of runs is in ``worker.read.ledger``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from worker.read.chronicle import history, timeline
    from worker.read.entities import get_entity
    from worker.read.facts import get_facts
    from worker.read.finding import note_used, search, search_words
    from worker.read.graph import neighbours
    from worker.read.traces import trace

_HOME = {
    "chronicle": ("history", "timeline"),
    "entities": ("get_entity",),
    "facts": ("get_facts",),
    "finding": ("note_used", "search", "search_words"),
    "graph": ("neighbours",),
    "traces": ("trace",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "get_entity",
    "get_facts",
    "history",
    "neighbours",
    "note_used",
    "search",
    "search_words",
    "timeline",
    "trace",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"worker.read.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
