"""A reply to several messages is taken apart without a doubt, or not at all."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from worker.llm.provider import Cause, Completion, ModelError
from worker.write.extraction.batch import MAX_BATCH_CHARS, may_share, taken_apart, that_fit
from worker.write.message import Message


def message(text: str, speaker: str = "Rui", **more: Any) -> Message:
    return Message(event_id=uuid4(), agent_id="a", text=text, speaker=speaker, **more)


TWO = (message("My sister Clara lives in Natal."), message("I like tea.", "Ana"))


def fact(number: Any, subject: str | None, text: str) -> dict[str, Any]:
    return {"message_number": number, "subject": subject, "text": text}


def apart(**sections: Any) -> list[dict[str, Any]]:
    whole = {"entities": [], "facts": [], "relations": [], **sections}
    return [json.loads(part.text) for part in taken_apart(Completion(json.dumps(whole)), TWO)]


def test_each_message_gets_its_own_items_and_the_entities_that_they_name() -> None:
    clara = {"name": "Clara Rezende", "type": "person", "aliases": ["Clara"]}
    ana, natal, mars = ({"name": name, "type": "x", "aliases": []} for name in ("Ana", "Natal", "Mars"))
    relation = {"message_number": 1, "source": "Clara Rezende", "target": "Natal", "rel_type": "lives_in"}
    first, second = apart(
        entities=[clara, ana, natal, mars],
        facts=[fact(1, "Clara Rezende", "Clara Rezende lives in Natal"), fact("2", "Ana", "Ana likes tea")],
        relations=[relation],
        updated_profiles=[{"name": "Clara", "profile_text": "Lives in Natal."}],
        emotions=[{"message_number": 2, "primary": "joy", "intensity": 0.5, "energy_level": "low"}],
    )
    assert [entity["name"] for entity in first["entities"]] == ["Clara Rezende", "Natal"]
    assert [entity["name"] for entity in second["entities"]] == ["Ana"]
    assert [[item["text"] for item in part["facts"]] for part in (first, second)] == [
        ["Clara Rezende lives in Natal"], ["Ana likes tea"],
    ]  # fmt: skip
    assert ([len(part["relations"]) for part in (first, second)], len(first["updated_profiles"])) == ([1, 0], 1)
    assert (first["emotion"], second["emotion"]["primary"]) == (None, "joy")


def test_messages_that_say_nothing_have_a_reply_of_their_own() -> None:
    assert [part["facts"] for part in apart()] == [[], []]


@pytest.mark.parametrize(
    "sections",
    [
        {"facts": [fact(None, "Ana", "Ana likes tea")]},
        {"facts": [fact(3, "Ana", "Ana likes tea")]},
        {"facts": ["Ana likes tea"]},
        {"relations": [{"source": "Ana", "target": "tea", "rel_type": "likes"}]},
        {"facts": [fact(1, "Rui", "Rui likes tea"), fact("both", "Ana", "Ana likes tea")]},
    ],
)
def test_one_item_of_nobody_spoils_the_reply(sections: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="not_attributable") as caught:
        apart(**sections)
    assert caught.value.cause is Cause.BAD_REPLY


@pytest.mark.parametrize("reply", ['{"entities": [], "facts": [', '{"entities": [], "emotions": []}', "no"])
def test_a_reply_that_is_broken_or_is_none_is_not_taken_apart(reply: str) -> None:
    with pytest.raises(ModelError):
        taken_apart(Completion(reply), TWO)
    with pytest.raises(ModelError, match="cut_off"):
        taken_apart(Completion('{"facts": [], "relations": []}', truncated=True), TWO)


def test_only_short_messages_with_something_to_say_share_a_call() -> None:
    assert may_share(TWO[0])
    assert not may_share(message("x" * 1501))
    assert not may_share(message("ok"))
    assert not may_share(message("I live in Natal.", role="assistant"))
    long = [message("I live in Natal. " * 80) for _ in range(8)]
    assert sum(len(item.text) for item in that_fit(long)) <= MAX_BATCH_CHARS
    assert 2 <= len(that_fit(long)) < 8
