"""What the tests of the formats share: fixtures by name, and exports written for one test."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from producer.contract import WriteRequest
from producer.importing import Notes, Skipped, read

FIXTURES = Path(__file__).parent / "fixtures"


def messages(path: Path, *, notes: Notes | None = None, **options: Any) -> list[WriteRequest]:
    """The messages of an export; fails where anything in it is broken."""
    found = list(read(path, notes=notes, **({"agent_id": "a"} | options)))
    broken = [item for item in found if isinstance(item, Skipped) and item.rejected]
    assert not broken, broken
    return [item for item in found if isinstance(item, WriteRequest)]


def skipped(path: Path, **options: Any) -> list[str]:
    """Why things in an export are none of its messages."""
    found = read(path, **({"agent_id": "a"} | options))
    return [item.reason for item in found if isinstance(item, Skipped)]


def said(requests: list[WriteRequest]) -> list[tuple[str, str]]:
    """Who says what."""
    return [(request.speaker_name, request.message) for request in requests]


def when(request: WriteRequest) -> datetime:
    """The time of a message that has one."""
    assert isinstance(request.occurred_at, datetime)
    return request.occurred_at


def written(folder: Path, name: str, content: Any) -> Path:
    """A file of ``folder`` with ``content``: text, bytes, or what JSON writes."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False), "utf-8")
    return path


def zipped(path: Path, files: Mapping[str, Any]) -> Path:
    """A zip archive of ``files``."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            raw = isinstance(content, (str, bytes))
            archive.writestr(name, content if raw else json.dumps(content, ensure_ascii=False))
    return path
