"""Dispatch: give an agent's turn to its next run.

Called after every commit that frees, parks, finishes or accepts something, and by the sweeper; calling it once too
often does no harm. It decides in one short transaction and returns what is to be published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.engine import Connection, Engine

from producer.queues import RUN_STAGES, Lane, Stage
from worker.db import autocommit, engine, sql
from worker.turns.life import LIVING, periods

# How many later runs of a lane may be extracted while the head is at work.
LOOKAHEAD = {Lane.LIVE: 4, Lane.BULK: 16, Lane.JOB: 0}

# A task that nobody has begun for ``resend_after_sec`` is taken for lost and sent again under the same fence (twice as
# long each time, so that a slow queue is not flooded). Whoever begins first takes the start; the other finds it taken.
UNDER_WAY = """
t.dispatched_at > mandua_now()
  - make_interval(secs => CAST(:resend_after AS double precision) * power(2, least(t.redispatches, 6)))
"""

HOLDER = f"""
       CASE WHEN t.run_id IS NULL THEN 'free'
            WHEN t.stage_token IS NULL THEN
              CASE WHEN {UNDER_WAY} THEN 'held' ELSE 'lost' END
            WHEN t.lease_until > mandua_now() AND {LIVING} THEN 'held'
            ELSE 'dead' END"""

# Invariant: one dispatcher at a time holds the turn's row. next_seq is read before the runs are.
LOCK_TURN = f"""
SELECT t.run_id, t.fence, t.stage_token, s.next_seq, {HOLDER} AS holder
  FROM agent_turns t
  JOIN agent_seq s ON s.agent_id = t.agent_id
  LEFT JOIN workers w ON w.name = t.worker
 WHERE t.agent_id = :agent
   FOR NO KEY UPDATE OF t
"""  # noqa: S608

# Invariant: accepted order is (lane, seq); the first row is the only one that may take the turn.
NEXT_RUNS = f"""
SELECT r.id, r.lane, r.stage, r.state, r.ahead_sent_at IS NOT NULL AS ahead_sent, r.ahead_token,
       r.ahead_until > mandua_now() AND {LIVING} AS ahead_living,
       extract(epoch FROM r.ready_at - mandua_now()) AS wait
  FROM runs r LEFT JOIN workers w ON w.name = r.ahead_worker
 WHERE r.agent_id = :agent AND r.finished_at IS NULL
 ORDER BY r.lane, r.seq LIMIT :many
"""  # noqa: S608

# Invariant: the fence only grows, and each holder of the turn has one of its own.
TAKE_TURN = """
UPDATE agent_turns SET run_id = :run, fence = fence + 1, stage_token = NULL, worker = NULL, lease_until = NULL,
       dispatched_at = mandua_now(), redispatches = 0
 WHERE agent_id = :agent RETURNING fence
"""
# Invariant: the head runs only if no living extraction-ahead is at work on it (its token is the one we judged).
START_RUN = """
UPDATE runs SET state = 'running', ahead_token = NULL, ahead_worker = NULL, ahead_until = NULL, ready_at = NULL
 WHERE id = :run AND finished_at IS NULL AND ahead_token IS NOT DISTINCT FROM CAST(:ahead_token AS uuid)
"""
SEND_AGAIN = """
UPDATE agent_turns SET dispatched_at = mandua_now(), redispatches = redispatches + 1 WHERE agent_id = :agent
"""
MARK_AHEAD = "UPDATE runs SET ahead_sent_at = mandua_now() WHERE id = ANY (:runs)"

# Invariant: wake_at is cleared or put off only if nothing was accepted since the runs were read.
SET_WAKE = """
UPDATE agent_seq SET wake_at = mandua_now() + make_interval(secs => CAST(:wait AS double precision))
 WHERE agent_id = :agent AND next_seq = :next_seq
