"""Pending operations: what waits for the user's yes, one per agent, for five minutes (behaviour: 10).

They stand in Postgres with their expiry, so that every process sees them and a restart does not lose them: in the
caller's ``session`` where one is given, else in DATABASE_URL's database. Without a database they are kept in memory.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import Connection
from sqlalchemy.orm import Session

from worker.db import autocommit
from worker.settings import settings

TTL_SECONDS = 300.0

# Invariant: an agent has one pending operation; a new one takes the place of the old.
SAVE = """
INSERT INTO pending_operations (agent_id, kind, payload, expires_at)
VALUES (:agent, :kind, CAST(:payload AS jsonb), mandua_now() + make_interval(secs => CAST(:ttl AS double precision)))
ON CONFLICT (agent_id) DO UPDATE
   SET kind = excluded.kind, payload = excluded.payload, expires_at = excluded.expires_at
"""
FIND = "SELECT payload FROM pending_operations WHERE agent_id = :agent AND expires_at > mandua_now()"
CLEAR = "DELETE FROM pending_operations WHERE agent_id = :agent"

_lock = threading.Lock()
_memory: dict[str, tuple[float, dict[str, Any]]] = {}


def save_pending_selection(
    agent_id: str,
    intent: str,
    transactions: Sequence[Any],
    confirmation_text: str,
    edit_params: dict[str, Any] | None = None,
    *,
    session: Session | None = None,
) -> None:
    """Keep a choice that waits for the user: ``intent`` (delete, edit, …) on one of ``transactions`` (JSON values).

    >>> save_pending_selection("ana", "delete", [{"id": 7}], "Delete the trip to Natal?")
    >>> get_pending("ana")["intent"]
    'delete'
    """
    _save(
        agent_id, "selection",
        {"type": "selection", "intent": intent, "transactions": list(transactions),
         "confirmation_text": confirmation_text, "edit_params": edit_params},
        session,
    )  # fmt: skip


def save_pending_execution(
    agent_id: str,
    tool_calls: Sequence[Any],
    search_result: str,
    confirmation_text: str,
    *,
    session: Session | None = None,
) -> None:
    """Keep a destructive operation that was held back: the ``tool_calls`` (JSON values) and what was found for them.

    >>> save_pending_execution("ana", [{"name": "forget"}], "1 fact", "Forget it?")
    >>> get_pending("ana")["type"]
    'execution'
    """
    _save(
        agent_id, "execution",
        {"type": "execution", "tool_calls": list(tool_calls), "search_result": search_result,
         "confirmation_text": confirmation_text},
        session,
    )  # fmt: skip


def get_pending(agent_id: str, *, session: Session | None = None) -> dict[str, Any] | None:
    """The pending operation of an agent, with its ``type``; None if there is none or its five minutes are over.

    >>> get_pending("nobody-yet") is None
    True
    """
    with _database(session) as connection:
        if connection is None:
            with _lock:
                until, payload = _memory.get(agent_id, (0.0, {}))
                return dict(payload) if time.monotonic() < until else None
        found: dict[str, Any] | None = connection.execute(text(FIND), {"agent": agent_id}).scalar_one_or_none()
        return found


def clear_pending(agent_id: str, *, session: Session | None = None) -> None:
    """Forget the pending operation: it was carried out or called off.

    >>> clear_pending("ana")
    >>> get_pending("ana") is None
    True
    """
    with _database(session) as connection:
        if connection is None:
            with _lock:
                _memory.pop(agent_id, None)
        else:
            connection.execute(text(CLEAR), {"agent": agent_id})


def _save(agent_id: str, kind: str, payload: dict[str, Any], session: Session | None) -> None:
    with _database(session) as connection:
        if connection is None:
            with _lock:
                _memory[agent_id] = (time.monotonic() + TTL_SECONDS, json.loads(json.dumps(payload)))
            return
        parameters = {"agent": agent_id, "kind": kind, "payload": json.dumps(payload), "ttl": TTL_SECONDS}
        connection.execute(text(SAVE), parameters)


@contextmanager
def _database(session: Session | None) -> Iterator[Connection | Session | None]:
    """The caller's session, else the configured database, each statement committed; None without either."""
    if session is not None:
        yield session
    elif settings().database_url is not None:
        with autocommit() as connection:
            yield connection
    else:
        yield None
