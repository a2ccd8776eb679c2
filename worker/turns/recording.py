"""Recording a message that came over the queue."""

from __future__ import annotations

from typing import Any

import psycopg
from pydantic import ValidationError
from sqlalchemy.exc import OperationalError

from producer.accepting import accept
from producer.contract import ENVELOPE
from worker.db import autocommit, engine, sql

# Invariant: a producer that asks for the acceptance of a refused message finds the cause.
REFUSE = """
INSERT INTO failed_records (event_id, agent_id, cause) VALUES (:event, :agent, :cause) ON CONFLICT DO NOTHING
"""


class RecordRefused(Exception):
    """A message that can never be recorded; ``str()`` is its cause, coded."""


def record(envelope: dict[str, Any]) -> str | None:
    """Record one message; returns the agent to dispatch, or None where nothing was added (a duplicate).

    Raises RecordRefused (``conflict``, ``malformed``) and OperationalError when the database does not answer.
    """
    try:
        item = ENVELOPE.validate_python(envelope)
    except ValidationError:
        raise RecordRefused("malformed") from None
    with engine().connect() as connection:
        driver = connection.connection.driver_connection
        if driver is None:
            raise RecordRefused("no_driver")
        try:
            (acceptance,) = accept(driver, [item])
            connection.connection.commit()
        except psycopg.Error as error:
            connection.invalidate()
            raise OperationalError("accept_events", None, error) from None
    if acceptance.outcome == "accepted":
        return item.request.agent_id
    if acceptance.outcome == "duplicate":
        return None
    with autocommit() as connection:
        connection.execute(
            sql(REFUSE), {"event": item.event_id, "agent": item.request.agent_id, "cause": acceptance.outcome}
        )
    raise RecordRefused(acceptance.outcome)
