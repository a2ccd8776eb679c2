"""ChatGPT's export: ``conversations.json`` (or several of them), a list of conversations, each a tree of messages.

Only the branch that the conversation shows is read: from its current node up. What an edit or a new answer left behind
was never the last word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from producer.importing.export import Export, name_of, text_of
from producer.importing.json_stream import walk
from producer.importing.rows import Found, Role, Skipped
from producer.importing.shapes import Head
from producer.importing.sources import Entry
from producer.importing.times import instant

NAME = "chatgpt"
_HIDDEN = ("is_visually_hidden_from_conversation", "is_user_system_message")
_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant"}


def recognises(head: Head) -> bool:
    """Whether this is a list of conversations with a mapping, or one such conversation."""
    shape = head.json
    return shape is not None and (_is_conversation(shape.keys.get("*")) or _is_conversation(shape.keys.get("")))


def _is_conversation(keys: frozenset[str] | None) -> bool:
    return keys is not None and "mapping" in keys and not keys.isdisjoint(
        ("current_node", "create_time", "title", "conversation_id")
    )


def read(entry: Entry, export: Export) -> Iterator[Found | Skipped]:
    """The messages of the shown branches, conversation by conversation."""
    shape = Head.of(entry).json
    one = shape is not None and shape.top == "{"
    for line, _, conversation in walk(entry, lambda path: path == () and not one):
        if isinstance(conversation, dict) and isinstance(conversation.get("mapping"), dict):
            yield from _conversation(line, conversation, export)
        else:
            yield Skipped(line, "is no conversation", rejected=True)


def _conversation(line: int, conversation: dict[str, Any], export: Export) -> Iterator[Found | Skipped]:
    session = name_of(conversation.get("conversation_id")) or name_of(conversation.get("id"))
    mapping = conversation["mapping"]
    branch = _branch(mapping, conversation.get("current_node"))
    time = instant(conversation.get("create_time"))
    for node_id in branch:
        message = mapping[node_id].get("message")
        if not isinstance(message, dict):
            continue  # the root of the tree
        time = instant(message.get("create_time")) or time
        yield _message(line, node_id, message, time, session, export)
    shown = set(branch)
    for node_id, node in mapping.items():
        if node_id not in shown and isinstance(node, dict) and isinstance(node.get("message"), dict):
            yield Skipped(line, "on a branch that is not shown")


def _branch(mapping: Mapping[str, Any], current: Any) -> list[str]:
    """The ids from the root to the current node; where none is named, along the last child of each."""
    nodes = {node_id for node_id, node in mapping.items() if isinstance(node, dict)}
    if not isinstance(current, str) or current not in nodes:
        current = _last_leaf(mapping, nodes)
    found: list[str] = []
    seen = set()
    while isinstance(current, str) and current in nodes and current not in seen:
        seen.add(current)
        found.append(current)
        current = mapping[current].get("parent")
    return found[::-1]


def _last_leaf(mapping: Mapping[str, Any], nodes: set[str]) -> str | None:
    at = next((node for node in mapping if node in nodes and mapping[node].get("parent") not in nodes), None)
    seen = set()
    while at is not None and at not in seen:
        seen.add(at)
        children = [child for child in mapping[at].get("children") or () if isinstance(child, str) and child in nodes]
        if not children:
            return at
        at = children[-1]
    return at


def _message(
    line: int, node_id: str, message: dict[str, Any], time: datetime | None, session: str | None, export: Export
) -> Found | Skipped:
    author = message.get("author")
    role = _ROLES.get(str(author.get("role")) if isinstance(author, dict) else "")
    if role is None:
        return Skipped(line, "system or tool message")
    metadata = message.get("metadata")
    if isinstance(metadata, dict) and any(metadata.get(mark) for mark in _HIDDEN):
        return Skipped(line, "system or tool message")
    if role == "assistant" and message.get("recipient") not in (None, "all"):
        return Skipped(line, "system or tool message")  # a call of a tool
    content = message.get("content")
    text, pictures = _text(content if isinstance(content, dict) else {})
    if pictures:
        export.notes.left_out["pictures and files"] += pictures
    if not text:
        return Skipped(line, "has no text")
    speaker = export.nameless() if role == "user" else "ChatGPT"
    platform_id = name_of(message.get("id")) or node_id
    return Found(line, text, speaker, time, None, role, session, f"chatgpt:{platform_id}")


def _text(content: Mapping[str, Any]) -> tuple[str, int]:
    """What is said in a message's content, and how many parts of it are no text."""
    kind = content.get("content_type")
    if kind in ("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context", "execution_output"):
        return "", 0
    parts = content.get("parts")
    if not isinstance(parts, Sequence) or isinstance(parts, str):
        return text_of(content.get("text")), 0
    texts, others = [], 0
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            texts.append(part["text"])  # what was said aloud, transcribed
        elif part is not None:
            others += 1
    return "\n".join(text.strip() for text in texts if text.strip()), others
