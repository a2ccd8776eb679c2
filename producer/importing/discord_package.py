"""Discord's own data package: a folder a channel with ``messages.csv`` (lately ``messages.json``) and ``channel.json``.

It holds only what its owner wrote; the owner's name is in the account's ``user.json``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from datetime import UTC
from typing import Any

from producer.importing.discord import plain
from producer.importing.export import Export, name_of, text_of
from producer.importing.json_stream import walk
from producer.importing.rows import Found, Skipped, UnreadableExport
from producer.importing.shapes import Head
from producer.importing.sources import Entry
from producer.importing.times import iso

NAME = "discord-package"
_FIELDS = ("ID", "Timestamp", "Contents")


def recognises(head: Head) -> bool:
    """Whether this is a table or a list with ID, Timestamp and Contents."""
    if head.json is not None:
        return head.json.has("*", *_FIELDS)
    return set(_FIELDS) <= set(head.columns)


def read(entry: Entry, export: Export) -> Iterator[Found | Skipped]:
    """The owner's messages of a channel, the oldest first (the file begins with the newest)."""
    channel = _channel(entry, export)
    found = list(_json(entry) if Head.of(entry).json is not None else _table(entry))
    found.sort(key=lambda item: text_of(item[1].get("Timestamp")))
    for line, row in found:
        text = plain(text_of(row.get("Contents")), {})
        if row.get("Attachments"):
            export.notes.left_out["pictures and files"] += 1
        if not text:
            yield Skipped(line, "picture, file or the like without a caption")
            continue
        at = iso(row.get("Timestamp"))
        if at is None:
            yield Skipped(line, "its time cannot be read", row, rejected=True)
            continue
        number = name_of(row.get("ID"))
        yield Found(
            line, text, _owner(export), at if at.tzinfo is not None else at.replace(tzinfo=UTC), None, "user", channel,
            f"discord:{number}" if number else None,
        )  # fmt: skip


def _channel(entry: Entry, export: Export) -> str | None:
    told = export.side("channel.json", near=entry.folder) if entry.folder else None
    return name_of(told.get("id")) if isinstance(told, dict) else entry.folder.removeprefix("c") or None


def _owner(export: Export) -> str:
    if export.options.speaker is not None:
        return export.options.speaker
    user = export.side("user.json")
    if isinstance(user, dict):
        named = text_of(user.get("username")) or text_of(user.get("global_name"))
        if named:
            return named
    return export.nameless()


def _json(entry: Entry) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for line, _, row in walk(entry, lambda path: path == ()):
        if isinstance(row, dict):
            yield line, row


def _table(entry: Entry) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with entry.text() as blocks:
        reader = csv.DictReader(_lines(blocks))
        try:
            for row in reader:
                yield reader.line_num, row
        except csv.Error as error:
            raise UnreadableExport(f"{entry.name}: line {reader.line_num}: cannot be read as CSV: {error}") from None


def _lines(blocks: Iterator[str]) -> Iterator[str]:
    rest = ""
    for block in blocks:
        *whole, rest = (rest + block).split("\n")
        for line in whole:
            yield line.replace("\0", "") + "\n"
    if rest:
        yield rest
