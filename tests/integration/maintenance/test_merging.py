"""Two entities become one: nothing is lost, later messages find the survivor, and a split undoes it row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from tests.integration.maintenance.conftest import RunJob, Tell
from tests.scripted_model import ScriptedModel
from worker.maintenance import merging
from worker.maintenance.merging import MergeRefused, merge_entities
from worker.maintenance.splitting import split_entities

KEPT, GONE = "person:ana_souza", "person:aninha"

# Every table of the memory, whole: what a merge may touch, and what it must not.
MEMORY = {
    "memory_entities": "canonical_key",
    "memory_entity_aliases": "alias_folded, entity_type",
    "memory_facts": "id",
    "memory_fact_confirmations": "fact_id, event_id",
    "memory_fact_entity_links": "fact_id, entity_key",
    "memory_entity_relationships": "id",
    "memory_relationship_evidence": "relationship_id, fact_id",
    "memory_facts_distinct": "fact_id, other_id",
    "memory_attribute_registry": "attribute_key",
    "event_annotations": "event_id",
    "memory_events": "id",
}


@pytest.fixture
def memory(rows: Any) -> Callable[[], dict[str, list[Any]]]:
    """All rows of all tables of the memory, as text."""

    def look() -> dict[str, list[Any]]:
        return {
            table: [row["r"] for row in rows(f"SELECT to_jsonb(t)::text AS r FROM {table} t ORDER BY {key}")]
            for table, key in MEMORY.items()
        }

    return look


# Somebody else's edge that stands on nothing but Aninha's copy of what both have.
KNOWS = """
WITH edge AS (
  INSERT INTO memory_entity_relationships (agent_id, source_entity_key, target_entity_key, rel_type, evidence_fact_id)
  SELECT 'a', 'person:rafael', 'place:recife', 'knows', id FROM memory_facts
   WHERE entity_key = 'person:aninha' AND fact_text = 'She lives in Olinda' RETURNING id, evidence_fact_id
)
INSERT INTO memory_relationship_evidence SELECT id, evidence_fact_id FROM edge
"""


@pytest.fixture
def twins(tell: Tell, model: ScriptedModel, database: Engine) -> Tell:
    """Ana Souza and Aninha, who are one: facts of each, one that both have, edges of each, one that both have, one
    between them, and somebody else's edge that stands on what both have."""
    model.vector("Ana Souza", [1.0, *[0.0] * 383])
    model.vector("Aninha", [0.0, 1.0, *[0.0] * 382])
    works = ("Orion Tech", "Orion Tech introduced Ana Souza to Recife")
    tell(("Ana Souza", "Ana Souza works at Orion Tech"), works,
        edges=(("Ana Souza", "works_at", "Orion Tech"), ("Ana Souza", "friend_of", "Rafael")))  # fmt: skip
    tell(("Aninha", "Aninha lives in Recife"), ("Aninha", "She lives in Olinda"),
        edges=(("Aninha", "lives_in", "Recife"), ("Aninha", "friend_of", "Rafael")))  # fmt: skip
    tell(("Ana Souza", "She lives in Olinda"))
    tell(("Aninha", "Aninha is a friend of Ana Souza"), edges=(("Aninha", "colleague_of", "Ana Souza"),))
    with database.begin() as connection:
        connection.execute(text(KNOWS))
    return tell


@pytest.fixture
def merge(database: Engine) -> Callable[..., UUID]:
    """Merge one into another, under nobody's turn."""

    def do(kept: str = KEPT, gone: str = GONE) -> UUID:
        with Session(database) as session, session.begin():
            return merge_entities(session, "a", kept, gone, by="hand", reason="they are one", score=0.9)

    return do


@pytest.fixture
def split(database: Engine) -> Callable[[UUID], tuple[str, str]]:
    """Undo a merge."""

    def do(merge_id: UUID) -> tuple[str, str]:
        with Session(database) as session, session.begin():
            return split_entities(session, "a", merge_id)

    return do


FACTS = ("SELECT fact_text FROM memory_facts WHERE entity_key = :key AND valid_to IS NULL"
         " AND source_context IS NULL ORDER BY 1")  # fmt: skip
EDGES = ("SELECT source_entity_key AS s, rel_type AS r, target_entity_key AS t FROM memory_entity_relationships"
         " WHERE valid_to IS NULL AND :key IN (source_entity_key, target_entity_key) ORDER BY 1, 2, 3")  # fmt: skip


