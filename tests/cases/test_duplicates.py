"""DUP-04 and NEG: what is one fact, and what never is."""

from __future__ import annotations

import pytest

from tests.cases.conftest import Memory
from tests.cases.replies import entity, extraction, fact, on_every

SAID = "No sábado pinto a sala de verde e troco as cortinas."
SHORT = "Bruna vai pintar a sala no sábado"
LONG = "Bruna vai pintar a sala de verde no sábado e trocar as cortinas"


@pytest.mark.parametrize("order", [(SHORT, LONG), (LONG, SHORT)])
@pytest.mark.parametrize("cosine", [0.95, 0.78, None])
def test_dup_04_of_a_fact_and_its_elaboration_the_richer_stays(
    memory: Memory, order: tuple[str, str], cosine: float | None
) -> None:
    if cosine is not None:
        memory.model.vector(SHORT, [1.0] + [0.0] * 383)
        memory.model.vector(LONG, [cosine, (1 - cosine**2) ** 0.5] + [0.0] * 382)
    facts = [{"subject": "Bruna", "text": text, "action": "NEW", "confidence": 0.95} for text in order]
    memory.model.on("informed_extraction", extraction(facts, [entity("Bruna")]))
    result = memory.write(SAID, verbose=True)
    assert memory.texts() == [LONG]
    assert result.pipeline is not None
    (dropped,) = result.pipeline.steps[1].data["dropped"]
    assert (dropped["text"], dropped["kept"]) == (SHORT, LONG)


@pytest.mark.parametrize(
    ("said", "short", "long"),
    [
        (
            "On Saturday I paint the room green.",
            "Bruna paints the room on Saturday",
            "Bruna paints the room green on Saturday",
        ),
        (
            "El sábado pinto la sala de verde.",
            "Bruna pintará la sala el sábado",
            "Bruna pintará la sala de verde el sábado",
        ),
        ("周六我把客厅刷成绿色。", "Bruna周六刷客厅", "Bruna周六把客厅刷成绿色"),
    ],
)
def test_dup_04_in_other_languages(memory: Memory, said: str, short: str, long: str) -> None:
    for text, vector in ((short, [1.0, 0.0]), (long, [0.92, (1 - 0.92**2) ** 0.5])):
        memory.model.vector(text, vector + [0.0] * 382)
    memory.model.on("informed_extraction", extraction([fact("Bruna", short), fact("Bruna", long)], [entity("Bruna")]))
    memory.write(said)
    assert memory.texts() == [long]


@pytest.mark.parametrize(
    ("yes", "no"),
    [
        ("Bruna pode comer amendoim", "Bruna não pode comer amendoim"),
        ("Bruna can eat peanuts", "Bruna can't eat peanuts"),
        ("Bruna puede comer maní", "Bruna no puede comer maní"),
        ("Bruna peut manger des noix", "Bruna ne peut pas manger de noix"),
        ("Bruna darf Nüsse essen", "Bruna darf keine Nüsse essen"),
        ("Bruna può mangiare noci", "Bruna non può mangiare noci"),
        ("Bruna可以吃花生", "Bruna不可以吃花生"),
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_neg_02_the_opposite_is_neither_a_duplicate_nor_a_noop(memory: Memory, yes: str, no: str, order: int) -> None:
    first, second = (yes, no)[::order]
    for text, vector in ((first, [1.0, 0.0]), (second, [0.99, 0.141])):
        memory.model.vector(text, vector + [0.0] * 382)
    memory.model.queue(
        "informed_extraction",
        extraction([fact("Bruna", first)], [entity("Bruna")]),
        extraction([fact("Bruna", second)], [entity("Bruna")]),
    )
    memory.model.on("reconciliation", on_every("UPDATE"))
    memory.write(first.replace("Bruna ", ""))
    result = memory.write(second.replace("Bruna ", ""), at="2025-04-01T10:00:00+00:00")
    assert [(item.replaced_text, item.fact_text) for item in result.facts_updated] == [(first, second)]
    assert memory.texts() == [second]


def test_neg_02_a_model_that_calls_it_known_is_not_believed(memory: Memory) -> None:
    yes, no = "Bruna pode comer amendoim", "Bruna não pode comer amendoim"
    for text in (yes, no):
        memory.model.vector(text, [1.0] + [0.0] * 383)
    memory.model.queue(
        "informed_extraction",
        extraction([fact("Bruna", yes)], [entity("Bruna")]),
        extraction([fact("Bruna", no)], [entity("Bruna")]),
    )
    memory.model.on("reconciliation", on_every("NOOP"))
    memory.write("Posso comer amendoim.")
    result = memory.write("Não posso comer amendoim.", at="2025-04-01T10:00:00+00:00")
    assert result.facts_unchanged == []
    assert no in memory.texts()


def test_neg_02_both_in_one_message_are_two(memory: Memory) -> None:
    yes, no = "Bruna pode comer amendoim", "Bruna não pode comer camarão"
    for text in (yes, no):
        memory.model.vector(text, [1.0] + [0.0] * 383)
    memory.model.on("informed_extraction", extraction([fact("Bruna", yes), fact("Bruna", no)], [entity("Bruna")]))
    memory.write("Posso comer amendoim, mas não posso comer camarão.")
    assert memory.texts() == sorted([yes, no])


def test_neg_02_read_by_the_offline_reader(memory: Memory) -> None:
    memory.write("Posso comer amendoim.")
    memory.write("Não posso comer amendoim.", at="2025-04-01T10:00:00+00:00")
    assert memory.texts() == ["Bruna não pode comer amendoim"]


def test_neg_03_negators_of_the_language(memory: Memory) -> None:
    memory.write("Trabalho na Vértice.", at="2024-01-01T10:00:00+00:00")
    assert memory.edges() == {("person:bruna", "works_at", "organization:vertice")}
    memory.write("Nunca fumei.")
    memory.write("Já não trabalho na Vértice.")
    memory.write("Não é que eu não goste de jazz.")
    assert memory.texts() == ["Bruna nunca fumou"]
    assert memory.edges() == set()
    closed = memory.fact("Bruna trabalha na Vértice")
    assert closed["valid_to"] is not None
    assert "jazz" not in " ".join(memory.texts(0))


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("Não é que eu não goste de jazz.", "Bruna não gosta de jazz"),
        ("It's not that I don't like jazz.", "Bruna dislikes jazz"),
        ("No es que no me guste el jazz.", "A Bruna no le gusta el jazz"),
    ],
)
def test_neg_03_a_double_negation_is_no_dislike(memory: Memory, said: str, wrong: str) -> None:
    memory.model.on("informed_extraction", extraction([fact("Bruna", wrong)], [entity("Bruna")]))
    result = memory.write(said)
    assert memory.texts() == []
    assert [item.reason for item in result.rejected] == ["opposite_in_message"]
