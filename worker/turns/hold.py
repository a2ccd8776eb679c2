"""Holding a run: begin a stage, keep its replies, store its plan, give it back, park it.

A Hold is the right to write for one start of one stage. It is either the agent's turn (fence and start token in
``agent_turns``) or, for extraction ahead of the turn, a token on the run itself. Every statement here checks the hold
and changes state in one go, so a worker that was thought dead and comes back writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Row
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from producer.queues import Stage
from worker.db import autocommit, sql
from worker.turns.life import LEASE_END, lose, periods, worker_name
from worker.turns.limits import Cooling


class LostHold(Exception):
    """Somebody else has the turn by now; what this start would have written is dropped, quietly."""


@dataclass(frozen=True, slots=True)
class Hold:
    """One start of one stage of one run. ``fence`` is None for extraction ahead of the turn."""

    run_id: UUID
    agent_id: str
    stage: Stage
    token: UUID
    fence: int | None

    @property
    def ahead(self) -> bool:
        """Whether this start works ahead of its turn."""
        return self.fence is None

    def parameters(self, **more: Any) -> dict[str, Any]:
        """What every checked statement needs."""
        return {"run": self.run_id, "agent": self.agent_id, "stage": self.stage.value, "token": self.token,
                "fence": self.fence, **periods(), **more}


@dataclass(frozen=True, slots=True)
class Bill:
    """The run's whole usage (JSON), and what this start has added to it: tokens (those that were paid for nothing
    included), and US dollars where priced."""

    usage: str = "{}"
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    def parameters(self) -> dict[str, Any]:
        """What the statements that store it need."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Start:
    """A begun stage: the hold and everything the stage needs to know, read in the same statement."""

    hold: Hold
    row: Row[Any]

    @property
    def deaths(self) -> int:
        """How many earlier starts of this stage ended without a word."""
        return int(self.row.starts) - 1


_RUN_COLUMNS = """
  run.starts, run.attempts, run.failures, run.waits, run.fallback, run.request, run.usage, run.timings, run.lane,
  run.created_at, e.id AS event_id, run.agent_id, run.job, e.message, e.speaker_name, e.role, e.source, e.session_id,
  e.occurred_at, e.offset_minutes, p.extraction, p.resolution, p.reconciliation, p.vector_texts, p.vectors, p.replies,
  p.sent, p.memory_version, mandua_now() AS begun_at, coalesce(s.input_tokens + s.output_tokens, 0) AS spent_tokens,
  coalesce(s.cost_usd, 0) AS spent_usd, run.import_id,
  (SELECT i.limit_usd FROM imports i WHERE i.id = run.import_id) AS import_limit
"""
_SPENT_TODAY = """
LEFT JOIN spending s ON s.agent_id = run.agent_id AND s.day = (mandua_now() AT TIME ZONE 'UTC')::date
"""

# Invariant: at most one living start per fence, and none of a stage that is not the run's next.
BEGIN = f"""
WITH turn AS (
  UPDATE agent_turns t SET stage_token = :token, worker = :worker, lease_until = {LEASE_END}
    FROM runs r
   WHERE r.id = :run AND t.agent_id = r.agent_id AND t.run_id = r.id AND t.fence = :fence
     AND r.stage = :stage AND r.finished_at IS NULL AND t.stage_token IS NULL
  RETURNING t.agent_id, t.version
), run AS (
  UPDATE runs r SET starts = r.starts + 1, attempts = r.attempts + 1 FROM turn WHERE r.id = :run RETURNING r.*
)
SELECT {_RUN_COLUMNS}, turn.version
  FROM run CROSS JOIN turn LEFT JOIN memory_events e ON e.id = run.event_id LEFT JOIN run_plans p ON p.run_id = run.id
  {_SPENT_TODAY}
"""  # noqa: S608

# Invariant: extraction goes ahead only of a run that has not got its turn.
BEGIN_AHEAD = f"""
WITH run AS (
  UPDATE runs r SET starts = r.starts + 1, attempts = r.attempts + 1, ahead_token = :token, ahead_worker = :worker,
         ahead_until = {LEASE_END}
   WHERE r.id = :run AND r.stage = 'extract' AND r.state = 'accepted' AND r.ahead_token IS NULL
     AND (r.ready_at IS NULL OR r.ready_at <= mandua_now())
  RETURNING r.*
)
SELECT {_RUN_COLUMNS}, t.version
  FROM run JOIN memory_events e ON e.id = run.event_id JOIN agent_turns t ON t.agent_id = run.agent_id
  LEFT JOIN run_plans p ON p.run_id = run.id
  {_SPENT_TODAY}
"""  # noqa: S608

