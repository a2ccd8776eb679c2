from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy.engine import Connection

from tests.integration.read.conftest import EVENT, uuid
from worker.read.entities import entities
from worker.read.facts import facts
from worker.read.relations import relations

# What the CLI's JSON promises (README, "The command line").
FACT_FIELDS = {
    "id", "entity_key", "fact_text", "confidence", "importance", "kind", "valid_from", "valid_from_known", "valid_to",
    "ingested_at", "invalidated_at", "last_confirmed_at", "supersedes_fact_id", "merged_into", "source_event_id",
    "event_date", "event_date_precision", "attribute_key", "value", "speaker", "source_context",
}  # fmt: skip


def texts(rows: list[dict[str, object]]) -> list[object]:
    return [row["fact_text"] for row in rows]


def test_what_is_believed_now_with_the_undated_first(reader: Connection) -> None:
    rows = facts(reader, "a")
    assert texts(rows) == ["Rui has a bike", "Rui lives in Porto"]
    assert set(rows[0]) == FACT_FIELDS
    assert rows[0]["valid_from_known"] is False
    assert rows[1]["valid_from"] == datetime(2021, 1, 1, tzinfo=UTC)
    assert (rows[1]["supersedes_fact_id"], rows[1]["source_event_id"]) == (uuid(11), EVENT)


def test_doubtful_facts_show_when_asked_for(reader: Connection) -> None:
    assert "Rui may like tea" in texts(facts(reader, "a", min_confidence=0.4))
    assert texts(facts(reader, "a", min_confidence=0.9)) == ["Rui lives in Porto"]


def test_everything_shows_versions_retractions_and_doubts(reader: Connection) -> None:
    assert texts(facts(reader, "a", everything=True)) == [
        "Rui has a bike", "Rui lives in Braga", "Rui lives in Porto", "Rui may like tea", "Rui no longer smokes",
    ]  # fmt: skip
    assert len(facts(reader, "a", everything=True, limit=2)) == 2


def test_facts_of_an_entity_are_those_about_it_or_linked_to_it(reader: Connection) -> None:
    assert texts(facts(reader, "a", entity_key="place:porto")) == ["Rui lives in Porto"]
    assert facts(reader, "a", entity_key="place:braga") == []
    assert texts(facts(reader, "a", entity_key="place:braga", everything=True)) == ["Rui lives in Braga"]
    # Subject of facts whose link was never written.
    assert texts(facts(reader, "a", entity_key="person:rui")) == ["Rui has a bike", "Rui lives in Porto"]


def test_entities_with_their_other_names_and_active_facts(reader: Connection) -> None:
    rows = entities(reader, "a")
    assert [row["canonical_key"] for row in rows] == ["person:rui", "place:braga", "place:porto"]
    assert rows[0]["display_name"] == "Rui Sá"
    assert rows[0]["aliases"] == ["Ruizinho"]
    assert [row["fact_count"] for row in rows] == [3, 0, 0]
    assert "person:rui_sa" in [row["canonical_key"] for row in entities(reader, "a", everything=True)]
    assert len(entities(reader, "a", limit=1)) == 1


def test_relations_that_hold_and_those_that_ended(reader: Connection) -> None:
    (row,) = relations(reader, "a")
    assert (row["source_entity_key"], row["rel_type"], row["target_entity_key"]) == (
        "person:rui", "lives_in", "place:porto",
    )  # fmt: skip
    assert row["evidence_fact_id"] == uuid(12)
    assert len(relations(reader, "a", everything=True)) == 2


def test_nothing_crosses_agents(reader: Connection) -> None:
    assert facts(reader, "b", everything=True) == []
    assert facts(reader, "b", entity_key="person:rui", everything=True) == []
    assert [row["aliases"] for row in entities(reader, "b")] == [["R"]]
    assert relations(reader, "b", everything=True) == []
