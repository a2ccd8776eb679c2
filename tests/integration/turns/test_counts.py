"""Promises 6 and 7 as counts: model calls, embedding calls and SQL statements of a whole message, ledger included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, text

from producer.accepting import envelope
from producer.contract import WriteRequest
from producer.queues import Stage
from tests.integration.turns.conftest import counted
from tests.scripted_model import EMBEDDING, ScriptedModel
from worker.bench.cost import AGENT, fill
from worker.bench.workload import reply_to, spoken
from worker.db import autocommit
from worker.turns import life
from worker.turns.dispatch import dispatch
from worker.turns.recording import record
from worker.turns.running import Applied, run_stage


def many_facts(number: int, verb: str = "owns") -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A reply with ``number`` facts about one person, and one relation."""

    def reply(_: dict[str, Any]) -> dict[str, Any]:
        return {
            "entities": [{"name": "Clara Rezende", "type": "person", "aliases": []},
                         {"name": "Orion Tech", "type": "organization", "aliases": []}],
            "facts": [{"subject": "Clara Rezende", "text": f"Clara Rezende {verb} item{n} of shop{n * 7} at Orion Tech",
                       "action": "NEW", "confidence_level": "explicit_statement",
                       "importance_category": "stable_preference"} for n in range(number)],
            "relations": [{"source": "Clara Rezende", "target": "Orion Tech", "rel_type": "works_at"}],
            "updated_profiles": [], "emotion": {"primary": "joy", "intensity": 0.5, "energy_level": "high"},
        }  # fmt: skip

    return reply


@pytest.mark.parametrize(("facts", "most"), [(1, 40), (10, 40 + 18), (50, 40 + 98)])
def test_a_message_takes_few_statements_and_at_most_three_calls(process, model: ScriptedModel, facts: int, most: int):
    said = "Clara Rezende owns " + " and ".join(f"item{n} of shop{n * 7}" for n in range(facts)) + " at Orion Tech"
    model.on("informed_extraction", many_facts(facts))
    first = process(said)
    first_calls = (model.count(), model.count(EMBEDDING))
    model.reset()
    model.on("informed_extraction", many_facts(facts, "sold"))
    second = process(said.replace("owns", "sold"))
    print(f"{facts} facts: {len(first)} and {len(second)} statements, {first_calls} and "
          f"{(model.count(), model.count(EMBEDDING))} model and embedding calls")  # fmt: skip
    assert len(first) <= most
    assert len(second) <= most
    assert first_calls[0] <= 3
    assert model.count() <= 3
    assert first_calls[1] <= 3
    assert model.count(EMBEDDING) <= 3


@pytest.mark.parametrize("size", [0, 5_000])
def test_a_message_costs_no_more_calls_and_statements_on_a_large_store(
    process, database_url: str, model: ScriptedModel, size: int
):
    """The benchmark's workload: three entities, two facts and one relation a message."""
    people = max(200, size // 5)
    if size:
        fill(database_url, size, people)
    for task in ("informed_extraction", "entity_resolution", "reconciliation"):
        model.on(task, lambda payload, task=task: reply_to(task, payload, people))
    counts = []
    for number in range(size, size + 3):
        before = model.count(), model.count(EMBEDDING)
        statements = len(process(spoken(number, people).text, agent=AGENT))
        counts.append((model.count() - before[0], model.count(EMBEDDING) - before[1], statements))
    print(f"{size} facts: (model calls, embedding calls, statements) {counts}")
    assert max(calls for calls, _, _ in counts) <= 3
    assert sum(calls for calls, _, _ in counts) <= 2 * len(counts)
    assert max(embeddings for _, embeddings, _ in counts) <= 3
    assert max(statements for _, _, statements in counts) <= 40 + 2


@pytest.mark.parametrize("analyzed", [False, True])
def test_plans_made_for_small_tables_stay_good_when_they_grow(
    process, database: Engine, database_url: str, model: ScriptedModel, analyzed: bool
):
    """A worker keeps its plans, and autovacuum looks at the new sizes after a minute only. One plan was bad enough for
    two million pages a message: what was to be looked up was looked for anew for each row of the other side."""
    size, people = 5_000, 1_000
    for task in ("informed_extraction", "entity_resolution", "reconciliation"):
        model.on(task, lambda payload, task=task: reply_to(task, payload, people))
    for number in range(9):  # a statement is prepared at its second use; its sixth plan is kept
        process(spoken(number, people).text, agent="other")
        if analyzed and number == 0:
            with autocommit(database) as connection:
                connection.execute(text("ANALYZE"))
    fill(database_url, size, people, analyze=False)
    before = total(database, "blks_hit + blks_read")
    for number in range(size, size + 3):
        process(spoken(number, people).text, agent=AGENT)
    read = (total(database, "blks_hit + blks_read") - before) // 3
    print(f"{read:,} pages a message")
    assert read < 40_000


def test_a_message_that_goes_well_rolls_nothing_back(process, database: Engine, model: ScriptedModel):
    """At a ROLLBACK psycopg forgets the connection's prepared statements, and all of them are planned anew."""
    model.on("informed_extraction", many_facts(2))
    before = total(database, "xact_rollback")
    process("Clara Rezende owns item0 of shop0 and item1 of shop7 at Orion Tech")
    assert total(database, "xact_rollback") == before


def total(database: Engine, columns: str) -> int:
    """What Postgres counts of this database, up to now for the connection that is next in the pool."""
    with autocommit(database) as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
        return connection.execute(
            text(f"SELECT {columns} FROM pg_stat_database WHERE datname = current_database()")
        ).scalar_one()


def test_noise_takes_one_stage_and_no_call(process, database: Engine, model: ScriptedModel):
    life.worker_name()
    with counted(database) as statements:
        record(envelope(WriteRequest(agent_id="a", message="bom dia!", speaker_name="Rafael")).model_dump(mode="json"))
        given = dispatch("a")
        outcome = run_stage(Stage.EXTRACT, given.run_id, given.fence)
    assert outcome == Applied("a", "empty")
    assert (model.count(), model.count(EMBEDDING)) == (0, 0)
    print(f"noise: {len(statements)} statements")
