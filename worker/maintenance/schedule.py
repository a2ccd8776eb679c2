"""The jobs, in the order in which an agent's run, and how often each may. The one place that says so.

Entities that are one go before facts that say one thing, and both before profiles, so that a profile is written once.
"""

from __future__ import annotations

from worker.maintenance.duplicates import DedupFacts
from worker.maintenance.job import Job
from worker.maintenance.profiles import ConsolidateEntityProfiles
from worker.maintenance.promotion import PromoteAttributes
from worker.maintenance.scores import ScoreImportance
from worker.maintenance.stale import MarkStale
from worker.maintenance.summaries import RefreshSummaries
from worker.maintenance.twins import DedupEntities
from worker.settings import Settings

JOBS: tuple[Job, ...] = (
    DedupEntities(),
    DedupFacts(),
    PromoteAttributes(),
    ScoreImportance(),
    MarkStale(),
    ConsolidateEntityProfiles(),
    RefreshSummaries(),
)

# Job -> the setting that says how many seconds lie between two of its runs for one agent.
INTERVALS = {
    "dedup_entities": "job_dedup_entities_sec",
    "dedup_facts": "job_dedup_facts_sec",
    "promote_attributes": "job_promote_attributes_sec",
    "score_importance": "job_score_sec",
    "mark_stale": "job_stale_sec",
    "consolidate_entity_profiles": "job_profiles_sec",
    "refresh_summaries": "job_summaries_sec",
}


def job_named(name: str) -> Job:
    """The job of that name. Raises KeyError for one that this code does not have."""
    return next((job for job in JOBS if job.name == name), None) or _unknown(name)


def interval_of(name: str, settings: Settings) -> float:
    """Seconds between two runs of a job for one agent; 0: it is switched off."""
    return float(getattr(settings, INTERVALS[name]))


def _unknown(name: str) -> Job:
    raise KeyError(name)
