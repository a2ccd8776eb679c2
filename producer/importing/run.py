"""Importing a whole history: staged, accepted in the order in which it happened, followed to its end.

Each step is committed with its counts, so an import that was interrupted, killed, or has reached its cost limit is
taken up where it stands. Ids come from the export: what was handed in before is a duplicate, whichever import it was.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from producer.client import MemoryClient
from producer.contract import RequestError, clean_text
from producer.importing import ledger, staging
from producer.importing.ledger import Connection, Record
from producer.importing.options import Options
from producer.importing.previewing import Preview
from producer.importing.pricing import Price, price_of
from producer.importing.reading import rows
from producer.importing.rows import Notes, Skipped

# Messages of one accept. Their agents wait for its commit with messages of their own: a chunk of 50,000 took 1.2 s.
CHUNK = 2_000
# Seconds without any message getting through after which an import that has spent its limit is not waited for.
AT_THE_LIMIT = 10.0

Phase = Literal["reading", "accepting", "running"]
# The phase, how many messages are done, and of how many (None: nobody knows yet).
Told = Callable[[Phase, int, int | None], None]


@dataclass(frozen=True, slots=True)
class Report:
    """Where an import stands, in messages. ``ok`` to ``failed`` are how accepted ones ended (``empty``: blank ones
    too), ``unfinished`` is what the workers have before them, ``waiting`` what is not accepted yet. ``stopped`` says
    why it does not go on (``interrupted``, ``failed``; ``cost_limit``: nothing more is accepted, and what was accepted
    waits while more was spent). ``cost_usd``: of all its calls whose price is known."""

    import_id: UUID
    state: str
    stopped: str | None
    accepted: int
    duplicates: int
    rejected: int
    ok: int
    degraded: int
    empty: int
    failed: int
    unfinished: int
    waiting: int
    cost_usd: float

    @property
    def success(self) -> bool:
        """Whether all was accepted, nothing failed and nothing was rejected."""
        return self.state == "accepted" and not self.failed and not self.rejected


def _silent(_phase: Phase, _done: int, _of: int | None) -> None:
    pass


def check(path: Path, options: Options) -> None:
    """Raise what reading the export at ``path`` raises before its first message: RequestError, OSError."""
    with closing(rows(path, options, Notes())) as found:
        next(found, None)


def start(
    client: MemoryClient,
    path: str | Path,
    options: Options,
    *,
    limit_usd: float | None = None,
    told: Told = _silent,
    begun: Callable[[UUID], None] = lambda _: None,
    seen: Preview | None = None,
) -> Report:
    """Hand in the export at ``path``, in the bulk lane. ``client`` needs a database.

    ``limit_usd``: no more is accepted than, with what the accepted messages have cost or are expected to cost, comes to
    so many US dollars; where they come to more after all, the workers let the rest wait. ``begun`` is told the id with
    which it can be taken up, ``told`` how far it is; ``seen`` notes what is read. Raises RequestError (nothing was
    accepted), ClientError, OSError, and leaves a resumable import behind whatever ends it.
    """
    price = _price(limit_usd)
    place = Path(path).resolve()
    check(place, options)
    with client.connection() as connection:
        import_id = ledger.begin(connection, clean_text(str(place)), options, limit_usd)
        with _at(connection, import_id):
            begun(import_id)
            _read(connection, import_id, place, options, told, seen or Preview(Notes()))
            _accept(client, connection, import_id, price, told)
        return _report(connection, import_id)


def resume(
    client: MemoryClient,
    import_id: UUID,
    *,
    limit_usd: float | None = None,
    told: Told = _silent,
    seen: Preview | None = None,
) -> Report:
    """Take up an import where it stands. ``limit_usd``, if given, replaces its limit; what waits for it goes on within
    a minute. Raises what ``start`` raises."""
    with client.connection() as connection:
        record = ledger.load(connection, import_id)
        price = _price(limit_usd or record.limit_usd)
        with _at(connection, import_id):
            connection.execute(ledger.RESUME, [limit_usd, import_id])
            if record.state == "reading":
                options = Options.load(record.options)
                _read(connection, import_id, Path(record.path), options, told, seen or Preview(Notes()))
            _accept(client, connection, import_id, price, told)
        return _report(connection, import_id)


def report(client: MemoryClient, import_id: UUID) -> Report:
    """Where an import stands now. Raises RequestError, ClientError."""
    with client.connection() as connection:
        return _report(connection, import_id)


def rate(client: MemoryClient) -> float | None:
    """Messages a second that the workers get through now; None where too few were finished within ten minutes."""
    with client.connection() as connection:
        return ledger.rate(connection)


def path_of(client: MemoryClient, import_id: UUID) -> Path:
    """Where the export of an import lies, or lay. Raises RequestError, ClientError."""
    with client.connection() as connection:
        return Path(ledger.load(connection, import_id).path)


def follow(
    client: MemoryClient, import_id: UUID, *, timeout: float | None = None, told: Told = _silent
) -> Report:
    """Wait until the accepted messages are through; returns the report then, with ``unfinished`` ones if it gave up.

    ``timeout`` is in seconds without any message getting through (None: no end, but for an import that has come to its
    cost limit, whose messages wait).
    """
    last, news = -1, time.monotonic()
    while True:
        asked = time.monotonic()
        with client.connection() as connection:
            found, paused = _standing(connection, import_id)
        took = time.monotonic() - asked
        if found.unfinished != last:
            last, news = found.unfinished, asked
            told("running", found.accepted - found.unfinished, found.accepted)
        patience = min(AT_THE_LIMIT, timeout or AT_THE_LIMIT) if paused else timeout
        if not found.unfinished or (patience is not None and asked - news > patience):
            return found
        # A large import is not counted all the time.
        time.sleep(min(max(0.1, 10 * took), 15.0))


def rejects(client: MemoryClient, import_id: UUID) -> Iterator[Skipped]:
    """What was rejected, in the order of the files, until ``forget_rejects``. One at a time, none kept."""
    with client.connection() as connection, connection.transaction(), connection.cursor(name="rejects") as cursor:
        cursor.execute(ledger.REJECTS, [import_id])
        for file, line, reason, content, item in cursor:
            yield _reject(file, line, reason, content, item)


def forget_rejects(client: MemoryClient, import_id: UUID) -> None:
    """Remove the rejected rows, which hold what people said, once they are written and all others are accepted."""
    with client.connection() as connection:
        if ledger.load(connection, import_id).state == "accepted":
            connection.execute(ledger.CLEAR, [import_id])


def _read(
    connection: Connection, import_id: UUID, path: Path, options: Options, told: Told, seen: Preview
) -> None:
    told("reading", 0, None)
    found = seen.counting(rows(path, options, seen.notes))
    staging.stage(connection, import_id, found, lambda done: told("reading", done, None))


def _accept(client: MemoryClient, connection: Connection, import_id: UUID, price: Price | None, told: Told) -> None:
    woken: set[str] = set()
    while True:
        record = ledger.load(connection, import_id)
        told("accepting", record.handled, record.messages)
        budget = None if record.limit_usd is None or price is None else _budget(connection, record, price)
        chunk = ledger.accept_chunk(connection, import_id, CHUNK, price, budget)
        if chunk is None:
            return
        client.wake(set(chunk.agents) - woken)
        woken |= set(chunk.agents)
        if not chunk.more:
            break
        if not chunk.rows:
            connection.execute(ledger.STOP, ["cost_limit", import_id])
            break
    record = ledger.load(connection, import_id)
    told("accepting", record.handled, record.messages)
    # Those whose first messages were through before the next came: nothing may be under way any more.
    client.wake(woken)


def _budget(connection: Connection, record: Record, price: Price) -> float:
    """US dollars that are left. A message that is not through yet counts as expected, or as the others were in the mean
    if that is more."""
    ended, cost = ledger.outcome(connection, record.id)
    unfinished = ended.pop("unfinished", 0)
    each = price.of(record.calls, record.tokens) / max(record.accepted, 1)
    if through := sum(ended.values()):
        each = max(each, cost / through)
    return (record.limit_usd or 0.0) - cost - unfinished * each


def _price(limit_usd: float | None) -> Price | None:
    """What the model costs, if a limit has to be kept. Raises RequestError where nobody knows."""
    if limit_usd is None:
        return None
    model = os.environ.get("MANDUA_LLM_MODEL_EXTRACTION") or os.environ.get("MANDUA_LLM_MODEL")
    price = price_of(model)
    if price is None:
        raise RequestError(f"the price of {model} is not known here, so no cost limit can be kept; leave it out")
    return price


@contextmanager
def _at(connection: Connection, import_id: UUID) -> Iterator[None]:
    """Be at work on an import; whatever ends it early is noted, if the database still answers."""
    with ledger.alone(connection, import_id):
        try:
            yield
        except BaseException as error:
            stopped = "interrupted" if isinstance(error, (KeyboardInterrupt, SystemExit)) else "failed"
            with suppress(Exception):
                connection.execute(ledger.STOP, [stopped, import_id])
            raise


def _report(connection: Connection, import_id: UUID) -> Report:
    return _standing(connection, import_id)[0]


def _standing(connection: Connection, import_id: UUID) -> tuple[Report, bool]:
    """Where an import stands, and whether its accepted messages wait for a new cost limit."""
    record = ledger.load(connection, import_id)
    ended, cost = ledger.outcome(connection, import_id)
    paused = record.limit_usd is not None and cost >= record.limit_usd and ended.get("unfinished", 0) > 0
    report = Report(
        import_id=record.id, state=record.state, stopped="cost_limit" if paused else record.stopped,
        accepted=record.accepted,
        duplicates=record.duplicates, rejected=record.rejected, ok=ended.get("ok", 0),
        degraded=ended.get("degraded", 0), empty=ended.get("empty", 0) + record.blank, failed=ended.get("failed", 0),
        unfinished=ended.get("unfinished", 0), waiting=record.messages - record.handled,
        cost_usd=round(cost, 6),
    )  # fmt: skip
    return report, paused


def _reject(file: str, line: int, reason: str, content: str | None, item: dict[str, Any] | None) -> Skipped:
    if item is None:
        return Skipped(line, reason, json.loads(content or "null"), rejected=True, file=file)
    kept = {name: item[name] for name in ("message", "speaker_name", "occurred_at", "session_id", "message_id", "role")}
    return Skipped(
        line,
        f"message_id {item['message_id']!r} was used for another text; a changed message needs an id of its own",
        {"agent_id": item["agent_id"], **kept},
        rejected=True,
        file=file,
    )