_MINE = f"""
  UPDATE agent_turns SET lease_until = {LEASE_END}
   WHERE agent_id = :agent AND run_id = :run AND fence = :fence AND stage_token = :token RETURNING 1
"""  # noqa: S608
_MINE_AHEAD = f"""
  UPDATE runs SET ahead_until = {LEASE_END} WHERE id = :run AND ahead_token = :token RETURNING 1
"""  # noqa: S608

# Invariant: the lease is renewed before each outside call, and a call that was sent is known as sent. A model that is
# to be left alone is not called, so nothing is noted then.
_ANNOUNCE = """
WITH mine AS ({mine}), cooling AS (
  SELECT cause, extract(epoch FROM cool_until - mandua_now()) AS seconds
    FROM model_health WHERE model = :model AND cool_until IS NOT NULL
), noted AS (
  INSERT INTO run_plans AS p (run_id, sent) SELECT :run, jsonb_build_object(CAST(:key AS text), 1) FROM mine
   WHERE NOT EXISTS (SELECT 1 FROM cooling WHERE seconds > 0)
  ON CONFLICT (run_id) DO UPDATE
     SET sent = p.sent || jsonb_build_object(CAST(:key AS text), coalesce(CAST(p.sent ->> :key AS integer), 0) + 1)
)
SELECT c.cause, c.seconds FROM mine LEFT JOIN cooling c ON true
"""
# Invariant: a kept reply carries its cost until the run's usage has it; its call is no longer under way.
_KEEP = """
WITH mine AS ({mine})
UPDATE run_plans SET replies = replies || jsonb_build_object(CAST(:key AS text), CAST(:reply AS jsonb)),
       sent = sent - CAST(:key AS text)
  FROM mine WHERE run_id = :run RETURNING 1
"""

_RELEASE_STAGE = """
  UPDATE agent_turns SET stage_token = NULL, lease_until = NULL, worker = NULL, dispatched_at = mandua_now(),
         redispatches = 0
   WHERE agent_id = :agent AND run_id = :run AND fence = :fence AND stage_token = :token RETURNING 1
"""
_FREE_TURN = """
  UPDATE agent_turns SET run_id = NULL, stage_token = NULL, lease_until = NULL, worker = NULL
   WHERE agent_id = :agent AND run_id = :run AND fence = :fence AND stage_token = :token RETURNING 1
"""
_AHEAD_TOKEN = "SELECT 1 FROM runs WHERE id = :run AND ahead_token = :token FOR NO KEY UPDATE"

_NO_AHEAD = "ahead_token = NULL, ahead_worker = NULL, ahead_until = NULL"

# Invariant: what the calls of a start have cost is added once, with the statement that stores the run's usage.
_SPEND = """
INSERT INTO spending AS s (day, agent_id, input_tokens, output_tokens, cost_usd)
SELECT (mandua_now() AT TIME ZONE 'UTC')::date, :agent, :input_tokens, :output_tokens, :cost_usd FROM {once}
 WHERE CAST(:input_tokens AS bigint) + CAST(:output_tokens AS bigint) > 0
ON CONFLICT (day, agent_id) DO UPDATE SET input_tokens = s.input_tokens + excluded.input_tokens,
   output_tokens = s.output_tokens + excluded.output_tokens, cost_usd = s.cost_usd + excluded.cost_usd
"""

# Invariant: a plan is stored and the stage moves on together, once.
_ADVANCE = f"""
WITH mine AS ({{mine}}), moved AS (
  UPDATE runs SET stage = :next, starts = 0, failures = 0, waits = 0, fallback = NULL, cause = NULL, error_code = NULL,
         usage = CAST(:usage AS jsonb), timings = timings || CAST(:timings AS jsonb), {_NO_AHEAD}
    FROM mine WHERE id = :run AND stage = :stage AND finished_at IS NULL RETURNING 1
), spent AS ({{spend}})
INSERT INTO run_plans AS p (run_id, {{column}}, vector_texts, vectors, memory_version, told)
SELECT :run, CAST(:plan AS jsonb), CAST(:vector_texts AS jsonb), :vectors, :memory_version, CAST(:told AS jsonb)
  FROM moved
ON CONFLICT (run_id) DO UPDATE SET {{column}} = excluded.{{column}}, vector_texts = excluded.vector_texts,
   vectors = excluded.vectors, replies = '{{{{}}}}', sent = '{{{{}}}}', told = p.told || excluded.told,
   memory_version = coalesce(p.memory_version, excluded.memory_version)
RETURNING 1
"""  # noqa: S608

