"""Staging: the rows of an export go into the database as they are read, so that nobody's memory holds them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

from producer.accepting import staged
from producer.contract import WriteRequest, clean_text
from producer.importing.ledger import CLEAR, Connection
from producer.importing.pricing import input_tokens
from producer.importing.rows import Row, Skipped
from producer.queues import Lane

# Rows of one commit. Until the last one, an import that is taken up again reads from the start.
BLOCK = 5_000

COPY = """
COPY import_rows (import_id, at, ordinal, line, file, tokens, item, other_digest, reason, content) FROM STDIN
"""
RESTART = """
UPDATE imports SET messages = 0, blank = 0, rejected = 0, moved_at = mandua_now() WHERE id = %s AND state = 'reading'
"""
# Invariant: counted with the rows that it counts.
COUNT = """
UPDATE imports SET messages = messages + %s, blank = blank + %s, rejected = rejected + %s, moved_at = mandua_now()
 WHERE id = %s AND state = 'reading'
"""
ALL_STAGED = "UPDATE imports SET state = 'accepting', moved_at = mandua_now() WHERE id = %s AND state = 'reading'"

# Behaviour 1: an unknown time counts as older than any. A row without a time happened now, behind everything dated.
_UNKNOWN, _NOW = "-infinity", "infinity"


def stage(
    connection: Connection, import_id: UUID, items: Iterable[Row | Skipped], told: Callable[[int], None]
) -> None:
    """Stage ``items``, from an empty stage on; ``told`` hears how many messages there are so far.

    What is no message by nature (a system line, a picture) is passed over. Raises what iterating ``items`` raises.
    """
    with connection.transaction():
        connection.execute(CLEAR, [import_id])
        connection.execute(RESTART, [import_id])
    numbered = enumerate(items, 1)
    messages = 0
    while (found := _block(connection, import_id, islice(numbered, BLOCK))).items:
        messages += found.messages
        told(messages)
    connection.execute(ALL_STAGED, [import_id])


@dataclass(slots=True)
class _Counts:
    """What a block held; ``items`` with those that were passed over."""

    items: int = 0
    messages: int = 0
    blank: int = 0
    rejected: int = 0


def _block(connection: Connection, import_id: UUID, block: Iterable[tuple[int, Row | Skipped]]) -> _Counts:
    """Stage ``block`` while it is read: the server takes one row in while the next is made."""
    counts = _Counts()
    with connection.transaction():
        with connection.cursor() as cursor, cursor.copy(COPY) as copy:
            for columns in _columns(import_id, block, counts):
                copy.write_row(columns)
        connection.execute(COUNT, [counts.messages, counts.blank, counts.rejected, import_id])
    return counts


def _columns(
    import_id: UUID, block: Iterable[tuple[int, Row | Skipped]], counts: _Counts
) -> Iterator[tuple[Any, ...]]:
    for ordinal, item in block:
        counts.items += 1
        place = (ordinal, item.line, clean_text(item.file))
        if isinstance(item, Row) and item.request.blank:
            counts.blank += 1
        elif isinstance(item, Row):
            counts.messages += 1
            content, digest = staged(item.request, Lane.BULK)
            tokens = input_tokens(item.request)
            yield (import_id, _when(item.request), *place, tokens, content, digest, None, None)
        elif item.rejected:
            counts.rejected += 1
            kept = json.dumps(item.content, default=str)  # escaped, so that Postgres takes whatever it is
            yield (import_id, _NOW, *place, 0, None, None, clean_text(item.reason), kept)


def _when(request: WriteRequest) -> datetime | str:
    if isinstance(request.occurred_at, datetime):
        return request.occurred_at
    return _NOW if request.occurred_at is None else _UNKNOWN
