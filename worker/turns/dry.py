"""A dry run: extraction only, outside of any turn; nothing of the memory is touched."""

from __future__ import annotations

import time
from uuid import UUID

from producer.contract import WriteRequest, WriteResult
from worker.db import autocommit, read_session, sql
from worker.llm.provider import ModelError
from worker.models_in_use import embedding_model, language_model
from worker.settings import settings
from worker.write.calls import Calls
from worker.write.message import Message
from worker.write.pipeline import extract_without_waiting
from worker.write.result import dry_result

READ = "SELECT request FROM dry_runs WHERE id = :id AND result IS NULL"
ANSWER = "UPDATE dry_runs SET result = CAST(:result AS jsonb) WHERE id = :id"


def dry_run(run_id: UUID) -> None:
    """Answer a dry run; one that nobody waits for any more is passed over."""
    with autocommit() as connection:
        request = connection.execute(sql(READ), {"id": run_id}).scalar()
    if request is None:
        return
    message = message_of_request(WriteRequest.model_validate(request), run_id)
    calls = Calls(language_model(), embedding_model(), timeout=message.config.extraction_timeout_sec)
    calls.prompts = [] if message.verbose else None
    begun = time.perf_counter()
    try:
        extraction = extract_without_waiting(message, read_session, calls)
        took = round((time.perf_counter() - begun) * 1000, 3)
        result = dry_result(message, extraction, calls.usage, took, calls.prompts)
    except ModelError as error:
        result = WriteResult(status="failed", success=False, error=f"extract: {error.cause.value}")
    with autocommit() as connection:
        connection.execute(sql(ANSWER), {"id": run_id, "result": result.model_dump_json()})


def message_of_request(request: WriteRequest, event_id: UUID) -> Message:
    """The Message of a request that has no event."""
    return Message(
        event_id=event_id,
        agent_id=request.agent_id,
        text=request.message,
        speaker=request.speaker_name,
        role=request.role,
        source=request.source,
        session_id=request.session_id,
        occurred_at=None if request.occurred_at == "unknown" else request.occurred_at,
        recent_messages=request.recent_messages,
        config=settings().memory_config().overridden(request.config_overrides),
        verbose=request.verbose,
    )