# A model that is away for days is told of often enough.
_TOLD = "CASE WHEN jsonb_array_length(p.told) < 40 THEN p.told || CAST(:told AS jsonb) ELSE p.told END"

# Invariant: a run that was given back keeps its place; only ready_at says when its agent goes on. Its usage has all
# that its kept replies cost, and what is still noted as sent are the calls whose reply is lost.
_GIVE_BACK = f"""
WITH mine AS ({{mine}}), spent AS ({{spend}}), noted AS (
  UPDATE run_plans p SET sent = CAST(:lost AS jsonb), told = {_TOLD},
         replies = (SELECT coalesce(jsonb_object_agg(r.key, r.value - 'usage'), '{{{{}}}}')
                      FROM jsonb_each(p.replies) r)
    FROM mine WHERE p.run_id = :run
)
UPDATE runs SET state = 'accepted', starts = greatest(starts - 1, 0), failures = failures + :counted,
       waits = waits + :waited, ready_at = mandua_now() + make_interval(secs => CAST(:delay AS double precision)),
       cause = :cause, error_code = :error_code, fallback = :fallback, usage = CAST(:usage AS jsonb), {_NO_AHEAD}
  FROM mine WHERE id = :run AND finished_at IS NULL RETURNING 1
"""  # noqa: S608

# Invariant: a run whose plans no longer fit the code starts over; its kept replies go with them.
_REWIND = f"""
WITH mine AS ({_FREE_TURN}), gone AS (DELETE FROM run_plans USING mine WHERE run_id = :run)
UPDATE runs SET state = 'accepted', stage = 'extract', starts = 0, failures = 0, waits = 0, fallback = NULL
  FROM mine WHERE id = :run AND finished_at IS NULL RETURNING 1
"""  # noqa: S608

# Invariant: the deaths so far stay counted.
_HAND_OVER = f"""
WITH mine AS ({_RELEASE_STAGE})
UPDATE runs SET starts = starts - 1 FROM mine WHERE id = :run RETURNING 1
"""  # noqa: S608
_HAND_OVER_AHEAD = f"""
UPDATE runs SET starts = starts - 1, {_NO_AHEAD} WHERE id = :run AND ahead_token = :token RETURNING 1
"""  # noqa: S608

_PARK = f"""
WITH mine AS ({{mine}}), spent AS ({{spend}}), noted AS (
  INSERT INTO run_plans AS p (run_id, told) SELECT :run, CAST(:told AS jsonb) FROM mine
   WHERE CAST(:told AS jsonb) <> '[]'
  ON CONFLICT (run_id) DO UPDATE SET told = p.told || excluded.told
)
UPDATE runs SET state = 'parked', status = 'failed', cause = :cause, error_code = :error_code,
       finished_at = mandua_now(), usage = CAST(:usage AS jsonb), {_NO_AHEAD}
  FROM mine WHERE id = :run AND finished_at IS NULL RETURNING 1
"""  # noqa: S608

# Invariant: a run is parked for a dead process only under the fence, or the token ahead, of that very start: while it
# stands there nobody else has begun.
_PARK_DEAD = """
WITH mine AS ({mine})
UPDATE runs SET state = 'parked', status = 'failed', cause = :cause, error_code = :cause, finished_at = mandua_now(),
       ahead_token = NULL, ahead_worker = NULL, ahead_until = NULL
  FROM mine WHERE id = :run AND finished_at IS NULL RETURNING agent_id
"""
_DEAD_TURN = """
  UPDATE agent_turns SET run_id = NULL, stage_token = NULL, lease_until = NULL, worker = NULL
   WHERE run_id = :run AND fence = :fence AND stage_token IS NOT NULL RETURNING 1
"""
_DEAD_AHEAD = "SELECT 1 FROM runs WHERE id = :run AND ahead_token IS NOT NULL FOR NO KEY UPDATE"