def test_all_that_was_known_of_both_is_known_of_the_survivor(twins: Tell, merge, rows):
    both = len(rows("SELECT 1 FROM memory_facts WHERE valid_to IS NULL"))
    merge()
    assert rows("SELECT 1 FROM memory_facts WHERE entity_key = :key", key=GONE) == rows(EDGES, key=GONE) == []
    assert len(rows("SELECT 1 FROM memory_facts WHERE valid_to IS NULL")) == both - 1
    assert rows(EDGES, key=KEPT) == [
        {"s": KEPT, "r": "friend_of", "t": "person:rafael"},
        {"s": KEPT, "r": "lives_in", "t": "place:recife"},
        {"s": KEPT, "r": "works_at", "t": "organization:orion_tech"},
    ]
    assert rows("SELECT merged_into FROM memory_entities WHERE canonical_key = :key", key=GONE) == [
        {"merged_into": KEPT}
    ]
    for query in (
        "SELECT alias FROM memory_entity_aliases WHERE entity_key = :key",
        "SELECT fact_id FROM memory_fact_entity_links WHERE entity_key = :key",
    ):
        assert rows(query, key=GONE) == []
    both = "SELECT confirmations FROM memory_facts WHERE valid_to IS NULL AND fact_text = 'She lives in Olinda'"
    (olinda,) = rows(both)
    assert olinda["confirmations"] == 1
    dead = "SELECT 1 FROM memory_entity_relationships r JOIN memory_facts f ON f.id = r.evidence_fact_id WHERE "
    assert rows(dead + "r.valid_to IS NULL AND f.valid_to IS NOT NULL") == []
    (kept,) = rows("SELECT * FROM entity_merges")
    assert (kept["merged_by"], kept["reason"], round(kept["score"], 2)) == ("hand", "they are one", 0.9)
    assert {row["table"] for row in kept["moved"]} == {
        "entity", "alias", "fact", "said", "link", "edge", "evidence"
    }  # fmt: skip
    assert not any("Olinda" in str(row["after"]) for row in kept["moved"] if row["table"] == "fact"), "no fact's text"


def test_a_split_gives_back_the_former_state_row_by_row(twins: Tell, merge, split, memory):
    before = memory()
    done = merge()
    assert memory() != before
    assert split(done) == (KEPT, GONE)
    assert memory() == before


def test_a_merged_name_means_the_survivor_from_then_on(twins: Tell, merge, rows):
    merge()
    twins(("Aninha", "Aninha plays the violin"), edges=(("Aninha", "likes", "Orion Tech"),))
    assert {"fact_text": "Aninha plays the violin"} in rows(FACTS, key=KEPT)
    assert {"s": KEPT, "r": "likes", "t": "organization:orion_tech"} in rows(EDGES, key=KEPT)
    assert rows("SELECT canonical_key FROM memory_entities WHERE entity_type = 'person' AND merged_into IS NULL"
                " ORDER BY 1") == [{"canonical_key": KEPT}, {"canonical_key": "person:rafael"}]  # fmt: skip


def test_merges_of_merged_ones_lead_to_the_last_in_one_step_and_are_undone_newest_first(
    twins: Tell, merge, split, memory, rows
):
    twins(("Nina", "Nina has two olinda"), ("Nina", "She lives in Olinda"), edges=(("Nina", "friend_of", "Rafael"),))
    start = memory()
    first = merge(GONE, "person:nina")
    between = memory()
    second = merge(KEPT, GONE)
    assert {row["merged_into"] for row in rows("SELECT merged_into FROM memory_entities")} == {None, KEPT}
    with pytest.raises(MergeRefused, match=f"undo merge {second} first"):
        split(first)
    with pytest.raises(MergeRefused, match="is merged into person:ana_souza already"):
        merge("person:rafael", GONE)
    split(second)
    assert memory() == between
    split(first)
    assert memory() == start
    with pytest.raises(MergeRefused, match="undone already"):
        split(first)


