"""WhatsApp's ``.txt`` export, of iPhones and Android phones in all languages.

A message begins with date and time as the phone's language writes them; lines that do not begin so go on with the
message before. Which number is the day and which the month is inferred from the whole file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from producer.importing.export import Export
from producer.importing.rows import Found, Skipped
from producer.importing.shapes import Head
from producer.importing.sources import Entry
from producer.importing.times import DateOrder, Numbers, infer_order
from producer.importing.whatsapp_phrases import AT_WORDS, HALF_PATTERN, HALVES, SYSTEM, said

NAME = "whatsapp"
_FIRST_YEAR = 2009  # there was no WhatsApp before

# Marks of writing direction stand anywhere in the head of a line; the spaces in it are of four kinds.
_UNSEEN = dict.fromkeys([0x200E, 0x200F, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
_ANY_UNSEEN = re.compile(f"[{''.join(map(chr, _UNSEEN))}]")
_SPACES = {0xA0: " ", 0x202F: " ", 0x2009: " ", 0x200A: " "}
_HEAD = re.compile(
    r"\s*(?P<bracket>\[)?\s*"
    r"(?P<a>\d{1,4})\s?(?:[./-]|年|년)\s?(?P<b>\d{1,2})\s?(?:[./-]|月|월)\s?(?P<c>\d{1,4})(?:日|일|\.)?(?:\s?г\.)?"
    rf"\s?[,،、]?\s*(?:(?:{AT_WORDS})\s+)?"
    rf"(?P<before>{HALF_PATTERN})?\s?(?P<hour>\d{{1,2}})(?:[:.]|\s?h\s?)(?P<minute>\d{{2}})(?:[:.](?P<second>\d{{2}}))?"
    rf"(?:\s?ч\.)?\s?(?P<after>{HALF_PATTERN})?"
    r"\s?(?(bracket)\]|(?:[-–—]\s|:\s))\s?",
    re.I,
)
# Begins like a head, but is none that can be read: better said than taken for a line of the message before.
_LIKE_A_HEAD = re.compile(
    r"\s*\[\s*\d{1,4}[./-]\s?\d{1,2}[./-]\s?\d{1,4}[.,،]?\s[^\]\n]{1,24}\]\s[^:\n]{1,60}:\s", re.I
)
_NAME = re.compile(r"([^:\n]{1,160}?)\s?:(?:\s|$)")
_LONGEST_HEAD = 64  # characters, marks included
_LOG_LEVELS = frozenset({"info", "debug", "warning", "warn", "error", "critical", "notice", "fatal", "trace"})
_MAX_CHARS = 400_000  # of a message; more would be refused anyhow


@dataclass(slots=True)
class _Start:
    """The head of a message's first line, and what follows it."""

    date: Numbers
    time: tuple[int, int, int] | None
    rest: str


@dataclass(slots=True)
class _Message:
    """A message while its lines are gathered."""

    line: int
    start: _Start
    fault: str = ""
    more: list[str] = field(default_factory=list)
    chars: int = 0


def recognises(head: Head) -> bool:
    """Whether one of the first lines begins like a message (and this is no log of a program)."""
    starts = [start for line in head.lines[:40] if (start := _start(line)) is not None]
    if not starts or not any(_start(line) for line in head.lines[:5]):
        return False
    names = [found[1].strip().casefold() for start in starts if (found := _NAME.match(start.rest))]
    return not names or any(name not in _LOG_LEVELS for name in names)


def read(entry: Entry, export: Export) -> Iterator[Found | Skipped]:
    """The messages, in the file's order. Raises UnreadableExport where its dates can be read in two ways."""
    order = export.options.date_order or infer_order(_dates(entry), name=entry.name, earliest=_FIRST_YEAR)
    export.notes.date_order = order
    chat = entry.stem if entry.stem not in ("_chat", "chat") else entry.folder or export.title
    for message in _messages(entry):
        yield message if isinstance(message, Skipped) else _finished(message, order, chat)


