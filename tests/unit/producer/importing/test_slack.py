from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from producer.importing import Notes, Speaker, preview
from tests.unit.producer.importing.exports import FIXTURES, messages, said, skipped, when, written, zipped

EXPORT = FIXTURES / "slack"


def test_imp_10_bots_are_passed_over_broadcasts_kept_and_mentions_named() -> None:
    found = messages(EXPORT)
    assert said(found) == [
        ("Bea", "my son is Nils"),
        ("Bea", "I moved to Kiel"),
        ("Tomás Vidal", "@Bea ask @jo in #harbour or #general, see the plan (https://a.b/c?x=1&y=2) & q@a.b @here"),
        ("Bea", "yes"),
        ("Tomás Vidal", "all: lunch at 12"),
        ("Bea", "hi @Tomás Vidal"),
    ]
    reasons = skipped(EXPORT)
    assert sum(reason.startswith("bot message") for reason in reasons) == 3
    assert reasons.count("system message") == 1


def test_imp_10_a_thread_with_a_broadcast_is_three_messages(tmp_path: Path) -> None:
    thread = {"thread_ts": "1434139102.000002", "channel_name": "random"}
    root = {"text": "a question", "user": "U5", "ts": "1434139102.000002"}
    day = [
        root | thread,
        {"text": "an answer", "user": "U6", "ts": "1434139103.000002", "parent_user_id": "U5"} | thread,
        {"subtype": "thread_broadcast", "text": "for all", "user": "U6", "ts": "1434139104.000002", "root": root}
        | thread,
    ]
    notes = Notes()
    found = messages(written(tmp_path, "day.json", day), notes=notes)
    assert said(found) == [("U5", "a question"), ("U6", "an answer"), ("U6", "for all")]
    assert when(found[0]) == datetime(2015, 6, 12, 19, 58, 22, 2, tzinfo=UTC)
    assert any("--speaker-map" in warning for warning in notes.warnings)


def test_a_bot_in_the_speaker_map_is_kept_by_its_id() -> None:
    found = messages(EXPORT, speakers={"B3": Speaker("Deployer")})
    kept = [item for item in found if item.speaker_name == "Deployer"]
    assert [(item.role, item.message) for item in kept] == [("assistant", "deployed"), ("assistant", "deployed again")]


def test_channels_go_by_their_ids(tmp_path: Path) -> None:
    files = {str(path.relative_to(EXPORT)): path.read_text("utf-8") for path in EXPORT.rglob("*.json")}
    archive = zipped(tmp_path / "slack.zip", files)
    found = messages(archive)
    assert {item.session_id for item in found} == {"C1", "D9"}
    assert found[0].message_id == "slack:D9:1714636800.000100"
    assert [item.message_id for item in found] == [item.message_id for item in messages(EXPORT)]
    assert preview(archive)["side_files"] == 4
