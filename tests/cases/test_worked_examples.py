"""The source's two worked examples, but for what is Decided otherwise; and what a run and a dry run say of prompts."""

from __future__ import annotations

import json

import pytest

from producer.contract import WriteRequest
from tests.cases.conftest import AT, Memory
from tests.cases.replies import edge, entity, extraction, fact
from tests.scripted_model import EMBEDDING
from worker.llm.prompts import instructions_hash, prompt
from worker.turns import dry
from worker.write.tokens import estimated_tokens

CLARA = (
    "Clara Rezende saiu da Vertix e foi pra Orion Tech como head de engenharia. "
    "O Thiago Nogueira a contratou pessoalmente."
)
PROFILE = "Software engineer at Vertix since 2023."


def set_up(memory: Memory) -> None:
    """Clara and Vertix are known, Clara with a profile."""
    memory.model.queue(
        "informed_extraction",
        extraction(
            [fact("Clara Rezende", "Clara Rezende é engenheira de software na Vertix")],
            [entity("Clara Rezende"), entity("Vertix", "organization")],
            [edge("Clara Rezende", "works_at", "Vertix")],
            updated_profiles=[{"name": "Clara Rezende", "profile_text": PROFILE}],
        ),
    )
    memory.write("A Clara Rezende é engenheira de software na Vertix.", "Rafael", at="2023-02-01T09:00:00-03:00")


def test_the_sources_example_of_informed_extraction(memory: Memory) -> None:
    set_up(memory)
    memory.model.on(
        "informed_extraction",
        extraction(
            [
                fact("Clara Rezende", "Clara Rezende saiu da Vertix", importance_category="relationship_change"),
                fact("Clara Rezende", "Clara Rezende entrou na Orion Tech como head de engenharia",
                     importance_category="relationship_change"),
                fact("Thiago Nogueira", "Thiago Nogueira contratou pessoalmente a Clara Rezende",
                     importance_category="specific_event"),
            ],
            [entity("Clara Rezende"), entity("Vertix", "organization"), entity("Orion Tech", "organization"),
             entity("Thiago Nogueira")],
            [edge("Clara Rezende", "former_employee_of", "Vertix"), edge("Clara Rezende", "works_at", "Orion Tech"),
             edge("Thiago Nogueira", "hired", "Clara Rezende")],
            updated_profiles=[{"name": "Clara Rezende", "profile_text": "Now head of engineering at Orion Tech."}],
        ),
    )  # fmt: skip
    before = memory.model.count("informed_extraction")
    result = memory.write(CLARA, "Rafael", verbose=True)
    assert result.status == "ok"
    assert memory.model.count("informed_extraction") == before + 1  # one extraction call
    sent = [call for call in memory.model.calls if call.task == "informed_extraction"][-1].payload
    known = {item["name"]: item for item in sent["known"]}
    assert known["Clara Rezende"]["profile"] == PROFILE
    assert set(known) >= {"Clara Rezende", "Vertix"}
    assert not {"Orion Tech", "Thiago Nogueira"} & set(known)
    stored = {row["fact_text"]: row for row in memory.rows("SELECT * FROM memory_facts WHERE agent_id = :agent")}
    for text, importance in (
        ("Clara Rezende entrou na Orion Tech como head de engenharia", 0.90),
        ("Thiago Nogueira contratou pessoalmente a Clara Rezende", 0.65),
    ):
        assert stored[text]["importance"] == pytest.approx(importance)
        assert stored[text]["valid_to"] is None
    assert "Clara Rezende saiu da Vertix" in stored
    (clara,) = memory.rows(
        "SELECT profile_text FROM memory_entities WHERE agent_id = :agent AND canonical_key = 'person:clara_rezende'"
    )
    assert clara["profile_text"] == PROFILE  # seeded once, never overwritten here
    assert {key for key in memory.entity_keys() if key != "person:rafael"} == {
        "organization:orion_tech", "organization:vertix", "person:clara_rezende", "person:thiago_nogueira",
    }  # fmt: skip
    assert {
        ("person:clara_rezende", "works_at", "organization:orion_tech"),
        ("person:thiago_nogueira", "hired", "person:clara_rezende"),
    } <= memory.edges()
    assert ("person:clara_rezende", "works_at", "organization:vertix") not in memory.edges()
    assert result.pipeline is not None
    assert result.pipeline.steps[1].data["dropped"] == []