def _dates(entry: Entry) -> Iterator[Numbers]:
    for _, line, _ in entry.lines():
        start = _start(line)
        if start is not None:
            yield start.date


def _messages(entry: Entry) -> Iterator[_Message | Skipped]:
    """The messages with all their lines, and the lines that cannot be read."""
    message: _Message | None = None
    for number, line, good in entry.lines():
        start = _start(line)
        unreadable = start is None and _LIKE_A_HEAD.match(line.translate(_UNSEEN)) is not None
        if start is not None or unreadable:
            if message is not None:
                yield message
            message = None if start is None else _Message(number, start, "" if good else "is not UTF-8")
            if unreadable:
                yield Skipped(number, "its date or time cannot be read", line, rejected=True)
        elif not good:
            yield Skipped(number, "is not UTF-8", line, rejected=True)
        elif message is None:
            if line.strip():
                yield Skipped(number, "belongs to no message")
        elif message.chars < _MAX_CHARS:
            message.more.append(line)
            message.chars += len(line)
    if message is not None:
        yield message


def _start(line: str) -> _Start | None:
    """The head with which ``line`` begins a message; None where it goes on with the one before."""
    seen = line[:_LONGEST_HEAD]
    if _ANY_UNSEEN.search(seen) is None:
        found = _HEAD.match(seen.translate(_SPACES))
        end = found.end() if found else 0
    else:
        kept = [place for place, char in enumerate(seen) if ord(char) not in _UNSEEN]
        found = _HEAD.match("".join(seen[place] for place in kept).translate(_SPACES))
        end = (kept[found.end()] if found.end() < len(kept) else len(seen)) if found else 0
    if found is None:
        return None
    half = HALVES.get(re.sub(r"[.\s]", "", (found["before"] or found["after"] or "").lower()))
    time = _time(int(found["hour"]), int(found["minute"]), int(found["second"] or 0), half)
    return _Start(Numbers(int(found["a"]), int(found["b"]), int(found["c"])), time, line[end:])


def _time(hour: int, minute: int, second: int, half: str | None) -> tuple[int, int, int] | None:
    """The time on a clock of 24 hours; None where there is no such time."""
    if half is not None and 1 <= hour <= 12:
        hour = (hour if hour >= 11 else hour + 12) if half == "noon" else hour % 12 + (12 if half == "pm" else 0)
    return (hour, minute, second) if hour < 24 and minute < 60 and second < 60 else None


def _finished(message: _Message, order: DateOrder, chat: str) -> Found | Skipped:
    start = message.start
    day = start.date.as_date(order, _FIRST_YEAR)
    raw = "\n".join((start.rest, *message.more)).rstrip()
    if message.fault or day is None or start.time is None:
        reason = message.fault or f"its date or time does not fit the order {order}"
        return Skipped(message.line, reason, raw, rejected=True)
    found = _NAME.match(start.rest)
    if found is None or _is_cut_quote(found[1]):
        return Skipped(message.line, SYSTEM)
    after = raw[found.end() :]
    text, reason = said(after, marked=after.startswith("\u200e"))
    name = _name(found[1])
    if not text or not name:
        return Skipped(message.line, reason or SYSTEM)
    at = datetime(day.year, day.month, day.day, *start.time)  # noqa: DTZ001 (the clock gives the zone)
    return Found(message.line, text, name, at, None, "user", f"whatsapp:{chat}")


def _name(written: str) -> str:
    """A speaker's name without marks, and without the tilde of people who are no contacts."""
    name = written.translate(_UNSEEN).translate(_SPACES).strip()
    return name.removeprefix("~").strip()


def _is_cut_quote(name: str) -> bool:
    """Whether the colon after ``name`` stands inside a quotation: 'Rita changed the subject to "Trip: days"'."""
    pairs = (("„", "“"), ("«", "»")) if "„" in name else (("“", "”"), ("«", "»"))
    return name.count('"') % 2 == 1 or any(name.count(a) != name.count(b) for a, b in pairs)
