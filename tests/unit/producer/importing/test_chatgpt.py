from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from producer.importing import Notes, UnreadableExport, preview
from tests.unit.producer.importing.exports import FIXTURES, messages, said, skipped, when, written, zipped

EXPORT = FIXTURES / "chatgpt"


def test_the_shown_branch_is_read_with_roles_and_without_tools() -> None:
    found = messages(EXPORT, speaker="Lia")
    assert [(item.role, item.speaker_name, item.message) for item in found if item.session_id == "c-1"] == [
        ("user", "Lia", "Eu me mudei para Natal ontem"),
        ("assistant", "ChatGPT", "Que bom! Como está Natal?"),
        ("user", "Lia", "Esta é a minha rua\ne a praia fica perto"),
        ("assistant", "ChatGPT", "Linda rua."),
    ]
    reasons = skipped(EXPORT)
    assert reasons.count("on a branch that is not shown") == 1
    assert reasons.count("system or tool message") == 3  # the system's, the call and its result
    assert reasons.count("has no text") == 2  # custom instructions, thoughts


def test_imp_02_a_message_without_time_has_its_parents_or_the_conversations_or_an_unknown_one() -> None:
    found = {item.message: item for item in messages(EXPORT)}
    parents = when(found["Que bom! Como está Natal?"])
    assert when(found["Esta é a minha rua\ne a praia fica perto"]) == parents
    assert when(found["I sold the boat"]) == when(found["Noted."]) == datetime(2024, 1, 1, tzinfo=UTC)
    assert found["I keep bees"].occurred_at == "unknown"


def test_ids_are_the_platforms_and_a_user_without_a_name_is_told() -> None:
    notes = Notes()
    found = messages(EXPORT, notes=notes)
    assert [item.message_id for item in found][:2] == ["chatgpt:m-u1", "chatgpt:m-a1b"]
    assert {item.speaker_name for item in found} == {"User", "ChatGPT"}
    assert any("--speaker" in warning for warning in notes.warnings)
    assert "1 pictures and files left out" in notes.warnings


def test_instants_take_the_date_of_the_zone_that_was_asked_for() -> None:
    (first, *_) = messages(EXPORT, timezone="Asia/Tokyo")
    assert str(when(first)) == "2024-04-25 22:00:00.250000+09:00"


def test_the_archive_is_told_by_what_is_in_it_and_a_preview_says_who_is_who(tmp_path: Path) -> None:
    files = {f"x/{path.name}": path.read_text("utf-8") for path in EXPORT.iterdir()}
    seen = preview(zipped(tmp_path / "export.zip", files))
    assert (seen["format"], seen["side_files"]) == ("chatgpt", 3)
    assert seen["roles"] == {"User": "user", "ChatGPT": "assistant"}
    assert seen["calls"] == seen["speakers"]["User"] == 4


def test_one_conversation_alone_and_a_tree_that_goes_in_circles(tmp_path: Path) -> None:
    def node(name: str, parent: str | None) -> dict[str, Any]:
        content = {"content_type": "text", "parts": [name]}
        return {"parent": parent, "children": [], "message": {"author": {"role": "user"}, "content": content}}

    tree = {"a": node("a", "b"), "b": node("b", "a")}
    one = {"title": "t", "create_time": 1.5e9, "mapping": tree, "current_node": "b"}
    assert said(messages(written(tmp_path, "one.json", one))) == [("User", "a"), ("User", "b")]


def test_a_file_that_is_cut_off_says_where(tmp_path: Path) -> None:
    text = (EXPORT / "conversations.json").read_text("utf-8")
    with pytest.raises(UnreadableExport, match=r"line \d+: is not JSON.*cut off"):
        messages(written(tmp_path, "conversations.json", text[: len(text) // 2]))
