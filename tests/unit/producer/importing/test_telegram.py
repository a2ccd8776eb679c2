from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from producer.importing import Notes, preview
from tests.unit.producer.importing.exports import FIXTURES, messages, said, skipped, when, written

CHAT = FIXTURES / "telegram_chat.json"


def test_imp_08_text_is_a_string_or_a_list_and_the_time_is_the_unix_one() -> None:
    (mixed, *_) = messages(CHAT)
    assert mixed.message == "veja http://x.y amanhã"
    assert when(mixed) == datetime(2025, 3, 2, 12, 15, tzinfo=UTC)
    assert str(when(mixed)) == "2025-03-02 09:15:00-03:00", "the owner's clock showed quarter past nine"


def test_imp_09_a_chat_with_one_date_only_is_suspicious(tmp_path: Path) -> None:
    one = {"type": "message", "from": "Rita", "from_id": "user1", "date_unixtime": "1740917700"}
    chat = {"name": "R", "type": "personal_chat", "id": 1,
            "messages": [one | {"id": number, "text": f"m{number}"} for number in range(1000)]}  # fmt: skip
    seen = preview(written(tmp_path, "result.json", chat))
    assert seen["messages"] == 1000
    assert [warning for warning in seen["warnings"] if "timestamps are suspicious" in warning]


def test_captions_links_forwards_and_accounts_that_are_gone() -> None:
    notes = Notes()
    assert said(messages(CHAT, notes=notes))[1:] == [
        ("Rita", "a vista da casa nova"),
        ("Rui", "leia isto (http://z.w)"),
        ("Rita", "(forwarded from Canal X) Moro em Marte"),
        ("user99", "sem conta"),
        ("Rita", "hora antiga"),
    ]
    assert any("forwarded" in warning for warning in notes.warnings)
    assert sorted(skipped(CHAT)) == ["picture, file or the like without a caption"] * 2 + ["service message"]


def test_a_plain_date_follows_the_zone() -> None:
    assert str(when(messages(CHAT, timezone="America/Recife")[-1])) == "2025-03-02 09:15:00-03:00"


def test_a_whole_account_keeps_chats_namesakes_and_bots_apart() -> None:
    found = messages(FIXTURES / "telegram_account.json")
    assert [(item.session_id, item.message_id, item.speaker_name, item.role) for item in found] == [
        ("4001", "telegram:4001:2", "Rita", "user"),
        ("72", "telegram:72:2", "Rui", "user"),
        ("5", "telegram:5:2", "Rui", "user"),
        ("5", "telegram:5:3", "HelperBot", "assistant"),
        ("6", "telegram:6:1", "Rita (user88)", "user"),
    ]
