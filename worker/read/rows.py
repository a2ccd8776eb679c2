"""One way from a statement to rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import Connection
from sqlalchemy.orm import Session

Reader = Session | Connection
Row = dict[str, Any]


def fetch(reader: Reader, statement: str, parameters: Mapping[str, Any]) -> list[Row]:
    """All rows of ``statement`` as dictionaries by column name. Raises SQLAlchemyError."""
    return [dict(row) for row in reader.execute(text(statement), dict(parameters)).mappings()]