# Invariant: applied, done and free are one commit; version counts applies.
FINISH_TURN = """
UPDATE agent_turns SET run_id = NULL, stage_token = NULL, lease_until = NULL, worker = NULL, version = version + 1
 WHERE agent_id = :agent AND run_id = :run AND fence = :fence AND stage_token = :token RETURNING 1
"""
FINISH_RUN = f"""
WITH spent AS ({_SPEND.format(once="(SELECT 1) AS once")}), gone AS (
  DELETE FROM run_plans WHERE run_id = :run RETURNING told
), kept AS (
  INSERT INTO run_results (run_id, result, trace)
  VALUES (:run, CAST(:result AS jsonb), coalesce((SELECT told FROM gone), '[]') || CAST(:told AS jsonb))
)
UPDATE runs SET state = 'done', status = :status, finished_at = mandua_now(), starts = 0, failures = 0, cause = NULL,
       error_code = NULL, fallback = NULL, usage = CAST(:usage AS jsonb),
       timings = timings || CAST(:timings AS jsonb)
 WHERE id = :run AND finished_at IS NULL RETURNING 1
"""  # noqa: S608


# Invariant: a step of a job is applied and its run is back in its place in one commit. Replies kept for it go, so that
# the next step starts clean.
STEP_RUN = f"""
WITH spent AS ({_SPEND.format(once="(SELECT 1) AS once")}), gone AS (DELETE FROM run_plans WHERE run_id = :run)
UPDATE runs SET state = 'accepted', starts = 0, failures = 0, waits = 0, ready_at = NULL, cause = NULL,
       error_code = NULL, fallback = NULL, usage = CAST(:usage AS jsonb), timings = timings || CAST(:timings AS jsonb),
       request = CAST(:request AS jsonb)
 WHERE id = :run AND finished_at IS NULL RETURNING 1
"""  # noqa: S608

_PLAN_COLUMN = {Stage.EXTRACT: "extraction", Stage.RESOLVE: "resolution", Stage.RECONCILE: "reconciliation"}


def begin(run_id: UUID, fence: int | None, stage: Stage) -> Start | None:
    """Begin ``stage`` of a run under ``fence`` (None: extract ahead of the turn).

    None if this start has no right to it any more: another fence, another stage, or somebody is at work on it. Raises
    DBAPIError when the database does not answer.
    """
    token = uuid4()
    statement = BEGIN if fence is not None else BEGIN_AHEAD
    asked = {"run": run_id, "fence": fence, "stage": stage.value, "token": token, "worker": worker_name()}
    try:
        with autocommit() as connection:
            row = connection.execute(sql(statement), asked | periods()).one_or_none()
    except DBAPIError:
        lose(token)  # it may have begun all the same
        raise
    if row is None:
        return None
    return Start(Hold(run_id, row.agent_id, stage, token, fence), row)


def announce(hold: Hold, key: str, model: str) -> Cooling | None:
    """Renew the lease and note that the call ``key`` is about to be sent to ``model``.

    Returns what stands against calling that model now, None if nothing does. Raises LostHold.
    """
    row = _checked(_ANNOUNCE.format(mine=_MINE_AHEAD if hold.ahead else _MINE), hold, key=key, model=model)
    return None if row.cause is None else Cooling(row.cause, float(row.seconds))


def keep_reply(hold: Hold, key: str, reply: str) -> None:
    """Keep the reply of a call (JSON: ``text``, and ``usage`` while no other row has it), so that a retry of the stage
    asks only for what is missing. Raises LostHold."""
    _checked(_KEEP.format(mine=_MINE_AHEAD if hold.ahead else _MINE), hold, key=key, reply=reply)


def advance(
    hold: Hold,
    following: Stage,
    plan: str,
    vectors: tuple[list[str], bytes],
    *,
    bill: Bill,
    timings: Mapping[str, float],
    memory_version: int,
    told: str = "[]",
) -> None:
    """Store ``plan`` (JSON) and move the run on to ``following``. Raises LostHold: nothing was stored."""
    mine, spend = _AHEAD_TOKEN if hold.ahead else _RELEASE_STAGE, _SPEND.format(once="moved")
    statement = _ADVANCE.format(mine=mine, spend=spend, column=_PLAN_COLUMN[hold.stage])
    _checked(
        statement, hold, next=following.value, plan=plan, vector_texts=json.dumps(vectors[0], ensure_ascii=False),
        vectors=vectors[1], timings=json.dumps(timings), memory_version=memory_version, told=told, **bill.parameters(),
    )  # fmt: skip


