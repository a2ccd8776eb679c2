"""Importing history: one file a format, each finding messages in its files; ``run`` hands them in, resumes, follows.

``read`` and ``preview`` are the same for programs: ``for item in read("chat.zip", agent_id="ana"): …``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from producer.contract import WriteRequest
from producer.importing.options import Options, Speaker, load_speakers
from producer.importing.previewing import Preview
from producer.importing.reading import rows
from producer.importing.rows import Notes, Row, Skipped, UnreadableExport

__all__ = [
    "Notes", "Options", "Preview", "Row", "Skipped", "Speaker", "UnreadableExport", "load_speakers", "preview", "read",
    "rows",
]  # fmt: skip


def read(path: str | Path, *, notes: Notes | None = None, **options: Any) -> Iterator[WriteRequest | Skipped]:
    """The messages of the export at ``path`` (file, folder or zip), and what in it is none, as they stand there.

    ``options`` are the fields of Options: ``agent_id``, ``format``, ``speaker``, ``speakers``, ``timezone``,
    ``date_order``, ``since``, ``until``, ``context``. ``notes`` collects warnings while reading. Every request has a
    message_id that comes from the export, so handing the same export in again adds nothing. Raises RequestError
    (UnreadableExport: no known format, or dates that can be read in two ways) and OSError, when first iterated.
    """
    for item in rows(Path(path), Options(**options), notes if notes is not None else Notes()):
        yield item if isinstance(item, Skipped) else item.request


def preview(
    path: str | Path, *, model: str | None = None, per_sec: float | None = None, **options: Any
) -> dict[str, Any]:
    """What ``read`` would find, counted, with dates, speakers, warnings and price; ``Preview.report`` lists the keys.

    ``per_sec``: the rate (``run.rate``) for the time that it will take. ``options`` as in ``read``; without an
    ``agent_id`` it counts all the same. Raises what ``read`` raises.
    """
    notes = Notes()
    seen = Preview(notes)
    for item in rows(Path(path), Options(**options), notes, counted_only=True):
        seen.note(item)
    return seen.report(model, per_sec)
