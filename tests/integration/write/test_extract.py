"""The extract stage with a real Postgres and a model behind litellm: what it sends, what it costs, what comes out."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.integration.write.test_context import entity, store_fact
from tests.integration.write.test_context import memory as memory
from tests.scripted_model import EMBEDDING, Fault, ScriptedModel
from tests.unit.write.answers import Statements, fact, message, person, reply
from worker.embedding import embedding_from_environment
from worker.llm import llm_from_environment
from worker.llm.provider import ModelError
from worker.write.calls import Calls
from worker.write.extraction import extract
from worker.write.plans import Extraction

CLARA = (
    "Clara Rezende saiu da Vertix e foi pra Orion Tech como head de engenharia. "
    "O Thiago Nogueira a contratou pessoalmente."
)


@pytest.fixture
def stage(memory: Engine, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    env = scripted.environment(embeddings=True)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    llm, embeddings = llm_from_environment(env), embedding_from_environment(env)

    def run(
        said: str, speaker: str = "Rafael", *, fallback: str | None = None, timeout: float = 20.0, **fields: Any
    ) -> Any:
        read = Statements(memory)
        calls = Calls(llm, embeddings, timeout=timeout)
        plan = extract(message(said, speaker, **fields), read, calls, fallback=fallback)
        assert read.open == 0
        return plan, read, calls

    return run


def clara_reply() -> dict[str, Any]:
    return reply(
        [
            fact("Clara Rezende", "Clara Rezende saiu da Vertix", importance_category="relationship_change"),
            fact("Clara Rezende", "Clara Rezende entrou na Orion Tech como head de engenharia"),
            fact("Thiago Nogueira", "Thiago Nogueira contratou Clara Rezende pessoalmente"),
        ],
        [
            person("Clara Rezende"),
            {"name": "Vertix", "type": "organization"},
            {"name": "Orion Tech", "type": "organization"},
            person("Thiago Nogueira"),
        ],
        [
            {"source": "Clara Rezende", "target": "Vertix", "type": "former_employee_of"},
            {"source": "Clara Rezende", "target": "Orion Tech", "type": "works_at"},
            {"source": "Thiago Nogueira", "target": "Clara Rezende", "type": "hired"},
        ],
        updated_profiles={
            "Clara Rezende": "Former software engineer at Vertix. Now head of engineering at Orion Tech."
        },
        emotion={"primary": "neutral", "intensity": 0.1, "energy_level": "medium"},
    )


def test_the_sources_example_clara(stage: Any, memory: Engine, scripted: ScriptedModel) -> None:
    entity(memory, "Clara Rezende", "Clara", profile="Software engineer at Vertix since 2023.")
    store_fact(memory, entity(memory, "Vertix", kind="organization"), "Vertix makes bridges", [1.0])
    scripted.on("informed_extraction", clara_reply())
    plan, read, calls = stage(CLARA)
    assert (len(plan.entities), len(plan.facts), len(plan.relations)) == (4, 3, 3)
    assert plan.mode == "informed"
    assert sorted(plan.known_keys) == ["organization:vertix", "person:clara_rezende"]
    assert [item.name for item in plan.profiles] == ["Clara Rezende"]
    assert plan.facts[0].importance == 0.90
    sent = next(call.payload for call in scripted.calls if call.task == "informed_extraction")
    known = {item["name"]: item for item in sent["known"]}
    assert known["Clara Rezende"]["profile"] == "Software engineer at Vertix since 2023."
    assert known["Vertix"]["facts"] == ["Vertix makes bridges"]
    assert sent["message_date"] == "2025-03-18T15:00:00+00:00 Tuesday"
    assert 0 < plan.context_tokens <= 800
    # One model call; the message is embedded for the facts' order, the facts for dedup; two statements.
    assert scripted.count() == 1
    assert scripted.count(EMBEDDING) == 2
    assert len(read.sent) == 2
    texts = [text for call in scripted.calls if call.task == EMBEDDING for text in call.payload["texts"]]
    assert len(texts) == len(set(texts)) == 4
    assert calls.usage.by_task == {"informed_extraction": 1}


def test_one_call_one_batch_one_statement_for_a_stranger(stage: Any, scripted: ScriptedModel) -> None:
    scripted.on("informed_extraction", clara_reply())
    _, read, _ = stage(CLARA)
    assert (scripted.count(), scripted.count(EMBEDDING), len(read.sent)) == (1, 1, 1)


def test_the_offline_reader_reads_through_the_same_stage(stage: Any, scripted: ScriptedModel) -> None:
    plan, _, _ = stage("I live in Curitiba with my wife Ana.")
    assert any("Curitiba" in item.text and item.subject == "Rafael" for item in plan.facts)
    assert all(item.confidence > 0.55 for item in plan.facts)


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (Fault.broken("Claro! Anotado."), "bad_reply"),
        (Fault.refusal(), "refused"),
        (Fault.status(429, retry_after=7), "rate_limited"),
        (Fault.status(500), "provider_error"),
        (Fault.timeout(5), "timeout"),
        (Fault.content_filter(), "refused"),
    ],
)
def test_causes_are_told_apart_and_never_look_like_emptiness(
    stage: Any, scripted: ScriptedModel, fault: Fault, cause: str
) -> None:
    scripted.on("informed_extraction", fault)
    with pytest.raises(ModelError) as error:
        stage(CLARA, timeout=2.0)
    assert error.value.cause == cause
    assert "Clara" not in str(error.value)


def test_a_cut_off_reply_is_not_parsed_as_if_whole(stage: Any, scripted: ScriptedModel) -> None:
    said = " ".join(f"No dia {n} de maio a Selma plantou a árvore {n} no quintal da casa velha." for n in range(1, 20))
    cut = (
        '{"entities": [], "facts": [{"subject": "Selma", "text": "Selma plantou a árvore 1"}, {"subject": "Selma", "te'
    )
    half = reply([fact("Selma", "Selma plantou árvores no quintal da casa velha")])
    scripted.queue("informed_extraction", Fault.length(cut))
    scripted.on("informed_extraction", half)
    plan, _, _ = stage(said)
    assert len(plan.facts) == 1
    assert plan.degradations == []
    assert scripted.count() == 3
    halves = [call.payload["message"] for call in scripted.calls if call.task == "informed_extraction"][1:]
    assert all(len(part) < len(said) for part in halves)


def test_deployment_instructions_stand_behind_the_prompt_and_are_recorded(stage: Any, scripted: ScriptedModel) -> None:
    scripted.on("informed_extraction", reply([fact("Rafael", "Rafael mora em Recife")]))
    plain, _, _ = stage("Moro em Recife")
    config = {"extraction_instructions": "Note every boat.", "entity_types": ("boat", "harbour")}
    plan, _, _ = stage("Moro em Recife", config=config)
    system = [call.system for call in scripted.calls if call.task == "informed_extraction"][-1]
    assert "Note every boat." in system
    assert "boat, harbour" in system
    assert plan.prompt_version.startswith(plain.prompt_version + "/")


def test_the_plan_survives_json(stage: Any, scripted: ScriptedModel) -> None:
    scripted.on("informed_extraction", clara_reply())
    plan, _, _ = stage(CLARA)
    assert Extraction.model_validate_json(plan.model_dump_json()) == plan


def test_blind_relations_and_facts_are_held_at_the_same_time(stage: Any, scripted: ScriptedModel) -> None:
    scripted.on("entity_scan", {"entities": [person("Clara Rezende"), person("Thiago Nogueira")]})
    scripted.on("fact_extraction", {"facts": clara_reply()["facts"]})
    scripted.on("relation_extraction", {"relations": clara_reply()["relations"]})
    scripted.on("emotion", {"emotion": {"primary": "joy", "intensity": 0.5, "energy_level": "high"}})
    with (
        ThreadPoolExecutor(1) as pool,
        scripted.hold("fact_extraction") as facts,
        scripted.hold("relation_extraction") as relations,
    ):
        reading = pool.submit(stage, CLARA, fallback="timeout")
        facts.wait_arrived()
        relations.wait_arrived()  # while the facts are held
        facts.release()
        relations.release()
        plan, read, _ = reading.result()
    assert (plan.mode, len(plan.facts), len(plan.relations), plan.emotion.primary) == ("blind", 3, 3, "joy")
    assert read.sent == []
    assert scripted.count() == 4
