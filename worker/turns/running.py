"""Running a stage of a held run: what a worker does between taking the hold and letting it go.

``run_stage`` is the whole of it, free of Celery: it returns how the stage ended, and the task around it turns that
into Celery's terms. No transaction and no connection is held while a stage is out at a model.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta, timezone
from typing import Any
from uuid import UUID

import structlog
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from producer.contract import Status
from producer.queues import RUN_STAGES, Lane, Stage
from worker import logs
from worker.db import autocommit, engine, read_session, sql
from worker.llm.provider import Cause, ModelError
from worker.models_in_use import embedding_model, language_model
from worker.settings import settings
from worker.turns import batches, bulk_turns, job_steps, limits
from worker.turns import hold as holding
from worker.turns.applying import bill, finish
from worker.turns.causes import classify
from worker.turns.hold import LostHold, Start
from worker.turns.life import at_work, lose
from worker.turns.replies import TurnLedger, note_calls
from worker.turns.telling import told
from worker.write.calls import Calls, CallUsage, EmbeddingError, VectorCache
from worker.write.message import Message
from worker.write.plans import PLAN_VERSION, Extraction, Reconciliation, Resolution
from worker.write.policy import WORKER_DIED, Action, decide
from worker.write.stages import Plans, plan_stage
from worker.write.told import ToldCalls
from worker.write.upsert import upsert, without_faults

LONGEST_WAIT = 60.0

# A run whose starts have died silently this often is run alone, in a process of its own. It is blamed when that process
# dies and the worker beside it lives. A death that took the worker along says nothing about the run, unless there are
# many of them.
DEATHS_BEFORE_ALONE = 2
DEATHS_BEFORE_BLAME = 8

# Invariant: an error counts against a message only if the model answered somebody after this stage began.
MODEL_WELL = "SELECT EXISTS (SELECT 1 FROM model_health WHERE model = :model AND answered_at > :begun_at)"
REPLANNED = "replanned"  # not a failure: a deploy left plans of another version

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Moved:
    """The stage is done and the chain goes on. ``others``: so can runs that were extracted along."""

    agent_id: str
    others: bool = False


@dataclass(frozen=True, slots=True)
class Applied:
    """The run is done and the turn is free."""

    agent_id: str
    status: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """The run was given back and is ready again after ``delay`` seconds."""

    agent_id: str
    cause: str
    error_code: str
    delay: float


@dataclass(frozen=True, slots=True)
class Parked:
    """The run was given up at this stage."""

    agent_id: str
    cause: str
    error_code: str


@dataclass(frozen=True, slots=True)
class Stale:
    """This start had no right to the stage any more; nothing was done."""


@dataclass(frozen=True, slots=True)
class Alone:
    """The run has killed or outlived its workers twice: run it in a process of its own."""


Outcome = Moved | Applied | Waiting | Parked | Stale | Alone


def run_stage(stage: Stage, run_id: UUID, fence: int | None, *, alone: bool = False) -> Outcome:
    """Run ``stage`` of a run under ``fence`` (None: extract ahead of the turn); ``alone`` says that this process is
    the run's own.

    Raises SQLAlchemyError only if the database is gone before the stage was at work.
    """
    start = holding.begin(run_id, fence, stage)
    if start is None:
        return Stale()
    with logs.stage(run_id, start.row.event_id, start.hold.agent_id, stage.value) as told:
        try:
            return told(_begun(start, alone=alone))
        except DBAPIError:
            lose(start.hold.token)
            raise


def _begun(start: Start, *, alone: bool) -> Outcome:
    usage = CallUsage.model_validate(start.row.usage)
    if start.deaths >= DEATHS_BEFORE_BLAME:
        return _park(start, usage, WORKER_DIED, WORKER_DIED, ToldCalls())
    if start.deaths >= DEATHS_BEFORE_ALONE and not alone:
        # Given back as it was, deaths and all: the process of its own begins it anew.
        return _hand_over(start)
    stage = start.hold.stage
    if stage is not Stage.JOB and not _plans_of(start.row).reach(stage):
        holding.rewind(start.hold)
        return Waiting(start.hold.agent_id, REPLANNED, REPLANNED, 0.0)
    ledger = TurnLedger(start.hold, start.row.sent or {}, start.row.replies or {})
    over = None if stage is Stage.UPSERT else limits.out_of_money(settings(), start.row)
    if over is not None:
        cause, seconds = over
        return _give_back(start, usage, ledger, cause, cause, seconds, False, start.row.fallback)
    try:
        with at_work(start.hold.token):
            return _work(start, usage, ledger)
    except LostHold:
        return Stale()


def blame(run_id: UUID, fence: int | None) -> Outcome:
    """Park a run whose own process died under this ``fence`` (None: ahead of the turn), as its parent saw.

    Stale where that start had begun nothing, or had ended.
    """
    row = holding.park_dead(run_id, fence, cause=WORKER_DIED)
    return Stale() if row is None else Parked(row.agent_id, WORKER_DIED, WORKER_DIED)


def _work(start: Start, usage: CallUsage, ledger: TurnLedger) -> Outcome:
    fallback: str | None = start.row.fallback
    while True:
        try:
            if fallback is None and (status := _bulk_turn(start, usage, ledger)) is not None:
                return Applied(start.hold.agent_id, status)
            if start.hold.stage is Stage.UPSERT:
                return _apply(start, message_of(start.row), _plans_of(start.row), usage, {}, ledger)
            if start.hold.stage is Stage.JOB:
                return _job_step(start, usage, ledger, fallback)
            return _plan(start, usage, ledger, fallback)
        except LostHold:
            raise
        except Exception as error:
            cause, code, retry_after = classify(error)
            _leave_alone(error)
            verdict = decide(
                start.hold.stage,
                cause,
                int(start.row.failures),
                fallen_back=fallback is not None,
                model_well=cause == Cause.PROVIDER_ERROR and _model_well(start, error),
            )
            log.warning("stage_failed", cause=cause, code=code, action=verdict.action.value)
            if verdict.action is Action.FALL_BACK:
                fallback = cause
                continue
            if verdict.action is Action.PARK:
                return _park(start, usage, cause, code, ledger.told)
            return _give_back(start, usage, ledger, cause, code, retry_after, verdict.counted, fallback)


def _bulk_turn(start: Start, usage: CallUsage, ledger: TurnLedger) -> str | None:
    """The run's status, where it and those behind it were applied in one turn."""
    if start.row.lane != Lane.BULK or start.hold.stage not in (Stage.RESOLVE, Stage.UPSERT):
        return None
    return bulk_turns.take(start, message_of(start.row), message_of, usage, ledger)


