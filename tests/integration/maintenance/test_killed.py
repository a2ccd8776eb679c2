"""Every job, those without a model included: its process is killed with -9 in the middle of an apply, then it goes on.

The end state is that of an agent who lived the same and whose jobs nobody killed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, text

from producer.connections import poll
from tests.integration.maintenance.conftest import RunJob, dispatch_left, one_step, take_turn
from tests.integration.turns.conftest import Accept
from worker import models_in_use
from worker.maintenance.planning import PlacedRun, place
from worker.maintenance.schedule import JOBS
from worker.turns.dispatch import dispatch
from worker.turns.running import Applied, run_stage

LIVES = ("I live in Curitiba", "I work at Orion Tech", "Mariana Costa has a boat", "Bruna Dias lives in Recife")
# Something to do for every job, the same for both agents: one name twice, a near-duplicate, a ripe key, a fading fact.
MORE = """
INSERT INTO memory_facts (id, agent_id, entity_key, fact_text, text_hash, embedding, confidence, source_event_id,
                          valid_from)
SELECT gen_random_uuid(), agent_id, entity_key, 'Rafael lives in the city of Curitiba', 'hash', embedding, 0.9,
       source_event_id, valid_from
  FROM memory_facts WHERE fact_text = 'Rafael lives in Curitiba';
INSERT INTO memory_attribute_registry (agent_id, attribute_key, sightings) VALUES
  ('killed', 'person.ripe', 3), ('spared', 'person.ripe', 3);
UPDATE memory_facts SET confidence = 0.1 WHERE fact_text LIKE 'Rafael works%';
UPDATE memory_entities SET display_name = 'Mariana Costa' WHERE canonical_key = 'person:bruna_dias';
UPDATE memory_entity_aliases SET alias = 'Mari Costa', alias_folded = 'mari costa' WHERE alias = 'Bruna Dias'
"""
# All that a job may change, without ids, times and whose it is.
STATE = {
    "entities": "SELECT canonical_key, merged_into, profile_text, profile_source, summary_text, scored_at IS NULL,"
    " facts_deduped_at >= facts_changed_at, profile_refreshed_at >= facts_changed_at,"
    " twins_sought_at >= facts_changed_at FROM memory_entities WHERE agent_id = :agent",
    "facts": "SELECT f.entity_key, f.fact_text, f.valid_to IS NULL, k.fact_text, f.confirmations, f.stale_at IS NULL,"
    " f.salience IS NULL FROM memory_facts f LEFT JOIN memory_facts k ON k.id = f.merged_into"
    " WHERE f.agent_id = :agent",
    "edges": "SELECT r.source_entity_key, r.rel_type, r.target_entity_key, r.valid_to IS NULL, f.fact_text"
    " FROM memory_entity_relationships r LEFT JOIN memory_facts f ON f.id = r.evidence_fact_id"
    " WHERE r.agent_id = :agent",
    "aliases": "SELECT alias_folded, entity_key FROM memory_entity_aliases WHERE agent_id = :agent",
    "keys": "SELECT attribute_key, is_active FROM memory_attribute_registry WHERE agent_id = :agent",
    "merges": "SELECT kept_key, gone_key, reason, jsonb_array_length(moved) FROM entity_merges WHERE agent_id = :agent",
    "runs": "SELECT job, steps > 0, items, outcome FROM maintenance_runs WHERE agent_id = :agent",
}
HELD = ("memory_entities", "memory_facts", "memory_attribute_registry")
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid = ANY (:pids)"
PIDS = "SELECT array_agg(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture(autouse=True)
def _offline() -> Iterator[None]:
    models_in_use.language_model.cache_clear()
    models_in_use.embedding_model.cache_clear()
    yield
    models_in_use.language_model.cache_clear()
    models_in_use.embedding_model.cache_clear()


@pytest.fixture
def state(database: Engine) -> Callable[[str], dict[str, list[str]]]:
    """All that STATE shows of an agent, in a fixed order."""

    def look(agent: str) -> dict[str, list[str]]:
        with database.connect() as connection:
            return {
                name: sorted(str(tuple(row)) for row in connection.execute(text(query), {"agent": agent}))
                for name, query in STATE.items()
            }

    return look


def until(look: Callable[[], Any], timeout: float = 30.0) -> Any:
    """Ask until the answer is true. Raises TimeoutError."""
    if (found := poll(lambda: look() or None, timeout)) is None:
        raise TimeoutError
    return found


def killed_in_the_middle(database: Engine, job: str) -> None:
    """Let a process of its own plan a step of ``job``, and kill it while it applies that."""
    place([PlacedRun("killed", job)])
    given = take_turn("killed")
    with database.connect() as holder, database.connect().execution_options(isolation_level="AUTOCOMMIT") as watcher:
        for table in HELD:
            holder.execute(text(f"SELECT 1 FROM {table} WHERE agent_id = 'killed' FOR UPDATE"))
        process = subprocess.Popen(
            [sys.executable, "-m", "worker.turns.alone", "job", str(given.run_id), str(given.fence)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until(lambda: watcher.execute(text(WAITING)).scalar_one() == 1)
        pids = watcher.execute(text(PIDS)).scalar_one()
        process.kill()
        process.wait()
        holder.rollback()
        until(lambda: watcher.execute(text(OTHERS), {"pids": pids}).scalar_one() == 0)
        watcher.execute(text("UPDATE agent_turns SET lease_until = mandua_now() - interval '1 s'"))


def test_whatever_job_is_killed_it_ends_as_if_it_had_not_been(
    accepted: Accept, database: Engine, run_job: RunJob, state: Callable[[str], dict[str, list[str]]]
):
    for agent in ("killed", "spared"):
        accepted(*LIVES, agent=agent)
        while (given := dispatch(agent)).run_id is not None:
            for stage in given.stages:
                if isinstance(run_stage(stage, given.run_id, given.fence), Applied):
                    break
    with database.begin() as connection:
        connection.execute(text(MORE))
    for job in JOBS:
        before = state("killed")
        killed_in_the_middle(database, job.name)
        assert state("killed") == before, f"{job.name} was applied by halves"
        while dispatch_left(database, "killed"):
            assert isinstance(one_step("killed"), Applied)
        assert run_job(job.name, "spared")["items"] > 0, f"{job.name} had nothing to do"
        assert state("killed") == state("spared"), job.name
