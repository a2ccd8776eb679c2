"""A worker's result, the one that is waited for and the in-process one are the same, trace and all (behaviour: 9)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from producer.accepting import accept, envelope
from producer.contract import MemoryConfig, PipelineTrace, WriteRequest, WriteResult
from tests.integration.write.lives import drain
from worker.models_in_use import embedding_model, language_model
from worker.write.pipeline import run_write_pipeline

AT = datetime(2024, 3, 5, 12, tzinfo=UTC)
SAID = ("I live in Curitiba and I work at Acme.", "I moved to Lima.", "I live in Lima.", "I no longer work at Acme.")
OWN = {
    "event_id",
    "duration_ms",
    "id",
    "replaced_id",
    "evidence_fact_id",
    "target_fact_id",
    "closed_by",
    "context_tokens",
}


def bare(value: Any) -> Any:
    """Without what is each run's own: ids and times of work."""
    if isinstance(value, dict):
        return {key: bare(one) for key, one in value.items() if key not in OWN}
    return [bare(one) for one in value] if isinstance(value, (list, tuple)) else value


def by_workers(engine: Engine) -> list[WriteResult]:

    with engine.connect() as connection:
        for words in SAID:
            request = WriteRequest(
                agent_id="queued", message=words, speaker_name="Rafael", occurred_at=AT, verbose=True
            )
            accept(connection.connection.driver_connection, [envelope(request)])
        connection.connection.commit()
    drain("queued")
    with engine.connect() as connection:
        rows = connection.execute(
            text("SELECT o.result FROM run_results o JOIN runs r ON r.id = o.run_id ORDER BY r.seq")
        )
        return [WriteResult.model_validate(row.result) for row in rows]


def in_process(engine: Engine) -> list[WriteResult]:
    results = []
    for words in SAID:
        trace = PipelineTrace()
        with Session(engine) as session:
            found = run_write_pipeline(
                session, "direct", words, language_model(), embedding_model(), MemoryConfig(), "Rafael",
                trace=trace, occurred_at=AT,
            )  # fmt: skip
            session.commit()
        results.append(WriteResult.model_validate(found))
        assert trace.steps == results[-1].pipeline.steps  # type: ignore[union-attr]
    return results


def test_both_ways_say_the_same(database: Engine, working: None) -> None:
    queued, direct = by_workers(database), in_process(database)
    assert len(queued) == len(direct) == len(SAID)
    for mine, theirs in zip(queued, direct, strict=True):
        assert bare(mine.model_dump(mode="json")) == bare(theirs.model_dump(mode="json"))


def test_a_result_is_complete(database: Engine, working: None) -> None:
    first, moved, again, left = by_workers(database)
    assert (first.status, first.success, first.error) == ("ok", True, None)
    assert first.event_id is not None
    assert first.duration_ms > 0
    assert {one.key for one in first.entities_resolved} >= {"person:rafael", "place:curitiba", "organization:acme"}
    assert all(one.method and one.why is not None for one in first.entities_resolved)
    assert {(one.rel_type, one.target) for one in first.relations} == {
        ("lives_in", "place:curitiba"), ("works_at", "organization:acme"),
    }  # fmt: skip
    assert first.emotion is not None
    assert [fact.replaced_text for fact in moved.facts_updated] == ["Rafael lives in Curitiba"]
    assert [fact.fact_text for fact in again.facts_unchanged] == ["Rafael moved to Lima"]
    assert [fact.fact_text for fact in left.facts_deleted] == ["Rafael works at Acme"]
    for result in (first, moved, again, left):
        assert result.pipeline is not None
        assert [step.name for step in result.pipeline.steps] == [
            "extraction", "semantic_dedup", "entity_resolution", "reconciliation", "upsert",
        ]  # fmt: skip
        assert all(step.duration_ms >= 0 for step in result.pipeline.steps)
        extraction, _, resolution, reconciliation, upsert = (step.data for step in result.pipeline.steps)
        assert (extraction["mode"], extraction["relation_retry_triggered"]) == ("informed", False)
        assert {"name", "key", "method", "score", "why", "is_new"} <= resolution["entities"][0].keys()
        decided = reconciliation["decisions"]
        assert all({"text", "action", "target_fact_id", "reason", "similarity"} <= one.keys() for one in decided)
        assert {"added", "updated", "unchanged", "deleted", "relations", "rejected"} <= upsert.keys()