def test_a_split_keeps_what_was_learnt_since_and_makes_both_due(
    twins: Tell, merge, split, rows, run_job: RunJob, model: ScriptedModel
):
    """Jobs have looked at the survivor, what one said has moved on, and a fact of each became one meanwhile."""
    model.vector("Ana Souza likes jazz", [*[0.0] * 383, 1.0])
    model.vector("Aninha likes jazz music", [*[0.0] * 383, 1.0])
    twins(("Ana Souza", "Ana Souza likes jazz"))
    twins(("Aninha", "Aninha likes jazz music"))
    done = merge()
    model.on("fact_merge", {"reason": "one", "same": True, "text": ""})
    assert run_job("dedup_facts")["items"] == 1
    run_job("consolidate_entity_profiles")
    model.on("reconciliation", lambda p: {"decisions": [
        {"fact_number": fact["number"], "reason": "", "action": "UPDATE",
         "existing_number": next(old["number"] for old in fact["existing"] if old["text"] == "Aninha lives in Recife")}
        for fact in p["facts"]
    ]})  # fmt: skip
    twins(("Aninha", "Aninha lives in Recife by the sea"), edges=(("Aninha", "lives_in", "Recife"),))
    split(done)
    assert [row["fact_text"] for row in rows(FACTS, key=GONE)] == [
        "Aninha is a friend of Ana Souza", "Aninha likes jazz music", "Aninha lives in Recife by the sea",
        "She lives in Olinda",
    ]  # fmt: skip
    assert [row["fact_text"] for row in rows(FACTS, key=KEPT)] == [
        "Ana Souza likes jazz", "Ana Souza works at Orion Tech", "She lives in Olinda",
    ]  # fmt: skip
    assert {"s": GONE, "r": "lives_in", "t": "place:recife"} in rows(EDGES, key=GONE)
    assert rows("SELECT 1 FROM memory_facts f WHERE f.valid_to IS NULL AND f.confirmations <>"
                " (SELECT count(*) FROM memory_fact_confirmations c WHERE c.fact_id = f.id)") == []  # fmt: skip
    assert rows("SELECT 1 FROM memory_facts f JOIN memory_fact_entity_links l ON l.fact_id = f.id AND l.is_primary"
                " WHERE l.entity_key <> f.entity_key") == []  # fmt: skip
    assert rows("SELECT 1 FROM memory_entity_relationships r JOIN memory_facts f ON f.id = r.evidence_fact_id"
                " WHERE r.valid_to IS NULL AND f.valid_to IS NOT NULL") == []  # fmt: skip
    due = "SELECT canonical_key AS key FROM memory_entities WHERE facts_changed_at > profile_refreshed_at"
    assert {KEPT} <= {row["key"] for row in rows(due)}
    assert rows("SELECT one_key, other_key FROM memory_entities_distinct") == [{"one_key": KEPT, "other_key": GONE}]


def test_what_ended_while_they_were_one_has_ended_for_both(twins: Tell, merge, split, rows, model: ScriptedModel):
    done = merge()
    model.on("reconciliation", lambda p: {"decisions": [
        {"fact_number": fact["number"], "reason": "", "action": "UPDATE",
         "existing_number": next(old["number"] for old in fact["existing"] if old["text"] == "She lives in Olinda")}
        for fact in p["facts"]
    ]})  # fmt: skip
    twins(("Ana Souza", "She lives in Olinda by the sea"))
    split(done)
    olinda = rows("SELECT entity_key, valid_to IS NULL AS lives, fact_text FROM memory_facts"
                " WHERE fact_text LIKE 'She lives in %' ORDER BY 1, 3")  # fmt: skip
    assert olinda == [
        {"entity_key": KEPT, "lives": False, "fact_text": "She lives in Olinda"},
        {"entity_key": KEPT, "lives": True, "fact_text": "She lives in Olinda by the sea"},
        {"entity_key": GONE, "lives": False, "fact_text": "She lives in Olinda"},
    ]


def test_a_merge_that_fails_in_the_middle_changes_nothing(twins: Tell, database: Engine, memory, monkeypatch):
    before = memory()
    monkeypatch.setattr(merging, "refresh_edges", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError), Session(database) as session, session.begin():
        merge_entities(session, "a", KEPT, GONE, by="hand")
    assert memory() == before


def test_a_placeholder_takes_the_name_and_gives_it_back(tell: Tell, merge, split, memory, rows, model: ScriptedModel):
    tell(("Rafael's brother", "Rafael's brother lives in Recife"))
    tell(("Pedro", "Pedro works at Orion Tech"))
    (nameless,) = rows("SELECT canonical_key AS key FROM memory_entities WHERE is_placeholder")
    before = memory()
    done = merge(nameless["key"], "person:pedro")
    assert rows("SELECT display_name, is_placeholder FROM memory_entities WHERE canonical_key = :k", k=nameless["key"]
                ) == [{"display_name": "Pedro", "is_placeholder": False}]  # fmt: skip
    split(done)
    assert memory() == before


def test_a_role_whose_nameless_holder_was_merged_means_the_one_with_the_name(tell: Tell, merge, rows):
    tell(("Rafael's brother", "Rafael's brother lives in Recife"))
    tell(("Pedro", "Pedro is a brother of Rafael"), edges=(("Pedro", "sibling_of", "Rafael"),))
    (nameless,) = rows("SELECT canonical_key AS key FROM memory_entities WHERE is_placeholder")
    merge("person:pedro", nameless["key"])
    tell(("Rafael's brother", "Rafael's brother plays the violin"))
    assert {"fact_text": "Rafael's brother plays the violin"} in rows(FACTS, key="person:pedro")
    assert rows("SELECT 1 FROM memory_facts f JOIN memory_entities e ON e.canonical_key = f.entity_key"
                " WHERE e.merged_into IS NOT NULL") == []  # fmt: skip