def give_back(
    hold: Hold, *, delay: float, counted: bool, cause: str, error_code: str, fallback: str | None, bill: Bill,
    lost: Mapping[str, int], told: str = "[]",
) -> None:  # fmt: skip
    """Free the turn; the run keeps its place and is ready again after ``delay`` seconds. Raises LostHold.

    ``lost``: how many sendings of which call may have been paid and brought no reply.
    """
    _checked(
        _GIVE_BACK.format(mine=_AHEAD_TOKEN if hold.ahead else _FREE_TURN, spend=_SPEND.format(once="mine")), hold,
        delay=delay, counted=int(counted), waited=1, cause=cause, error_code=error_code, fallback=fallback,
        lost=json.dumps(lost), told=told, **bill.parameters(),
    )  # fmt: skip


def rewind(hold: Hold) -> None:
    """Free the turn and let the run start over: other code has left plans that this one cannot read."""
    _checked(_REWIND, hold)


def hand_over(hold: Hold) -> None:
    """Let go of a start without a trace, so that a process of the run's own can begin it. Raises LostHold."""
    _checked(_HAND_OVER_AHEAD if hold.ahead else _HAND_OVER, hold)


def park(hold: Hold, *, cause: str, error_code: str, bill: Bill, told: str = "[]") -> None:
    """Give the run up at this stage, with its cause, and free the turn. Raises LostHold."""
    _checked(
        _PARK.format(mine=_AHEAD_TOKEN if hold.ahead else _FREE_TURN, spend=_SPEND.format(once="mine")), hold,
        cause=cause, error_code=error_code, told=told, **bill.parameters(),
    )  # fmt: skip


def park_dead(run_id: UUID, fence: int | None, *, cause: str) -> Row[Any] | None:
    """Give up the run whose own process died in the middle of a stage; its agent_id, None if nothing was under way."""
    statement = _PARK_DEAD.format(mine=_DEAD_AHEAD if fence is None else _DEAD_TURN)
    with autocommit() as connection:
        return connection.execute(sql(statement), {"run": run_id, "fence": fence, "cause": cause}).one_or_none()


def finish(
    connection: Connection, hold: Hold, *, status: str, result: str, bill: Bill, timings: Mapping[str, float],
    told: str = "[]",
) -> None:  # fmt: skip
    """Mark the run done and free the turn, in the transaction that applied its plan. Raises LostHold: roll back."""
    finished = connection.execute(
        sql(FINISH_RUN),
        {"run": hold.run_id, "agent": hold.agent_id, "status": status, "result": result,
         "timings": json.dumps(timings), "told": told, **bill.parameters()},
    )
    if finished.one_or_none() is None:
        raise LostHold


def step(connection: Connection, hold: Hold, *, request: str, bill: Bill, timings: Mapping[str, float]) -> None:
    """Put a job's run back in its place, in the transaction that applied one step of it. Raises LostHold: roll back.

    ``request`` (JSON) is what the next step starts from.
    """
    stepped = connection.execute(
        sql(STEP_RUN),
        {"run": hold.run_id, "agent": hold.agent_id, "request": request, "timings": json.dumps(timings),
         **bill.parameters()},
    )  # fmt: skip
    if stepped.one_or_none() is None:
        raise LostHold


def lock_for_apply(connection: Connection, hold: Hold) -> None:
    """Take the turn's row for the transaction that applies: from here on nobody can take it over. Raises LostHold."""
    if connection.execute(sql(FINISH_TURN), hold.parameters()).one_or_none() is None:
        raise LostHold


def as_holder(statement: str, hold: Hold, **more: Any) -> None:
    """Execute ``statement``, whose ``{mine}`` is the check of the hold; no row of it means LostHold."""
    _checked(statement.format(mine=_MINE_AHEAD if hold.ahead else _MINE), hold, **more)


def rows_as_holder(statement: str, hold: Hold, **more: Any) -> Sequence[Row[Any]]:
    """The rows of ``statement``, whose ``{mine}`` is the check of the hold; none where it is lost."""
    checked = statement.format(mine=_MINE_AHEAD if hold.ahead else _MINE)
    with autocommit() as connection:
        return connection.execute(sql(checked), hold.parameters(**more)).all()


def _checked(statement: str, hold: Hold, **more: Any) -> Row[Any]:
    with autocommit() as connection:
        row = connection.execute(sql(statement), hold.parameters(**more)).one_or_none()
    if row is None:
        raise LostHold
    return row
