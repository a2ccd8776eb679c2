"""MemoryClient: how a chat backend hands messages in and asks what became of them.

Light by design: importing it takes a fraction of a second and pulls in neither litellm nor SQLAlchemy. Every method is
safe to call from several threads; ``aenqueue`` and ``awrite`` are the same for asyncio.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Self
from uuid import UUID

from producer.connections import Database, Lag, celery_app, poll, publish_options, publishing
from producer.contract import ConflictError, RecordEnvelope, RequestError, WriteRequest, WriteResult
from producer.errors import BrokerDown, ClientError, StillRunning, TooBusy
from producer.queues import HIDDEN_ARGUMENTS, RECORD_QUEUE, Lane, QueueName, TaskName

if TYPE_CHECKING:
    import psycopg

# One accept call of more messages would make other agents wait.
ACCEPT_CHUNK = 500

Acceptor = Literal["worker", "database"]


@dataclass(frozen=True, slots=True)
class Handle:
    """A message on its way. ``status``: ``queued`` (in the broker), ``accepted`` (in Postgres), ``duplicate``, or
    ``empty`` (nothing to remember: no event, ``event_id`` None)."""

    event_id: UUID | None
    status: Literal["queued", "accepted", "duplicate", "empty"]
    _client: MemoryClient = field(repr=False)

    def accepted(self, timeout: float = 10.0) -> bool:
        """Wait up to ``timeout`` seconds until the event is committed in Postgres; False if it is not by then.

        Raises ConflictError if the message_id was used for another text, ClientError without a database_url.
        """
        if self.status != "queued" or self.event_id is None:
            return True
        return self._client.wait_accepted([self.event_id], timeout) == set()

    def result(self, timeout: float = 120.0) -> WriteResult:
        """Wait up to ``timeout`` seconds for the WriteResult. Raises StillRunning, ConflictError, ClientError."""
        if self.event_id is None:
            return WriteResult(status="empty")
        if self.status == "duplicate":
            return WriteResult(event_id=self.event_id, status="duplicate")
        return self._client.wait_result(self.event_id, timeout)


class MemoryClient:
    """Hands messages to the workers.

    ``accept="worker"`` (default): a message is ``queued`` in the broker, and a worker commits it as the first thing it
    does; until then a crash of the broker can lose it. ``accept="database"``: the client commits the event itself and
    only wakes the workers through the broker, so there is no such window. Waiting and reading need a ``database_url``.

    ``max_lag`` (seconds; needs a ``database_url``): where the oldest unfinished message of the same lane has waited
    longer, a message is refused (``when_lagging="refuse"``: TooBusy) or held here until the workers have caught up
    (``"wait"``, for imports; up to ``lag_timeout`` seconds, then TooBusy).
    """

    def __init__(
        self,
        broker_url: str | None = None,
        database_url: str | None = None,
        accept: Acceptor = "worker",
        *,
        max_lag: float | None = None,
        when_lagging: Literal["refuse", "wait"] = "refuse",
        lag_timeout: float = 600.0,
    ) -> None:
        if accept not in ("worker", "database"):
            raise ValueError('accept must be "worker" or "database"')
        if accept == "worker" and not broker_url:
            raise ValueError('a broker_url is needed to enqueue; with accept="database" a database_url is enough')
        if accept == "database" and not database_url:
            raise ValueError('accept="database" needs a database_url')
        if max_lag is not None and not database_url:
            raise ValueError("max_lag needs a database_url: the lag is read from the database")
        self._accept = accept
        self._lag = Lag(max_lag, when_lagging, lag_timeout)
        self._database = Database(database_url) if database_url else None
        self._app = celery_app(broker_url) if broker_url else None
        self._publish_options = publish_options(broker_url or "")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. The client can be used again; it connects anew."""
        if self._app is not None:
            self._app.close()
        if self._database is not None:
            self._database.close()

    # Handing in

    def enqueue(
        self, agent_id: str, message: str, speaker_name: str, *, bulk: bool = False, **fields: Any
    ) -> Handle:
        """Hand in one message; ``fields`` are those of WriteRequest. Returns at once.

        Raises RequestError (bad input), ConflictError (where a database is at hand), BrokerDown within 2 s.
        """
        request = WriteRequest.parse(agent_id=agent_id, message=message, speaker_name=speaker_name, **fields)
        return self.enqueue_request(request, bulk=bulk)

    def enqueue_request(self, request: WriteRequest, *, bulk: bool = False) -> Handle:
        """Hand in a request that is already built."""
        (handle,) = self.enqueue_many([request], bulk=bulk)
        if isinstance(handle, RequestError):
            raise handle
        return handle

    def enqueue_many(
        self, requests: Iterable[WriteRequest], *, bulk: bool = True, resend: bool = False, timeout: float = 60.0
    ) -> list[Handle | RequestError]:
        """Hand in many messages, in order; one entry each, a ConflictError in place of a handle where one conflicts.

        ``resend=True`` (with ``accept="worker"`` and a database_url) waits until all are committed and sends again,
        by message_id, what the broker has lost; within ``timeout`` seconds, else StillRunning.
        """
        lane = Lane.BULK if bulk else Lane.LIVE
        handles: list[Handle | RequestError] = []
        for chunk in _chunks(requests, ACCEPT_CHUNK):
            handles += self._hand_in(chunk, lane, resend=resend, timeout=timeout)
        return handles

    def _hand_in(
        self, requests: Sequence[WriteRequest], lane: Lane, *, resend: bool, timeout: float
    ) -> list[Handle | RequestError]:
        from producer.accepting import envelope

        if any(request.dry_run for request in requests):
            raise RequestError("dry_run stores nothing and is not queued; use MemoryClient.dry_run")
        if resend and any(request.message_id is None for request in requests):
            raise RequestError("resend needs a message_id on every message, so that none is remembered twice")
        self._wait_for_the_workers(lane)
        envelopes = [None if request.blank else envelope(request, lane) for request in requests]
        sent = [item for item in envelopes if item is not None]
        if self._accept == "database":
            outcomes = self._accept_here(sent)
        else:
            outcomes = self._known_outcomes(sent)
            self._publish(item for item in sent if outcomes.get(id(item)) is None)
            if resend:
                self._resend([item for item in sent if outcomes.get(id(item)) is None], timeout)
        return [
            Handle(None, "empty", self) if item is None else self._handle(item, outcomes.get(id(item)), resend=resend)
            for item in envelopes
        ]

    def lag(self, *, bulk: bool = False) -> float:
        """Seconds that the oldest unfinished message of the lane has waited; 0 where none waits. Raises ClientError."""
        from producer.accepting import LAG

        with self._require_database().connection() as connection:
            row = connection.execute(LAG, [int(Lane.BULK if bulk else Lane.LIVE)]).fetchone()
        return float(row[0]) if row is not None else 0.0

    def _wait_for_the_workers(self, lane: Lane) -> None:
        most = self._lag.most
        if most is None or self._lag.checked(lane):
            return

        def look() -> float | None:
            found = self.lag(bulk=lane is Lane.BULK)
            return found if found <= most else None

        if poll(look, self._lag.timeout if self._lag.when == "wait" else 0.0) is None:
            raise TooBusy(f"the workers are more than {most:g} s behind; nothing was sent, try again later")
        self._lag.note(lane)

    def _handle(self, item: RecordEnvelope, outcome: str | None, *, resend: bool) -> Handle | RequestError:
        if outcome == "conflict":
            return ConflictError(
                f"message_id {item.request.message_id!r} was used for another text; a changed message needs an id "
                "of its own"
            )
        if outcome == "duplicate":
            return Handle(item.event_id, "duplicate", self)
        return Handle(item.event_id, "accepted" if outcome or resend else "queued", self)

    def _accept_here(self, envelopes: Sequence[RecordEnvelope]) -> dict[int, str]:
        from producer.accepting import accept

        with self._require_database().connection() as connection:
            acceptances = accept(connection, envelopes)
        self.wake({item.request.agent_id for item in envelopes})
        return {id(item): done.outcome for item, done in zip(envelopes, acceptances, strict=True)}

    def wake(self, agents: Iterable[str]) -> None:
        """Wake the workers for ``agents``. The sweeper would find them as well, some seconds later."""
        if self._app is None:
            return
        for agent_id in sorted(agents):
            try:
                self._send(TaskName.DISPATCH, (agent_id,), QueueName.TURNS)
            except BrokerDown:
                return

    def _known_outcomes(self, envelopes: Sequence[RecordEnvelope]) -> dict[int, str]:
        """Which messages with an id of their own are stored already; {} without a database."""
        named = [item for item in envelopes if item.request.message_id is not None]
        if self._database is None or not named:
            return {}
        from producer.accepting import compared

        with self._database.connection() as connection:
            return {id(item): outcome for item, outcome in compared(connection, named)}

    def _publish(self, envelopes: Iterable[RecordEnvelope]) -> None:
        for item in envelopes:
            self._send(
                TaskName.RECORD_EVENT,
                (item.model_dump(mode="json"),),
                RECORD_QUEUE[Lane(item.lane)],
                argsrepr=HIDDEN_ARGUMENTS,
                kwargsrepr="{}",
            )

    def _resend(self, envelopes: Sequence[RecordEnvelope], timeout: float) -> None:
        deadline = time.monotonic() + timeout
        missing = {item.event_id: item for item in envelopes}
        patience = 2.0
        while missing:
            left = deadline - time.monotonic()
            unconfirmed = self.wait_accepted(list(missing), min(patience, max(left, 0.0)), conflicts=False)
            missing = {event_id: missing[event_id] for event_id in unconfirmed}
            if not missing:
                return
            if time.monotonic() >= deadline:
                raise StillRunning(f"{len(missing)} messages are not confirmed after {timeout:g} s; send them again")
            self._publish(missing.values())
            patience = min(patience * 2, 15.0)

    def _send(self, task: TaskName, arguments: tuple[Any, ...], queue: QueueName, **options: Any) -> None:
        if self._app is None:
            raise ClientError("this client has no broker_url")
        from amqp.exceptions import ChannelError

        options |= {"args": arguments, "queue": queue.value, **self._publish_options}
        with publishing():
            try:
                self._app.send_task(task.value, **options)
            except ChannelError:  # the queue is gone; the next connection declares it
                self._app.send_task(task.value, **options)

    # Waiting and reading

    def write(
        self,
        agent_id: str,
        message: str,
        speaker_name: str,
        *,
        timeout: float = 120.0,
        dry_run: bool = False,
        **fields: Any,
    ) -> WriteResult:
        """Hand in one message and wait for its WriteResult, up to ``timeout`` seconds.

        Raises RequestError, ConflictError, BrokerDown, StillRunning (the message is safe), ClientError.
        """
        self._require_database()
        if dry_run:
            return self.dry_run(agent_id, message, speaker_name, timeout=timeout, **fields)
        return self.enqueue(agent_id, message, speaker_name, **fields).result(timeout)

    def dry_run(
        self, agent_id: str, message: str, speaker_name: str, *, timeout: float = 120.0, **fields: Any
    ) -> WriteResult:
        """What would be extracted from a message, and at what price. No event, fact or entity is stored."""
        request = WriteRequest.parse(
            agent_id=agent_id, message=message, speaker_name=speaker_name, dry_run=True, **fields
        ).timed()
        database = self._require_database()
        if request.blank:
            return WriteResult(status="empty")
        run_id = uuid.uuid4()
        with database.connection() as connection:
            connection.execute(
                "INSERT INTO dry_runs (id, request) VALUES (%s, %s)", [run_id, request.model_dump_json()]
            )
        self._send(TaskName.DRY_RUN, (str(run_id),), QueueName.LIVE)
        try:
            found = poll(lambda: self._dry_result(run_id), timeout)
        finally:
            with database.connection() as connection:
                connection.execute("DELETE FROM dry_runs WHERE id = %s", [run_id])
        if found is None:
            raise StillRunning(f"no worker has answered the dry run in {timeout:g} s; is one running?")
        return found

    def result(self, event_id: UUID) -> WriteResult | None:
        """The WriteResult of an event, or None while it is unfinished or unknown."""
        from producer.accepting import OUTCOME

        with self._require_database().connection() as connection:
            row = connection.execute(OUTCOME, [event_id]).fetchone()
        if row is None:
            return None
        state, stage, _status, cause, result = row
        if state == "parked":
            return WriteResult(event_id=event_id, status="failed", success=False, error=f"{stage}: {cause}")
        return WriteResult.model_validate(result) if state == "done" and result is not None else None

    def wait_result(self, event_id: UUID, timeout: float) -> WriteResult:
        """The WriteResult of an event, waited for up to ``timeout`` seconds. Raises StillRunning, ConflictError."""
        asked = time.monotonic()

        def look() -> WriteResult | None:
            found = self.result(event_id)
            if found is None and time.monotonic() - asked > 0.5:
                self.wait_accepted([event_id], 0.0)  # raises on a conflict, which no run will ever end
            return found

        found = poll(look, timeout)
        if found is None:
            raise StillRunning(
                f"event {event_id} is not finished after {timeout:g} s; it is kept, ask again later (is a worker up?)"
            )
        return found

    def wait_accepted(self, events: Sequence[UUID], timeout: float, *, conflicts: bool = True) -> set[UUID]:
        """Wait until ``events`` are committed; returns those that are not after ``timeout`` seconds.

        Raises ConflictError for one that was refused (``conflicts=False``: it counts as settled).
        """
        from producer.accepting import ARE_THERE

        missing = set(events)

        def look() -> set[UUID] | None:
            nonlocal missing
            with self._require_database().connection() as connection:
                stored = connection.execute(ARE_THERE, {"events": list(missing)}).fetchall()
                refused = connection.execute(
                    "SELECT event_id, cause FROM failed_records WHERE event_id = ANY (%s)", [list(missing)]
                ).fetchall()
            missing -= {row[0] for row in stored}
            if conflicts and refused:
                raise ConflictError(f"event {refused[0][0]} was refused ({refused[0][1]}): its message_id is taken")
            missing -= {row[0] for row in refused}
            return set() if not missing else None

        poll(look, timeout)
        return missing

    def finished(self, events: Sequence[UUID]) -> dict[UUID, str]:
        """How those of ``events`` ended that have (``ok``, ``degraded``, ``empty``, ``failed``). Raises ClientError."""
        from producer.accepting import FINISHED

        with self._require_database().connection() as connection:
            return dict(connection.execute(FINISHED, [list(events)]).fetchall())

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Any]]:
        """The client's connection to its database, in autocommit; meanwhile other threads wait for it.

        Raises ClientError without a database_url, and where the database does not answer.
        """
        with self._require_database().connection() as connection:
            yield connection

    def _dry_result(self, run_id: UUID) -> WriteResult | None:
        with self._require_database().connection() as connection:
            row = connection.execute("SELECT result FROM dry_runs WHERE id = %s", [run_id]).fetchone()
        return WriteResult.model_validate(row[0]) if row is not None and row[0] is not None else None

    def _require_database(self) -> Database:
        if self._database is None:
            raise ClientError("waiting and reading need a database_url; give one to MemoryClient")
        return self._database

    # asyncio

    async def aenqueue(self, agent_id: str, message: str, speaker_name: str, **fields: Any) -> Handle:
        """``enqueue`` for asyncio: the event loop is not held up."""
        return await asyncio.to_thread(self.enqueue, agent_id, message, speaker_name, **fields)

    async def awrite(self, agent_id: str, message: str, speaker_name: str, **fields: Any) -> WriteResult:
        """``write`` for asyncio."""
        return await asyncio.to_thread(self.write, agent_id, message, speaker_name, **fields)


def _chunks(requests: Iterable[WriteRequest], size: int) -> Iterator[list[WriteRequest]]:
    rest = iter(requests)
    while chunk := list(islice(rest, size)):
        yield chunk


def read_row(line: str, **defaults: Any) -> WriteRequest:
    """A request from one JSON row (README, "Importing"). ``"occurred_at": null`` says that the time is unknown.

    ``defaults`` stand in for fields that the row does not have or has as null. Raises RequestError.
    """
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"is not JSON: {error}") from None
    if not isinstance(row, dict):
        raise RequestError("is not a JSON object")
    if "occurred_at" in row and row["occurred_at"] is None:
        row["occurred_at"] = "unknown"
    fields = row | {name: value for name, value in defaults.items() if row.get(name) is None}
    try:
        return WriteRequest.parse(**fields)
    except TypeError:  # a field named like the parameter of a method
        raise RequestError("holds what is not a field of a message") from None
