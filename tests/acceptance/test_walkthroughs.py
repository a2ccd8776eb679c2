"""The walk-throughs of the specification and the crowd, with a scripted model and a real worker."""

from __future__ import annotations

import random
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from producer import WriteResult
from tests.acceptance.stack import Stack
from tests.scripted_model import EMBEDDING

JANUARY, JUNE = datetime(2024, 1, 9, 12, tzinfo=UTC), datetime(2024, 6, 15, 12, tzinfo=UTC)
EDGES = """
SELECT source_entity_key || ' ' || rel_type || ' ' || target_entity_key AS edge, valid_to, invalidated_at,
       evidence_fact_id
  FROM memory_entity_relationships WHERE agent_id = %s ORDER BY 1
"""
FACTS = "SELECT * FROM memory_facts WHERE agent_id = %s ORDER BY valid_from, fact_text"


def reply(
    entities: list[tuple[str, str]],
    facts: list[tuple[str, str]],
    relations: list[tuple[str, str, str]] = (),  # type: ignore[assignment]
) -> dict[str, Any]:
    """What the model extracts."""
    return {
        "entities": [{"name": name, "type": kind, "aliases": []} for name, kind in entities],
        "facts": [
            {"subject": subject, "text": text, "action": "NEW", "confidence_level": "explicit_statement",
             "importance_category": "relationship_change"}
            for subject, text in facts
        ],
        "relations": [{"source": s, "rel_type": r, "target": t} for s, r, t in relations],
        "updated_profiles": [], "emotion": None,
    }  # fmt: skip


def decides(action: str) -> Any:
    """What the model decides about every fact, towards the first one that stands."""
    return lambda payload: {
        "decisions": [
            {"fact_number": fact["number"], "reason": "scripted", "action": action,
             "existing_number": fact["existing"][0]["number"]}
            for fact in payload["facts"]
        ]
    }  # fmt: skip


@pytest.fixture
def say(shared: Stack) -> Any:
    """Write a message with a scripted extraction, and wait for what became of it."""

    def do(agent: str, words: str, extracted: dict[str, Any], at: datetime, speaker: str = "Rafael") -> WriteResult:
        shared.model.on("informed_extraction", extracted)
        with shared.client() as client:
            result = client.write(agent, words, speaker, occurred_at=at, verbose=True, timeout=60)
        assert result.status == "ok", result
        return result

    yield do
    shared.model.reset()


def live(shared: Stack, agent: str) -> list[str]:
    return [row["edge"] for row in shared.rows(EDGES, agent) if row["valid_to"] is None]


def test_ricardo_moves_to_austin(shared: Stack, say: Any) -> None:
    home, move = "Ricardo Gomes lives in São Paulo", "Ricardo Gomes moved to Austin, Texas"
    shared.model.on(EMBEDDING, None)
    say("ricardo", "Ricardo Gomes lives in São Paulo.", reply(
        [("Ricardo Gomes", "person"), ("São Paulo", "place")], [("Ricardo Gomes", home)],
        [("Ricardo Gomes", "lives_in", "São Paulo")]), JANUARY)  # fmt: skip
    shared.model.on("reconciliation", decides("UPDATE"))
    result = say("ricardo", "Ricardo Gomes moved to Austin, Texas.", reply(
        [("Ricardo Gomes", "person"), ("Austin", "place")], [("Ricardo Gomes", move)],
        [("Ricardo Gomes", "lives_in", "Austin")]), JUNE)  # fmt: skip
    (asked,) = [call.payload for call in shared.model.calls if call.task == "reconciliation"]
    assert asked["facts"][0]["existing"][0]["text"] == home
    old, new = shared.rows(FACTS, "ricardo")
    assert (old["fact_text"], old["valid_to"], new["fact_text"], new["valid_to"]) == (home, JUNE, move, None)
    assert new["supersedes_fact_id"] == old["id"]
    assert old["invalidated_at"] is not None
    assert [fact.replaced_text for fact in result.facts_updated] == [home]
    assert live(shared, "ricardo") == ["person:ricardo_gomes lives_in place:austin"]
    assert [step.name for step in result.pipeline.steps] == [
        "extraction", "semantic_dedup", "entity_resolution", "reconciliation", "upsert",
    ]  # fmt: skip


def test_curitiba_to_sao_paulo_and_its_cascade(shared: Stack, say: Any) -> None:
    say("moves", "Moro em Curitiba", reply([("Rafael", "person"), ("Curitiba", "place")], [
        ("Rafael", "Rafael mora em Curitiba")], [("Rafael", "lives_in", "Curitiba")]), JANUARY)  # fmt: skip
    assert live(shared, "moves") == ["person:rafael lives_in place:curitiba"]
    shared.model.on("reconciliation", decides("UPDATE"))
    say("moves", "Me mudei pra São Paulo", reply([("Rafael", "person"), ("São Paulo", "place")], [
        ("Rafael", "Rafael mora em São Paulo")], [("Rafael", "lives_in", "São Paulo")]), JUNE)  # fmt: skip
    gone, there = shared.rows(EDGES, "moves")
    first, second = shared.rows(FACTS, "moves")
    assert (gone["edge"], gone["valid_to"]) == ("person:rafael lives_in place:curitiba", JUNE)
    assert gone["invalidated_at"] is not None
    assert (gone["evidence_fact_id"], there["evidence_fact_id"]) == (first["id"], second["id"])
    assert live(shared, "moves") == ["person:rafael lives_in place:sao_paulo"]


