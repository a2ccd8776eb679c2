"""Three weeks of five lives with the offline reader and the real embeddings, all jobs on their schedule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.integration.turns.conftest import Accept
from worker import models_in_use
from worker.maintenance.planning import plan_jobs
from worker.maintenance.schedule import JOBS
from worker.turns.dispatch import dispatch
from worker.turns.running import Applied, Moved, run_stage
from worker.write.polarity import same_claim_possible

AGENTS = [f"life-{number}" for number in range(5)]
DAYS = {
    0: ("I live in Curitiba", "I work at Orion Tech", "My sister Ana lives in Recife"),
    4: ("I have a dog called Bidu", "I like coffee"),
    9: ("I moved to Recife", "I no longer work at Orion Tech"),
    15: ("I work at Lumen Labs", "I love coffee", "Ana has a cat"),
    20: ("I don't like coffee any more", "I live in Recife"),
}

# Each finds what must not be there once the jobs have run.
NOTHING = {
    "a stale profile": "SELECT canonical_key FROM memory_entities"
    " WHERE facts_changed_at > coalesce(profile_refreshed_at, '-infinity')",
    "a live edge on a closed fact": "SELECT r.id FROM memory_entity_relationships r"
    " JOIN memory_facts f ON f.id = r.evidence_fact_id WHERE r.valid_to IS NULL AND f.valid_to IS NOT NULL",
    "a false count": "SELECT f.id FROM memory_facts f WHERE f.valid_to IS NULL AND f.confirmations <>"
    " (SELECT count(*) FROM memory_fact_confirmations c WHERE c.fact_id = f.id)",
    "something merged into what is closed by a merge": "SELECT f.id FROM memory_facts f"
    " JOIN memory_facts k ON k.id = f.merged_into WHERE k.merged_into IS NOT NULL",
    "an unfinished or failed run": "SELECT id FROM runs WHERE finished_at IS NULL OR status = 'failed'",
}

NEAR = """
SELECT a.fact_text AS one, b.fact_text AS other FROM memory_facts a JOIN memory_facts b
    ON b.agent_id = a.agent_id AND b.entity_key = a.entity_key AND b.id > a.id AND b.valid_to IS NULL
 WHERE a.valid_to IS NULL AND (a.embedding <=> b.embedding) <= 0.15
   AND NOT EXISTS (SELECT FROM memory_facts_distinct d WHERE d.fact_id = a.id AND d.other_id = b.id)
"""


@pytest.fixture(autouse=True)
def _offline(database: Engine) -> Iterator[None]:
    models_in_use.language_model.cache_clear()
    models_in_use.embedding_model.cache_clear()
    yield
    models_in_use.language_model.cache_clear()
    models_in_use.embedding_model.cache_clear()


def all_that_waits() -> None:
    """Every run of every agent, in its order."""
    for agent in AGENTS:
        while (given := dispatch(agent)).run_id is not None:
            for stage in given.stages:
                outcome = run_stage(stage, given.run_id, given.fence)
                assert isinstance(outcome, (Applied, Moved)), outcome
                if isinstance(outcome, Applied):
                    break


def test_afterwards_nothing_is_stale_doubled_or_miscounted_and_nothing_is_left_to_do(
    accepted: Accept, rows: Any, later: Any, database: Engine
):
    for day, messages in DAYS.items():
        later(f"{day} days")
        for agent in AGENTS:
            accepted(*messages, agent=agent)
        all_that_waits()
        plan_jobs()
        all_that_waits()
    later("21 days")
    plan_jobs()
    all_that_waits()
    assert {name: rows(query) for name, query in NOTHING.items()} == {name: [] for name in NOTHING}
    near = [pair for pair in rows(NEAR) if same_claim_possible(pair["one"], pair["other"])]
    assert near == []
    done = {row["job"]: row["many"] for row in rows("SELECT job, sum(items) AS many FROM maintenance_runs GROUP BY 1")}
    print(done, rows("SELECT count(*) AS facts FROM memory_facts WHERE valid_to IS NULL"))
    assert done["consolidate_entity_profiles"] >= len(AGENTS)
    later("21 days 2 hours")
    before = rows("SELECT sum(steps) AS steps FROM maintenance_runs")
    plan_jobs()
    all_that_waits()
    assert rows("SELECT sum(steps) AS steps FROM maintenance_runs") == before, "a second run finds nothing due"
    assert {job.name for job in JOBS} >= set(done)