def test_the_sources_example_of_blind_extraction(memory: Memory) -> None:
    set_up(memory)
    asked = memory.model.count()
    named = [entity("Clara Rezende"), entity("Vertix", "organization"), entity("Orion Tech", "organization")]
    memory.model.on("entity_scan", {"entities": [*named, entity("Thiago Nogueira")]})
    told = [
        fact("Clara Rezende", "Clara Rezende saiu da Vertix"),
        fact("Clara Rezende", "Clara Rezende entrou na Orion Tech como head de engenharia"),
        fact("Thiago Nogueira", "Thiago Nogueira contratou pessoalmente a Clara Rezende"),
    ]
    memory.model.on("fact_extraction", {"facts": told})
    edges = [edge("Clara Rezende", "works_at", "Orion Tech"), edge("Thiago Nogueira", "hired", "Clara Rezende")]
    memory.model.on("relation_extraction", {"relations": edges})
    memory.model.on("emotion", {"emotion": {"primary": "neutral", "intensity": 0, "energy_level": "medium"}})
    result = memory.write(CLARA, "Rafael", verbose=True, config_overrides={"enable_informed_extraction": False})
    assert result.status == "ok"
    assert result.pipeline is not None
    assert (result.pipeline.steps[0].data["mode"], result.pipeline.steps[0].data["facts"]) == ("blind", 3)
    tasks = [call.task for call in memory.model.calls if call.task not in (EMBEDDING, "reconciliation")][asked:]
    assert sorted(tasks) == ["emotion", "entity_scan", "fact_extraction", "relation_extraction"]


def test_the_sources_example_of_resolution(memory: Memory) -> None:
    memory.model.vector("Guilherme Maturana", [1.0] + [0.0] * 383)
    memory.model.vector("Guili", [0.87, (1 - 0.87**2) ** 0.5] + [0.0] * 382)
    memory.model.queue(
        "informed_extraction",
        extraction(
            [fact("Guilherme Maturana", "Guilherme Maturana é arquiteto")],
            [entity("Guilherme Maturana", "person", "Guilherme")],
        ),
        extraction(
            [fact("Guili", "Rafael falou com o Guili sobre o projeto"),
             fact("Guilherme", "Guilherme disse que o projeto está no prazo")],
            [entity("Guili"), entity("Guilherme")],
        ),
        extraction([fact("Guili", "Guili viajou")], [entity("Guili")]),
    )  # fmt: skip
    memory.write("O Guilherme Maturana é arquiteto. Todos o chamam de Guilherme.", "Rafael")
    result = memory.write("Falei com o Guili sobre o projeto. O Guilherme disse que tá no prazo.", "Rafael")
    resolved = {item.name: (item.key, item.method) for item in result.entities_resolved}
    assert resolved["Guili"] == ("person:guilherme_maturana", "fuzzy")
    assert resolved["Guilherme"][0] == "person:guilherme_maturana"
    score = next(item.score for item in result.entities_resolved if item.name == "Guili")
    assert score == pytest.approx(0.87, abs=0.001)
    again = memory.write("O Guili viajou.", "Rafael")
    (guili,) = [item for item in again.entities_resolved if item.name == "Guili"]
    assert (guili.key, guili.method) in {("person:guilherme_maturana", how) for how in ("exact", "alias")}
    assert memory.model.count("entity_resolution") == 0