def test_pedro_lives_in_brazil_and_brasil(shared: Stack, say: Any) -> None:
    """A relation without a fact gets a mirror fact; in another spelling it is confirmed, and stays the evidence."""
    first = say("pedro", "Pedro is in Brazil these days.", reply(
        [("Pedro", "person"), ("Brazil", "place")], [], [("Pedro", "lives_in", "Brazil")]), JANUARY)  # fmt: skip
    (mirror,) = first.facts_added
    assert (mirror.fact_text, mirror.confidence, mirror.source_context) == (
        "Pedro lives in Brazil", 0.6, "inferred_from_relation",
    )  # fmt: skip
    shared.model.on("reconciliation", decides("NOOP"))
    shared.model.on("entity_resolution", lambda payload: {"resolutions": [
        {"name_number": name["number"], "reason": "the same country", "candidate_number": 1}
        for name in payload["names"]]})  # fmt: skip
    second = say("pedro", "O Pedro continua no Brasil.", reply(
        [("Pedro", "person"), ("Brasil", "place")], [("Pedro", "Pedro lives in Brasil")],
        [("Pedro", "lives_in", "Brasil")]), JUNE)  # fmt: skip
    assert second.facts_added == []
    assert [fact.id for fact in second.facts_unchanged] == [mirror.id]
    (edge,) = shared.rows(EDGES, "pedro")
    assert edge["evidence_fact_id"] == mirror.id
    assert shared.rows(FACTS, "pedro")[0]["last_confirmed_at"] == JUNE


def test_mother_in_curitiba(shared: Stack, say: Any) -> None:
    result = say("mother", "Vou pra Curitiba ver minha mãe", reply(
        [("Rafael", "person"), ("minha mãe", "person"), ("Curitiba", "place")],
        [("Rafael", "Rafael vai para Curitiba ver a mãe")],
        [("minha mãe", "lives_in", "Curitiba")]), JANUARY)  # fmt: skip
    mirrors = [fact for fact in result.facts_added if fact.source_context == "inferred_from_relation"]
    assert "mãe de Rafael mora em Curitiba" in [fact.fact_text for fact in mirrors]
    assert {fact.confidence for fact in mirrors} == {0.6}
    edges = {row["edge"]: row["evidence_fact_id"] for row in shared.rows(EDGES, "mother")}
    stands_on = edges["person:rafael_mother lives_in place:curitiba"]
    assert stands_on in {fact.id for fact in mirrors}
    assert {row["speaker"] for row in shared.rows(FACTS, "mother")} == {"Rafael"}


SPELLINGS = ("José Carlos Lima", "JOSÉ CARLOS LIMA", "Jose\u0301 Carlos Lima", "José  Carlos\u200b Lima", "José Carlos")


@pytest.mark.parametrize("seed", [1, 2])
def test_twenty_writers_and_five_spellings_of_one_person(shared: Stack, seed: int) -> None:
    """In any order, with two workers: one person, twenty facts, nothing failed and nothing lost."""
    agent, spelled = f"crowd-{seed}", [SPELLINGS[number % 5] for number in range(20)]
    random.Random(seed).shuffle(spelled)

    def extracted(payload: dict[str, Any]) -> dict[str, Any]:
        name, _, rest = payload["message"].partition(" was seen at ")
        return reply([(name, "person")], [(name, f"{name} was seen at {rest}")])

    shared.model.on("informed_extraction", extracted)
    shared.model.on("reconciliation", decides("ADD"))
    second = shared.worker()
    results: list[WriteResult] = []
    with shared.client() as client:

        def write(number: int) -> None:
            told = f"{spelled[number]} was seen at stop{number * 7}"
            results.append(client.write(agent, told, "Rafael", message_id=f"m{number}", timeout=90))

        threads = [threading.Thread(target=write, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    second.stop()
    shared.model.reset()
    assert [result.status for result in results] == ["ok"] * 20
    people = shared.rows("SELECT canonical_key FROM memory_entities WHERE agent_id = %s ORDER BY 1", agent)
    assert len(people) == 2, people
    assert len(shared.facts(agent)) == 20
    assert len({fact.entity_key for result in results for fact in result.facts_added}) == 1
    troubled = shared.rows(
        "SELECT cause, error_code FROM runs WHERE agent_id = %s AND (state <> 'done' OR cause IS NOT NULL)", agent
    )
    assert troubled == []
    deadlocks = shared.rows("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    assert deadlocks == [{"deadlocks": 0}]
