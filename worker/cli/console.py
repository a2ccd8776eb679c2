"""Printing. JSON alone, or what was asked for, goes to standard output; everything else to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def say(text: str) -> None:
    """One line for the user, on standard error."""
    print(f"mandua: {text}", file=sys.stderr, flush=True)


def show(text: str) -> None:
    """One line of what was asked for, on standard output."""
    print(text, flush=True)


def show_json(content: Any) -> None:
    """``content`` as one JSON text on standard output; times as ISO 8601, ids as text."""
    print(json.dumps(content, ensure_ascii=False, indent=2, default=_plain), flush=True)


def show_table(title: str, columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> None:
    """A table of ``rows`` on standard output; ``columns`` maps the name of a field to its heading."""
    made = table(title, list(columns.values()))
    for row in rows:
        made.add_row(*(cell(row.get(name)) for name in columns))
    output().print(made)


def table(title: str, headings: Sequence[str]) -> Table:
    """An empty table in the house's style."""
    from rich import box
    from rich.table import Table

    made = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, expand=False)
    for heading in headings:
        made.add_column(heading, overflow="fold")
    return made


def output(*, stderr: bool = False) -> Console:
    """A rich console. Without a terminal it is 160 wide, so that a pipe gets whole lines."""
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False, soft_wrap=False)
    if not made.is_terminal:
        made.width = 160
    return made


def cell(value: Any) -> str:
    """A value as a table shows it. Text of messages is escaped: brackets in it are no markup."""
    from rich.markup import escape

    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, (list, tuple)):
        return escape(", ".join(str(item) for item in value))
    return escape(str(value))


def _plain(value: object) -> str:
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form here")
