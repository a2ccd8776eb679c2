"""Telegram Desktop's export: ``result.json``, of one chat or of the whole account."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from producer.importing.export import Export, name_of, text_of
from producer.importing.json_stream import Path, walk
from producer.importing.rows import Found, Skipped
from producer.importing.shapes import Head
from producer.importing.sources import Entry
from producer.importing.times import instant, iso, with_offset_of

NAME = "telegram"
_WALKED: tuple[Path, ...] = (
    (), ("messages",),
    *(
        (top, *("list", "*", "messages")[:deep])
        for top in ("chats", "left_chats")
        for deep in range(4)
    ),
)  # fmt: skip


def recognises(head: Head) -> bool:
    """Whether this is a chat with its messages, or an account with its chats."""
    shape = head.json
    if shape is None or shape.top != "{":
        return False
    one = shape.has("", "messages", "type", "id") and not shape.any_of("", "guild", "mapping")
    if "messages.*" in shape.keys and not shape.any_of("messages.*", "date", "date_unixtime"):
        return False
    one = one or shape.has("messages.*", "type", "text", "date_unixtime")
    return one or shape.has("chats", "list") or shape.has("left_chats", "list")


def read(entry: Entry, export: Export) -> Iterator[Found | Skipped]:
    """The messages, chat by chat."""
    chat: dict[str, Any] = {}
    for line, path, value in walk(entry, lambda path: path in _WALKED):
        if path[-2:] == ("messages", "*"):
            if isinstance(value, dict):
                yield _message(line, value, chat, export)
            else:
                yield Skipped(line, "is no message", value, rejected=True)
        elif path[-1] == "*":
            chat = {}  # the next chat begins
        elif path[-1:] in (("name",), ("type",), ("id",)) and len(path) in (1, 4):
            chat[path[-1]] = value


def _message(line: int, message: dict[str, Any], chat: Mapping[str, Any], export: Export) -> Found | Skipped:
    if message.get("type") != "message":
        return Skipped(line, "service message")
    text = _text(message)
    if not text:
        return Skipped(line, "picture, file or the like without a caption")
    if any(message.get(kind) for kind in ("photo", "file", "media_type")):
        export.notes.left_out["pictures and files"] += 1
    chat_id, number = name_of(chat.get("id")), name_of(message.get("id"))
    speaker_id = name_of(message.get("from_id"))
    speaker = text_of(message.get("from")) or speaker_id or "Deleted Account"
    is_bot = chat.get("type") == "bot_chat" and speaker == text_of(chat.get("name"))
    if forwarded := text_of(message.get("forwarded_from")):
        export.notes.warn(
            "some messages were forwarded: they say so, and have the date of forwarding, not that of writing"
        )
        text = f"(forwarded from {forwarded}) {text}" if forwarded != speaker else text
    return Found(
        line, text, speaker, _time(message), speaker_id, "assistant" if is_bot else "user", chat_id,
        f"telegram:{chat_id}:{number}" if chat_id and number else None,
    )  # fmt: skip


def _time(message: Mapping[str, Any]) -> datetime | None:
    """The instant, in the zone of the phone or computer: the plain date is that same instant on its clock."""
    local, moment = iso(message.get("date")), instant(message.get("date_unixtime"))
    return with_offset_of(moment, local) if moment is not None else local


def _text(message: Mapping[str, Any]) -> str:
    """A message's text: a string, or a list of strings and of pieces with a kind (bold, link, mention)."""
    text = message.get("text")
    if not text and isinstance(message.get("text_entities"), list):
        text = message["text_entities"]
    if isinstance(text, str):
        return text.strip()
    if not isinstance(text, list):
        return ""
    return "".join(_piece(piece) for piece in text).strip()


def _piece(piece: object) -> str:
    if isinstance(piece, str):
        return piece
    if not isinstance(piece, dict) or not isinstance(piece.get("text"), str):
        return ""
    shown: str = piece["text"]
    link = text_of(piece.get("href"))
    return f"{shown} ({link})" if piece.get("type") == "text_link" and link and link != shown else shown