def _leave_alone(error: Exception) -> None:
    """Tell everybody what a model told us: to wait, or that it cannot be used."""
    if isinstance(error, ModelError) and not isinstance(error, EmbeddingError):
        with _tolerating_a_lost_database():
            limits.trip(error)


def _plan(start: Start, usage: CallUsage, ledger: TurnLedger, fallback: str | None) -> Outcome:
    stage, row = start.hold.stage, start.row
    message = message_of(row)
    calls = _calls(start, usage, ledger, message.config.extraction_timeout_sec)
    begun = time.perf_counter()
    asked = dict(usage.by_task)
    shared = batches.NOBODY
    if stage is Stage.EXTRACT and fallback is None:
        shared = batches.share(start, message, message_of, usage, ledger, calls.vectors)
    plans = plan_stage(stage, message, _plans_of(row), read_session, calls, fallback=fallback)
    timings = {stage.value: round((time.perf_counter() - begun) * 1000, 3)}
    note_calls(usage, ledger, asked)
    plan = {Stage.EXTRACT: plans.extraction, Stage.RESOLVE: plans.resolution, Stage.RECONCILE: plans.reconciliation}
    made = plan[stage]
    if made is None:
        raise ValueError(f"{stage.value} made no plan")
    nothing = plans.extraction is not None and plans.extraction.empty
    if nothing and not start.hold.ahead:
        return _apply(start, message, plans, usage, timings, ledger)
    following = Stage.UPSERT if nothing else RUN_STAGES[RUN_STAGES.index(stage) + 1]
    holding.advance(
        start.hold, following, made.model_dump_json(), calls.vectors.dump(),
        bill=bill(start, usage), timings=timings, memory_version=int(row.version),
        told=told(start, ledger.told, "planned", fallback=fallback),
    )  # fmt: skip
    for neighbour in shared.answered:
        _read_along(neighbour)
    return Moved(start.hold.agent_id, shared.claimed)


def _read_along(run_id: UUID) -> None:
    """Extract a run whose reply is kept already, a task less; what goes wrong is left to the task that is its own."""
    try:
        run_stage(Stage.EXTRACT, run_id, None)
    except DBAPIError as error:
        log.warning("could_not_read_along", error=type(error.orig).__name__)


def _job_step(start: Start, usage: CallUsage, ledger: TurnLedger, fallback: str | None) -> Outcome:
    """Plan one step of a job, out at a model if need be, and apply it: one commit with the turn's release."""
    config = settings().memory_config()
    calls = _calls(start, usage, ledger, config.extraction_timeout_sec)
    begun, asked = time.perf_counter(), dict(usage.by_task)
    step = job_steps.plan(start, read_session, calls, config, fallback=fallback)
    note_calls(usage, ledger, asked)
    before = float(start.row.timings.get(Stage.JOB.value, 0.0))
    timings = {Stage.JOB.value: round(before + (time.perf_counter() - begun) * 1000, 3)}
    job_steps.apply(start, step, usage, bill(start, usage), timings)
    return Applied(start.hold.agent_id, "ok")


