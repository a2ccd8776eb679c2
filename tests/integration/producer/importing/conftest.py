"""What the tests of imports share: histories, a client, rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from producer import MemoryClient


def row(message: str, at: str | None = "2020-01-01T00:00:00Z", **more: Any) -> dict[str, Any]:
    return {"agent_id": "a", "speaker_name": "S", "message": message, "occurred_at": at, **more}


@pytest.fixture
def history(tmp_path: Path) -> Callable[..., Path]:
    """Write a history of JSON lines: rows, or texts as they stand."""

    def write(*items: Any, name: str = "history.jsonl") -> Path:
        file = tmp_path / name
        file.write_text("\n".join(item if isinstance(item, str) else json.dumps(item) for item in items), "utf-8")
        return file

    return write


@pytest.fixture
def client(database_url: str) -> Iterator[MemoryClient]:
    with MemoryClient(database_url=database_url, accept="database") as made:
        yield made


@pytest.fixture
def select(database_url: str) -> Iterator[Callable[..., list[Any]]]:
    """Run a statement; rows as tuples, or as values where there is one column."""
    with psycopg.connect(database_url, autocommit=True) as connection:

        def do(statement: str, *parameters: Any) -> list[Any]:
            cursor = connection.execute(statement, parameters)
            found = cursor.fetchall() if cursor.description else []
            return [found_row[0] if len(found_row) == 1 else found_row for found_row in found]

        yield do
