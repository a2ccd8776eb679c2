"""Upsert against a real database (behaviour: 8): versions in two clocks, links, edges and their cascade, rejections."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from tests.integration.write.scene import Scene, always, day
from worker.llm.items import ExtractedFact
from worker.write.plans import ResolvedEntity, RoleEdge
from worker.write.upsert import upsert

HOME = {"lives": "home", "mora": "home", "moved": "home"}


@contextmanager
def breaking(engine: Engine, table: str, column: str, sqlstate: str = "P0001") -> Iterator[None]:
    """A trigger that refuses rows whose ``column`` says so."""
    with engine.begin() as connection:
        connection.execute(
            text(
                f"CREATE FUNCTION test_break() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                f"IF NEW.{column} LIKE '%poison%' THEN RAISE EXCEPTION 'no' USING ERRCODE = '{sqlstate}'; END IF; "
                f"RETURN NEW; END $$"
            )
        )
        connection.execute(
            text(f"CREATE TRIGGER test_break BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION test_break()")
        )
    yield
    with engine.begin() as connection:
        connection.execute(text("DROP FUNCTION test_break CASCADE"))


# -- the source's walk-throughs ----------------------------------------------------------------------------------------


def test_ricardo_moves_to_austin(database: Engine) -> None:
    scene = Scene(database, HOME, São_Paulo="place", Austin="place")
    scene.write(
        "x",
        [("Ricardo Gomes", "Ricardo Gomes lives in São Paulo")],
        [("Ricardo Gomes", "lives_in", "São Paulo")],
        at=day(1),
    )
    written = scene.write(
        "x",
        [("Ricardo Gomes", "Ricardo Gomes moved to Austin, Texas")],
        [("Ricardo Gomes", "lives_in", "Austin")],
        at=day(30),
        decide=always("UPDATE"),
    )
    old, new = scene.facts()
    assert (old.valid_to, old.invalidated_at is not None) == (day(30), True)
    assert (new.supersedes_fact_id, new.valid_from, new.valid_to) == (old.id, day(30), None)
    assert old.invalidated_at == new.ingested_at
    assert scene.edges() == {("person:ricardo_gomes", "lives_in", "place:austin")}
    assert scene.edges(live=False) == {("person:ricardo_gomes", "lives_in", "place:sao_paulo")}
    (updated,) = written.applied.facts_updated
    assert (updated.replaced_id, updated.replaced_text) == (old.id, "Ricardo Gomes lives in São Paulo")
    assert written.applied.facts_added == []
    scene.assert_sound()


def test_curitiba_to_sao_paulo_and_back_brings_the_edge_back_to_life(database: Engine) -> None:
    scene = Scene(database, HOME, Curitiba="place", São_Paulo="place")
    for number, city in enumerate(["Curitiba", "São Paulo", "Curitiba"]):
        scene.write(
            "x",
            [("Bruna", f"Bruna mora em {city}")],
            [("Bruna", "lives_in", city)],
            at=day(number * 10),
            decide=always("UPDATE"),
        )
    assert scene.edges() == {("person:bruna", "lives_in", "place:curitiba")}
    (edge,) = scene.rows(
        "SELECT * FROM memory_entity_relationships WHERE agent_id = :agent AND target_entity_key = 'place:curitiba'"
    )
    assert (edge.valid_from, edge.valid_to, edge.invalidated_at) == (day(20), None, None)
    assert edge.strength == pytest.approx(0.9)
    assert [row[1:] for row in scene.history()] == [(0, 10), (10, 20), (20, None)]
    scene.assert_sound()


def test_an_edge_moves_to_other_evidence_before_it_dies(database: Engine) -> None:
    scene = Scene(database, {"works": "job", "desk": "desk"}, Acme="organization")
    scene.write("x", [("Ana", "Ana works at Acme")], [("Ana", "works_at", "Acme")], at=day(1))
    scene.write("x", [("Ana", "Ana has a desk at Acme")], [("Ana", "works_at", "Acme")], at=day(2))
    scene.write("x", [("Ana", "Ana no longer works at Acme")], at=day(3), decide=always("DELETE"), names=["Acme"])
    assert scene.edges() == {("person:ana", "works_at", "organization:acme")}
    scene.assert_sound()
    scene.write("x", [("Ana", "Ana no longer has a desk at Acme")], at=day(4), decide=always("DELETE"), names=["Acme"])
    assert scene.edges() == set()
    (edge,) = scene.rows("SELECT * FROM memory_entity_relationships WHERE agent_id = :agent")
    assert (edge.valid_from, edge.valid_to) == (day(1), day(4))


# -- links, aliases, profiles, annotation ------------------------------------------------------------------------------


def test_clara_joins_orion_tech_one_fact_two_links_one_edge(database: Engine) -> None:
    scene = Scene(database, Orion_Tech="organization")
    written = scene.write(
        "x",
        [("Clara Rezende", "Clara Rezende joined Orion Tech as head of engineering")],
        [("Clara Rezende", "works_at", "Orion Tech")],
        at=day(1),
        profiles={"Clara Rezende": "Head of engineering at Orion Tech."},
    )
    (fact,) = scene.facts()
    links = scene.rows("SELECT entity_key, is_primary FROM memory_fact_entity_links WHERE agent_id = :agent")
    assert set(map(tuple, links)) == {("person:clara_rezende", True), ("organization:orion_tech", False)}
    (relation,) = written.applied.relations
    assert (relation.strength, relation.evidence_fact_id) == (0.8, fact.id)
    entities = {row.canonical_key: row for row in scene.rows("SELECT * FROM memory_entities WHERE agent_id = :agent")}
    clara = entities["person:clara_rezende"]
    assert (clara.profile_text, clara.profile_source) == ("Head of engineering at Orion Tech.", "model")
    assert entities["organization:orion_tech"].profile_text is None
    (note,) = scene.rows("SELECT a.* FROM event_annotations a JOIN memory_events e ON e.id = a.event_id")
    assert (note.emotion, note.energy_level) == ("neutral", "medium")


def test_a_profile_is_seeded_once_and_without_a_model_from_the_facts(database: Engine) -> None:
    scene = Scene(database)
    scene.write("x", [("Ana", "Ana is a nurse"), ("Ana", "Ana lives in Natal")], at=day(1))
    scene.write("x", [("Ana", "Ana has a cat")], at=day(2), profiles={"Ana": "A nurse."})
    (ana,) = scene.rows("SELECT * FROM memory_entities WHERE agent_id = :agent")
    assert (ana.profile_text, ana.profile_source) == ("Ana is a nurse. Ana lives in Natal.", "facts")
    assert ana.profile_refreshed_at is None


def test_only_what_changes_a_fact_makes_the_profile_job_due(database: Engine) -> None:
    scene = Scene(database)
    scene.write("x", [("Ana", "Ana sings")], at=day(1))
    ana = "SELECT facts_changed_at, last_seen_at FROM memory_entities WHERE agent_id = :agent"
    (before,) = scene.rows(ana)
    scene.write("x", [("Ana", "Ana sings.")], at=day(2))
    (after,) = scene.rows(ana)
    assert after.facts_changed_at == before.facts_changed_at
    assert after.last_seen_at > before.last_seen_at


def test_links_are_whole_words_longest_first_and_never_a_namesake(database: Engine) -> None:
    scene = Scene(database, Prado="organization", Ana_Paula="person")
    scene.write("x", [("Rui", "Rui met Ana Paula and ate a banana")], at=day(1), names=["Ana", "Ana Paula"])
    links = scene.rows("SELECT entity_key FROM memory_fact_entity_links WHERE agent_id = :agent")
    assert {link.entity_key for link in links} == {"person:rui", "person:ana_paula"}
    resolution = scene.resolution(["Prado"])
    resolution.known_names["person:prado"] = ["Prado", "João Prado"]
    scene.write("x", [("Prado", "Prado sells shoes")], at=day(2), resolution=resolution)
    links = scene.rows("SELECT entity_key FROM memory_fact_entity_links WHERE entity_key LIKE '%prado'")
    assert {link.entity_key for link in links} == {"organization:prado"}


def test_aliases_first_write_wins_and_a_placeholder_takes_the_real_name(database: Engine) -> None:
    scene = Scene(database)

    def entity(key: str, display: str, method: str, *aliases: str) -> ResolvedEntity:
        return ResolvedEntity.model_validate(
            {
                "name": display,
                "key": key,
                "display_name": display,
                "entity_type": "person",
                "is_new": True,
                "method": method,
                "aliases": list(aliases),
            }
        )

    brother = entity("person:rafael_brother", "Rafael's brother", "placeholder")
    base = scene.resolution([])
    edge = RoleEdge(source_key="person:rafael", target_key="person:rafael_brother", rel_type="sibling_of")
    rafael = entity("person:rafael", "Rafael", "speaker", "Rafa")
    first = base.model_copy(update={"entities": [rafael, brother], "role_edges": [edge]})
    scene.write("x", [("Rafael's brother", "Rafael's brother is ill")], at=day(1), resolution=first)
    assert scene.edges() == {("person:rafael", "sibling_of", "person:rafael_brother")}
    again = base.model_copy(update={"entities": [brother.model_copy(update={"method": "exact"})]})
    scene.write("x", [("Rafael's brother", "Rafael's brother sings")], at=day(1), resolution=again)
    assert scene.rows("SELECT FROM memory_entities WHERE agent_id = :agent AND is_placeholder")
    named = entity("person:rafael_brother", "Pedro", "llm", "Rafael's brother")
    other = entity("person:raquel", "Raquel", "new", "Rafa")
    second = base.model_copy(update={"entities": [rafael, named, other]})
    scene.write("x", [("Pedro", "Pedro is well")], at=day(2), resolution=second)
    entities = {row.canonical_key: row for row in scene.rows("SELECT * FROM memory_entities WHERE agent_id = :agent")}
    assert entities["person:rafael_brother"].display_name == "Pedro"
    assert not entities["person:rafael_brother"].is_placeholder
    aliases = dict(scene.rows("SELECT alias_folded, entity_key FROM memory_entity_aliases WHERE agent_id = :agent"))
    assert aliases["rafa"] == "person:rafael"
    assert aliases["pedro"] == "person:rafael_brother"


def test_los_02_an_entity_pruned_meanwhile_is_there_again(database: Engine) -> None:
    scene = Scene(database, Acme="organization")
    scene.write("x", [], at=day(1), names=["Acme"])
    written, vectors = scene.plan("x", [("Ana", "Ana works at Acme")], [("Ana", "works_at", "Acme")], at=day(2))
    with Session(database) as session:
        session.execute(text("DELETE FROM memory_entities WHERE canonical_key = 'organization:acme'"))
        applied = upsert(session, written.message, written.extraction, written.resolution, written.plan, vectors)
        session.commit()
    assert applied.rejected == []
    assert scene.edges() == {("person:ana", "works_at", "organization:acme")}


def test_los_06_each_fact_has_its_own_vector_subject_and_event(database: Engine) -> None:
    scene = Scene(database)
    facts = [("Bruna", "Bruna nasceu em Olinda"), ("Léo", "Léo é primo da Bruna")]
    written = scene.write("x", facts, at=day(1))
    stored = scene.rows(
        "SELECT entity_key, fact_text, source_event_id, CAST(embedding AS text) AS v FROM memory_facts"
        " WHERE agent_id = :agent ORDER BY fact_text"
    )
    assert [(row.entity_key, row.fact_text) for row in stored] == [
        ("person:bruna", "Bruna nasceu em Olinda"),
        ("person:leo", "Léo é primo da Bruna"),
    ]
    for row in stored:
        expected = scene.embeddings._vector(row.fact_text)
        assert [float(x) for x in row.v.strip("[]").split(",")] == pytest.approx(expected.tolist(), abs=1e-6)
        assert row.source_event_id == written.message.event_id


# -- two clocks --------------------------------------------------------------------------------------------------------


def test_a_late_fact_lands_already_closed_and_splits_the_chain(database: Engine) -> None:
    scene = Scene(database, HOME)
    for number, city in [(1, "Natal"), (9, "Lima"), (5, "Quito")]:
        scene.write("x", [("Ana", f"Ana lives in {city}")], at=day(number), decide=always("UPDATE"))
    assert scene.history() == [
        ("Ana lives in Natal", 1, 5),
        ("Ana lives in Quito", 5, 9),
        ("Ana lives in Lima", 9, None),
    ]
    natal, quito, lima = scene.facts()
    assert (quito.supersedes_fact_id, lima.supersedes_fact_id) == (natal.id, quito.id)
    scene.assert_sound()


def test_a_late_confirmation_moves_valid_from_back_and_nothing_else(database: Engine) -> None:
    scene = Scene(database)
    scene.write("x", [("Ana", "Ana likes tea")], at=day(9))
    scene.write("x", [("Ana", "Ana likes tea.")], at=day(12))
    scene.write("x", [("Ana", "Ana likes tea!")], at=day(4))
    (fact,) = scene.facts()
    assert (fact.valid_from, fact.last_confirmed_at, fact.confirmations) == (day(4), day(12), 2)


def test_a_late_correction_splits_what_was_said_before_and_after_it(database: Engine) -> None:
    scene = Scene(database, HOME, Natal="place", Lima="place")
    for number, city in [(9, "Natal"), (1, "Natal"), (5, "Lima")]:
        scene.write(
            "x",
            [("Ana", f"Ana lives in {city}")],
            [("Ana", "lives_in", city)],
            at=day(number),
            decide=always("UPDATE"),
        )
    assert scene.history() == [
        ("Ana lives in Natal", 1, 5),
        ("Ana lives in Lima", 5, 9),
        ("Ana lives in Natal", 9, None),
    ]
    assert scene.edges() == {("person:ana", "lives_in", "place:natal")}
    assert scene.rows("SELECT FROM memory_fact_confirmations c JOIN memory_facts f ON f.id = c.fact_id") == []
    scene.assert_sound()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_version_has_the_words_of_who_said_it_first(database: Engine, order: tuple[int, ...]) -> None:
    scene = Scene(database, {"lives in": "home", "moved": "home"}, Lima="place", Quito="place", Oslo="place")
    said = [(1, "Ana moved to Lima from Oslo"), (5, "Ana lives in Quito"), (9, "Ana lives in Lima")]

    def decide(payload: dict[str, Any]) -> dict[str, Any]:
        (fact,) = payload["facts"]
        alike = [one for one in fact["existing"] if ("Lima" in one["text"]) is ("Lima" in fact["text"])]
        cited = (alike or fact["existing"])[0]["number"]
        action = "NOOP" if alike else "UPDATE"
        return {"decisions": [{"fact_number": 1, "reason": "", "action": action, "existing_number": cited}]}

    for index in order:
        at, words = said[index]
        scene.write("x", [("Ana", words)], at=day(at), decide=decide, names=["Lima", "Quito", "Oslo"])
        scene.assert_sound()
    assert scene.history() == [
        ("Ana moved to Lima from Oslo", 1, 5),
        ("Ana lives in Quito", 5, 9),
        ("Ana lives in Lima", 9, None),
    ]
    stored = scene.rows(
        "SELECT fact_text, CAST(embedding AS text) AS v, ARRAY (SELECT l.entity_key FROM memory_fact_entity_links l"
        " WHERE l.fact_id = f.id ORDER BY 1) AS links FROM memory_facts f WHERE agent_id = :agent ORDER BY valid_from"
    )
    for row in stored:
        expected = scene.embeddings._vector(row.fact_text).tolist()
        assert [float(x) for x in row.v.strip("[]").split(",")] == pytest.approx(expected, abs=1e-6)
    assert stored[0].links == ["person:ana", "place:lima", "place:oslo"]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_retraction_closes_what_was_before_it_in_any_order(database: Engine, order: tuple[int, ...]) -> None:
    scene = Scene(database, {"tea": "tea"})
    said = [(1, "Ana likes tea"), (5, "Ana no longer likes tea"), (9, "Ana likes tea.")]
    for index in order:
        at, words = said[index]
        action = "DELETE" if "longer" in words else "UPDATE"
        scene.write("x", [("Ana", words)], at=day(at), decide=always(action))
    assert [(row[0].strip("."), *row[1:]) for row in scene.history()] == [
        ("Ana likes tea", 1, 5),
        ("Ana no longer likes tea", 5, 5),
        ("Ana likes tea", 9, None),
    ]
    scene.assert_sound()


def test_an_unknown_time_never_replaces_a_dated_fact(database: Engine) -> None:
    scene = Scene(database, HOME)
    scene.write("x", [("Ana", "Ana lives in Natal")], at=day(5))
    scene.write("x", [("Ana", "Ana lives in Lima")], at=None, decide=always("UPDATE"))
    scene.write("x", [("Ana", "Ana no longer lives in Natal")], at=None, decide=always("DELETE"))
    scene.write("x", [("Ana", "ana lives in natal")], at=None)
    assert scene.active() == {"Ana lives in Natal"}
    (natal,) = scene.facts(active=True)
    (lima,) = scene.facts(active=False)
    assert (lima.valid_from, lima.valid_to, lima.valid_from_known) == (None, day(5), False)
    assert (natal.valid_from, natal.supersedes_fact_id) == (day(5), lima.id)
    scene.assert_sound()


def test_dat_11_a_confirmation_keeps_the_date_and_fills_a_missing_one(database: Engine) -> None:
    scene = Scene(database)
    dated = ExtractedFact.model_validate(
        {
            "subject": "Bruna",
            "text": "Bruna adotou o gato Nilo",
            "event_date": "2025-02-02",
            "event_date_precision": "day",
        }
    )
    scene.write("x", [("Bruna", "Bruna adotou o gato Nilo")], at=day(1))
    scene.write("x", [dated], at=day(2))
    scene.write("x", [("Bruna", "Bruna adotou o gato Nilo.")], at=day(3))
    (fact,) = scene.facts()
    assert fact.event_date.isoformat() == "2025-02-02"


def test_corrections_are_counted_for_another_value_of_one_attribute(database: Engine) -> None:
    scene = Scene(database, HOME)
    for number, city in enumerate(["Natal", "Lima"]):
        fact = ExtractedFact(
            subject="Ana", text=f"Ana lives in {city}", attribute_key="person.city", value=city, confidence=0.95
        )
        scene.write("x", [fact], at=day(number), decide=always("UPDATE"))
    assert [fact.user_correction_count for fact in scene.facts()] == [1, 0]


# -- what fails --------------------------------------------------------------------------------------------------------


def test_a_fact_that_fails_is_rejected_and_the_rest_is_stored(database: Engine) -> None:
    scene = Scene(database, Acme="organization")
    with breaking(database, "memory_facts", "fact_text"):
        written = scene.write(
            "x",
            [("Ana", "Ana drank poison"), ("Ana", "Ana works at Acme"), ("Rui", "Rui sings")],
            [("Ana", "works_at", "Acme")],
            at=day(1),
        )
    assert [item.reason for item in written.applied.rejected] == ["database_P0001"]
    assert scene.active() == {"Ana works at Acme", "Rui sings"}
    assert {fact.fact_text for fact in written.applied.facts_added} == scene.active()
    assert len(written.applied.relations) == 1
    scene.assert_sound()


def test_an_entity_that_fails_takes_only_its_own_facts_along(database: Engine) -> None:
    scene = Scene(database)
    with breaking(database, "memory_entities", "display_name"):
        written = scene.write("x", [("poison", "poison is bad"), ("Ana", "Ana sings")], at=day(1))
    assert {item.kind for item in written.applied.rejected} == {"entity", "fact"}
    assert scene.active() == {"Ana sings"}


def test_a_serialization_failure_is_the_callers(database: Engine) -> None:
    scene = Scene(database)
    with breaking(database, "memory_facts", "fact_text", "40001"), pytest.raises(DBAPIError) as caught:
        scene.write("x", [("Ana", "Ana drank poison")], at=day(1))
    assert getattr(caught.value.orig, "sqlstate", None) == "40001"
    assert scene.facts() == []


def test_a_target_that_is_gone_makes_add(database: Engine) -> None:
    scene = Scene(database, HOME)
    scene.write("x", [("Ana", "Ana lives in Natal")], at=day(1))
    written, vectors = scene.plan("x", [("Ana", "Ana lives in Lima")], at=day(3), decide=always("UPDATE"))
    with database.begin() as connection:
        connection.execute(
            text("UPDATE memory_facts SET valid_to = :at, invalidated_at = mandua_now()"), {"at": day(2)}
        )
    with Session(database) as session:
        applied = upsert(session, written.message, written.extraction, written.resolution, written.plan, vectors)
        session.commit()
    assert [fact.fact_text for fact in applied.facts_added] == ["Ana lives in Lima"]
    assert scene.history() == [("Ana lives in Natal", 1, 2), ("Ana lives in Lima", 3, None)]


def test_the_same_text_added_twice_is_confirmed(database: Engine) -> None:
    scene = Scene(database)
    written, vectors = scene.plan("x", [("Ana", "Ana sings")], at=day(2))
    scene.write("x", [("Ana", "Ana sings.")], at=day(1))
    with Session(database) as session:
        applied = upsert(session, written.message, written.extraction, written.resolution, written.plan, vectors)
        session.commit()
    assert [fact.fact_text for fact in applied.facts_unchanged] == ["Ana sings."]
    assert len(scene.facts()) == 1


# -- what it costs -----------------------------------------------------------------------------------------------------


def test_statements_do_not_grow_with_the_facts(database: Engine) -> None:
    counts: dict[int, int] = {}
    for many in (1, 10, 50):
        scene = Scene(database, HOME, Acme="organization")
        for round_number in (1, 2):
            facts: list[Any] = [("Ana", f"Ana lives in city{n} {'again' * (round_number - 1)}") for n in range(many)]
            written = scene.write(
                "x",
                facts,
                [("Ana", "works_at", "Acme")],
                at=day(round_number),
                decide=always("UPDATE"),
            )
            assert len(scene.model.payloads) <= round_number
            assert len(written.plan.facts) == many + 1
        counts[many] = len(written.statements)
    assert max(counts.values()) <= 14, counts
    assert len(set(counts.values())) == 1, counts
