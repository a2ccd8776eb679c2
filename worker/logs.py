"""Logs: one JSON object a line, with ids and coded causes, never a message's text.

The agent is shown hashed unless MANDUA_LOG_AGENTS=1, because an agent id is often an e-mail address.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog


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
    # These quote requests, replies or SQL parameters at INFO or DEBUG; none of that may reach a log.
    for name in ("LiteLLM", "litellm", "httpx", "httpcore", "openai", "sqlalchemy", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _hash_agent(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    agent = event.get("agent")
    if isinstance(agent, str) and os.environ.get("MANDUA_LOG_AGENTS") != "1":
        event["agent"] = hashlib.blake2b(agent.encode(), digest_size=6).hexdigest()
    return event
