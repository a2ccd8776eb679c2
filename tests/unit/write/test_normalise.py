"""One name per entity within a message."""

from __future__ import annotations

from typing import Any

from tests.unit.write.answers import message
from worker.llm.items import ExtractedEntity, ExtractedFact, ExtractedProfile, ExtractedRelation
from worker.write.extraction.normalise import normalise
from worker.write.extraction.reading import Reading


def person(name: str, *aliases: str, kind: str = "person") -> ExtractedEntity:
    return ExtractedEntity(name=name, type=kind, aliases=list(aliases))


def edge(source: str, rel_type: str, target: str) -> ExtractedRelation:
    return ExtractedRelation(source=source, target=target, rel_type=rel_type)


def says(subject: str, text: str, **fields: Any) -> ExtractedFact:
    return ExtractedFact(subject=subject, text=text, **fields)


def run(speaker: str = "Rafael", known: dict[str, str] | None = None, **lists: Any) -> Reading:
    return normalise(Reading(**lists), message("m", speaker), known)


def test_aliases_become_the_canonical_name_everywhere() -> None:
    done = run(
        entities=[person("Guilherme Maturana", "Guili")],
        facts=[says("Guili", "Guili é amigo do Rafael")],
        relations=[edge("Rafael", "friend_of", "guili"), edge("Guili", "same_as", "Guilherme Maturana")],
        profiles=[ExtractedProfile(name="Guili", profile_text="A friend.")],
    )
    assert [item.subject for item in done.facts] == ["Guilherme Maturana"]
    assert [(item.source, item.target) for item in done.relations] == [("Rafael", "Guilherme Maturana")]
    assert [item.name for item in done.entities] == ["Guilherme Maturana", "Rafael"]
    assert [item.name for item in done.profiles] == ["Guilherme Maturana"]


def test_an_entity_listed_twice_is_one() -> None:
    done = run(entities=[person("Guilherme Maturana", "Guili"), person("Guili", "Gui"), person("guilherme maturana")])
    assert [(item.name, sorted(item.aliases)) for item in done.entities] == [("Guilherme Maturana", ["Gui", "Guili"])]


def test_an_identity_relation_makes_an_alias() -> None:
    done = run(
        entities=[person("Guilherme Maturana"), person("Guili")],
        relations=[edge("Guili", "nickname_of", "Guilherme Maturana")],
    )
    assert [(item.name, item.aliases) for item in done.entities] == [("Guilherme Maturana", ["Guili"])]
    assert done.relations == []


def test_two_whom_the_memory_knows_apart_stay_two() -> None:
    done = run(
        known={"caio": "person", "caio prado": "person"},
        entities=[person("Caio"), person("Caio Prado")],
        relations=[edge("Caio", "same_as", "Caio Prado")],
    )
    assert len(done.entities) == 2
    assert done.relations == []


def test_two_with_a_relation_between_them_stay_two_whatever_the_alias() -> None:
    done = run(entities=[person("Ana Paula", "Ana"), person("Ana")], relations=[edge("Ana", "sibling_of", "Ana Paula")])
    assert len(done.entities) == 2
    assert len(done.relations) == 1


def test_a_person_and_a_company_of_one_name_stay_two() -> None:
    done = run(entities=[person("Mercedes"), person("Mercedes", kind="organization")])
    assert [item.type for item in done.entities] == ["person", "organization"]


def test_pronouns_are_the_speaker() -> None:
    done = run(
        entities=[person("I", "me"), person("the user")],
        facts=[says("eu", "Rafael mora em Recife"), says("the user", "Rafael tem um gato")],
        relations=[edge("I", "lives_in", "Recife")],
    )
    assert {item.subject for item in done.facts} == {"Rafael"}
    assert [(item.name, item.type) for item in done.entities] == [("Rafael", "person"), ("Recife", "place")]


def test_every_subject_and_end_has_an_entity_with_the_likeliest_type() -> None:
    done = run(
        known={"nilo": "pet"},
        facts=[says("Nilo", "Nilo é preto")],
        relations=[edge("Selma", "works_at", "Vertix"), edge("Selma", "odd_thing", "Xyz")],
    )
    assert {item.name: item.type for item in done.entities} == {
        "Nilo": "pet", "Selma": "person", "Vertix": "organization", "Xyz": "concept",
    }  # fmt: skip


def test_exact_duplicates_fall_together_and_keep_what_both_knew() -> None:
    done = run(
        facts=[
            says("Rafael", "Rafael mora em São Paulo.", confidence=0.6),
            says("rafael", "rafael mora em sao paulo", confidence=0.95, attribute_key="person.city", value="São Paulo"),
        ]
    )
    assert len(done.facts) == 1
    assert (done.facts[0].confidence, done.facts[0].attribute_key) == (0.95, "person.city")
    assert done.repairs["exact_duplicate"] == 1


def test_a_fact_without_its_subject_is_given_it() -> None:
    done = run(
        facts=[
            says("Fernanda Lima", "is a software engineer"),
            says("Fernanda Lima", "her brother is ill"),
            says("Fernanda Lima", "fernanda is tall"),
        ]
    )
    assert [item.text for item in done.facts] == [
        "Fernanda Lima is a software engineer",
        "her brother is ill",
        "fernanda is tall",
    ]


def test_self_relations_go() -> None:
    done = run(entities=[person("Ana", "Aninha")], relations=[edge("Ana", "friend_of", "Aninha")])
    assert done.relations == []
    assert done.repairs["self_relation"] == 1
