"""DiscordChatExporter's JSON: a file a channel (or a part of one), with guild, channel and messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from producer.importing.export import Export, name_of, text_of
from producer.importing.json_stream import walk
from producer.importing.rows import Found, Skipped
from producer.importing.shapes import Head
from producer.importing.sources import Entry
from producer.importing.times import iso

NAME = "discord"

# What a person says; the rest tells of joins, pins, calls and boosts. Some versions write numbers.
_SPOKEN = frozenset({"Default", "Reply", "0", "19", ""})
_MENTION = re.compile(r"<@!?(\d+)>")
_EMOJI = re.compile(r"<a?(:\w+:)\d+>")


def recognises(head: Head) -> bool:
    """Whether this is an object with a channel and messages."""
    shape = head.json
    return shape is not None and shape.has("", "channel", "messages") and shape.any_of("", "guild", "exportedAt")


def read(entry: Entry, export: Export) -> Iterator[Found | Skipped]:
    """The messages of a channel, in the file's order."""
    channel: str | None = None
    for line, path, value in walk(entry, lambda path: path in ((), ("messages",))):
        if path == ("channel",) and isinstance(value, dict):
            channel = name_of(value.get("id")) or name_of(value.get("name"))
        elif path == ("messages", "*"):
            if isinstance(value, dict):
                yield _message(line, value, channel, export)
            else:
                yield Skipped(line, "is no message", value, rejected=True)


def _message(line: int, message: dict[str, Any], channel: str | None, export: Export) -> Found | Skipped:
    author = message.get("author")
    author = author if isinstance(author, dict) else {}
    author_id, name, nickname = name_of(author.get("id")), text_of(author.get("name")), text_of(author.get("nickname"))
    if (name_of(message.get("type")) or "") not in _SPOKEN:
        return Skipped(line, "system message")
    is_bot = author.get("isBot") is True
    if is_bot and export.mapped(author_id, name, nickname) is None:
        return Skipped(line, "bot message (name the bot in the speaker map to keep it)")
    if message.get("attachments"):
        export.notes.left_out["pictures and files"] += len(message["attachments"])
    text = plain(text_of(message.get("content")), _mentioned(message.get("mentions")))
    if not text:
        return Skipped(line, "picture, file or the like without a caption")
    if not (name or author_id):
        return Skipped(line, "has no speaker", message, rejected=True)
    number = name_of(message.get("id"))
    # The account's name, not the nickname: that is another one in each server, and changes.
    return Found(
        line, text, name or nickname or str(author_id), iso(message.get("timestamp")), author_id,
        "assistant" if is_bot else "user", channel, f"discord:{number}" if number else None,
        (nickname,) if nickname and nickname != name else (),
    )  # fmt: skip


def _mentioned(mentions: object) -> Mapping[str, str]:
    """The names of mentioned people by id. Only to be read: a nickname in a mention says nothing about who it is."""
    found = {}
    for mention in mentions if isinstance(mentions, list) else ():
        if isinstance(mention, dict) and (key := name_of(mention.get("id"))):
            found[key] = text_of(mention.get("nickname")) or text_of(mention.get("name")) or key
    return found


def plain(text: str, names: Mapping[str, str]) -> str:
    """``text`` with mentions by name and emoji by their word."""
    text = _MENTION.sub(lambda found: f"@{names.get(found[1], found[1])}", text)
    return _EMOJI.sub(r"\1", text).strip()