def _calls(start: Start, usage: CallUsage, ledger: TurnLedger, timeout: float) -> Calls:
    vectors = VectorCache.load(start.row.vector_texts or [], start.row.vectors or b"")
    return Calls(
        language_model(), embedding_model(), timeout=timeout, ledger=ledger, vectors=vectors, usage=usage,
        told=ledger.told if settings().keep_traces else None,
    )  # fmt: skip


def _apply(
    start: Start, message: Message, plans: Plans, usage: CallUsage, timings: dict[str, float], ledger: TurnLedger
) -> Outcome:
    """Apply the plans, mark the run done and free the turn: one commit. An item at fault itself is left out."""

    def attempt(*, item_by_item: bool) -> Status:
        begun = time.perf_counter()
        with Session(engine()) as session, session.begin():
            holding.lock_for_apply(session.connection(), start.hold)
            applied = upsert(session, message, *plans.ready(), vectors, item_by_item=item_by_item)
            taken = {**timings, Stage.UPSERT.value: round((time.perf_counter() - begun) * 1000, 3)}
            return finish(session, start, message, plans, applied, usage, taken, ledger.told)

    vectors = VectorCache.load(start.row.vector_texts or [], start.row.vectors or b"")
    return Applied(start.hold.agent_id, without_faults(attempt))


def _give_back(
    start: Start, usage: CallUsage, ledger: TurnLedger, cause: str, code: str, retry_after: float | None,
    counted: bool, fallback: str | None,
) -> Outcome:  # fmt: skip
    ceiling = min(LONGEST_WAIT, settings().retry_base_sec * 2.0 ** min(int(start.row.waits), 10))
    usage.note_wait(cause)
    delay = max(random.uniform(0, ceiling), min(retry_after or 0.0, 600.0))  # full jitter, never before Retry-After
    with _tolerating_a_lost_database(start):
        holding.give_back(
            start.hold, delay=delay, counted=counted, cause=cause, error_code=code, fallback=fallback,
            bill=bill(start, usage), lost=ledger.lost,
            told=told(start, ledger.told, "waits", cause=cause, code=code, delay=round(delay, 3), fallback=fallback),
        )  # fmt: skip
    return Waiting(start.hold.agent_id, cause, code, delay)


def _park(start: Start, usage: CallUsage, cause: str, code: str, calls: ToldCalls) -> Outcome:
    with _tolerating_a_lost_database(start):
        entry = told(start, calls, "parked", cause=cause, code=code, fallback=start.row.fallback)
        holding.park(start.hold, cause=cause, error_code=code, bill=bill(start, usage), told=entry)
        if start.hold.stage is Stage.JOB:
            job_steps.note_failure(start, usage, cause)
    return Parked(start.hold.agent_id, cause, code)


def _hand_over(start: Start) -> Outcome:
    holding.hand_over(start.hold)
    return Alone()


@contextmanager
def _tolerating_a_lost_database(start: Start | None = None) -> Iterator[None]:
    # The lease ends with the next beat and the sweeper goes on from there; a death is counted, and that is all.
    try:
        yield
    except DBAPIError as error:
        if start is not None:
            lose(start.hold.token)
        log.warning("could_not_give_back", error=type(error.orig).__name__)


def message_of(row: Any) -> Message:
    """The Message of a begun run, its time in its own offset, its overrides applied."""
    request = row.request
    occurred_at = row.occurred_at
    if occurred_at is not None:
        occurred_at = occurred_at.astimezone(timezone(timedelta(minutes=row.offset_minutes)))
    return Message(
        event_id=row.event_id,
        agent_id=row.agent_id,
        text=row.message,
        speaker=row.speaker_name,
        speaker_aliases=tuple(request.get("speaker_aliases", ())),
        role=row.role,
        source=row.source,
        session_id=row.session_id,
        occurred_at=occurred_at,
        recent_messages=tuple(request.get("recent_messages", ())),
        config=settings().memory_config().overridden(request.get("config_overrides") or {}),
        verbose=bool(request.get("verbose")),
    )


def _plans_of(row: Any) -> Plans:
    """The stored plans. A plan of another version, or one that does not fit its type, was left by other code."""

    def load(kind: type[Extraction] | type[Resolution] | type[Reconciliation], data: dict[str, Any] | None) -> Any:
        if data is None or data.get("plan_version") != PLAN_VERSION:
            return None
        try:
            return kind.model_validate(data)
        except ValidationError:
            return None

    return Plans(
        load(Extraction, row.extraction), load(Resolution, row.resolution), load(Reconciliation, row.reconciliation)
    )


def _model_well(start: Start, error: Exception) -> bool:
    parameters = {"model": getattr(error, "model", None) or "", "begun_at": start.row.begun_at}
    try:
        with autocommit() as connection:
            return bool(connection.execute(sql(MODEL_WELL), parameters).scalar())
    except DBAPIError:
        return False
