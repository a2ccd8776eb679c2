"""The pipeline in one process, without a queue: for notebooks, tests and small tools.

It runs the very same stage functions as the workers, under the same table of failures (``worker.write.policy``), only
that nothing can wait. It holds the caller's transaction over the model calls; the workers are the way for load.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import uuid4

from sqlalchemy import text
from sqlalchemy.orm import Session

from producer.contract import MemoryConfig, PipelineTrace, WriteRequest, WriteResult
from producer.queues import Stage
from producer.secrets import mask, redacts_events
from worker.db import ReadSession, within
from worker.embedding.provider import EmbeddingProvider
from worker.llm.provider import LLMProvider, ModelError
from worker.write.applied import Applied
from worker.write.calls import Calls, EmbeddingError, VectorCache
from worker.write.message import Message
from worker.write.plans import Extraction
from worker.write.policy import Action, without_waiting
from worker.write.result import build_result, dry_result, failed_result
from worker.write.stages import Plans, plan_stage
from worker.write.upsert import upsert, without_faults

RECORD = """
INSERT INTO memory_events (id, agent_id, speaker_name, message, source, session_id, occurred_at, offset_minutes)
VALUES (:id, :agent, :speaker, :message, :source, :session, :occurred_at, :offset)
"""
# Invariant: the caller's transaction has the agent's turn until it ends, so no worker applies beside it. A turn that
# a worker holds is not taken away: the statement finds no row.
TAKE_TURN = """
INSERT INTO agent_seq (agent_id) VALUES (:agent) ON CONFLICT DO NOTHING
"""
TAKE_TURN_ROW = """
INSERT INTO agent_turns AS t (agent_id, version) VALUES (:agent, 1)
ON CONFLICT (agent_id) DO UPDATE SET version = t.version + 1 WHERE t.run_id IS NULL RETURNING 1
"""


class TurnTaken(Exception):
    """A worker is at work on this agent; write through the queue, or try again when it is done."""


def run_write_pipeline(
    session: Session,
    agent_id: str,
    message: str,
    llm: LLMProvider,
    embeddings: EmbeddingProvider,
    config: MemoryConfig,
    speaker_name: str,
    source: str = "api",
    recent_messages: list[str] | None = None,
    trace: PipelineTrace | None = None,
    *,
    occurred_at: datetime | None = None,
    dry_run: bool = False,
    session_id: str | None = None,
) -> dict[str, Any]:
    """Write one message in the caller's session; the caller commits.

    Returns the fields of WriteResult as a dict: event_id, facts_added, facts_updated, facts_unchanged, facts_deleted,
    entities_resolved, duration_ms (milliseconds), status, tokens_used and the rest. Steps are appended to ``trace``.
    A stage that fails for good leaves the event and answers ``status="failed"``. Raises RequestError for bad input and
    TurnTaken where a worker is at work on the same agent. asyncio callers use ``asyncio.to_thread``.

    >>> from worker.db import engine
    >>> from worker.models_in_use import embedding_model, language_model
    >>> with Session(engine()) as session:
    ...     done = run_write_pipeline(session, "ana", "I live in Recife.", language_model(), embedding_model(),
    ...                               MemoryConfig(), "Rafael")  # nothing is committed here
    >>> [fact["fact_text"] for fact in done["facts_added"]]
    ['Rafael lives in Recife']
    """
    request = WriteRequest.parse(
        agent_id=agent_id, message=message, speaker_name=speaker_name, source=source, session_id=session_id,
        recent_messages=tuple(recent_messages or ()), occurred_at=occurred_at, verbose=trace is not None,
    )  # fmt: skip
    if request.blank:
        return WriteResult(status="empty").model_dump()
    prepared = _message(request, config)
    calls = Calls(llm, embeddings, timeout=config.extraction_timeout_sec)
    if dry_run:
        calls.prompts = [] if prepared.verbose else None
    else:
        _record(session, prepared)
    result = _run(session, prepared, calls, dry_run=dry_run)
    if trace is not None and result.pipeline is not None:
        trace.steps.extend(result.pipeline.steps)
    return result.model_dump()


def _run(session: Session, message: Message, calls: Calls, *, dry_run: bool) -> WriteResult:
    read = within(session)
    plans, timings, stage = Plans(), dict[str, float](), Stage.EXTRACT
    begun = time.perf_counter()
    try:
        for stage in (Stage.EXTRACT, Stage.RESOLVE, Stage.RECONCILE):
            stage_begun = time.perf_counter()
            plans = plan_without_waiting(stage, message, plans, read, calls)
            timings[stage.value] = round((time.perf_counter() - stage_begun) * 1000, 3)
            if plans.extraction is not None and (plans.extraction.empty or dry_run):
                break
        if dry_run and plans.extraction is not None:
            return dry_result(message, plans.extraction, calls.usage, timings[Stage.EXTRACT.value], calls.prompts)
        stage = Stage.UPSERT
        applied = without_faults(partial(_upsert, session, message, plans, calls.vectors))
    except ModelError as error:
        return failed_result(message.event_id, stage.value, error.cause.value)
    timings[Stage.UPSERT.value] = round((time.perf_counter() - begun) * 1000 - sum(timings.values()), 3)
    return build_result(message, *plans.ready(), applied, calls.usage, timings)


def _upsert(session: Session, message: Message, plans: Plans, vectors: VectorCache, *, item_by_item: bool) -> Applied:
    with session.begin_nested():  # the caller's transaction has more in it
        return upsert(session, message, *plans.ready(), vectors, item_by_item=item_by_item)


def plan_without_waiting(stage: Stage, message: Message, plans: Plans, read: ReadSession, calls: Calls) -> Plans:
    """``plan_stage`` under the table of failures, at once: retried, fallen back, or raised for good (ModelError)."""
    failures, fallback = 0, None
    while True:
        try:
            return plan_stage(stage, message, plans, read, calls, fallback=fallback)
        except ModelError as error:
            if isinstance(error, EmbeddingError) and not calls.without_embeddings:
                calls.without_embeddings = True
                continue
            cause = error.cause.value
            verdict = without_waiting(stage, cause, failures, fallen_back=fallback is not None)
            if verdict.action is Action.PARK:
                raise
            if verdict.action is Action.FALL_BACK:
                fallback = cause
            failures += 1


def extract_without_waiting(message: Message, read: ReadSession, calls: Calls) -> Extraction:
    """The extraction of a message, at once. Raises ModelError."""
    extraction = plan_without_waiting(Stage.EXTRACT, message, Plans(), read, calls).extraction
    if extraction is None:
        raise ValueError("extraction made no plan")
    return extraction


def _message(request: WriteRequest, config: MemoryConfig) -> Message:
    return Message(
        event_id=uuid4(),
        agent_id=request.agent_id,
        text=request.message,
        speaker=request.speaker_name,
        source=request.source,
        session_id=request.session_id,
        occurred_at=request.occurred_at if isinstance(request.occurred_at, datetime) else datetime.now(UTC),
        recent_messages=request.recent_messages,
        config=config,
        verbose=request.verbose,
    )


def _record(session: Session, message: Message) -> None:
    offset = message.occurred_at.utcoffset() if message.occurred_at is not None else None
    session.execute(text(TAKE_TURN), {"agent": message.agent_id})
    if session.execute(text(TAKE_TURN_ROW), {"agent": message.agent_id}).one_or_none() is None:
        raise TurnTaken(f"a worker is at work on agent {message.agent_id!r}; write through the queue instead")
    session.execute(
        text(RECORD),
        {
            "id": message.event_id, "agent": message.agent_id, "speaker": message.speaker,
            "message": mask(message.text).text if redacts_events() else message.text,
            "source": message.source, "session": message.session_id, "occurred_at": message.occurred_at,
            "offset": round(offset.total_seconds() / 60) if offset is not None else None,
        },
    )  # fmt: skip
