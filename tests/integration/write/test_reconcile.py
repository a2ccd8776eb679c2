"""Reconciliation against a real database with scripted decisions (behaviour: 7, 8 "Mirror facts" and 14)."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest
from sqlalchemy import Engine

from tests.integration.write.scene import START, Scene, always, day
from worker.llm.items import ExtractedFact
from worker.llm.provider import Cause, ModelError
from worker.write.calls import EmbeddingError

HOME = {"mora": "home", "lives": "home", "moved": "home"}
FOOD = {"amendoim": "food", "likes tea": "tea", "tea": "tea"}


def test_nothing_similar_is_added_without_a_model(database: Engine) -> None:
    scene = Scene(database, HOME)
    scene.write("Ricardo mora em São Paulo", [("Ricardo", "Ricardo mora em São Paulo")], at=day(1))
    written = scene.write("Ricardo gosta de jazz", [("Ricardo", "Ricardo gosta de jazz")], at=day(2))
    assert [fact.action for fact in written.plan.facts] == ["ADD"]
    assert not written.plan.llm_asked
    assert len(scene.active()) == 2


def test_identical_text_is_known_without_a_model(database: Engine) -> None:
    scene = Scene(database, HOME)
    scene.write("x", [("Ana", "Ana mora em São Paulo")], at=day(1))
    written = scene.write("x", [("Ana", "ana MORA em sao paulo!")], at=day(2))
    assert [fact.action for fact in written.plan.facts] == ["NOOP"]
    assert written.applied.facts_unchanged[0].fact_text == "Ana mora em São Paulo"
    (fact,) = scene.facts()
    assert (fact.last_confirmed_at, fact.valid_from, fact.confirmations) == (day(2), day(1), 1)


def test_all_facts_go_in_one_call_with_short_numbers(database: Engine) -> None:
    scene = Scene(database, {**HOME, **FOOD})
    scene.write("x", [("Ana", "Ana mora em Recife"), ("Ana", "Ana likes tea")], at=day(1))
    written = scene.write(
        "x",
        [("Ana", "Ana mora em Natal"), ("Ana", "Ana likes tea a lot"), ("Ana", "Ana canta")],
        at=day(2),
        decide=always("UPDATE"),
    )
    (payload,) = scene.model.payloads
    assert [fact["number"] for fact in payload["facts"]] == [1, 2]
    assert [[e["number"] for e in fact["existing"]] for fact in payload["facts"]] == [[1], [2]]
    assert payload["facts"][0]["existing"][0]["since"].startswith("2020-01-02")
    assert [fact.action for fact in written.plan.facts] == ["UPDATE", "UPDATE", "ADD"]
    assert scene.embeddings.calls == 2
    assert len(scene.embeddings.texts) == len(set(scene.embeddings.texts))


@pytest.mark.parametrize("existing", [12, 2, -1, None])
def test_con_06_a_number_that_does_not_exist_is_add_with_a_warning(database: Engine, existing: int | None) -> None:
    scene = Scene(database, HOME)
    scene.write("x", [("Ana", "Ana mora em Recife")], at=day(1))
    written = scene.write("x", [("Ana", "Ana mora em Natal")], at=day(2), decide=always("UPDATE", existing))
    assert [fact.action for fact in written.plan.facts] == ["ADD"]
    assert written.plan.warnings
    assert scene.active() == {"Ana mora em Recife", "Ana mora em Natal"}


def test_con_07_a_foreign_number_is_refused_and_the_twin_known_without_one(database: Engine) -> None:
    scene = Scene(database, {**HOME, **FOOD})
    scene.write("x", [("Ana", "Ana mora em Recife"), ("Ana", "Ana likes tea")], at=day(1))
    scene.write(
        "x",
        [("Ana", "Ana mora em Natal"), ("Ana", "Ana likes tea!")],
        at=day(2),
        decide=always("UPDATE", 2),
    )
    assert scene.active() == {"Ana mora em Recife", "Ana mora em Natal", "Ana likes tea"}


def test_con_02_another_attribute_is_never_closed(database: Engine) -> None:
    scene = Scene(database, {"gerente": "job", "GitHub": "job"}, Nortec="organization")
    first = ExtractedFact(
        subject="Davi", text="Davi é gerente de compliance na Nortec", attribute_key="work.role", value="gerente"
    )
    second = ExtractedFact(
        subject="Davi", text="Davi administra o GitHub da Nortec", attribute_key="work.tool", value="GitHub"
    )
    scene.write("x", [first], at=day(1), names=["Nortec"])
    written = scene.write("x", [second], at=day(1), names=["Nortec"], decide=always("UPDATE"))
    assert any("another attribute" in warning for warning in written.plan.warnings)
    assert len(scene.facts(active=True)) == 2


@pytest.mark.parametrize("action", ["UPDATE", "DELETE", "NOOP"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Davi é gerente de compliance na Nortec", "Davi administra o GitHub da Nortec"),
        ("Davi is compliance manager at Nortec", "Davi administers Nortec's GitHub"),
        ("Davi trabaja en Nortec", "Davi enseña Python en Nortec"),
    ],
)
def test_con_02_an_unrelated_fact_stays_whatever_the_model_says(
    database: Engine, old: str, new: str, action: str
) -> None:
    scene = Scene(database, {"Nortec": "firm"}, Nortec="organization")
    scene.write("x", [("Davi", old)], at=day(1), names=["Nortec"])
    written = scene.write("x", [("Davi", new)], at=day(2), names=["Nortec"], decide=always(action))
    assert scene.active() == {old, new}
    assert any("another matter" in warning for warning in written.plan.warnings)


def test_con_04_a_sale_closes_ownership_even_if_the_model_says_add(database: Engine) -> None:
    scene = Scene(database, {"Fusca": "car"})
    scene.write("Tenho um Fusca azul", [("Bruna", "Bruna tem um Fusca azul")], at=day(1))
    written = scene.write(
        "Vendi o Fusca ontem.", [("Bruna", "Bruna vendeu o Fusca")], at=day(9), decide=always("ADD", None)
    )
    assert scene.active() == {"Bruna vendeu o Fusca"}
    assert written.applied.facts_updated[0].replaced_text == "Bruna tem um Fusca azul"


@pytest.mark.parametrize("action", ["NOOP", "UPDATE", "ADD", "DELETE"])
def test_neg_02_opposite_polarity_is_never_noop(database: Engine, action: str) -> None:
    scene = Scene(database, FOOD)
    scene.write("Posso comer amendoim.", [("Bruna", "Bruna pode comer amendoim")], at=day(1))
    scene.write(
        "Não posso comer amendoim.", [("Bruna", "Bruna não pode comer amendoim")], at=day(2), decide=always(action)
    )
    assert "Bruna pode comer amendoim" not in scene.active()
    if action != "DELETE":
        assert scene.active() == {"Bruna não pode comer amendoim"}


def test_other_numbers_are_never_noop(database: Engine) -> None:
    scene = Scene(database, {"filhos": "kids"})
    scene.write("x", [("Ana", "Ana tem 2 filhos")], at=day(1))
    written = scene.write("x", [("Ana", "Ana tem 3 filhos")], at=day(2), decide=always("NOOP"))
    assert [fact.action for fact in written.plan.facts] == ["ADD"]


@pytest.mark.parametrize(
    "reply",
    [
        {"decisions": [{"fact_number": 1, "action": "MERGE", "existing_number": 1}]},
        {"decisions": [{"fact_number": 7, "action": "UPDATE", "existing_number": 1}, {"fact_number": 1}]},
    ],
)
def test_an_unknown_action_or_a_missing_decision_is_add_and_counted(database: Engine, reply: object) -> None:
    scene = Scene(database, HOME)
    scene.write("x", [("Ana", "Ana mora em Recife")], at=day(1))
    written = scene.write("x", [("Ana", "Ana mora em Natal")], at=day(2), decide=lambda _payload: reply)
    assert [fact.action for fact in written.plan.facts] == ["ADD"]
    assert written.plan.repairs


def test_delete_that_says_more_lives_on_and_a_bare_ending_is_a_retraction(database: Engine) -> None:
    scene = Scene(database, FOOD)
    scene.write("x", [("João", "João likes tea")], at=day(1))
    scene.write("x", [("João", "João no longer likes tea, prefers coffee")], at=day(2), decide=always("DELETE"))
    assert scene.active() == {"João no longer likes tea, prefers coffee"}
    scene.write("x", [("Rita", "Rita likes tea")], at=day(1))
    written = scene.write("x", [("Rita", "Rita no longer likes tea")], at=day(2), decide=always("DELETE"))
    assert [fact.fact_text for fact in written.applied.facts_deleted] == ["Rita likes tea"]
    assert "Rita likes tea" not in scene.active()
    assert [fact.fact_text for fact in scene.facts(kind="retraction")] == ["Rita no longer likes tea"]


def test_update_wins_over_delete_and_the_second_update_is_added(database: Engine) -> None:
    scene = Scene(database, HOME)
    scene.write("x", [("Ana", "Ana mora em Recife")], at=day(1))

    def decide(payload: dict[str, object]) -> object:
        actions = ["DELETE", "UPDATE", "UPDATE"]
        return {
            "decisions": [
                {"fact_number": number, "action": action, "existing_number": 1}
                for number, action in enumerate(actions, start=1)
            ]
        }

    facts = ["Ana não mora mais em Recife", "Ana mora em Natal", "Ana mora em Olinda"]
    written = scene.write("x", [("Ana", fact) for fact in facts], at=day(2), decide=decide)
    assert [fact.action for fact in written.plan.facts] == ["DELETE", "UPDATE", "ADD"]
    assert scene.active() == {"Ana mora em Natal", "Ana mora em Olinda"}
    (old,) = scene.facts(active=False)
    assert written.applied.facts_updated[0].replaced_id == old.id
    scene.assert_sound()


def test_facts_of_one_message_that_contradict_each_other(database: Engine) -> None:
    scene = Scene(database, FOOD)
    written = scene.write(
        "x",
        [("Ana", "Ana likes tea"), ("Ana", "Ana does not like tea")],
        at=day(1),
        decide=always("UPDATE"),
    )
    assert written.plan.facts[1].target_fact == 0
    assert scene.active() == {"Ana does not like tea"}
    scene.assert_sound()


def test_a_message_about_new_things_needs_neither_query_nor_model(database: Engine) -> None:
    scene = Scene(database, FOOD)
    with scene.counting() as statements:
        written, _vectors = scene.plan("x", [("Ana", "Ana likes tea"), ("Ana", "Ana likes tea with milk")])
    assert not written.plan.llm_asked
    assert [s for s in statements if "memory_facts" in s] == []


def test_fallback_adds_what_is_undecided_and_says_so(database: Engine) -> None:
    scene = Scene(database, HOME)
    scene.write("x", [("Ana", "Ana mora em Recife")], at=day(1))
    written = scene.write(
        "x", [("Ana", "Ana mora em Natal"), ("Ana", "Ana mora em Recife.")], at=day(2), fallback="timeout"
    )
    assert [fact.action for fact in written.plan.facts] == ["ADD", "NOOP"]
    (degradation,) = written.plan.degradations
    assert (degradation.stage, degradation.fell_back_to, degradation.cause) == ("reconcile", "add", "timeout")


def test_without_vectors_only_identical_texts_are_known(database: Engine) -> None:
    scene = Scene(database, HOME)
    scene.write("x", [("Ana", "Ana mora em Recife")], at=day(1))
    scene.embeddings.fails = ModelError(Cause.INVALID_REQUEST)
    written = scene.write("x", [("Ana", "Ana mora em Recife."), ("Ana", "Ana mora em Natal")], at=day(2))
    assert [fact.action for fact in written.plan.facts] == ["NOOP", "ADD"]
    assert written.plan.degradations[0].cause == "embedding_invalid_request"
    assert [f.embedding is None for f in scene.facts()] == [False, True]
    blind = scene.write("x", [("Ana", "Ana não mora mais em Recife")], at=day(3))
    assert [fact.action for fact in blind.plan.facts] == ["ADD"]
    scene.embeddings.fails = ModelError(Cause.RATE_LIMITED)
    with pytest.raises(EmbeddingError):
        scene.plan("x", [("Ana", "Ana mora em Olinda")], at=day(3))


def test_mother_in_curitiba_gets_a_mirror_fact(database: Engine) -> None:
    scene = Scene(database, Curitiba="place")
    written = scene.write(
        "vou pra Curitiba ver minha mãe",
        [("Bruna", "Bruna vai pra Curitiba ver a mãe")],
        [("Dona Lúcia", "lives_in", "Curitiba")],
        at=day(1),
    )
    mirror = written.plan.facts[1]
    assert (mirror.text, mirror.confidence) == ("Dona Lúcia mora em Curitiba", 0.60)
    assert mirror.source_context == "inferred_from_relation"
    assert [f.fact_text for f in written.applied.facts_added] == [
        "Bruna vai pra Curitiba ver a mãe",
        "Dona Lúcia mora em Curitiba",
    ]
    (stored,) = [fact for fact in scene.facts() if fact.source_context]
    assert stored.speaker == "Bruna"
    assert written.applied.relations[0].evidence_fact_id == stored.id


def test_an_edge_that_is_said_again_without_a_fact_needs_no_second_mirror(database: Engine) -> None:
    """Whichever entity the evidence is about: the brother's own fact holds the speaker's edge up."""
    scene = Scene(database)
    sibling = [("Bruna", "sibling_of", "Caio")]
    scene.write("Caio é irmão da Bruna", [("Caio", "Caio é irmão da Bruna")], sibling, at=day(1))
    (before,) = scene.facts()
    written = scene.write("meu irmão Caio viajou", [("Caio", "Caio viajou")], sibling, at=day(2))
    assert [fact.action for fact in written.plan.facts] == ["ADD", "NOOP"]
    assert [fact.fact_text for fact in scene.facts()] == ["Caio é irmão da Bruna", "Caio viajou"]
    assert written.applied.relations[0].evidence_fact_id == before.id
    assert scene.edges() == {("person:bruna", "sibling_of", "person:caio")}


def test_pedro_in_brazil_and_brasil_confirms_and_becomes_the_evidence(database: Engine) -> None:
    scene = Scene(database, HOME, Brazil="place", Brasil="place")
    scene.write("Pedro lives in Brazil", [("Pedro", "Pedro lives in Brazil")], at=day(1), names=["Brazil"])
    resolution = scene.resolution(["Pedro", "Brasil"])
    brazil = resolution.entities[1].model_copy(update={"key": "place:brazil", "is_new": False})
    resolution = resolution.model_copy(update={"entities": [resolution.entities[0], brazil]})
    written = scene.write(
        "I will visit Pedro",
        [],
        [("Pedro", "lives_in", "Brasil")],
        at=day(2),
        resolution=resolution,
        decide=always("NOOP"),
    )
    (fact,) = scene.facts()
    assert fact.fact_text == "Pedro lives in Brazil"
    assert written.applied.facts_unchanged[0].id == fact.id
    assert written.applied.relations[0].evidence_fact_id == fact.id
    assert scene.edges() == {("person:pedro", "lives_in", "place:brazil")}


def test_identity_self_and_ended_relations_are_no_edges(database: Engine) -> None:
    scene = Scene(database, Acme="organization")
    written = scene.write(
        "x",
        [("Ana", "Ana no longer works at Acme")],
        [("Ana", "same_as", "Aninha"), ("Ana", "friend_of", "Ana"), ("Ana", "worksAt", "Acme")],
        at=day(1),
    )
    assert written.plan.edges == []
    assert scene.edges() == set()
    assert written.plan.facts[0].as_retraction


def test_the_nearest_of_all_facts_are_candidates_not_the_latest(database: Engine) -> None:
    scene = Scene(database, {"tea": "tea"})
    scene.write("x", [("Ana", "Ana likes tea")], at=day(0))
    scene.write("x", [("Ana", f"Ana read book number {n}") for n in range(30)], at=day(1))
    scene.write("x", [("Ana", "Ana hates tea")], at=day(2), decide=always("UPDATE"))
    assert "Ana likes tea" not in scene.active()
    assert len(scene.active()) == 31


def test_another_home_is_a_question_however_far_apart_the_words_are(database: Engine) -> None:
    """The floor is about words; an edge of a kind that one has one of at a time is about the matter."""
    scene = Scene(database, {"mora": "home", "mudou": "far", "gosta": "taste"}, Curitiba="place", Recife="place")
    lives = [("Ana", "lives_in", "Curitiba")]
    scene.write("x", [("Ana", "Ana mora em Curitiba"), ("Ana", "Ana gosta de chá")], lives, at=day(1))
    moved = [("Ana", "lives_in", "Recife")]
    written = scene.write("x", [("Ana", "Ana mudou para Recife")], moved, at=day(2), decide=always("UPDATE"))
    assert [fact.text for fact in written.plan.facts if fact.action == "UPDATE"] == ["Ana mudou para Recife"]
    assert scene.active() == {"Ana gosta de chá", "Ana mudou para Recife"}
    assert scene.edges() == {("person:ana", "lives_in", "place:recife")}


def test_times_are_told_short_and_by_the_clock_of_the_message(database: Engine) -> None:
    scene = Scene(database, HOME)
    east = timezone(timedelta(hours=13))  # where the next day has begun
    scene.write("x", [("Ana", "Ana mora em Recife")], at=START)
    later = (START + timedelta(days=5)).astimezone(east)
    scene.write("x", [("Ana", "Ana mora em Natal")], at=later, decide=always("UPDATE"))
    scene.write("x", [("Ana", "Ana mora em Olinda")], at=later + timedelta(minutes=5), decide=always("UPDATE"))
    held = [existing for sent in scene.model.payloads for existing in sent["facts"][0]["existing"]]
    assert [existing["since"] for existing in held] == [
        START.astimezone(east).date().isoformat(), later.strftime("%Y-%m-%dT%H:%M")
    ]  # fmt: skip
    assert not any("until" in existing for existing in held), "what holds has no end to tell"
