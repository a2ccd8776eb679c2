"""What an error means for a run: its cause, coded."""

from __future__ import annotations

import traceback

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from worker.llm.provider import ModelError
from worker.write.calls import EmbeddingError
from worker.write.policy import DATABASE, OWN_ERROR


def classify(error: Exception) -> tuple[str, str, float | None]:
    """Cause, coded detail and Retry-After in seconds of an error. The detail never quotes a text."""
    if isinstance(error, EmbeddingError):
        return error.cause.value, f"embedding {error}", error.retry_after
    if isinstance(error, ModelError):
        return error.cause.value, str(error), error.retry_after
    if isinstance(error, DBAPIError):
        state = getattr(error.orig, "sqlstate", None)
        broken = state is None and isinstance(error, (OperationalError, InterfaceError))  # no word from the server
        gone = error.connection_invalidated or broken or (state or "")[:2] in ("08", "40", "53", "55", "57")
        return (DATABASE if gone else OWN_ERROR), f"{type(error.orig).__name__} {state or ''}".strip(), None
    return OWN_ERROR, f"{type(error).__name__} at {_where(error)}", None


def _where(error: Exception) -> str:
    """File, line and function of our own innermost frame: enough to find a bug, and no value of anybody's."""
    place = "unknown"
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = frame.f_globals.get("__name__", "")
        if module.startswith("worker."):
            place = f"{module}:{line} {frame.f_code.co_name}"
    return place