"""


# Whether a dispatch finds nothing to do: the turn is held, so that its end dispatches anew, and sees what is committed
# by now; and no extraction is due ahead (as ``_ahead`` has it).
BUSY = f"""
SELECT {HOLDER} = 'held' AND NOT EXISTS (
         SELECT FROM (SELECT u.*, row_number() OVER (ORDER BY u.lane, u.seq) - 1 AS place FROM runs u
                       WHERE u.agent_id = :agent AND u.finished_at IS NULL ORDER BY u.lane, u.seq LIMIT :many) r
          WHERE r.place <= CASE r.lane WHEN :live THEN :many_live WHEN :bulk THEN :many_bulk ELSE 0 END
            AND r.stage = 'extract' AND r.state = 'accepted' AND r.ahead_sent_at IS NULL
            AND (r.ready_at IS NULL OR r.ready_at <= mandua_now()))
  FROM agent_turns t LEFT JOIN workers w ON w.name = t.worker WHERE t.agent_id = :agent
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What is to be published: the chain of a run from ``stages`` on, and runs whose extraction may go ahead.

    ``wait`` is in seconds, set when the head is not ready yet.
    """

    agent_id: str
    run_id: UUID | None = None
    fence: int = 0
    lane: Lane = Lane.LIVE
    stages: tuple[Stage, ...] = ()
    ahead: Sequence[tuple[UUID, Lane]] = field(default=())
    wait: float | None = None


def is_busy(agent_id: str, bind: Engine | None = None) -> bool:
    """Whether the agent needs no dispatch, which its caller has to ask after its own commit; one statement.

    Where producers hand in faster than anybody can read, dispatches that find nothing to do would take the place of the
    work itself.
    """
    bound = {
        "agent": agent_id, "live": int(Lane.LIVE), "many_live": LOOKAHEAD[Lane.LIVE], "bulk": int(Lane.BULK),
        "many_bulk": LOOKAHEAD[Lane.BULK], "many": 1 + max(LOOKAHEAD.values()), **periods(),
    }  # fmt: skip
    with autocommit(bind) as connection:
        return bool(connection.execute(sql(BUSY), bound).scalar())


def dispatch(agent_id: str, bind: Engine | None = None) -> Dispatched:
    """Give the turn of ``agent_id`` to its head if it is free, or its holder dead.

    Raises OperationalError (lock timeout, connection): the caller sends the dispatch again, and the sweeper would.
    """
    with (bind or engine()).begin() as connection:
        connection.execute(text("SET LOCAL lock_timeout = '2s'"))
        turn = connection.execute(sql(LOCK_TURN), {"agent": agent_id, **periods()}).one_or_none()
        if turn is None:
            return Dispatched(agent_id)
        runs = connection.execute(
            sql(NEXT_RUNS), {"agent": agent_id, "many": 1 + max(LOOKAHEAD.values()), **periods()}
        ).all()
        taken = _take(connection, agent_id, turn, runs)
        ahead = _ahead(connection, runs, None if taken is None else taken[0].id)
    if turn.holder == "free" and taken is None:
        wait = float(runs[0].wait) if runs and runs[0].wait is not None and runs[0].wait > 0 else None
        if wait is not None or not runs:
            with (bind or engine()).begin() as connection:
                connection.execute(sql(SET_WAKE), {"agent": agent_id, "next_seq": turn.next_seq, "wait": wait})
        return Dispatched(agent_id, ahead=ahead, wait=wait)
    if taken is None:
        return Dispatched(agent_id, ahead=ahead)
    head, fence = taken
    stage = Stage(head.stage)
    stages = (stage,) if stage is Stage.JOB else RUN_STAGES[RUN_STAGES.index(stage) :]
    return Dispatched(agent_id, head.id, fence, Lane(head.lane), stages, ahead)


def _take(
    connection: Connection, agent_id: str, turn: Row[Any], runs: Sequence[Row[Any]]
) -> tuple[Row[Any], int] | None:
    """The run that gets the turn, with its fence; None if the turn stays as it is."""
    if turn.holder == "held" or not runs:
        return None
    if turn.holder == "lost":
        head = next((run for run in runs if run.id == turn.run_id), None)
        if head is not None:
            connection.execute(sql(SEND_AGAIN), {"agent": agent_id})
            return head, int(turn.fence)
    head = runs[0]
    if head.wait is not None and head.wait > 0:
        return None
    if head.stage == Stage.EXTRACT and head.ahead_token is not None and head.ahead_living:
        return None  # its extraction is at work ahead; the end of it dispatches
    started = connection.execute(sql(START_RUN), {"run": head.id, "ahead_token": head.ahead_token})
    if started.rowcount == 0:
        return None
    fence = connection.execute(sql(TAKE_TURN), {"agent": agent_id, "run": head.id}).scalar_one()
    return head, int(fence)


def _ahead(connection: Connection, runs: Sequence[Row[Any]], taken: UUID | None) -> list[tuple[UUID, Lane]]:
    """Runs whose extraction is to be sent ahead now, each once: those behind the one that has or just got the turn, and
    a live one that an older turn of another lane keeps waiting."""
    chosen = [
        (run.id, Lane(run.lane))
        for place, run in enumerate(runs)
        if place <= LOOKAHEAD[Lane(run.lane)]
        and run.id != taken
        and run.stage == Stage.EXTRACT
        and run.state == "accepted"
        and not run.ahead_sent
        and not (run.wait is not None and run.wait > 0)
    ]
    if chosen:
        connection.execute(sql(MARK_AHEAD), {"runs": [run for run, _ in chosen]})
    return chosen
