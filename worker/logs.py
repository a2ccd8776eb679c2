"""Logs: one JSON object a line, with ids and coded causes, never a message's text.

The agent is shown hashed unless MANDUA_LOG_AGENTS=1, because an agent id is often an e-mail address.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, TypeVar
from uuid import UUID

import structlog

T = TypeVar("T")

log = structlog.get_logger()


def set_up(level: str = "INFO") -> None:
    """Send structlog and the standard library's loggers to standard error as JSON lines."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _hash_agent,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(ensure_ascii=False),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # Celery tells of each task that it came and that it ended; a stage's own two lines say more.
    for name in ("celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # These quote requests, replies or SQL parameters at INFO or DEBUG; none of that may reach a log.
    for name in ("LiteLLM", "litellm", "httpx", "httpcore", "openai", "sqlalchemy", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)


@contextmanager
def stage(run_id: UUID, event_id: UUID | None, agent_id: str, name: str) -> Iterator[Callable[[T], T]]:
    """The life of a stage as two lines: ``stage_started``, and how it ended, with milliseconds.

    The block hands its outcome through the function it is given: ``stage_done`` (Moved, Applied), ``stage_waiting`` and
    ``stage_parked`` with cause and code, ``stage_dropped`` (somebody else has the turn by now, or is given it). Every
    line that is logged meanwhile carries run, event_id, stage and agent as well.
    """
    begun = time.perf_counter()
    # Not "event": under that name structlog keeps the line's own words, and an id bound to it would never show.
    ids = {"run": str(run_id), "agent": agent_id, "stage": name}
    if event_id is not None:
        ids["event_id"] = str(event_id)
    with structlog.contextvars.bound_contextvars(**ids):
        log.info("stage_started")

        def told(outcome: T) -> T:
            event, fields = _END.get(type(outcome).__name__, ("stage_dropped", ()))
            shown = {field: getattr(outcome, field) for field in fields}
            log.info(event, ms=round((time.perf_counter() - begun) * 1000, 1), **shown)
            return outcome

        yield told


# By name: the outcomes are those of worker.turns.running, which logs through here.
_END: dict[str, tuple[str, tuple[str, ...]]] = {
    "Moved": ("stage_done", ()),
    "Applied": ("stage_done", ("status",)),
    "Waiting": ("stage_waiting", ("cause", "error_code", "delay")),
    "Parked": ("stage_parked", ("cause", "error_code")),
}


def _hash_agent(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    agent = event.get("agent")
    if isinstance(agent, str) and os.environ.get("MANDUA_LOG_AGENTS") != "1":
        event["agent"] = hashlib.blake2b(agent.encode(), digest_size=6).hexdigest()
    return event
