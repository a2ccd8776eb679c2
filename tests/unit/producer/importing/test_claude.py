from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from producer.importing import Notes
from tests.unit.producer.importing.exports import FIXTURES, messages, said, skipped, when, written

EXPORT = FIXTURES / "claude"


def test_imp_05_text_in_content_blocks_is_kept_and_turns_of_tools_alone_vanish() -> None:
    found = messages(EXPORT)
    assert [(item.role, item.speaker_name, item.message) for item in found] == [
        ("user", "Dalva Prates", "Moro em Natal\n\ne trabalho no porto"),
        ("assistant", "Claude", "O porto de Natal!"),
        ("user", "Dalva Prates", "see this"),
        ("user", "Dalva Prates", "I have a cat"),
    ]
    assert sorted(skipped(EXPORT)) == ["has no text", "system or tool message"]


def test_imp_05_a_conversation_as_the_case_has_it(tmp_path: Path) -> None:
    turn = {"sender": "human", "text": "", "content": [{"type": "text", "text": "Moro em Natal"}]}
    (found,) = messages(written(tmp_path, "c.json", [{"chat_messages": [turn]}]), speaker="Rui")
    assert (found.speaker_name, found.message, found.occurred_at) == ("Rui", "Moro em Natal", "unknown")


def test_times_and_ids_are_the_exports_and_attachments_are_told() -> None:
    notes = Notes()
    found = messages(EXPORT, notes=notes)
    assert found[0].message_id == "claude:k-1-1"
    assert when(found[0]) == datetime(2024, 5, 1, 12, tzinfo=UTC)
    assert when(found[2]) == when(found[1])  # the one before it, where it has none
    assert "2 attachments left out" in notes.warnings


def test_without_users_the_speaker_is_whom_the_options_name(tmp_path: Path) -> None:
    text = (EXPORT / "conversations.json").read_text("utf-8")
    assert messages(written(tmp_path, "conversations.json", text))[0].speaker_name == "User"


def test_of_several_branches_the_shown_one_is_read(tmp_path: Path) -> None:
    def turn(name: str, parent: str | None) -> dict[str, Any]:
        return {"uuid": name, "sender": "human", "text": name, "parent_message_uuid": parent}

    turns = [turn("first", None), turn("edited away", "first"), turn("last", "first")]
    export = [{"uuid": "c", "current_leaf_message_uuid": "last", "chat_messages": turns}]
    assert said(messages(written(tmp_path, "c.json", export))) == [("User", "first"), ("User", "last")]
