"""The three planning stages under one signature, so that workers and the in-process pipeline run the very same code."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TypeVar

from producer.queues import Stage
from worker.db import ReadSession
from worker.write.calls import Calls
from worker.write.extraction import extract
from worker.write.message import Message
from worker.write.plans import Extraction, Plan, Reconciliation, Resolution
from worker.write.reconciliation import reconcile
from worker.write.resolution import resolve

P = TypeVar("P", bound=Plan)


@dataclass(frozen=True, slots=True)
class Plans:
    """The plans of a run so far."""

    extraction: Extraction | None = None
    resolution: Resolution | None = None
    reconciliation: Reconciliation | None = None

    def reach(self, stage: Stage) -> bool:
        """Whether the plans that ``stage`` builds on are all there."""
        if stage is Stage.EXTRACT:
            return True
        if self.extraction is None or self.extraction.empty:
            return self.extraction is not None
        needed = {Stage.RESOLVE: 0, Stage.RECONCILE: 1, Stage.UPSERT: 2}[stage]
        return all(plan is not None for plan in (self.resolution, self.reconciliation)[:needed])

    def ready(self) -> tuple[Extraction, Resolution, Reconciliation]:
        """All three; an extraction that found nothing needs no more. Raises ValueError if one is missing."""
        if self.extraction is None:
            raise ValueError("the run has no extraction")
        if self.extraction.empty:
            return self.extraction, self.resolution or Resolution(), self.reconciliation or Reconciliation()
        if self.resolution is None or self.reconciliation is None:
            raise ValueError("the run has no resolution or no reconciliation")
        return self.extraction, self.resolution, self.reconciliation


def plan_stage(
    stage: Stage, message: Message, plans: Plans, read: ReadSession, calls: Calls, *, fallback: str | None = None
) -> Plans:
    """Run one planning stage and return the plans with its own added.

    ``fallback`` is the cause that makes the stage take its simpler way. Raises ModelError (EmbeddingError), whose
    meaning is ``worker.write.policy``'s to decide, and ValueError when an earlier plan is missing.
    """
    begun = time.perf_counter()
    if stage is Stage.EXTRACT:
        return replace(plans, extraction=_timed(extract(message, read, calls, fallback=fallback), begun))
    if plans.extraction is None:
        raise ValueError("the run has no extraction")
    if stage is Stage.RESOLVE:
        return replace(
            plans, resolution=_timed(resolve(message, plans.extraction, read, calls, fallback=fallback), begun)
        )
    if stage is Stage.RECONCILE and plans.resolution is not None:
        decided = reconcile(message, plans.extraction, plans.resolution, read, calls, fallback=fallback)
        return replace(plans, reconciliation=_timed(decided, begun))
    raise ValueError(f"{stage.value} is not a planning stage of this run")


def _timed(plan: P, begun: float) -> P:
    return plan.model_copy(update={"duration_ms": round((time.perf_counter() - begun) * 1000, 3)})
