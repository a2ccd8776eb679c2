"""Claude's export: ``conversations.json``, a list of conversations with ``chat_messages``; names in ``users.json``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from producer.importing.export import Export, name_of, text_of
from producer.importing.json_stream import walk
from producer.importing.rows import Found, Role, Skipped
from producer.importing.shapes import Head
from producer.importing.sources import Entry
from producer.importing.times import iso

NAME = "claude"
_ROLES: Mapping[str, Role] = {"human": "user", "user": "user", "assistant": "assistant"}


def recognises(head: Head) -> bool:
    """Whether this is a list of conversations with chat_messages, or one such conversation."""
    shape = head.json
    return shape is not None and (shape.has("*", "chat_messages") or shape.has("", "chat_messages"))


def read(entry: Entry, export: Export) -> Iterator[Found | Skipped]:
    """The messages, conversation by conversation; of several branches the one that is shown, where the export says."""
    shape = Head.of(entry).json
    one = shape is not None and shape.top == "{"
    for line, _, conversation in walk(entry, lambda path: path == () and not one):
        if isinstance(conversation, dict) and isinstance(conversation.get("chat_messages"), list):
            yield from _conversation(line, conversation, export)
        else:
            yield Skipped(line, "is no conversation", rejected=True)


def _conversation(line: int, conversation: dict[str, Any], export: Export) -> Iterator[Found | Skipped]:
    messages = [message for message in conversation["chat_messages"] if isinstance(message, dict)]
    session = name_of(conversation.get("uuid"))
    shown = _shown(messages, conversation.get("current_leaf_message_uuid"))
    time = iso(conversation.get("created_at"))
    for message in messages:
        if shown is not None and message.get("uuid") not in shown:
            yield Skipped(line, "on a branch that is not shown")
            continue
        time = iso(message.get("created_at")) or time
        yield _message(line, message, time, session, conversation, export)


def _shown(messages: list[dict[str, Any]], leaf: Any) -> set[str] | None:
    """The ids on the branch that ends at ``leaf``; None where the export does not tell branches apart."""
    by_id = {message["uuid"]: message for message in messages if isinstance(message.get("uuid"), str)}
    if not isinstance(leaf, str) or leaf not in by_id:
        return None
    shown: set[str] = set()
    at: Any = leaf
    while isinstance(at, str) and at in by_id and at not in shown:
        shown.add(at)
        at = by_id[at].get("parent_message_uuid")
    return shown


def _message(
    line: int, message: dict[str, Any], time: datetime | None, session: str | None, conversation: dict[str, Any],
    export: Export,
) -> Found | Skipped:  # fmt: skip
    role = _ROLES.get(str(message.get("sender")))
    if role is None:
        return Skipped(line, "system or tool message")
    for kind in ("attachments", "files"):
        if isinstance(message.get(kind), list) and message[kind]:
            export.notes.left_out["attachments"] += len(message[kind])
    text = _text(message)
    if not text:
        return Skipped(line, "system or tool message" if _has_tools(message.get("content")) else "has no text")
    speaker = _owner(conversation, export) if role == "user" else "Claude"
    platform_id = name_of(message.get("uuid"))
    return Found(
        line, text, speaker, time, None, role, session, f"claude:{platform_id}" if platform_id else None
    )


def _text(message: Mapping[str, Any]) -> str:
    """What is said: the text blocks of the content, else the flat text of older exports."""
    blocks = message.get("content")
    if isinstance(blocks, list):
        known = [block for block in blocks if isinstance(block, dict)]
        said = [text_of(block.get("text")) for block in known if block.get("type") == "text"]
        if joined := "\n\n".join(text for text in said if text):
            return joined
        if _has_tools(blocks):
            return ""  # the flat text then only says that tools were used
    return text_of(message.get("text"))


def _has_tools(blocks: object) -> bool:
    """Whether there are blocks beside text: calls of tools, their results, thoughts."""
    known = blocks if isinstance(blocks, list) else []
    return any(isinstance(block, dict) and block.get("type") != "text" for block in known)


def _owner(conversation: Mapping[str, Any], export: Export) -> str:
    """The name of the person whose conversation this is, from users.json."""
    if export.options.speaker is not None:
        return export.options.speaker
    account = conversation.get("account")
    users = export.side("users.json")
    users = [user for user in users if isinstance(user, dict)] if isinstance(users, list) else []
    own = account.get("uuid") if isinstance(account, dict) else None
    for user in users:
        if user.get("uuid") == own or len(users) == 1:
            named = text_of(user.get("full_name")) or text_of(user.get("name"))
            if named:
                return named
    return export.nameless()
