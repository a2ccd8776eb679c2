"""Which format an export has, told by what is in it, never by its name alone."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Mapping
from types import ModuleType
from typing import cast

from producer.importing import (
    chatgpt,
    claude,
    csv_table,
    discord,
    discord_package,
    jsonl,
    locomo,
    slack,
    telegram,
    whatsapp,
)
from producer.importing.export import Format
from producer.importing.rows import UnreadableExport
from producer.importing.shapes import Head
from producer.importing.sources import Entry

# In this order a file is asked what it is: the plain tables last, for a platform's table is one, too.
_MODULES: tuple[ModuleType, ...] = (
    whatsapp, chatgpt, claude, telegram, discord, discord_package, slack, locomo, jsonl, csv_table,
)  # fmt: skip
FORMATS: Mapping[str, Format] = {module.NAME: cast(Format, module) for module in _MODULES}
_PLAIN = (jsonl.NAME, csv_table.NAME)
_SHOWN = 5


def format_named(name: str) -> Format | None:
    """The format of a name; None for ``auto``. Raises UnreadableExport for a name that is none."""
    if name == "auto":
        return None
    if name not in FORMATS:
        near = difflib.get_close_matches(name, FORMATS, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise UnreadableExport(f"there is no format {name!r}{hint}; known are auto, {', '.join(FORMATS)}")
    return FORMATS[name]


def detect(entries: list[Entry], name: str, wanted: Format | None) -> tuple[Format, list[Entry], list[Entry]]:
    """The format of an export, its entries in that format, and all others.

    A platform's format wins over plain tables beside it; side files are passed over. Raises UnreadableExport that says
    what was seen where nothing is recognised, or where two platforms are mixed.
    """
    if wanted is not None and wanted.NAME in _PLAIN and len(entries) == 1:
        return wanted, entries, []  # every row that is none says so itself
    found: dict[str, list[Entry]] = defaultdict(list)
    seen: list[str] = []
    for entry in entries:
        kind = None if entry.is_media and len(entries) > 1 else _kind(entry, seen, wanted)
        if kind is not None:
            found[kind].append(entry)
    platforms = [kind for kind in found if kind not in _PLAIN] or list(found)
    if not platforms:
        raise UnreadableExport(_unknown(name, entries, seen, wanted))
    if len(platforms) > 1:
        parts = (f"{kind} ({len(found[kind])}, such as {found[kind][0].name})" for kind in platforms)
        mixed = " and ".join(parts)
        raise UnreadableExport(f"{name}: holds exports of several kinds: {mixed}; say which one with --format")
    own = found[platforms[0]]
    names = {entry.name for entry in own}
    return FORMATS[platforms[0]], own, [entry for entry in entries if entry.name not in names]


def _kind(entry: Entry, seen: list[str], wanted: Format | None) -> str | None:
    """The name of the format of ``entry``; what it looks like is noted in ``seen`` where it has none."""
    head = Head.of(entry)
    if not head.is_binary and head.raw.strip():
        for kind, reader in FORMATS.items():
            if (wanted is None or reader is wanted) and reader.recognises(head):
                return kind
    if len(seen) < _SHOWN:
        seen.append(head.described() if len(seen) == 0 and not entry.folder else f"{entry.name}: {head.described()}")
    return None


def _unknown(name: str, entries: list[Entry], seen: list[str], wanted: Format | None) -> str:
    if not entries:
        return f"{name}: holds no files"
    looked = "; ".join(seen) if seen else "only pictures, recordings and the like"
    more = f" and {len(entries) - len(seen)} files more" if len(entries) > len(seen) > 0 else ""
    if wanted is not None:
        return f"{name}: nothing in it is of the format {wanted.NAME}; seen: {looked}{more}"
    return (
        f"{name}: is no export known here; seen: {looked}{more}. Known are {', '.join(FORMATS)}; if it is one, "
        "say which with --format"
    )
