from __future__ import annotations

import json
from pathlib import Path

from producer.importing import Notes
from tests.unit.producer.importing.exports import FIXTURES, messages, said, when, written

SAMPLES = FIXTURES / "locomo.json"


def test_turns_are_read_session_by_session_and_captions_count_as_text() -> None:
    notes = Notes()
    found = messages(SAMPLES, timezone="Europe/Oslo", notes=notes)
    assert said(found) == [
        ("Noor", "I started at the observatory."),
        ("Emil", "Look! [picture: a photo of a kayak]"),
        ("Emil", "[picture: a photo of a red tent]"),
        ("Noor", "My sister visits."),
        ("Emil", "Undated."),
    ]
    assert [str(when(item)) for item in found[2:4]] == ["2023-05-08 13:56:00+02:00", "2023-09-13 00:09:00+02:00"]
    assert found[4].occurred_at == "unknown"
    assert any("session_10" in warning for warning in notes.warnings)
    assert [item.session_id for item in found][-1] == "conv-1:session_10"
    assert found[0].message_id == "locomo:conv-1:session_1:D1:1"


def test_one_sample_or_one_conversation_alone(tmp_path: Path) -> None:
    (sample,) = json.loads(SAMPLES.read_text("utf-8"))
    assert len(messages(written(tmp_path, "one.json", sample))) == 5
    assert len(messages(written(tmp_path, "conversation.json", sample["conversation"]))) == 5
