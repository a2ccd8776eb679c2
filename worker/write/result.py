"""From plans to what a producer gets back: status, WriteResult, PipelineTrace (behaviour: 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from producer.contract import (
    Degradation,
    EmotionResult,
    EntityResult,
    FactResult,
    PipelineTrace,
    Status,
    TokenUsage,
    WriteResult,
)
from worker.write.applied import Applied
from worker.write.calls import CallUsage
from worker.write.message import Message
from worker.write.plans import Extraction, Reconciliation, Resolution
from worker.write.tokens import SentPrompt

# What the trace says of each planned fact.
_DECISION = frozenset(
    {"entity_key", "text", "action", "target_fact_id", "target_fact", "closed_by", "reason", "similarity"}
    | {"source_context", "attribute_key", "value"}
)


def status_of(extraction: Extraction, degradations: list[Degradation]) -> Status:
    """``degraded`` as soon as anything fell back, ``empty`` where there was nothing to remember, else ``ok``."""
    if degradations:
        return "degraded"
    return "empty" if extraction.empty else "ok"


def build_result(
    message: Message,
    extraction: Extraction,
    resolution: Resolution,
    reconciliation: Reconciliation,
    applied: Applied,
    usage: CallUsage,
    timings: Mapping[str, float],
) -> WriteResult:
    """The WriteResult of an applied run. It lists only what was stored; ``timings`` are milliseconds per stage."""
    degradations = [*extraction.degradations, *resolution.degradations, *reconciliation.degradations]
    rejected = [*extraction.rejected, *resolution.rejected, *reconciliation.rejected, *applied.rejected]
    repairs: dict[str, int] = {}
    for plan in (extraction, resolution, reconciliation):
        for kind, count in plan.repairs.items():
            repairs[kind] = repairs.get(kind, 0) + count
    return WriteResult(
        event_id=message.event_id,
        status=status_of(extraction, degradations),
        facts_added=applied.facts_added,
        facts_updated=applied.facts_updated,
        facts_unchanged=applied.facts_unchanged,
        facts_deleted=applied.facts_deleted,
        entities_resolved=[
            EntityResult(name=e.name, key=e.key, method=e.method, is_new=e.is_new, score=e.score, why=e.why or None)
            for e in resolution.entities
        ],
        relations=applied.relations,
        emotion=EmotionResult(**extraction.emotion.model_dump(include=set(EmotionResult.model_fields))),
        degradations=degradations,
        rejected=rejected,
        repairs=repairs,
        **spending(usage),
        duration_ms=round(sum(timings.values()), 3),
        pipeline=trace_of(extraction, resolution, reconciliation, applied, timings) if message.verbose else None,
    )


def dry_result(
    message: Message,
    extraction: Extraction,
    usage: CallUsage,
    duration_ms: float,
    prompts: Sequence[SentPrompt] | None = None,
) -> WriteResult:
    """What a dry run answers: the facts that would be extracted, and what finding them cost. Nothing has an id.

    ``prompts`` go into the trace as they were sent, with their tokens by part: only a dry run has them, because it is
    answered to who wrote the message and kept nowhere.
    """
    steps = _extraction_steps(extraction) if message.verbose else []
    if steps and prompts is not None:
        steps[0].data["prompts"] = [prompt.shown() for prompt in prompts]
    return WriteResult(
        status=status_of(extraction, extraction.degradations),
        facts_added=[
            FactResult(
                subject=fact.subject,
                fact_text=fact.text,
                confidence=fact.confidence,
                importance=fact.importance,
                event_date=fact.event_date.isoformat() if fact.event_date else None,
            )
            for fact in extraction.facts
        ],
        emotion=EmotionResult(**extraction.emotion.model_dump(include=set(EmotionResult.model_fields))),
        degradations=extraction.degradations,
        rejected=extraction.rejected,
        repairs=extraction.repairs,
        **spending(usage),
        duration_ms=duration_ms,
        pipeline=PipelineTrace(steps=steps) if message.verbose else None,
    )


def failed_result(event_id: UUID | None, stage: str, cause: str) -> WriteResult:
    """What a parked run answers: the stage and the cause, never a text."""
    return WriteResult(event_id=event_id, status="failed", success=False, error=f"{stage}: {cause}")


def spending(usage: CallUsage) -> dict[str, Any]:
    """The fields of a WriteResult that say what the calls cost. A cost is given only if every call had a price."""
    return {
        "tokens_used": _tokens(usage.input_tokens, usage.output_tokens),
        "wasted": _tokens(usage.wasted_input_tokens, usage.wasted_output_tokens),
        "cost_usd": None if usage.unpriced else usage.cost_usd,
    }


def trace_of(
    extraction: Extraction,
    resolution: Resolution,
    reconciliation: Reconciliation,
    applied: Applied,
    timings: Mapping[str, float],
) -> PipelineTrace:
    """The five steps in the source's order, each with its data and milliseconds."""
    trace = PipelineTrace(steps=_extraction_steps(extraction))
    trace.step(
        "entity_resolution",
        resolution.duration_ms,
        entities=[e.model_dump(mode="json", exclude={"aliases"}) for e in resolution.entities],
        role_edges=[edge.model_dump() for edge in resolution.role_edges],
    )
    trace.step(
        "reconciliation",
        reconciliation.duration_ms,
        llm_asked=reconciliation.llm_asked,
        warnings=reconciliation.warnings,
        attributes=[note.model_dump() for note in reconciliation.attributes],
        decisions=[
            fact.model_dump(
                mode="json",
                include=set(_DECISION),
            )
            for fact in reconciliation.facts
        ],
    )
    trace.step(
        "upsert",
        timings.get("upsert", 0.0),
        added=len(applied.facts_added),
        updated=len(applied.facts_updated),
        unchanged=len(applied.facts_unchanged),
        deleted=len(applied.facts_deleted),
        relations=len(applied.relations),
        rejected=[item.model_dump() for item in applied.rejected],
    )
    return trace


def _extraction_steps(extraction: Extraction) -> list[Any]:
    trace = PipelineTrace()
    trace.step(
        "extraction",
        extraction.duration_ms - extraction.dedup_duration_ms,
        mode=extraction.mode,
        relation_retry_triggered=extraction.relation_retry_triggered,
        known=extraction.known_keys,
        context_tokens=extraction.context_tokens,
        chunks=extraction.chunks,
        prompt_version=extraction.prompt_version,
        entities=len(extraction.entities),
        facts=len(extraction.facts),
        relations=len(extraction.relations),
    )
    trace.step(
        "semantic_dedup", extraction.dedup_duration_ms, dropped=[item.model_dump() for item in extraction.dropped]
    )
    return trace.steps


def _tokens(spent_in: int, spent_out: int) -> TokenUsage:
    return TokenUsage(input_tokens=spent_in, output_tokens=spent_out, total_tokens=spent_in + spent_out)
