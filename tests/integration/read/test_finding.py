"""Search, neighbours, history, timeline: what comes back, and what must not."""

from __future__ import annotations

import doctest
import itertools
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine, text
from sqlalchemy.engine import Connection

import worker.read as reading
from tests.integration.read.conftest import EVENT, uuid
from tests.integration.write.scene import Scene, always, day
from worker.read import (
    chronicle,
    entities,
    facts,
    finding,
    get_entity,
    graph,
    history,
    neighbours,
    search,
    timeline,
    traces,
)


def test_the_examples_of_the_docstrings_run(database: Engine) -> None:
    for module in (chronicle, entities, facts, finding, graph, traces):
        found = doctest.testmod(module)
        assert (found.attempted > 0, found.failed) == (True, 0), module.__name__
    assert all(getattr(reading, name).__doc__ for name in reading.__all__)


def said(rows: list[dict[str, Any]]) -> list[Any]:
    return [row["fact_text"] for row in rows]


@pytest.fixture
def home(database: Engine) -> Scene:
    """Ana and Bia, whose lives are told in a few words."""
    scene = Scene(database, {"lives in": "home", "sings": "song"}, Natal="place", Lima="place", Acme="organization")
    scene.write("ana mudou", [("Ana", "Ana lives in Natal")], [("Ana", "lives_in", "Natal")], at=day(1))
    scene.write("ana mudou de novo", [("Ana", "Ana lives in Lima")], [("Ana", "lives_in", "Lima")], at=day(5),
                decide=always("UPDATE"))  # fmt: skip
    scene.write("ja", [("Ana", "Ana lives in Lima")], at=day(6))
    scene.write("bia", [("Bia", "Bia sings fado às quintas")], [("Bia", "works_at", "Acme")], at=day(7))
    scene.write("dúvida", [("Bia", "Bia is Ana's friend")], [("Bia", "friend_of", "Ana")], at=day(8))
    return scene


def test_meaning_and_words_are_fused_and_only_what_lives_is_found(home: Scene, database: Engine) -> None:
    vector = home.embeddings._vector("who lives in the north")
    with database.connect() as connection:
        hits = search(connection, home.agent, "Where does Ana live?", vector=vector)
        assert hits[0]["fact_text"] == "Ana lives in Lima"
        assert "Ana lives in Natal" not in said(hits)
        assert (hits[0]["source_message"], hits[0]["source_occurred_at"]) == ("ana mudou de novo", day(5))
        assert hits[0]["similarity"] > 0.7
        assert hits[0]["score"] >= hits[1]["score"]
        then = search(connection, home.agent, "Ana lives", vector=vector, as_of=day(2))
        assert said(then)[0] == "Ana lives in Natal"
        closed = search(connection, home.agent, "Ana lives", vector=vector, include_closed=True)
        assert {"Ana lives in Natal", "Ana lives in Lima"} <= set(said(closed))
        only = search(connection, home.agent, "Ana", vector=vector, entity_keys=["person:bia"])
        assert {row["entity_key"] for row in only} == {"person:bia"}
        late = search(connection, home.agent, "Ana", vector=vector, since=day(7), until=day(8))
        assert {row["valid_from"] for row in late} == {day(7)}
        assert search(connection, "another", "Ana lives", vector=vector) == []


def test_words_are_found_without_vectors_accents_or_signs(home: Scene, database: Engine) -> None:
    with database.connect() as connection:
        (best, *_) = finding.search_words(connection, home.agent, "AS QUINTAS: fado?! & | ' \\ ~x")
        assert (best["fact_text"], best["similarity"]) == ("Bia sings fado às quintas", None)
        assert finding.search_words(connection, home.agent, "' & ( !") == []
        known = search(connection, home.agent, "Ana lives", vector=home.embeddings._vector("lives in"),
                       known_at=datetime(2020, 1, 1, tzinfo=UTC))  # fmt: skip
        assert known == [], "nothing was known then"


def test_a_used_fact_counts(home: Scene, database: Engine) -> None:
    (fact,) = home.facts(active=True)[:1]
    with database.begin() as connection:
        finding.note_used(connection, home.agent, [fact.id])
    assert home.rows("SELECT retrievals FROM memory_facts WHERE agent_id = :agent AND retrievals > 0") == [(1,)]


