"""Three weeks of five lives, all jobs on their schedule: with the offline reader and the real embeddings, and with a
scripted model that makes two of one person and never recognises a fact, so that the jobs have much to clean up."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.integration.turns.conftest import Accept
from tests.scripted_model import ScriptedModel
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

# Of these, the scripted model makes Ana Souza and Aninha Souza, and facts that say what others said.
SCRIPTED = {
    0: ("Ana Souza lives in Curitiba", "Ana Souza works at Orion Tech"),
    4: ("Aninha Souza likes jazz", "Ana Souza works at Orion Tech as an engineer"),
    9: ("Ana Souza lives in Recife", "Aninha Souza likes jazz very much"),
    15: ("Aninha Souza likes coffee", "Ana Souza likes coffee"),
    20: ("Ana Souza plays chess", "Aninha Souza plays chess on Sundays"),
}

# Texts whose vectors lie near each other, and how near: alike (0.7) or a restatement (0.95).
NEAR_EACH_OTHER = {
    ("Ana Souza", "Aninha Souza"): 0.7,
    ("Ana Souza works at Orion Tech", "Ana Souza works at Orion Tech as an engineer"): 0.95,
    ("Aninha Souza likes jazz", "Aninha Souza likes jazz very much"): 0.95,
    ("Aninha Souza likes coffee", "Ana Souza likes coffee"): 0.95,
    ("Ana Souza plays chess", "Aninha Souza plays chess on Sundays"): 0.95,
}

# Each finds what must not be there once the jobs have run.
NOTHING = {
    "a stale profile": "SELECT canonical_key FROM memory_entities WHERE merged_into IS NULL"
    " AND facts_changed_at > coalesce(profile_refreshed_at, '-infinity')",
    "a live edge on a closed fact": "SELECT r.id FROM memory_entity_relationships r"
    " JOIN memory_facts f ON f.id = r.evidence_fact_id WHERE r.valid_to IS NULL AND f.valid_to IS NOT NULL",
    "a false count": "SELECT f.id FROM memory_facts f WHERE f.valid_to IS NULL AND f.confirmations <>"
    " (SELECT count(*) FROM memory_fact_confirmations c WHERE c.fact_id = f.id)",
    "something merged into what is closed by a merge": "SELECT f.id FROM memory_facts f"
    " JOIN memory_facts k ON k.id = f.merged_into WHERE k.merged_into IS NOT NULL",
    "something of an entity that is another one now": "SELECT f.id FROM memory_facts f JOIN memory_entities e"
    " ON e.agent_id = f.agent_id AND e.canonical_key = f.entity_key WHERE e.merged_into IS NOT NULL",
    "a merge into what was merged itself": "SELECT e.canonical_key FROM memory_entities e JOIN memory_entities k"
    " ON k.agent_id = e.agent_id AND k.canonical_key = e.merged_into WHERE k.merged_into IS NOT NULL",
    "an unfinished or failed run": "SELECT id FROM runs WHERE finished_at IS NULL OR status = 'failed'",
}

NEAR = """
SELECT a.fact_text AS one, b.fact_text AS other FROM memory_facts a JOIN memory_facts b
    ON b.agent_id = a.agent_id AND b.entity_key = a.entity_key AND b.id > a.id AND b.valid_to IS NULL
 WHERE a.valid_to IS NULL AND (a.embedding <=> b.embedding) <= 0.15
   AND NOT EXISTS (SELECT FROM memory_facts_distinct d WHERE d.fact_id = a.id AND d.other_id = b.id)
