"""Life signs: each worker process touches its row every few seconds; a lease names its worker.

A worker that was silent for ``silent_after_sec`` is dead, whatever its leases say. The beating thread starts with the
first use in a process, so it lives in prefork children and in a process of threads alike.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from worker.db import autocommit, sql
from worker.settings import settings

# SQL fragments, bound with ``periods()``: which worker still lives, and until when a lease lasts.
LIVING = "w.heartbeat_at > mandua_now() - make_interval(secs => CAST(:silent_after AS double precision))"
LEASE_END = "mandua_now() + make_interval(secs => CAST(:lease AS double precision))"

# Invariant: heartbeat_at only grows, by the database's clock.
BEAT = """
INSERT INTO workers (name) VALUES (:name)
ON CONFLICT (name) DO UPDATE SET heartbeat_at = greatest(workers.heartbeat_at, mandua_now())
"""
LEAVE = "DELETE FROM workers WHERE name = :name"
# Invariant: only starts whose process has said itself that they are over. Their leases end, so that the sweeper goes on
# from there as after a death.
END_STARTS = """
WITH turns AS (UPDATE agent_turns SET lease_until = mandua_now() WHERE stage_token = ANY(:tokens))
UPDATE runs SET ahead_until = mandua_now() WHERE ahead_token = ANY(:tokens)
"""

STUCK_LEASES = 5.0  # a stage of many chunks renews its lease; one start that lasts longer than so many is stuck
STUCK_EXIT = 70
LAST_BEAT = 10.0  # seconds: longer than a beat takes that must wait for its connection

log = structlog.get_logger()
_starts: dict[UUID, float] = {}
_lost: set[UUID] = set()
_lock = threading.Lock()
_current: tuple[int, str, threading.Event, threading.Thread] | None = None


def periods() -> dict[str, float]:
    """The parameters of LIVING and LEASE_END, and how long a task may stay unbegun; in seconds."""
    chosen = settings()
    return {
        "silent_after": chosen.silent_after_sec,
        "lease": chosen.lease_sec,
        "resend_after": chosen.resend_after_sec,
    }


@contextmanager
def at_work(token: UUID) -> Iterator[None]:
    """While inside, the beating thread watches that this start does not last for ever."""
    _starts[token] = time.monotonic()
    try:
        yield
    finally:
        _starts.pop(token, None)


def lose(token: UUID) -> None:
    """Note a start that is over although the database could not be told, or whose beginning it did not confirm.

    The next beat ends its lease, which would hold its agent up although nobody is at work.
    """
    _lost.add(token)


def worker_name() -> str:
    """The name of this process in leases, unique to this start of it. The first call begins to beat.

    Raises SQLAlchemyError when the database does not answer the first beat: a worker without life signs would be
    taken for dead while it works.
    """
    global _current
    with _lock:
        if _current is None or _current[0] != os.getpid():
            name = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
            _beat(name)
            stop = threading.Event()
            beating = threading.Thread(target=_keep_beating, args=(name, stop), name="life-signs", daemon=True)
            beating.start()
            _current = (os.getpid(), name, stop, beating)
        return _current[1]


def leave() -> None:
    """Stop beating and take this process off the list, so that nobody waits for it. Errors are only logged."""
    global _current
    with _lock:
        if _current is None or _current[0] != os.getpid():
            return
        _, name, stop, beating = _current
        stop.set()
        beating.join(LAST_BEAT)  # a beat under way would put this process on the list again
        _current = None
    try:
        with autocommit() as connection:
            connection.execute(sql(LEAVE), {"name": name})
    except SQLAlchemyError as error:
        log.warning("worker_leave_failed", error=type(error).__name__)


def _beat(name: str) -> None:
    with autocommit() as connection:
        connection.execute(sql(BEAT), {"name": name})
        if over := list(_lost):
            connection.execute(sql(END_STARTS), {"tokens": over})
            _lost.difference_update(over)


def _keep_beating(name: str, stop: threading.Event) -> None:
    while not stop.wait(settings().heartbeat_sec):
        _end_if_stuck()
        try:
            _beat(name)
        except SQLAlchemyError as error:
            log.warning("heartbeat_failed", error=type(error).__name__)


def _end_if_stuck() -> None:
    """End the process when a slot is stuck: every outside call has a deadline, so this is a fault of ours, and threads
    cannot be ended one by one. The runs at work are found by the sweeper; whatever runs the process starts it again."""
    longest = STUCK_LEASES * settings().lease_sec
    begun = min(_starts.values(), default=None)
    if begun is not None and time.monotonic() - begun > longest:
        log.error("stuck_slot_ends_the_worker", seconds=round(time.monotonic() - begun))
        os._exit(STUCK_EXIT)