def test_the_sources_example_of_grouping(memory: Memory) -> None:
    memory.model.on(
        "informed_extraction",
        extraction(
            [fact("Guili", "Guili mora em Lisboa")],
            [entity("Guilherme Maturana", "person", "Guili"), entity("Lisboa", "place")],
            [edge("Guili", "same_as", "Guilherme Maturana"), edge("Guili", "lives_in", "Lisboa")],
        ),
    )
    result = memory.write("meu amigo Guili (Guilherme Maturana) mora em Lisboa", "Rafael")
    (stored,) = [row for row in memory.facts() if row["source_context"] is None]
    assert (stored["entity_key"], stored["fact_text"]) == ("person:guilherme_maturana", "Guili mora em Lisboa")
    assert ("person:guilherme_maturana", "lives_in", "place:lisboa") in memory.edges()
    assert not any(rel_type == "same_as" for _, rel_type, _ in memory.edges())
    assert "person:guili" not in memory.entity_keys()
    assert result.repairs["identity_relation"] == 1


def test_a_run_keeps_the_versions_of_its_prompts_and_a_hash_of_the_deployments_words(memory: Memory) -> None:
    words = "Note every boat."
    memory.write("Moro em Recife.", config_overrides={"extraction_instructions": words})
    (run,) = memory.rows("SELECT usage FROM runs WHERE agent_id = :agent")
    version = prompt("informed_extraction").version
    assert run["usage"]["prompts"] == {"informed_extraction": f"{version}/{instructions_hash(words)}"}
    memory.write("Moro em Natal.", at="2025-04-01T10:00:00+00:00")
    latest = memory.rows("SELECT usage FROM runs WHERE agent_id = :agent ORDER BY seq DESC LIMIT 1")[0]["usage"]
    assert latest["prompts"]["informed_extraction"] == version
    assert latest["prompts"].get("reconciliation") in (None, prompt("reconciliation").version)


def dry_run(memory: Memory, said: str, *, verbose: bool) -> dict[str, object]:
    """What a worker answers to a dry run."""
    request = WriteRequest.parse(
        agent_id=memory.agent, message=said, speaker_name="Rafael", occurred_at=AT, verbose=verbose, dry_run=True,
        config_overrides={"extraction_instructions": "Note every boat."},
    )  # fmt: skip
    (row,) = memory.rows(
        "INSERT INTO dry_runs (id, request) VALUES (gen_random_uuid(), CAST(:request AS jsonb)) RETURNING id",
        request=request.model_dump_json(),
    )
    dry.dry_run(row["id"])
    return memory.rows("SELECT result FROM dry_runs WHERE id = :id", id=row["id"])[0]["result"]


def test_a_verbose_dry_run_shows_the_prompt_with_three_known_entities_and_its_tokens_by_part(memory: Memory) -> None:
    set_up(memory)
    memory.write("A Selma adora samba.", "Rafael")
    said = "A Clara Rezende saiu da Vertix, contou a Selma; a senha é banana46."
    result = dry_run(memory, said, verbose=True)
    step = result["pipeline"]["steps"][0]
    (shown,) = step["data"]["prompts"]
    assert {item["name"] for item in shown["user"]["known"]} >= {"Clara Rezende", "Vertix", "Selma"}
    assert shown["system"] == prompt("informed_extraction").text
    assert shown["instructions"] == "Note every boat."
    assert set(shown["tokens"]) >= {"system", "instructions", "message", "recent_messages", "known", "rest", "total"}
    assert shown["tokens"]["total"] == sum(count for part, count in shown["tokens"].items() if part != "total")
    assert shown["tokens"]["known"] == estimated_tokens(shown["user"]["known"]) <= 800
    assert "banana46" not in json.dumps(result)


def test_nothing_else_keeps_a_prompt(memory: Memory) -> None:
    result = dry_run(memory, "Moro em Recife.", verbose=False)
    assert result["pipeline"] is None
    written = memory.write("Moro em Recife.", verbose=True)
    assert written.pipeline is not None
    assert "prompts" not in written.pipeline.steps[0].data
    assert prompt("informed_extraction").text.splitlines()[0] not in memory.everything(but=("dry_runs",))
