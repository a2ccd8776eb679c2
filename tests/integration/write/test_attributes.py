"""Attribute keys and corrections against a real database: in the pipeline, and as the exported functions."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from producer.contract import MemoryConfig
from tests.integration.write.scene import Scene, always, day
from worker.llm.items import ExtractedFact
from worker.write.canonicalization import canonicalize_attribute_key
from worker.write.corrections import CorrectionResult, detect_and_record_corrections

HOME = {"lives in": "home"}
REGISTRY = (
    "SELECT attribute_key, sightings, is_active FROM memory_attribute_registry WHERE agent_id = :agent ORDER BY 1"
)


def fact(text: str, key: str | None, value: str | None, subject: str = "Ana") -> ExtractedFact:
    return ExtractedFact(subject=subject, text=text, attribute_key=key, value=value, confidence=0.95)


def test_an_unknown_key_is_active_after_three_sightings_of_its_agent(database: Engine) -> None:
    config = MemoryConfig()
    with Session(database) as session:
        said = [canonicalize_attribute_key(session, "a", "Person Shoe_Size", config) for _ in range(4)]
        other = canonicalize_attribute_key(session, "b", "person.shoe_size", config)
        bare = canonicalize_attribute_key(session, "a", "shoe_size", config)
        dropped = canonicalize_attribute_key(session, "a", "mood", config)
    assert [action for _, action, _ in said] == ["propose", "propose", "propose", "allow"]
    assert [metadata.get("sightings") for _, _, metadata in said] == [1, 2, 3, None]
    assert said[2][2]["is_active"] is True
    assert (other[0], other[1]) == ("person.shoe_size", "propose")
    assert (bare[0], bare[1]) == ("person.shoe_size", "map")
    assert (dropped[0], dropped[1], dropped[2]["reason"]) == (None, "drop", "parts")


def test_sightings_needed_are_configurable(database: Engine) -> None:
    config = MemoryConfig(attribute_activation_sightings=1)
    with Session(database) as session:
        assert canonicalize_attribute_key(session, "a", "goal.mood", config)[1] == "propose"
        assert canonicalize_attribute_key(session, "a", "goal.mood", config)[1] == "allow"


def test_facts_are_stored_under_the_canonical_key(database: Engine) -> None:
    scene = Scene(database)
    written = scene.write(
        "x",
        [
            fact("Ana lives in Natal", "Person Residence", "Natal"),
            fact("Ana wears 38", "person.shoe_size", "38"),
            fact("Ana is in a good mood", "mood", "good"),
        ],
        at=day(1),
    )
    stored = {row.fact_text: (row.attribute_key, row.value) for row in scene.facts()}
    assert stored == {
        "Ana lives in Natal": ("person.city", "Natal"),
        "Ana wears 38": ("person.shoe_size", "38"),
        "Ana is in a good mood": (None, None),
    }
    assert [(one.kind, one.reason, one.item) for one in written.plan.rejected] == [("attribute", "parts", "mood")]
    assert scene.rows(REGISTRY) == [("person.shoe_size", 1, False)]
    assert {note.raw: note.action for note in written.plan.attributes} == {
        "Person Residence": "map",
        "person.shoe_size": "propose",
        "mood": "drop",
    }


def test_a_key_is_seen_once_a_message_and_the_planner_only_reads(database: Engine) -> None:
    scene = Scene(database)
    for number in range(4):
        facts = [fact(f"Ana wears {n}{number}", "person.shoe_size", str(n)) for n in (3, 4)]
        scene.plan("x", facts, at=day(number), decide=always("ADD", None))
        assert [row.sightings for row in scene.rows(REGISTRY)] == ([number] if number else [])
        scene.write("x", facts, at=day(number), decide=always("ADD", None))
        (seen,) = scene.rows(REGISTRY)
        assert (seen.sightings, seen.is_active) == (min(number + 1, 3), number >= 2)


def test_known_keys_cost_no_question(database: Engine) -> None:
    scene = Scene(database)
    with scene.counting() as statements:
        scene.plan("x", [fact("Ana lives in Natal", "person.city", "Natal")], at=day(1))
    assert not any("memory_attribute_registry" in statement for statement in statements)
    with scene.counting() as statements:
        scene.plan("x", [fact(f"Ana does {n}", f"goal.number_{n}", str(n)) for n in range(30)], at=day(1))
    assert sum("memory_attribute_registry" in statement for statement in statements) == 1


def test_corrections_do_not_depend_on_the_order(database: Engine) -> None:
    cities: list[tuple[int, str]] = [(1, "Natal"), (3, "Lima"), (5, "Lima"), (7, "Quito")]
    counts: list[Any] = []
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [0, 3, 1, 2], [2, 0, 3, 1]):
        scene = Scene(database, HOME)
        for index in order:
            at, city = cities[index]
            said = fact(f"Ana lives in {city}", "person.city", city)
            scene.write("x", [said], at=day(at), decide=always("UPDATE"))
        scene.assert_sound()
        counts.append([(row.fact_text, row.user_correction_count) for row in scene.facts()])
    assert counts[0] == [("Ana lives in Natal", 1), ("Ana lives in Lima", 1), ("Ana lives in Quito", 0)]
    assert all(count == counts[0] for count in counts)


def test_detect_and_record_corrections(database: Engine) -> None:
    scene = Scene(database, HOME)
    for number, (city, key) in enumerate([("Natal", "person.city"), ("Lima", "person.city"), ("Quito", None)]):
        said = fact(f"Ana lives in {city}", key, city if key else None)
        scene.write("x", [said], at=day(number), decide=always("UPDATE"))
    natal, lima, quito = scene.facts()
    with Session(database) as session:
        found = detect_and_record_corrections(session, scene.agent, [natal, lima, quito])
        nothing = detect_and_record_corrections(session, "somebody else", [lima])
        session.commit()
    assert found == CorrectionResult(1, ["person.city"], [str(natal.id)])
    assert nothing == detect_and_record_corrections(session, scene.agent, []) == CorrectionResult()
    assert [row.user_correction_count for row in scene.facts()] == [2, 0, 0]  # once by the pipeline, once by the call
