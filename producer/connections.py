"""The client's connections: one to the database, one Celery app for the broker, and the waiting on both."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from producer.errors import BrokerDown, ClientError
from producer.queues import Lane, declared_queues, is_rabbitmq, tls_options

if TYPE_CHECKING:
    import psycopg
    from celery import Celery

T = TypeVar("T")


class Lag:
    """How far the workers may lag behind, and that it was looked at a moment ago."""

    FRESH = 1.0

    def __init__(self, most: float | None, when: str, timeout: float) -> None:
        self.most, self.when, self.timeout = most, when, timeout
        self._good: dict[Lane, float] = {}

    def checked(self, lane: Lane) -> bool:
        return time.monotonic() - self._good.get(lane, -self.FRESH) < self.FRESH

    def note(self, lane: Lane) -> None:
        self._good[lane] = time.monotonic()


class Database:
    """One connection in autocommit, made when it is first needed, made anew after it broke."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._open: psycopg.Connection[Any] | None = None

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Any]]:
        import psycopg

        with self._lock:
            try:
                if self._open is None or self._open.closed:
                    self._open = psycopg.connect(self._url, autocommit=True, connect_timeout=2)
                yield self._open
            except psycopg.errors.UndefinedTable:
                raise ClientError("the database was never migrated; run `mandua migrate`") from None
            except psycopg.errors.UndefinedFunction:
                raise ClientError("the database was never migrated; run `mandua migrate`") from None
            except psycopg.OperationalError as error:
                if self._open is not None:
                    self._open.close()  # a statement that was given up leaves its connection open
                    self._open = None
                raise ClientError(f"the database does not answer: {str(error).strip().splitlines()[0]}") from None

    def close(self) -> None:
        with self._lock:
            if self._open is not None:
                self._open.close()
                self._open = None


# Retries of the connection itself, beside those of the publish.
_RECONNECT = {"max_retries": 1, "interval_start": 0, "interval_step": 0.1, "interval_max": 0.2}
_REDIS = {"socket_connect_timeout": 1, "socket_timeout": 2, **_RECONNECT}
# "Queued" is said once the broker has the message on disk (confirm_publish), within CONFIRM_SECONDS.
_RABBITMQ = {"confirm_publish": True, "read_timeout": 2, "write_timeout": 2, **_RECONNECT}
CONFIRM_SECONDS = 2


def publish_options(broker_url: str) -> dict[str, Any]:
    """What every publish to the broker at ``broker_url`` is given beside its message."""
    if not is_rabbitmq(broker_url):
        return {}
    # A broker short of memory or disk takes no message and says nothing: without a limit a publish waits for ever. One
    # that has lost a queue confirms what it drops, unless the message is mandatory.
    return {"confirm_timeout": CONFIRM_SECONDS, "mandatory": True}


@contextmanager
def publishing() -> Iterator[None]:
    """Around a publish: whatever kombu raises because the broker is not there becomes BrokerDown, without an address.

    The connection needs no care: a producer that ends with an exception takes its connection out of the pool.
    """
    from amqp.exceptions import AMQPError
    from kombu.exceptions import OperationalError

    try:
        yield
    except (OperationalError, AMQPError, OSError) as error:
        raise BrokerDown(f"the broker does not answer ({type(error).__name__}); nothing was sent") from None
    except AttributeError as error:
        if not _in_kombu(error):
            raise
        # An outage closed its channel under the publish, which has no connection any more.
        raise BrokerDown("the broker's connection was lost; nothing was sent") from None


def _in_kombu(error: BaseException) -> bool:
    """Whether it came up in kombu's own code."""
    *_, (frame, _line) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__", "")).startswith("kombu.")


# Celery puts another module in its own place while it is imported, past Python's import lock: of two threads that made
# their first client at once, one found a celery without Celery.
_importing = threading.Lock()


def celery_app(broker_url: str) -> Celery:
    """A Celery app that only publishes. Safe to call from several threads."""
    with _importing:
        from celery import Celery  # here, so that importing the producer stays light

        return _celery_app(Celery, broker_url)


def _celery_app(kind: type[Celery], broker_url: str) -> Celery:
    app = kind("mandua-producer", broker=broker_url, set_as_current=False)
    app.conf.update(
        task_queues=declared_queues(broker_url),
        task_create_missing_queues=False,
        task_ignore_result=True,
        task_serializer="json",
        accept_content=["json"],
        # A chat backend must fail fast: two short retries, and no connect longer than a second.
        task_publish_retry=True,
        task_publish_retry_policy={"max_retries": 2, "interval_start": 0.1, "interval_step": 0.2, "interval_max": 0.3},
        broker_connection_timeout=1,
        broker_connection_retry=False,
        broker_transport_options=_RABBITMQ if is_rabbitmq(broker_url) else _REDIS,
        broker_use_ssl=tls_options(broker_url),
    )
    return app


def poll(look: Callable[[], T | None], timeout: float) -> T | None:
    """Ask ``look`` until it answers, at growing intervals of 20 to 250 ms; None after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    pause = 0.02
    while True:
        found = look()
        if found is not None:
            return found
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        time.sleep(min(pause, left))
        pause = min(pause * 1.3, 0.25)
