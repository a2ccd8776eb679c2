"""LoCoMo's JSON: samples, each a conversation of two people in dated sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from producer.importing.export import Export, name_of, text_of
from producer.importing.json_stream import walk
from producer.importing.rows import Found, Skipped
from producer.importing.shapes import Head
from producer.importing.sources import Entry
from producer.importing.times import iso

NAME = "locomo"

_SESSION = re.compile(r"session_(\d+)")
_TIME = re.compile(r"(\d{1,2}):(\d{2})\s*([ap])\.?m\.?\s+on\s+(\d{1,2})(?:st|nd|rd|th)?\s+(\w+),?\s+(\d{4})", re.I)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def recognises(head: Head) -> bool:
    """Whether this is a list of samples, one sample, or one conversation."""
    shape = head.json
    if shape is None:
        return False
    return any(
        _SESSION.fullmatch(name) is not None and shape.any_of(path, "speaker_a", f"{name}_date_time")
        for path in ("", "*", "conversation", "*.conversation")
        for name in shape.keys.get(path, ())
    )


def read(entry: Entry, export: Export) -> Iterator[Found | Skipped]:
    """The turns, sample by sample, session by session. All turns of a session have the session's time."""
    shape = Head.of(entry).json
    one = shape is not None and shape.top == "{"
    for number, (line, _, sample) in enumerate(walk(entry, lambda path: path == () and not one), start=1):
        if not isinstance(sample, dict):
            yield Skipped(line, "is no sample", rejected=True)
            continue
        told = sample.get("conversation")
        conversation = told if isinstance(told, dict) else sample
        people = f"{conversation.get('speaker_a')}-{conversation.get('speaker_b')}"
        name = name_of(sample.get("sample_id")) or f"{people}-{number}"
        for session in sorted((key for key in conversation if _SESSION.fullmatch(key)), key=_number):
            yield from _session(line, name, session, conversation, export)


def _number(session: str) -> int:
    return int(session.removeprefix("session_"))


def _session(
    line: int, sample: str, session: str, conversation: Mapping[str, Any], export: Export
) -> Iterator[Found | Skipped]:
    written = conversation.get(f"{session}_date_time")
    at = _time(written)
    if at is None and text_of(written):
        export.notes.warn(f"the time of {sample} {session} cannot be read, so it counts as unknown")
    turns = conversation[session]
    for turn in turns if isinstance(turns, list) else ():
        if not isinstance(turn, dict) or not text_of(turn.get("speaker")):
            yield Skipped(line, "has no speaker", turn, rejected=True)
            continue
        text, caption = text_of(turn.get("text")), text_of(turn.get("blip_caption"))
        if caption:
            text = f"{text} [picture: {caption}]".strip()
        if not text:
            yield Skipped(line, "has no text")
            continue
        number = name_of(turn.get("dia_id"))
        yield Found(
            line, text, text_of(turn.get("speaker")), at, None, "user", f"{sample}:{session}",
            f"locomo:{sample}:{session}:{number}" if number else None,
        )  # fmt: skip


def _time(written: object) -> datetime | None:
    match = _TIME.search(written) if isinstance(written, str) else None
    if match is None:
        return iso(written)
    hour, minute, day, year = int(match[1]), int(match[2]), int(match[4]), int(match[6])
    hour = hour % 12 + (12 if match[3].lower() == "p" else 0)
    month = match[5][:3].lower()
    try:
        return datetime(year, _MONTHS.index(month) + 1, day, hour, minute)  # noqa: DTZ001 (the clock gives the zone)
    except ValueError:
        return None
