"""Every task answers in the contract's shape, whatever the payload holds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.llm.offline.asking import TUESDAY, ask, edges, extract, told
from worker.llm.offline import OfflineProvider
from worker.llm.provider import LLMProvider, ModelError

TASKS = {
    "informed_extraction": {"entities", "facts", "relations", "updated_profiles", "emotion"},
    "entity_scan": {"entities"},
    "fact_extraction": {"facts"},
    "relation_extraction": {"relations"},
    "emotion": {"emotion"},
    "entity_resolution": {"resolutions"},
    "reconciliation": {"decisions"},
    "entity_profile": {"text"},
    "entity_summary": {"text"},
    "fact_merge": {"same", "reason", "text"},
    "entity_merge": {"same", "reason"},
    "cluster_summary": {"label", "text"},
    "meta_observations": {"observations"},
}
_SPOKEN = st.lists(
    st.sampled_from(
        [
            "I",
            "live",
            "in",
            "Recife",
            "moro",
            "em",
            "e",
            "and",
            "my",
            "wife",
            "Ana",
            ",",
            "(",
            ")",
            "não",
            "gosto",
            "de",
            "que",
            "o",
            "a",
            "mais",
            "'s",
            "is",
            "was",
            "há",
            "dois",
            "anos",
            "31",
            "February",
            "de 2023",
            "?",
            ".",
            "\n",
            "meu",
            "chefe",
            "tem",
            "ele",
            "her",
        ]
    ),
    max_size=25,
).map(" ".join)


def test_it_is_a_provider_and_says_what_it_is() -> None:
    provider = OfflineProvider()
    assert isinstance(provider, LLMProvider)
    assert provider.name == "offline"
    assert "not a language model" in provider.describe()
    completion = provider.complete("emotion", "", {"message": "I'm so happy!"})
    assert (completion.model, completion.usage.input_tokens, completion.usage.output_tokens) == ("offline", 0, 0)
    assert json.loads(completion.text)["emotion"]["primary"] == "joy"


@pytest.mark.parametrize("task", TASKS)
def test_every_task_answers_an_empty_payload(task: str) -> None:
    assert set(ask(task, {"task": task})) == TASKS[task]


def test_an_unknown_task_is_an_invalid_request() -> None:
    with pytest.raises(ModelError):
        OfflineProvider().complete("poetry", "", {})


def _check(reply: dict[str, Any]) -> None:
    names = {e["name"] for e in reply["entities"]}
    for fact in reply["facts"]:
        assert fact["subject"].strip()
        assert fact["text"].strip()
        assert (fact["event_date"] is None) == (fact["event_date_precision"] is None)
    for edge in reply["relations"]:
        assert edge["source"] in names
        assert edge["target"] in names
        assert any(edge["source"] in f["text"] and edge["target"] in f["text"] for f in reply["facts"])


@settings(max_examples=150, deadline=None)
@given(message=st.one_of(st.text(max_size=200), _SPOKEN), speaker=st.text(max_size=20))
def test_any_text_gives_a_reply_of_the_contract(message: str, speaker: str) -> None:
    reply = extract(message, speaker)
    assert set(reply) == TASKS["informed_extraction"]
    _check(reply)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda c: (
        st.lists(c, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "name",
                    "text",
                    "facts",
                    "number",
                    "message",
                    "existing",
                    "candidates",
                    "aliases",
                    "since",
                    "until",
                    "type",
                ]
            ),
            c,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(
    task=st.sampled_from(sorted(TASKS)),
    payload=st.dictionaries(
        st.sampled_from(
            [
                "message",
                "speaker",
                "message_date",
                "recent_messages",
                "known",
                "entities",
                "facts",
                "names",
                "entity",
                "messages",
                "first",
            ]
        ),
        _JSON,
    ),
)
def test_any_payload_gives_an_answer(task: str, payload: dict[str, Any]) -> None:
    assert isinstance(ask(task, payload), dict)


@settings(max_examples=100, deadline=None)
@given(new=st.one_of(st.text(max_size=60), _SPOKEN), old=st.one_of(st.text(max_size=60), _SPOKEN))
def test_any_two_facts_are_reconciled(new: str, old: str) -> None:
    fact = {"number": 1, "subject": "Ana", "text": new, "existing": [{"number": 1, "text": old}]}
    (decision,) = ask("reconciliation", {"message_date": TUESDAY, "facts": [fact]})["decisions"]
    assert decision["action"] in ("ADD", "UPDATE", "NOOP", "DELETE")
    assert decision["existing_number"] in (None, 1)


def test_a_batch_numbers_its_facts_and_resolves_pronouns_across_messages() -> None:
    messages = [
        {"number": 1, "message": "A Célia chegou.", "speaker": "Bruna", "message_date": TUESDAY},
        {"number": 2, "message": "Ela mora em Natal.", "speaker": "Bruna", "message_date": TUESDAY},
        {"number": 3, "message": "I live in Lyon.", "speaker": "Marc", "message_date": TUESDAY},
    ]
    reply = ask("informed_extraction", {"messages": messages, "known": []})
    rows = {(f["message_number"], f["subject"], f["text"]) for f in reply["facts"]}
    assert {(2, "Célia", "Célia mora em Natal"), (3, "Marc", "Marc lives in Lyon")} <= rows
    assert {"source": "Marc", "target": "Lyon", "rel_type": "lives_in", "message_number": 3} in reply["relations"]
    assert [e["message_number"] for e in reply["emotions"]] == [1, 2, 3]


def test_blind_tasks_tell_the_same_as_the_informed_one() -> None:
    payload = {"message": "I work at Orion.", "speaker": "Ana", "message_date": TUESDAY, "recent_messages": []}
    entities = ask("entity_scan", payload)["entities"]
    assert {e["name"]: e["type"] for e in entities} == {"Ana": "person", "Orion": "organization"}
    whole = extract("I work at Orion.", "Ana")
    assert ask("fact_extraction", {**payload, "entities": entities})["facts"] == whole["facts"]
    assert ask("relation_extraction", {**payload, "entities": entities})["relations"] == whole["relations"]


def test_profiles_are_english_whatever_the_facts_are() -> None:
    facts = [{"text": "Clara mora em Recife"}, {"text": "Clara trabalha na Orion"}, {"text": "Clara é irmã de Bruna"}]
    text = ask("entity_profile", {"entity": {"name": "Clara"}, "facts": facts})["text"]
    assert text == "Clara lives in Recife. Clara works at Orion. Clara is Bruna's sister."


def test_merges() -> None:
    same = ask(
        "fact_merge",
        {"facts": [{"number": 1, "text": "Ana mora em Natal"}, {"number": 2, "text": "Ana lives in Natal since 2019"}]},
    )
    assert (same["same"], same["text"]) == (True, "Ana lives in Natal since 2019")
    assert not ask(
        "fact_merge",
        {"facts": [{"number": 1, "text": "Ana likes tea"}, {"number": 2, "text": "Ana does not like tea"}]},
    )["same"]
    pair = [{"name": "Clara", "type": "person"}, {"name": "Clara Rezende", "type": "person"}]
    assert ask("entity_merge", {"entities": pair})["same"]
    assert not ask("entity_merge", {"entities": [pair[0], {"name": "Clara Filho", "type": "person"}]})["same"]
    told = [{"facts": [{"text": f"{one['name']} was born in {place}"}], **one}
            for one, place in zip(pair, ("Recife", "Natal"), strict=True)]  # fmt: skip
    assert not ask("entity_merge", {"entities": told})["same"]


def test_what_is_about_a_relative_gives_the_named_one_no_edge() -> None:
    assert edges("O irmão da Paula mora em Manaus.") == set()
    assert edges("My coworker Sam drives me crazy.", "Rafael") == {("Rafael", "colleague_of", "Sam")}
    assert ("Mike", "Mike lives in Seattle") in told("Jessica's brother Mike lives in Seattle.")


@pytest.mark.parametrize(
    ("message", "date"),
    [
        ("I moved to Lyon 3 days ago.", "2025-03-15"),
        ("Comprei um sofá anteontem.", "2025-03-16"),
        ("Entrei na Nortec em 2019.", "2019-01-01"),
        ("I joined Orion last month.", "2025-02-01"),
        ("Vou viajar para o Chile mês que vem.", "2025-04-01"),
        ("I bought a house on 2023-08-27.", "2023-08-27"),
        ("I'm getting married in June.", "2025-06-01"),
        ("Adotei um gato há dois anos.", "2023-01-01"),
    ],
)
def test_dates(message: str, date: str) -> None:
    assert [f["event_date"] for f in extract(message)["facts"]] == [date]
    if "20" not in message:
        assert [f["event_date"] for f in extract(message, date=None)["facts"]] == [None]


def test_a_name_is_an_end_only_where_the_sentence_says_so() -> None:
    assert edges("Ganhei uma bolsa de mestrado em Coimbra.") == set()
    assert edges("O Bruno e a Carla se casaram em 2015.") == {("Bruno", "spouse_of", "Carla")}
    profiles = extract("O Bruno e a Carla se casaram em 2015.")["updated_profiles"]
    assert all("2015" not in p["profile_text"] or "married" in p["profile_text"] for p in profiles)


def test_relative_clauses_are_facts_of_their_own() -> None:
    facts = told("My brother Tom, who lives in Leeds, is a chef.", "Rafael")
    assert {("Tom", "Tom lives in Leeds"), ("Tom", "Tom is a chef"), ("Tom", "Tom is Rafael's brother")} == set(facts)
