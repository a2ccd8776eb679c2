"""Changing an agent's memory by hand, under the lock of its turn: never while a run is at work, never half.

The turn is free between two runs. What an unfinished message had settled already (whom it means, what is new) was
settled against the memory as it was, so it is settled anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from worker.db import engine

T = TypeVar("T")

LOOK_AGAIN_SEC = 0.05

# Waits for whoever is just finishing: the row is locked by the commit that frees the turn.
LOCK_TURN = text("SELECT run_id IS NULL AS free FROM agent_turns WHERE agent_id = :agent_id FOR NO KEY UPDATE")
# Invariant: no plan that was made against another memory is applied. What was extracted is kept; calls that were sent
# and got no reply stay noted.
PLAN_ANEW = text("""
WITH anew AS (
  UPDATE runs r SET stage = 'resolve', starts = 0, failures = 0, waits = 0, fallback = NULL
    FROM run_plans p
   WHERE r.agent_id = :agent_id AND r.finished_at IS NULL AND r.kind = 'message' AND p.run_id = r.id
     AND (p.resolution IS NOT NULL OR r.stage = 'resolve')
  RETURNING r.id
)
UPDATE run_plans p SET resolution = NULL, reconciliation = NULL, replies = '{}' FROM anew WHERE p.run_id = anew.id
""")
CHANGED = text("UPDATE agent_turns SET version = version + 1 WHERE agent_id = :agent_id")


class TurnTaken(Exception):
    """The agent was at work all the time."""


class UnknownAgent(Exception):
    """Nothing was ever accepted for the agent."""


def by_hand(agent_id: str, change: Callable[[Session], T], *, wait: float = 30.0, bind: Engine | None = None) -> T:
    """Run ``change`` in a transaction of its own under the lock of the agent's turn, and return what it returns.

    Waits up to ``wait`` seconds for the turn to be free. Raises TurnTaken, UnknownAgent, and what ``change`` raises:
    then nothing was changed.
    """
    deadline = time.monotonic() + wait
    given = {"agent_id": agent_id}
    while True:
        with Session(bind or engine()) as session, session.begin():
            free = session.execute(LOCK_TURN, given).scalar_one_or_none()
            if free is None:
                raise UnknownAgent
            if free:
                result = change(session)
                session.execute(PLAN_ANEW, given)
                session.execute(CHANGED, given)
                return result
        if time.monotonic() >= deadline:
            raise TurnTaken
        time.sleep(LOOK_AGAIN_SEC)
