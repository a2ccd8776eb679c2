"""Handing a whole history in: in the order in which it happened, each message once, however often it is imported."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from producer.client import MemoryClient
from producer.contract import RequestError, WriteRequest
from producer.importing.rows import Row, Skipped

# Behind everything dated: a row without a time happened now.
_NOW = datetime.max.replace(tzinfo=UTC)
# Before everything dated: behaviour.md 1 has an unknown time count as older than any.
_UNKNOWN = datetime.min.replace(tzinfo=UTC)


@dataclass
class Report:
    """What became of an import. The last four count runs that have ended; they fill while somebody waits."""

    accepted: int = 0
    duplicates: int = 0
    rejected: int = 0
    ok: int = 0
    degraded: int = 0
    empty: int = 0
    failed: int = 0
    events: list[UUID] = field(default_factory=list)
    rejections: list[Skipped] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """The numbers, by name."""
        names = ("accepted", "duplicates", "rejected", "ok", "degraded", "empty", "failed")
        return {name: getattr(self, name) for name in names}

    @property
    def success(self) -> bool:
        """Whether nothing failed and nothing was rejected."""
        return not self.failed and not self.rejected


def in_order(found: Iterable[Row | Skipped]) -> tuple[list[Row], list[Skipped]]:
    """The rows by the time at which they happened (equal times as they stand), and those that are broken.

    What is no message by nature (a system line, a picture) is dropped here.
    """
    rows: list[Row] = []
    rejected: list[Skipped] = []
    for item in found:
        if isinstance(item, Row):
            rows.append(item)
        elif item.rejected:
            rejected.append(item)
    rows.sort(key=lambda row: _when(row.request))
    return rows, rejected


def hand_in(client: MemoryClient, rows: Sequence[Row], rejected: Sequence[Skipped] = ()) -> Report:
    """Hand ``rows`` in, in their order, in the bulk lane.

    Every row has a message_id from its export, so a second import of a file adds nothing. The report's ``events`` are
    those accepted now. Raises ClientError; what was handed in by then stays, and a new import goes on from there.
    """
    report = Report(rejections=list(rejected))
    handles = client.enqueue_many([row.request for row in rows], bulk=True)
    for row, handle in zip(rows, handles, strict=True):
        if isinstance(handle, RequestError):
            report.rejections.append(Skipped(row.line, str(handle), row.content, rejected=True, file=row.file))
        elif handle.status == "empty" or handle.event_id is None:
            report.empty += 1
        elif handle.status == "duplicate":
            report.duplicates += 1
        else:
            report.accepted += 1
            report.events.append(handle.event_id)
    report.rejections.sort(key=lambda item: (item.file, item.line))
    report.rejected = len(report.rejections)
    return report


def wait(
    client: MemoryClient,
    report: Report,
    *,
    timeout: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Wait until the accepted messages are through, counting them into ``report``; returns how many are not.

    ``timeout`` is in seconds without any message getting through (None: no end); ``progress`` is told done and all.
    """
    left = set(report.events)
    last_news = time.monotonic()
    pause = 0.05
    while left:
        finished = client.finished(list(left))
        for event_id, status in finished.items():
            left.discard(event_id)
            setattr(report, status, getattr(report, status) + 1)
        now = time.monotonic()
        if finished:
            last_news, pause = now, 0.05
            if progress is not None:
                progress(len(report.events) - len(left), len(report.events))
        elif timeout is not None and now - last_news > timeout:
            break
        if left:
            time.sleep(pause)
            pause = min(pause * 1.5, 1.0)
    return len(left)


def _when(request: WriteRequest) -> datetime:
    if isinstance(request.occurred_at, datetime):
        return request.occurred_at
    return _NOW if request.occurred_at is None else _UNKNOWN