"""


@pytest.fixture
def offline(database: Engine) -> Iterator[None]:
    """No model is set."""
    models_in_use.language_model.cache_clear()
    models_in_use.embedding_model.cache_clear()
    yield
    models_in_use.language_model.cache_clear()
    models_in_use.embedding_model.cache_clear()


@pytest.fixture
def careless(model: ScriptedModel) -> ScriptedModel:
    """A model that takes each message for one fact and recognises nobody and nothing; asked to merge, it is careful."""
    for group, likeness in NEAR_EACH_OTHER.items():
        for place, told in enumerate(group):
            rest = [0.0] * (model.dimensions - 10)
            axis = [float(number == list(NEAR_EACH_OTHER).index(group)) for number in range(10)]
            model.vector(told, axis + rest if place == 0 else [likeness * x for x in axis] + [0.0] * 99
                         + [(1 - likeness**2) ** 0.5] + rest[100:])  # fmt: skip

    def extract(payload: dict[str, Any]) -> dict[str, Any]:
        said = payload["message"]
        subject = " ".join(said.split()[:2])
        places = [{"name": said.split(" in ")[1], "type": "place"}] if " in " in said else []
        return {
            "entities": [{"name": subject, "type": "person", "aliases": []}, *places],
            "facts": [{"subject": subject, "text": said, "confidence_level": "explicit_statement"}],
            "relations": [{"source": subject, "rel_type": "lives_in", "target": one["name"]} for one in places],
        }

    def decide(fact: dict[str, Any]) -> dict[str, Any]:
        moved = [old["number"] for old in fact["existing"] if all(" lives in " in one["text"] for one in (old, fact))]
        return {"fact_number": fact["number"], "reason": "", "action": "UPDATE" if moved else "ADD",
                "existing_number": moved[0] if moved else None}  # fmt: skip

    def one_fact(payload: dict[str, Any]) -> dict[str, Any]:
        told = sorted((set(fact["text"].split()[2:]) for fact in payload["facts"]), key=len)
        same = all(less <= more for less, more in pairwise(told))
        return {"reason": "one says more" if same else "they differ", "same": same, "text": ""}

    model.on("informed_extraction", extract)
    model.on("entity_resolution", lambda p: {"resolutions": [
        {"name_number": name["number"], "reason": "in doubt", "candidate_number": None} for name in p["names"]
    ]})  # fmt: skip
    model.on("reconciliation", lambda p: {"decisions": [decide(fact) for fact in p["facts"]]})
    model.on("fact_merge", one_fact)
    model.on("entity_merge", {"reason": "a nickname", "same": True})
    return model


def all_that_waits() -> None:
    """Every run of every agent, in its order."""
    for agent in AGENTS:
        while (given := dispatch(agent)).run_id is not None:
            for stage in given.stages:
                outcome = run_stage(stage, given.run_id, given.fence)
                assert isinstance(outcome, (Applied, Moved)), outcome
                if isinstance(outcome, Applied):
                    break


def live(days: dict[int, tuple[str, ...]], accepted: Accept, later: Any) -> None:
    """Three weeks, with all that is due once a day that something is said, and at the end."""
    for day, messages in days.items():
        later(f"{day} days")
        for agent in AGENTS:
            accepted(*messages, agent=agent)
        all_that_waits()
        plan_jobs()
        all_that_waits()
    for hours in (0, 12):  # what one job leaves to the next
        later(f"21 days {hours} hours")
        plan_jobs()
        all_that_waits()


def check(rows: Any) -> dict[str, int]:
    """Nothing is stale, doubled or miscounted; returns how many items each job worked on."""
    assert {name: rows(query) for name, query in NOTHING.items()} == {name: [] for name in NOTHING}
    assert [pair for pair in rows(NEAR) if same_claim_possible(pair["one"], pair["other"])] == []
    return {row["job"]: row["many"] for row in rows("SELECT job, sum(items) AS many FROM maintenance_runs GROUP BY 1")}


def check_that_nothing_is_left(rows: Any, later: Any) -> None:
    """Another round finds nothing due."""
    later("21 days 22 hours")
    before = rows("SELECT sum(steps) AS steps FROM maintenance_runs")
    plan_jobs()
    all_that_waits()
    assert rows("SELECT sum(steps) AS steps FROM maintenance_runs") == before, "a second run finds nothing due"


def test_afterwards_nothing_is_stale_doubled_or_miscounted_and_nothing_is_left_to_do(
    offline: None, accepted: Accept, rows: Any, later: Any
):
    live(DAYS, accepted, later)
    done = check(rows)
    assert done["consolidate_entity_profiles"] >= len(AGENTS)
    assert {job.name for job in JOBS} >= set(done)
    check_that_nothing_is_left(rows, later)


def test_the_jobs_clean_up_after_a_careless_model_and_then_ask_no_more(
    careless: ScriptedModel, accepted: Accept, rows: Any, later: Any
):
    live(SCRIPTED, accepted, later)
    done = check(rows)
    assert done["dedup_entities"] == len(AGENTS)
    people = "SELECT canonical_key AS key FROM memory_entities WHERE agent_id = :a AND merged_into IS NULL ORDER BY 1"
    facts = "SELECT fact_text FROM memory_facts WHERE agent_id = :a AND valid_to IS NULL ORDER BY 1"
    for agent in AGENTS:
        assert [row["key"] for row in rows(people, a=agent) if row["key"].startswith("person:")] == [
            "person:ana_souza", "person:rafael",
        ]  # fmt: skip
        assert sorted(row["fact_text"].replace("Aninha", "Ana") for row in rows(facts, a=agent)) == [
            "Ana Souza likes coffee", "Ana Souza likes jazz very much", "Ana Souza lives in Recife",
            "Ana Souza plays chess on Sundays", "Ana Souza works at Orion Tech as an engineer",
        ]  # fmt: skip
    calls = len(careless.calls)
    check_that_nothing_is_left(rows, later)
    assert len(careless.calls) == calls
