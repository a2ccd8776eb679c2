"""An export that has been recognised: its entries, what lies beside them, and how to read it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Protocol, TypeVar

from producer.importing.options import Options, Speaker
from producer.importing.rows import Found, Notes, Row, Skipped
from producer.importing.shapes import Head
from producer.importing.sources import Entry
from producer.importing.times import Clock

# Lists of users and channels are read whole; more than this is none.
_MAX_SIDE = 64 * 1024**2

T = TypeVar("T")


@dataclass
class Export:
    """What a reader works with. ``entries`` are its format's own, ``beside`` the rest of the folder or archive."""

    title: str
    entries: list[Entry]
    beside: list[Entry]
    options: Options
    notes: Notes
    clock: Clock
    _sides: dict[str, Any] = field(default_factory=dict)

    def side(self, name: str, near: str = "") -> Any:
        """The content of the JSON file ``name`` beside the entries (in the folder ``near``); None where none is.

        A side file that cannot be read costs only what it would have told.
        """
        key = f"{near}/{name}"
        if key not in self._sides:
            self._sides[key] = next(
                (self._load(entry) for entry in (*self.beside, *self.entries) if _is(entry.name, name, near)), None
            )
        return self._sides[key]

    def once(self, key: str, make: Callable[[], T]) -> T:
        """What ``make`` makes, made the first time that ``key`` is asked for."""
        if key not in self._sides:
            self._sides[key] = make()
        found: T = self._sides[key]
        return found

    def _load(self, entry: Entry) -> Any:
        try:
            raw = entry.head(_MAX_SIDE)
            return json.loads(raw.decode("utf-8-sig"))
        except (ValueError, RecursionError, OSError):
            self.notes.warn(f"{entry.name} cannot be read; what it tells is missing")
            return None

    def mapped(self, *names: str | None) -> Speaker | None:
        """What the speaker map says about the first of ``names`` (ids or names) that it has."""
        return next((self.options.speakers[n] for n in names if n is not None and n in self.options.speakers), None)

    def nameless(self, fallback: str = "User") -> str:
        """The name of whoever the export leaves nameless."""
        if self.options.speaker is not None:
            return self.options.speaker
        self.notes.warn(f"the export does not say who the user is, so the name is {fallback!r}; say --speaker NAME")
        return fallback


class Format(Protocol):
    """A module of this package that reads one format."""

    NAME: str

    def recognises(self, head: Head) -> bool:
        """Whether an entry that begins like this is a file of messages of this format."""

    def read(self, entry: Entry, export: Export) -> Iterator[Found | Skipped | Row]:
        """The messages of ``entry``, in its order. Raises UnreadableExport."""


def text_of(value: object) -> str:
    """``value`` where it is text that says something, without space around it; else ""."""
    return value.strip() if isinstance(value, str) else ""


def name_of(value: object) -> str | None:
    """An id or a name as text; None where there is none. Numbers are ids, too."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return str(value).strip() or None


def _is(path: str, name: str, near: str) -> bool:
    found = PurePosixPath(path)
    return found.name == name and (not near or found.parent.name == near)
