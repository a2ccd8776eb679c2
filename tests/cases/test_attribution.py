"""ATT: whose fact it is. Neighbours, questions, other speakers, pronouns, quotations, the assistant."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases.conftest import Memory
from tests.cases.replies import edge, entity, extraction, fact

SELMA = "Minha vizinha Selma contou que não suporta natação, mas a mãe a inscreveu na equipe do clube."


def test_att_01_a_neighbours_dislike_is_hers_alone(memory: Memory) -> None:
    memory.model.on(
        "informed_extraction",
        extraction(
            [
                fact("Selma", "Selma não suporta natação"),
                fact("Selma", "A mãe de Selma inscreveu Selma na equipe do clube"),
            ],
            [entity("Bruna"), entity("Selma")],
        ),
    )
    memory.write(SELMA)
    said = [row for row in memory.facts() if row["source_context"] is None]  # that they are neighbours is inferred
    assert [(row["entity_key"], row["speaker"]) for row in said] == [("person:selma", "Bruna")] * 2


@pytest.mark.parametrize(
    ("said", "subject"),
    [
        (SELMA, "Selma"),
        ("My colleague Priya says she cannot stand swimming.", "Priya"),
        ("A Selma detesta natação.", "Selma"),
    ],
)
def test_att_01_read_by_the_offline_reader(memory: Memory, said: str, subject: str) -> None:
    memory.write(said)
    about = {row["entity_key"] for row in memory.facts() if row["source_context"] is None}
    assert about == {f"person:{subject.lower()}"}


@pytest.mark.parametrize(
    ("said", "name", "wrong"),
    [
        ("Me mostra o boletim da aluna Cristiane?", "Cristiane", "Bruna é a aluna Cristiane"),
        ("Can you show me the report card of Cristiane?", "Cristiane", "Bruna is a student called Cristiane"),
        ("¿Dónde está el boletín de la alumna Cristiane?", "Cristiane", "Bruna es la alumna Cristiane"),
        ("Wo ist das Zeugnis der Schülerin Cristiane?", "Cristiane", "Bruna ist die Schülerin Cristiane"),
        ("王芳的成绩单在哪里？", "王芳", "Bruna是学生王芳"),
    ],
)
def test_att_02_who_is_named_in_a_question_is_not_the_speaker(memory: Memory, said: str, name: str, wrong: str) -> None:
    memory.model.on(
        "informed_extraction",
        extraction(
            [fact("Bruna", wrong), fact(name, wrong.replace("Bruna", name))],
            [entity("Bruna"), entity(name)],
            [edge("Bruna", "studies_with", name)],
            updated_profiles=[{"name": "Bruna", "profile_text": f"A student called {name}."}],
        ),
    )
    result = memory.write(said)
    assert memory.texts() == []
    assert memory.edges() == set()
    assert {item.reason for item in result.rejected if item.kind == "fact"} == {"question"}
    assert memory.rows("SELECT 1 FROM memory_entities WHERE profile_text LIKE '%student%'") == []


def test_att_06_in_a_group_each_speaks_of_the_other(memory: Memory) -> None:
    memory.model.queue(
        "informed_extraction",
        extraction([fact("Bruna", "Bruna passou no mestrado")], [entity("Bruna"), entity("Caio")]),
        extraction([fact("Caio", "Caio virou pai")], [entity("Caio")]),
    )
    memory.write("A Bruna passou no mestrado!", "Caio")
    memory.write("e o Caio virou pai :)", "Bruna")
    stored = [(row["entity_key"], row["fact_text"], row["speaker"]) for row in memory.facts()]
    assert stored == [
        ("person:bruna", "Bruna passou no mestrado", "Caio"),
        ("person:caio", "Caio virou pai", "Bruna"),
    ]


def test_att_06_read_by_the_offline_reader(memory: Memory) -> None:
    memory.write("A Bruna passou no mestrado!", "Caio")
    memory.write("e o Caio virou pai :)", "Bruna")
    assert [(row["entity_key"], row["speaker"]) for row in memory.facts()] == [
        ("person:bruna", "Caio"), ("person:caio", "Bruna"),
    ]  # fmt: skip


@pytest.mark.parametrize("reader", ["scripted", "offline"])
def test_att_07_a_pronoun_is_resolved_and_no_letter_of_other_words(memory: Memory, reader: str) -> None:
    if reader == "scripted":
        memory.model.on(
            "informed_extraction",
            extraction([fact("Célia", "Célia fechou a janela e limpou a panela")], [entity("Célia")]),
        )
    memory.write("Ela fechou a janela e limpou a panela.", recent_messages=["Bruna: a Célia chegou."])
    stored = " ".join(memory.texts())
    assert "janela" in stored
    assert "panela" in stored
    assert {row["entity_key"] for row in memory.facts()} == {"person:celia"}


@pytest.mark.parametrize(
    "said",
    [
        '"Moro em Lisboa e tenho três gatos", disse o Caio.',
        "O Caio falou: «moro em Lisboa e tenho três gatos». Que coisa.",
        "Caio schrieb: „ich wohne in Lisboa mit drei Katzen“, na ja.",
        "> moro em Lisboa com três gatos\nBom saber disso, Caio!",
    ],
)
def test_what_others_say_of_themselves_is_not_the_speakers(memory: Memory, said: str) -> None:
    memory.model.on(
        "informed_extraction", extraction([fact("Bruna", "Bruna mora em Lisboa com três gatos")], [entity("Bruna")])
    )
    memory.write(said)
    assert memory.texts() == []


@pytest.mark.parametrize(
    "fields",
    [{"role": "assistant"}, {"speaker": "assistant"}, {"speaker": "Assistente"}, {"role": "system"}],
)
def test_an_assistants_message_is_context_only(memory: Memory, fields: dict[str, Any]) -> None:
    result = memory.write("Você mora em Recife e trabalha na Vertix.", **fields)
    assert (result.status, memory.model.count(), memory.texts(0)) == ("empty", 0, [])


def test_what_the_assistant_said_before_is_no_fact_of_the_message(memory: Memory) -> None:
    memory.model.on(
        "informed_extraction",
        extraction(
            [fact("Bruna", "Bruna adotou um gato"), fact("Bruna", "Bruna mora em Recife")],
            [entity("Bruna"), entity("Recife", "place")],
            [edge("Bruna", "lives_in", "Recife")],
        ),
    )
    result = memory.write("Adotei um gato.", recent_messages=["assistant: Então você mora em Recife?"])
    assert memory.texts() == ["Bruna adotou um gato"]
    assert memory.edges() == set()
    assert {item.reason for item in result.rejected} == {"only_in_context"}


def test_a_yes_to_the_assistants_question_is_the_speakers(memory: Memory) -> None:
    memory.model.on("informed_extraction", extraction([fact("Bruna", "Bruna mora em Recife")], [entity("Bruna")]))
    memory.write("Sim, desde sempre.", recent_messages=["assistant: Então você mora em Recife?"])
    assert memory.texts() == ["Bruna mora em Recife"]