def test_the_index_of_neighbours_answers_like_the_exact_search(
    home: Scene, database: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = home.embeddings._vector("who lives in the north")
    with database.connect() as connection:
        exact = search(connection, home.agent, "who lives", vector=vector)
        monkeypatch.setattr(finding, "EXACT_FACTS", 0)
        assert search(connection, home.agent, "who lives", vector=vector) == exact
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        connection.execute(text("SET LOCAL enable_bitmapscan = off"))
        connection.execute(text("SET LOCAL enable_sort = off"))
        plan = connection.execute(
            text(f"EXPLAIN SELECT id FROM memory_facts f ORDER BY f.embedding <=> '{_text(vector)}' LIMIT 5")
        ).scalars()
        assert any("memory_facts_nearest" in line for line in plan)


def _text(vector: Any) -> str:
    return np.array2string(vector, separator=",", threshold=10_000, max_line_width=1_000_000)


def test_a_name_does_not_hide_what_is_asked_about_it(database: Engine) -> None:
    scene = Scene(database)
    scene.write("ana", [("Ana", f"Ana says {n}") for n in range(9)], at=day(1))
    name, *topics = np.eye(384)[:10]
    facts_ = scene.facts()
    with database.begin() as connection:
        connection.execute(text("UPDATE memory_entities SET embedding = CAST(:v AS vector)"), {"v": _text(name)})
        for number, (fact, topic) in enumerate(zip(facts_, topics, strict=True)):
            mostly_name = (1 if number == 4 else 8) * name + topic
            connection.execute(
                text("UPDATE memory_facts SET embedding = CAST(:v AS vector) WHERE id = :id"),
                {"v": _text(mostly_name / np.linalg.norm(mostly_name)), "id": fact.id},
            )
        asked = (3 * name + topics[4]) / np.linalg.norm(3 * name + topics[4])
        hits = search(connection, scene.agent, "What of Ana?", vector=asked.astype(np.float32))
        assert hits[0]["id"] == facts_[4].id
        assert min(hit["similarity"] for hit in hits) == hits[0]["similarity"], "by the vectors alone it is the last"


def test_neighbours_breadth_first_over_live_edges(home: Scene, database: Engine) -> None:
    with database.connect() as connection:
        one = neighbours(connection, home.agent, "person:ana")
        assert {(row["entity_key"], row["depth"]) for row in one} == {("place:lima", 1), ("person:bia", 1)}
        two = neighbours(connection, home.agent, "person:ana", depth=3)
        assert [row["entity_key"] for row in two if row["depth"] == 2] == ["organization:acme"]
        (acme,) = [row for row in two if row["depth"] == 2]
        assert (acme["via_entity_key"], acme["rel_type"], acme["evidence_text"] is not None) == (
            "person:bia", "works_at", True,
        )  # fmt: skip
        assert len(neighbours(connection, home.agent, "person:ana", depth=3, limit=1)) == 1
        assert len(neighbours(connection, home.agent, "person:ana", fan_out=1)) == 1
        assert neighbours(connection, "another", "person:ana") == []
        with pytest.raises(ValueError, match="between 1 and 6"):
            neighbours(connection, home.agent, "person:ana", depth=7)


def test_a_dense_graph_costs_its_edges_not_its_paths(database: Engine) -> None:
    scene = Scene(database)
    people = [f"P{number}" for number in range(24)]
    pairs = [(a, "knows", b) for a, b in itertools.combinations(people, 2)]
    scene.write("all", [(name, f"{name} is here") for name in people], pairs, at=day(1))
    with database.connect() as connection:
        found = neighbours(connection, scene.agent, "person:p0", depth=6, limit=100)
    assert {row["depth"] for row in found} == {1}
    assert len(found) == 23


def test_history_is_the_whole_chain_from_any_of_its_versions(home: Scene, database: Engine) -> None:
    first, second = (fact for fact in home.facts() if "lives in" in fact.fact_text)
    with database.connect() as connection:
        for asked in (first.id, second.id):
            rows = history(connection, home.agent, asked)
            assert said(rows) == ["Ana lives in Natal", "Ana lives in Lima"]
        assert [source["message"] for source in rows[1]["sources"]] == ["ana mudou de novo", "ja"]
        assert [source["said"] for source in rows[1]["sources"]] == ["first", "again"]
        assert history(connection, "another", first.id) == []


def test_a_timeline_tells_beginnings_and_endings(home: Scene, database: Engine) -> None:
    with database.connect() as connection:
        rows = timeline(connection, home.agent, entity_key="place:natal")
        assert [(row["change"], row["at"]) for row in rows] == [("began", day(1)), ("ended", day(5))]
        assert rows[0]["source_message"] == "ana mudou"
        part = timeline(connection, home.agent, since=day(5), until=day(7))
        assert {row["at"] for row in part} == {day(5)}
        assert [row["change"] for row in part] == ["ended", "began"]


def test_an_entity_by_its_key_or_by_one_that_was_merged_into_it(reader: Connection) -> None:
    found = get_entity(reader, "a", "person:rui_sa")
    assert found is not None
    assert (found["canonical_key"], found["aliases"], found["fact_count"]) == ("person:rui", ["Ruizinho"], 3)
    assert set(found) == set(entities.entities(reader, "a")[0])
    assert get_entity(reader, "b", "person:rui_sa") is None
    assert history(reader, "a", uuid(12))[0]["sources"][0]["event_id"] == str(EVENT)
