"""History in any order gives the same memory (behaviour: 8, "Time"; design: promise 9), with scripted replies."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from tests.integration.write.scene import Scene, day

TOPICS = {"lives in": "home", "tea": "tea", "works at": "job"}
CITIES = ("Natal", "Lima", "Quito")
FIRMS = ("Acme", "Orion")


def decide(payload: dict[str, Any]) -> dict[str, Any]:
    """A model that is asked about pairs: what cannot both be true is UPDATE, a bare ending DELETE."""
    decisions = []
    for fact in payload["facts"]:
        decision: dict[str, Any] = {
            "fact_number": fact["number"],
            "reason": "",
            "action": "ADD",
            "existing_number": None,
        }
        for existing in fact["existing"]:
            if (action := _between(fact["text"], existing["text"])) is not None:
                decision |= {"action": action, "existing_number": existing["number"]}
                break
        decisions.append(decision)
    return {"decisions": decisions}


def _between(new: str, old: str) -> str | None:
    if new.rstrip(".") == old.rstrip("."):
        return "NOOP"
    if "no longer" in new:
        return "DELETE" if new.replace("no longer ", "") == old else None
    if "no longer" in old:
        return "UPDATE" if old.replace("no longer ", "") == new else None
    return "UPDATE"


homes = st.lists(st.sampled_from(CITIES), min_size=2, max_size=4).map(
    lambda cities: [(f"Ana lives in {city}", ("Ana", "lives_in", city)) for city in cities]
)
tastes = st.lists(st.booleans(), min_size=2, max_size=4).map(
    lambda likes: [("Ana likes tea" if like else "Ana does not like tea", None) for like in likes]
)
jobs = st.lists(st.sampled_from(FIRMS), min_size=1, max_size=2).map(
    lambda firms: [
        step
        for firm in firms
        for step in ((f"Ana works at {firm}", ("Ana", "works_at", firm)), (f"Ana no longer works at {firm}", None))
    ]
)
lives = st.one_of(homes, tastes, jobs, st.tuples(homes, jobs).map(lambda both: both[0] + both[1]))


def _remembered(scene: Scene, life: list[tuple[str, Any]], order: list[int]) -> tuple[Any, Any, Any]:
    for index in order:
        words, relation = life[index]
        scene.write(
            words,
            [("Ana", words)],
            [relation] if relation else [],
            at=day(index),
            decide=decide,
            names=[*CITIES, *FIRMS],
        )
        scene.assert_sound()
    edges = scene.rows(
        "SELECT target_entity_key, valid_from, valid_to FROM memory_entity_relationships WHERE agent_id = :agent"
        " ORDER BY target_entity_key"
    )
    return scene.active(), sorted(scene.history(), key=str), [tuple(edge) for edge in edges]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_permutation_of_a_life_is_remembered_alike(database: Engine, data: st.DataObject) -> None:
    life = data.draw(lives)
    order = data.draw(st.permutations(range(len(life))))
    types = dict.fromkeys(CITIES, "place") | dict.fromkeys(FIRMS, "organization")
    straight = _remembered(Scene(database, TOPICS, **types), life, list(range(len(life))))
    shuffled = _remembered(Scene(database, TOPICS, **types), life, list(order))
    assert shuffled == straight


def test_an_ending_among_many_of_its_kind_ends_what_held_then(database: Engine):
    """More later versions and endings of the same words than candidates are looked at."""
    scene = Scene(database, TOPICS)
    told = "N9 L12 L6 L13 N15 L11 L16 N1 L8 N7 L2 N10 L14 L5 N4"
    for likes, number in ((word[0] == "L", int(word[1:])) for word in told.split()):
        words = "Ana likes tea" if likes else "Ana no longer likes tea"
        scene.write(words, [("Ana", words)], [], at=day(number - 1), decide=decide, names=[])
    scene.assert_sound()
    found = scene.rows(
        "SELECT valid_from, valid_to FROM memory_facts WHERE agent_id = :agent AND kind = 'fact' ORDER BY valid_from"
    )
    assert [(row[0], row[1]) for row in found][:2] == [(day(1), day(3)), (day(4), day(6))]
