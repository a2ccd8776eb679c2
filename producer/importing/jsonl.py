"""JSON lines: one message a line, with the fields of WriteRequest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from producer.client import read_row
from producer.contract import RequestError, WriteRequest


@dataclass(frozen=True, slots=True)
class Row:
    """A message found in a file, and where: the line's number, from 1, and its text."""

    line: int
    content: Any
    request: WriteRequest


@dataclass(frozen=True, slots=True)
class Rejected:
    """A line that holds no message: why, and what it holds (its text where it is not even JSON)."""

    line: int
    reason: str
    content: Any


def read(
    lines: Iterable[bytes], *, agent_id: str | None = None, speaker: str | None = None
) -> Iterator[Row | Rejected]:
    """The messages of ``lines``, in order; a bad line costs itself alone. Lines without text are passed over.

    ``agent_id`` and ``speaker`` stand in where a row names none. ``"occurred_at": null`` says that the time is
    unknown; a row without the field happened now.
    """
    for number, raw in enumerate(lines, start=1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError:
            yield Rejected(number, "is not UTF-8", raw.decode("utf-8", "replace").strip())
            continue
        if line:
            yield _row(number, line, {"agent_id": agent_id, "speaker_name": speaker})


def _row(number: int, line: str, defaults: dict[str, str | None]) -> Row | Rejected:
    try:
        request = read_row(line, **defaults)
    except RequestError as error:
        return Rejected(number, str(error), _content(line))
    if request.dry_run:
        return Rejected(number, "dry_run stores nothing; an import stores", _content(line))
    return Row(number, _content(line), request)


def _content(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return line
