"""JSON lines: one message a line, with the fields of WriteRequest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from producer.client import read_row
from producer.contract import RequestError
from producer.importing.export import Export
from producer.importing.rows import Row, Skipped
from producer.importing.shapes import Head
from producer.importing.sources import Entry
from producer.importing.times import iso

NAME = "jsonl"


def recognises(head: Head) -> bool:
    """Whether one of the first lines is a JSON object with a message."""
    if len(head.lines) == 1 and not head.whole:  # one line, too long to be seen to its end
        return head.json is not None and head.json.top == "{" and head.json.has("", "message")
    return any("message" in row and not isinstance(row["message"], (dict, list)) for row in head.rows)


def read(entry: Entry, export: Export) -> Iterator[Row | Skipped]:
    """The messages, in their order; a bad line costs itself alone. Lines without text are passed over.

    The options' agent and speaker stand in where a row names none. ``"occurred_at": null`` says that the time is
    unknown; a row without the field happened now. A time without zone is refused unless a zone was asked for.
    """
    defaults = {"agent_id": export.options.agent_id, "speaker_name": export.options.speaker}
    for number, line, good in entry.lines():
        if not good:
            yield Skipped(number, "is not UTF-8, or longer than a message can be", line.strip()[:2000], rejected=True)
        elif line.strip():
            yield _row(number, _zoned(line.strip(), export), defaults)


def _zoned(line: str, export: Export) -> str:
    """``line`` with a zone at its time, where it has none and one was asked for."""
    if export.options.timezone is None or "occurred_at" not in line:
        return line
    content = _content(line)
    at = iso(content.get("occurred_at")) if isinstance(content, dict) else None
    if at is None or at.utcoffset() is not None:
        return line
    return json.dumps(content | {"occurred_at": export.clock.settle(at).isoformat()}, ensure_ascii=False)


def _row(number: int, line: str, defaults: dict[str, str | None]) -> Row | Skipped:
    try:
        request = read_row(line, **defaults)
    except RequestError as error:
        return Skipped(number, str(error), _content(line), rejected=True)
    if request.dry_run:
        return Skipped(number, "dry_run stores nothing; an import stores", _content(line), rejected=True)
    return Row(number, _content(line), request)


def _content(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return line
