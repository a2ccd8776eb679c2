"""Slack's export: a folder a channel, a file a day; ``users.json``, ``channels.json`` and their like beside them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any

from producer.importing.export import Export, name_of, text_of
from producer.importing.json_stream import walk
from producer.importing.rows import Found, Skipped
from producer.importing.shapes import Head
from producer.importing.sources import Entry
from producer.importing.times import instant

NAME = "slack"

# What a person says. All other subtypes tell that somebody joined, renamed, pinned and the like.
_SPOKEN = frozenset({None, "", "thread_broadcast", "reply_broadcast", "me_message", "file_share", "file_comment"})
_MARKUP = re.compile(r"<([^<>]+)>")
_SLACKBOT = "USLACKBOT"


def recognises(head: Head) -> bool:
    """Whether this is a list of messages with Slack's ``ts``."""
    shape = head.json
    if shape is None:
        return False
    path = "*" if shape.top == "[" else ""
    return shape.has(path, "ts", "text") and shape.any_of(path, "user", "bot_id", "type", "subtype", "thread_ts")


def read(entry: Entry, export: Export) -> Iterator[Found | Skipped]:
    """The messages of a channel's day, by their time."""
    channel = _channel(entry, export)
    one = (shape := Head.of(entry).json) is not None and shape.top == "{"
    found = [(line, value) for line, _, value in walk(entry, lambda path: path == () and not one)]
    found.sort(key=lambda item: str(item[1].get("ts", "")) if isinstance(item[1], dict) else "")
    for line, message in found:
        if isinstance(message, dict):
            yield _message(line, message, channel, export)
        else:
            yield Skipped(line, "is no message", message, rejected=True)


def _channel(entry: Entry, export: Export) -> str | None:
    """The id of the channel of a day file, from the lists of channels; else the folder's name."""
    return _channels(export).get(entry.folder, entry.folder or None)


def _message(line: int, message: dict[str, Any], channel: str | None, export: Export) -> Found | Skipped:
    kind = message.get("subtype")
    users = _users(export)
    user, bot = name_of(message.get("user")), name_of(message.get("bot_id"))
    named = user and text_of(users.get(user))
    profile = message.get("user_profile")
    if user and not named and isinstance(profile, dict):
        named = text_of(profile.get("display_name")) or text_of(profile.get("real_name"))
    machine = kind == "bot_message" or user == _SLACKBOT or user in _bots(export) or bool(bot and not named)
    bot_name = text_of(message.get("username")) or (named or "")
    mapped = export.mapped(bot, user, bot_name) if machine else None
    if machine and mapped is None:
        return Skipped(line, "bot message (name the bot in the speaker map to keep it)")
    if not machine and kind not in _SPOKEN:
        return Skipped(line, "system message")
    text = _plain(text_of(message.get("text")) or _from_blocks(message.get("blocks")), export)
    if message.get("files"):
        export.notes.left_out["pictures and files"] += len(message["files"])
    if not text:
        return Skipped(line, "picture, file or the like without a caption")
    speaker_id = bot or user if machine else user
    if speaker_id is None:
        return Skipped(line, "has no speaker", message, rejected=True)
    if not machine and not named:
        export.notes.warn("some speakers are not in users.json; they go by their ids (name them with --speaker-map)")
    where = channel or name_of(message.get("channel")) or text_of(message.get("channel_name")) or ""
    ts = name_of(message.get("ts"))
    return Found(
        line, text, (bot_name if machine else named) or speaker_id, instant(ts), speaker_id,
        "assistant" if machine else "user", where or None, f"slack:{where}:{ts}" if ts else None,
    )  # fmt: skip


def _plain(text: str, export: Export) -> str:
    """``text`` without Slack's markup: mentions by name, links with what they are called."""
    return html.unescape(_MARKUP.sub(lambda found: _shown(found[1], export), text)).strip()


def _shown(inner: str, export: Export) -> str:
    target, _, label = inner.partition("|")
    label = label.strip()
    if target.startswith("@"):
        user = target[1:]
        name = "Slackbot" if user == _SLACKBOT else text_of(_users(export).get(user)) or label.lstrip("@") or user
        return f"@{name}"
    if target.startswith("#"):
        return f"#{label or _channel_names(export).get(target[1:], target[1:])}"
    if target.startswith("!"):
        return label or f"@{target[1:].partition('^')[0]}"
    link = target.removeprefix("mailto:").removeprefix("tel:")
    return f"{label} ({link})" if label and label not in (link, target) else link


def _from_blocks(blocks: object) -> str:
    """The text of rich text blocks, for messages that have no plain one."""
    if isinstance(blocks, list):
        return "".join(_from_blocks(block) for block in blocks)
    if not isinstance(blocks, dict):
        return ""
    kind = blocks.get("type")
    if kind == "user":
        return f"<@{blocks.get('user_id')}>"
    if kind == "channel":
        return f"<#{blocks.get('channel_id')}>"
    if kind == "link":
        return f"<{blocks.get('url')}|{text_of(blocks.get('text'))}>"
    if kind == "text" or kind == "mrkdwn":
        return str(blocks.get("text") or "")
    inner = _from_blocks(blocks.get("elements")) + _from_blocks(blocks.get("text"))
    return f"{inner}\n" if kind in ("rich_text_section", "rich_text_quote", "rich_text_preformatted") else inner


def _people(export: Export) -> list[dict[str, Any]]:
    return [
        user
        for name in ("users.json", "org_users.json")
        for user in export.side(name) or ()
        if isinstance(user, dict) and isinstance(user.get("id"), str)
    ]


def _users(export: Export) -> Mapping[str, str]:
    """The name of each user by id: as displayed, else the real one, else the account's."""
    return export.once("slack users", lambda: {user["id"]: _displayed(user) for user in _people(export)})


def _displayed(user: Mapping[str, Any]) -> str:
    profile = user.get("profile")
    profile = profile if isinstance(profile, dict) else {}
    names = (profile.get("display_name"), profile.get("real_name"), user.get("real_name"), user.get("name"))
    return next((name for name in map(text_of, names) if name), str(user["id"]))


def _bots(export: Export) -> frozenset[str]:
    return export.once(
        "slack bots", lambda: frozenset(user["id"] for user in _people(export) if user.get("is_bot") is True)
    )


def _lists(export: Export) -> list[tuple[str, str]]:
    """(name, id) of every channel, group and direct conversation."""
    return [
        (text_of(channel.get("name")) or channel["id"], channel["id"])
        for name in ("channels.json", "groups.json", "mpims.json", "dms.json")
        for channel in export.side(name) or ()
        if isinstance(channel, dict) and isinstance(channel.get("id"), str)
    ]


def _channels(export: Export) -> Mapping[str, str]:
    return export.once("slack channels", lambda: dict(_lists(export)))


def _channel_names(export: Export) -> Mapping[str, str]:
    return export.once("slack channel names", lambda: {key: name for name, key in _lists(export)})
