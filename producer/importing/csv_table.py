"""CSV: one message a row, its first line naming the columns. Separated by commas, semicolons, tabs or bars.

The columns, in any order and case (other names that are understood in brackets): ``message`` (text, content, body);
``speaker_name`` (speaker, author, sender, from, name, user); ``occurred_at`` (timestamp, date, time, datetime,
created_at, sent_at); ``message_id`` (id); ``session_id`` (session, conversation, conversation_id, channel, chat);
``speaker_id`` (author_id, authorid, user_id, sender_id); ``role``; ``agent_id``. Only ``message`` has to be there;
further columns are passed over.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import chain

from producer.importing.export import Export
from producer.importing.rows import Found, Role, Row, Skipped, UnreadableExport
from producer.importing.shapes import Head, delimiter_of
from producer.importing.sources import Entry
from producer.importing.times import DateOrder, Numbers, infer_order, instant, iso

NAME = "csv"

_NAMES: Mapping[str, tuple[str, ...]] = {
    "message": ("message", "text", "content", "contents", "body"),
    "speaker_name": ("speaker_name", "speaker", "author", "sender", "from", "name", "user", "username"),
    "occurred_at": ("occurred_at", "timestamp", "datetime", "date", "time", "created_at", "sent_at"),
    "message_id": ("message_id", "id", "messageid"),
    "session_id": ("session_id", "session", "conversation_id", "conversation", "channel", "chat", "chat_id"),
    "speaker_id": ("speaker_id", "author_id", "authorid", "user_id", "userid", "sender_id"),
    "role": ("role",),
    "agent_id": ("agent_id", "agent"),
}  # fmt: skip
_NUMBERS = re.compile(
    r"(\d{1,4})[./-](\d{1,2})[./-](\d{1,4})"
    r"(?:[ T,]+(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\.\d+)?(?:\s*([AaPp])\.?\s?[Mm]\.?)?)?$"
)
_NO_TIME = "its time cannot be read; write it like 2025-06-15T23:30:00-03:00"
_ROLES: Mapping[str, Role | None] = {
    "": "user", "user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "bot": "assistant",
    "system": None, "tool": None,
}  # fmt: skip


def recognises(head: Head) -> bool:
    """Whether the first line names a column for the message and one more that is understood."""
    found = _columns(head.columns)
    return "message" in found and len(found) > 1 and head.json is None


def read(entry: Entry, export: Export) -> Iterator[Found | Skipped | Row]:
    """The messages, in their order. A row without a time happened nobody knows when."""
    order = export.options.date_order or _order(entry)
    if order is not None:
        export.notes.date_order = order
    for number, row, fault in _rows(entry):
        if fault:
            yield Skipped(number, fault, row, rejected=True)
            continue
        role = _ROLES.get(row.get("role", "").strip().casefold(), "user")
        if role is None:
            yield Skipped(number, "system or tool message")
            continue
        written = row.get("occurred_at", "").strip()
        at = _time(written, order)
        if written and written.casefold() not in ("unknown", "null") and at is None:
            yield Skipped(number, _NO_TIME, row, rejected=True)
            continue
        speaker = row.get("speaker_name", "").strip()
        if not speaker and role == "user":
            speaker = export.nameless()
        message_id, session = row.get("message_id", "").strip(), row.get("session_id", "").strip()
        yield Found(
            number, row.get("message", ""), speaker or "assistant", at, row.get("speaker_id", "").strip() or None, role,
            session or None, f"csv:{session}:{message_id}" if message_id else None,
            agent_id=row.get("agent_id", "").strip() or None,
        )  # fmt: skip


def _columns(names: tuple[str, ...]) -> dict[str, int]:
    """Which of our fields stands in which column; the first of the names that a field may have."""
    plain = [re.sub(r"[\s-]+", "_", name.strip().casefold()) for name in names]
    found: dict[str, int] = {}
    for ours, theirs in _NAMES.items():
        place = next((plain.index(name) for name in theirs if name in plain), None)
        if place is not None and place not in found.values():
            found[ours] = place
    return found


def _rows(entry: Entry) -> Iterator[tuple[int, dict[str, str], str]]:
    """The rows under the first one: (the line at which each ends, our fields, what is wrong with it or "")."""
    bad: set[int] = set()

    def good() -> Iterator[str]:
        for number, line, fine in entry.lines():
            if not fine:
                bad.add(number)
            yield line.replace("\0", "") + "\n"

    lines = good()
    first = next(lines, "")
    mark = delimiter_of(first)
    reader = csv.reader(chain([first], lines), delimiter=mark or ",")
    before = csv.field_size_limit(2**24)
    try:
        columns = _columns(tuple(next(reader, [])))
        if "message" not in columns:
            raise UnreadableExport(f"{entry.name}: line 1 names no column for the message (message, text or content)")
        started = 2
        for cells in reader:
            row = {ours: cells[place] for ours, place in columns.items() if place < len(cells)}
            broken = [number for number in range(started, reader.line_num + 1) if number in bad]
            if any(cell.strip() for cell in cells):
                yield started, row, f"line {broken[0]} is not UTF-8" if broken else ""
            started = reader.line_num + 1
    except csv.Error as error:
        raise UnreadableExport(f"{entry.name}: line {reader.line_num}: cannot be read as CSV: {error}") from None
    finally:
        csv.field_size_limit(before)


def _order(entry: Entry) -> DateOrder | None:
    """The order of the dates in numbers; None where the file has none but ISO dates."""

    def seen() -> Iterator[Numbers]:
        for _, row, _ in _rows(entry):
            match = _NUMBERS.match(row.get("occurred_at", "").strip())
            if match:
                yield Numbers(int(match[1]), int(match[2]), int(match[3]))

    dates = seen()
    first = next(dates, None)
    if first is None:
        return None
    return infer_order(chain([first], dates), name=entry.name)


def _time(written: str, order: DateOrder | None) -> datetime | None:
    match = _NUMBERS.match(written)
    if match is None:
        return iso(written) or instant(written)
    day = Numbers(int(match[1]), int(match[2]), int(match[3])).as_date(order or "YMD", 1970)
    if day is None:
        return None
    hour, minute, second = (int(part or 0) for part in match.group(4, 5, 6))
    if match[7]:
        hour = hour % 12 + (12 if match[7] in "pP" else 0)
    try:
        return datetime(day.year, day.month, day.day, hour, minute, second)  # noqa: DTZ001 (the clock gives the zone)
    except ValueError:
        return None
