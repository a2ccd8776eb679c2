"""What a file looks like from its beginning: the ground on which formats are told apart."""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from producer.importing.sources import Entry, encoding_of

HEAD_BYTES = 256 * 1024
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]')
_SHOWN_KEYS = 8
# A name, not a sentence: what is not a table must not be shown as if it were one.
_COLUMN = re.compile(r"[\w.#/()-]{0,40}(?: [\w.#/()-]{1,20}){0,3}")


@dataclass(frozen=True, slots=True)
class JsonShape:
    """The outline of a JSON text, as far as its beginning shows it.

    ``keys`` has the names in objects by their path: ``""`` the object at the top, ``"*"`` those in a list at the top,
    ``"messages.*"`` those in the list called messages.
    """

    top: str  # "{" or "["
    keys: Mapping[str, frozenset[str]]

    def has(self, path: str, *names: str) -> bool:
        """Whether objects at ``path`` have all of ``names``."""
        return set(names) <= self.keys.get(path, frozenset())

    def any_of(self, path: str, *names: str) -> bool:
        """Whether objects at ``path`` have one of ``names``."""
        return not self.keys.get(path, frozenset()).isdisjoint(names)


@dataclass(frozen=True)
class Head:
    """The beginning of an entry, looked at from several sides."""

    name: str
    raw: bytes
    folder: str = ""
    whole: bool = field(default=False)  # whether this is all of it

    @classmethod
    def of(cls, entry: Entry) -> Head:
        """The head of ``entry``. Raises UnreadableExport, OSError."""
        raw = entry.head(HEAD_BYTES)
        return cls(entry.name, raw, entry.folder, len(raw) < HEAD_BYTES)

    @cached_property
    def is_binary(self) -> bool:
        """Whether this is no text at all."""
        return encoding_of(self.raw) != "utf-16" and b"\0" in self.raw[:4096]

    @cached_property
    def text(self) -> str:
        """The text, decoded as well as can be."""
        return codecs.getincrementaldecoder(encoding_of(self.raw))("replace").decode(self.raw)

    @cached_property
    def lines(self) -> list[str]:
        """The lines with something in them, without the last one where it is cut off."""
        lines = self.text.split("\n")
        return [line.strip("\r") for line in (lines if self.whole else lines[:-1] or lines) if line.strip()]

    @cached_property
    def json(self) -> JsonShape | None:
        """The outline, where this begins like a JSON list or object."""
        start = self.text.lstrip("\ufeff \t\r\n")
        return _outline(start) if start[:1] in ("{", "[") else None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names in the first line, where it looks like the head of a table; else ()."""
        first = self.lines[0].lstrip("\ufeff") if self.lines else ""
        mark = delimiter_of(first)
        if not mark or len(first) > 4096:
            return ()
        names = tuple(name.strip() for name in next(csv.reader([first], delimiter=mark), []))
        return names if all(_COLUMN.fullmatch(name) for name in names) else ()

    @cached_property
    def rows(self) -> list[dict[str, object]]:
        """The JSON objects among the first lines, one a line."""
        found = []
        for line in self.lines[:20]:
            try:
                row = json.loads(line.lstrip("\ufeff"))
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict):
                found.append(row)
        return found

    def described(self) -> str:
        """What is seen here, in a few words, without anybody's messages."""
        if not self.raw.strip():
            return "an empty file"
        if self.is_binary:
            return "a file that is no text"
        if self.json is not None:
            for path, kind in (("", "a JSON object"), ("*", "a JSON list of objects")):
                if names := self.json.keys.get(path):
                    return f"{kind} with the keys {_listed(names)}"
            return "a JSON list" if self.json.top == "[" else "a JSON object"
        if len(self.columns) > 1 and any(delimiter_of(line) for line in self.lines[1:2]):
            return f"a table with the columns {_listed(self.columns)}"
        return "text whose lines do not begin like those of a chat"


def delimiter_of(line: str) -> str:
    """What separates the columns of a table's first line: the most frequent of , ; tab and |. "" where none does."""
    best = max(",;\t|", key=line.count)
    return best if best in line else ""


def _listed(names: frozenset[str] | tuple[str, ...]) -> str:
    shown = sorted(names) if isinstance(names, frozenset) else list(names)
    short = [name if len(name) <= 40 else f"{name[:37]}…" for name in shown[:_SHOWN_KEYS]]
    return ", ".join(short) + (", …" if len(shown) > _SHOWN_KEYS else "")


def _outline(text: str) -> JsonShape:
    """The names by path. Walks tokens, not values: the text is cut off somewhere."""
    keys: dict[str, set[str]] = {}
    stack: list[tuple[str, str]] = []  # the kind of each open container, and its path
    name, pending = "", ""
    for token in _TOKEN.finditer(text):
        part = token.group()
        if part in "{[":
            above_kind, above = stack[-1] if stack else ("", "")
            step = "*" if above_kind == "[" else name
            stack.append((part, f"{above}.{step}".strip(".") if stack else ""))
        elif part in "]}":
            if stack:
                stack.pop()
            if not stack:
                break
        elif part == ":":
            if stack and stack[-1][0] == "{" and len(stack) <= 6:
                name = pending[1:-1]
                keys.setdefault(stack[-1][1], set()).add(name)
        elif part[0] == '"':
            pending = part
    return JsonShape(text[:1], {path: frozenset(found) for path, found in keys.items()})
