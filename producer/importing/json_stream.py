"""Reading a JSON text bit by bit, so that an export of a gigabyte takes no more memory than its largest item.

Not a parser of its own: the standard decoder decodes every value; this only walks the containers around them. A
library for it (ijson) would be one more dependency for eighty lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from producer.importing.rows import UnreadableExport
from producer.importing.sources import Entry

Path = tuple[str, ...]  # keys from the top; "*" stands for an item of a list

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(strict=False)
_CHUNK = 256 * 1024
# One item (a conversation of a chat assistant holds all its turns) may be this long, in characters.
MAX_ITEM = 256 * 1024 * 1024
_MAX_DEPTH = 8


def walk(entry: Entry, descend: Callable[[Path], bool]) -> Iterator[tuple[int, Path, Any]]:
    """The values of ``entry`` in order: (line from 1, path, value).

    A list or object whose path ``descend`` accepts is walked, not yielded (of an item of a list the beginning is told,
    with the value None); all else is decoded whole. Raises
    UnreadableExport with the line for what is no JSON, no UTF-8, cut off, or too large an item.
    """
    with entry.text() as chunks:
        reader = _Reader(chunks, entry.name)
        yield from reader.value((), descend)
        if reader.peek():
            raise reader.broken("something follows its end")


class _Reader:
    """The text in a window: what is before the window is forgotten, what is after it is not yet read."""

    def __init__(self, chunks: Iterator[str], name: str) -> None:
        self._chunks, self._name = chunks, name
        self._window, self._at, self._ended = "", 0, False
        self._line, self._counted = 1, 0  # the line at the window's place `_counted`

    def value(self, path: Path, descend: Callable[[Path], bool]) -> Iterator[tuple[int, Path, Any]]:
        opening = self.peek()
        if opening in ("{", "[") and len(path) < _MAX_DEPTH and descend(path):
            if path[-1:] == ("*",):
                yield self.line, path, None
            self._at += 1
            yield from self._members(path, descend) if opening == "{" else self._items(path, descend)
        else:
            line = self.line
            yield line, path, self._decode()

    def _members(self, path: Path, descend: Callable[[Path], bool]) -> Iterator[tuple[int, Path, Any]]:
        if self._take_if("}"):
            return
        while True:
            if self.peek() != '"':
                raise self.broken("a name in quotation marks is missing")
            name = self._decode()
            if not self._take_if(":"):
                raise self.broken("a colon is missing")
            yield from self.value((*path, name), descend)
            if self._take_if("}"):
                return
            if not self._take_if(","):
                raise self.broken("a comma is missing")

    def _items(self, path: Path, descend: Callable[[Path], bool]) -> Iterator[tuple[int, Path, Any]]:
        if self._take_if("]"):
            return
        while True:
            yield from self.value((*path, "*"), descend)
            if self._take_if("]"):
                return
            if not self._take_if(","):
                raise self.broken("a comma is missing")

    def peek(self) -> str:
        """The next character that is no space; "" at the end."""
        while True:
            found = _SPACE.match(self._window, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._window):
                return self._window[self._at]
            if not self._more(_CHUNK):
                return ""

    def _take_if(self, char: str) -> bool:
        if self.peek() != char:
            return False
        self._at += 1
        return True

    def _decode(self) -> Any:
        self.peek()
        want = _CHUNK
        while True:
            try:
                found, end = _DECODER.raw_decode(self._window, self._at)
                # A number that touches the window's end may go on behind it.
                if end < len(self._window) or self._ended:
                    self._at = end
                    return found
            except RecursionError:
                raise self.broken("it is nested too deep") from None
            except ValueError as error:
                if self._ended:
                    place = getattr(error, "pos", self._at)
                    self._at = min(place, len(self._window))
                    cut = " (it seems cut off)" if self._at >= len(self._window) - 1 else ""
                    raise self.broken(f"{getattr(error, 'msg', 'it cannot be decoded')}{cut}") from None
            if len(self._window) - self._at > MAX_ITEM:
                raise self.broken(f"an item is longer than {MAX_ITEM // 2**20} million characters, or is not closed")
            self._more(want)
            want *= 2  # doubling keeps the repeated decoding of a long item linear

    def _more(self, want: int) -> bool:
        """Read at least ``want`` characters more into the window; False at the end."""
        if self._ended:
            return False
        _ = self.line
        parts, length = [self._window[self._at :]], 0
        self._at = self._counted = 0
        while length < want:
            chunk = next(self._chunks, None)
            if chunk is None:
                self._ended = True
                break
            parts.append(chunk)
            length += len(chunk)
        self._window = "".join(parts)
        return length > 0

    @property
    def line(self) -> int:
        """The line at which the reader stands, from 1. Counted on from the last time it was asked."""
        self._line += self._window.count("\n", self._counted, self._at)
        self._counted = max(self._at, self._counted)
        return self._line

    def broken(self, why: str) -> UnreadableExport:
        return UnreadableExport(f"{self._name}: line {self.line}: is not JSON: {why}")
