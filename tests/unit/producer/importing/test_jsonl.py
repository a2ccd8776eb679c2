from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from producer.importing import Notes, Options, Row, Skipped, rows


def found(folder: Path, *lines: Any, **options: Any) -> list[Row | Skipped]:
    file = folder / "history.jsonl"
    file.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
    return list(rows(file, Options(format="jsonl", **options), Notes()))


def row(message: str, at: str | None = "2020-01-01T00:00:00Z", **more: Any) -> dict[str, Any]:
    return {"agent_id": "a", "speaker_name": "S", "message": message, "occurred_at": at, **more}


def test_a_batch_is_asked_for_with_every_row_unless_it_says_otherwise(tmp_path: Path) -> None:
    one, two = found(tmp_path, row("a"), row("b", config_overrides={"bulk_batch": 2}), batch=16)
    assert isinstance(one, Row)
    assert isinstance(two, Row)
    assert one.request.config_overrides == {"bulk_batch": 16, "bulk_turn": 8}
    assert two.request.config_overrides == {"bulk_batch": 2, "bulk_turn": 8}


def test_rows_take_every_field_and_defaults_fill_only_gaps(tmp_path: Path) -> None:
    given = {"message": "hi", "speaker_name": "Rui", "session_id": "s", "source": "chat", "role": "user"}
    (named, unnamed) = found(tmp_path, given, {"message": "hi"}, agent_id="a", speaker="Ana")
    assert isinstance(named, Row)
    assert isinstance(unnamed, Row)
    assert (named.request.agent_id, named.request.speaker_name, named.request.session_id) == ("a", "Rui", "s")
    assert (named.request.source, unnamed.request.speaker_name) == ("chat", "Ana")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"{", "is not JSON"),
        (b"[1]", "is not a JSON object"),
        (b"\xff\xfe{}", "is not UTF-8"),
        (b"[" * 100_000, "is not JSON"),
        (row("x", at="2020-01-01T00:00:00"), "has no time zone"),
        (row("x", mood="fine"), "mood is not a field"),
        (row("x", cls=1), "not a field"),
        (row("x", dry_run=True), "dry_run"),
        ({"agent_id": "a", "speaker_name": "S"}, "message is missing"),
        (row("x", speaker_name="  "), "speaker_name is blank"),
    ],
)
def test_a_bad_row_costs_itself_alone(tmp_path: Path, bad: Any, reason: str) -> None:
    items = found(tmp_path, row("one"), bad, row("three"))
    assert [item.line for item in items] == [1, 2, 3]
    assert [type(item) for item in items] == [Row, Skipped, Row]
    assert isinstance(items[1], Skipped)
    assert items[1].rejected
    assert reason in items[1].reason


def test_a_mark_at_the_start_and_empty_lines_are_passed_over(tmp_path: Path) -> None:
    start = b"\xef\xbb\xbf" + json.dumps(row("one")).encode()
    assert [item.line for item in found(tmp_path, start, b"", b"  ", row("two"))] == [1, 4]


def test_rows_without_an_id_get_one_from_their_content(tmp_path: Path) -> None:
    given = (row("x"), row("x"), row("y"), row("x", message_id="own"))
    first = [item.request.message_id for item in found(tmp_path, *given) if isinstance(item, Row)]
    assert len(set(first)) == 4
    assert first[3] == "own"
    assert first == [item.request.message_id for item in found(tmp_path, *given) if isinstance(item, Row)]


def test_a_time_without_zone_follows_the_zone_that_was_asked_for(tmp_path: Path) -> None:
    (item,) = found(tmp_path, row("x", at="2020-01-01T09:00:00"), timezone="America/Recife")
    assert isinstance(item, Row)
    assert str(item.request.occurred_at) == "2020-01-01 09:00:00-03:00"
