"""Blind extraction: entities, then facts and relations at the same time, the retry, and what is critical."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.unit.write.answers import Answers, Embeddings, calls_of, fact, message, no_memory, person
from worker.llm.provider import Cause, ModelError
from worker.write.extraction import extract

SAID = "Moro em Recife com a Selma."
EDGE = {"source": "Bruna", "target": "Selma", "rel_type": "friend_of"}


def model() -> Answers:
    return (
        Answers()
        .on("entity_scan", {"entities": [person("Bruna"), person("Selma")]})
        .on("fact_extraction", {"facts": [fact("Bruna", "Bruna mora em Recife com a Selma")]})
        .on("relation_extraction", {"relations": [EDGE]})
        .on("emotion", {"emotion": {"primary": "joy", "intensity": 0.4, "energy_level": "low"}})
    )


def run(answers: Answers, **fields: Any) -> Any:
    fields.setdefault("fallback", "timeout")
    config = fields.pop("config", {})
    return extract(message(SAID, config=config), no_memory(), calls_of(answers, Embeddings()), **fields)


def test_four_calls_with_date_and_entities() -> None:
    answers = model()
    plan = run(answers)
    assert (plan.mode, len(plan.facts), len(plan.relations), plan.emotion.primary) == ("blind", 1, 1, "joy")
    assert sorted(task for task, _, _ in answers.calls) == [
        "emotion", "entity_scan", "fact_extraction", "relation_extraction",
    ]  # fmt: skip
    for task in ("entity_scan", "fact_extraction", "relation_extraction"):
        payload = answers.payloads(task)[0]
        assert payload["message_date"] == "2025-03-18T15:00:00+00:00 Tuesday"
        assert payload["speaker"] == "Bruna"
    assert [item["name"] for item in answers.payloads("fact_extraction")[0]["entities"]] == ["Bruna", "Selma"]
    assert [(item.fell_back_to, item.cause) for item in plan.degradations] == [("blind", "timeout")]
    assert plan.prompt_version.count("+") == 2
    assert not plan.relation_retry_triggered


def test_switched_off_is_no_degradation() -> None:
    plan = run(model(), fallback=None, config={"enable_informed_extraction": False})
    assert (plan.mode, plan.degradations) == ("blind", [])


def test_relations_are_asked_for_once_more_where_there_might_be_some() -> None:
    answers = (
        model()
        .on("relation_extraction", {"relations": []})
        .queue("relation_extraction", {"relations": []}, {"relations": [EDGE]})
    )
    plan = run(answers)
    assert plan.relation_retry_triggered
    assert len(plan.relations) == 1
    assert answers.count("relation_extraction") == 2
    answers = model().on("relation_extraction", {"relations": []}).on("entity_scan", {"entities": [person("Bruna")]})
    assert not run(answers).relation_retry_triggered
    assert answers.count("relation_extraction") == 1


def test_facts_and_relations_are_asked_for_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=10)
    answers = model()

    def wait_then(reply: Any) -> Any:
        def answer(_payload: Any) -> Any:
            both.wait()
            return reply

        return answer

    answers.on("fact_extraction", wait_then({"facts": [fact("Bruna", "Bruna mora em Recife")]}))
    answers.on("relation_extraction", wait_then({"relations": [EDGE]}))
    assert len(run(answers).facts) == 1


@pytest.mark.parametrize("task", ["entity_scan", "fact_extraction"])
@pytest.mark.parametrize("cause", [Cause.BAD_REPLY, Cause.TIMEOUT, Cause.REFUSED, Cause.RATE_LIMITED])
def test_a_failure_of_entities_or_facts_is_the_stages(task: str, cause: Cause) -> None:
    with pytest.raises(ModelError, match=cause.value):
        run(model().on(task, cause))


def test_a_final_failure_of_the_relations_leaves_the_facts() -> None:
    plan = run(model().on("relation_extraction", Cause.BAD_REPLY))
    assert len(plan.facts) == 1
    assert [item.cause for item in plan.degradations] == ["timeout", "bad_reply"]
    with pytest.raises(ModelError, match="rate_limited"):
        run(model().on("relation_extraction", Cause.RATE_LIMITED))


def test_the_emotion_is_never_critical() -> None:
    plan = run(model().on("emotion", Cause.RATE_LIMITED))
    assert (len(plan.facts), plan.emotion.primary) == (1, "neutral")
