from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from producer.importing.jsonl import Rejected, Row, read
from producer.importing.run import _named, in_order, preview


def lines(*rows: Any) -> list[bytes]:
    return [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]


def row(message: str, at: str | None = "2020-01-01T00:00:00Z", **more: Any) -> dict[str, Any]:
    return {"agent_id": "a", "speaker_name": "S", "message": message, "occurred_at": at, **more}


def test_rows_take_every_field_and_defaults_fill_only_gaps() -> None:
    given = {"message": "hi", "speaker_name": "Rui", "session_id": "s", "source": "chat", "role": "user"}
    (named, unnamed) = read(lines(given, {"message": "hi"}), agent_id="a", speaker="Ana")
    assert isinstance(named, Row)
    assert isinstance(unnamed, Row)
    assert (named.request.agent_id, named.request.speaker_name, named.request.session_id) == ("a", "Rui", "s")
    assert unnamed.request.speaker_name == "Ana"


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
def test_a_bad_row_costs_itself_alone(bad: Any, reason: str) -> None:
    found = list(read(lines(row("one"), bad, row("three"))))
    assert [item.line for item in found] == [1, 2, 3]
    assert [type(item) for item in found] == [Row, Rejected, Row]
    assert isinstance(found[1], Rejected)
    assert reason in found[1].reason


def test_a_mark_at_the_start_and_empty_lines_are_passed_over() -> None:
    found = list(read([b"\xef\xbb\xbf" + lines(row("one"))[0], b"", b"  \n", *lines(row("two"))]))
    assert [item.line for item in found if isinstance(item, Row)] == [1, 4]


def test_history_is_handed_in_in_the_order_in_which_it_happened() -> None:
    now = row("now")
    del now["occurred_at"]
    mixed = [row("b", "2021-01-01T00:00:00Z"), now, row("a", "2020-12-31T23:30:00-03:00"), row("?", None),
             row("c", "2021-01-01T03:00:00+01:00")]  # fmt: skip
    rows, rejected = in_order(read(lines(*mixed)))
    assert [item.request.message for item in rows] == ["?", "b", "c", "a", "now"]
    assert rejected == []


def test_rows_without_an_id_get_one_from_their_content() -> None:
    rows, _ = in_order(read(lines(row("x"), row("x"), row("y"), row("x", message_id="own"))))
    first = [request.message_id for request in _named(rows)]
    assert len(set(first)) == 4
    assert first[3] == "own"
    assert first == [request.message_id for request in _named(rows)]


def test_a_preview_counts_and_hands_nothing_in() -> None:
    undated = row("12345678")
    del undated["occurred_at"]
    rows, rejected = in_order(
        read(lines(row("a" * 40), row(" "), b"{", b"{", undated, row("x", "2019-05-01T00:00:00+02:00")))
    )
    seen = preview(rows, rejected)
    assert seen["messages"] == 3
    assert seen["speakers"] == {"S": 3}
    assert seen["first"] == "2019-05-01T00:00:00+02:00"
    assert seen["last"] == datetime(2020, 1, 1, tzinfo=UTC).isoformat()
    assert sum(seen["skipped"].values()) == 3
    assert seen["skipped"]["is blank"] == 1
    assert seen["tokens"] == 12
    assert seen["cost_usd"] is None
    assert len(seen["warnings"]) == 1
