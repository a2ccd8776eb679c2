"""What can be asked of the broker: whether it answers, how long its queues are, how it is set up."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from producer.connections import publishing
from producer.errors import BrokerDown
from producer.queues import DEAD_LETTERS, QueueName, TaskName, declared_queues, is_rabbitmq

AGENTS_WOKEN = 1_000


class Broker:
    """A broker by its address: Redis, or what speaks like it, and RabbitMQ."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_rabbitmq = is_rabbitmq(url)
        self.is_redis = url.startswith(("redis://", "rediss://", "valkey://", "unix://", "redis+socket://"))

    def error(self) -> str | None:
        """None if it answers, else one line. Takes two seconds at most."""
        from kombu.connection import Connection
        from kombu.exceptions import OperationalError as KombuError

        options = {"socket_connect_timeout": 1, "socket_timeout": 2, "max_retries": 1}
        try:
            with Connection(  # type: ignore[no-untyped-call]
                self.url, connect_timeout=1, transport_options=options if self.is_redis else None
            ) as connection:
                connection.ensure_connection(max_retries=1, interval_start=0.1, timeout=2)
        except (KombuError, OSError, KeyError, ValueError) as error:
            return f"does not answer ({type(error).__name__})"
        return None

    def state(self) -> dict[str, Any]:
        """``broker``: ok, or why not; ``queues``: messages by queue, None where they cannot be counted."""
        error = self.error()
        return {"broker": error or "ok", "queues": None if error else self.queues()}

    def queues(self) -> dict[str, int] | None:
        """Messages that wait, by queue; None where the broker cannot say. RabbitMQ's dead letters stand among them."""
        if self.is_rabbitmq:
            return {name: self._passively(name) for name in (*(name.value for name in QueueName), DEAD_LETTERS)}
        if not self.is_redis:
            return None
        with self._redis() as client:
            return {name.value: int(client.llen(name.value)) for name in QueueName}

    def _passively(self, name: str) -> int:
        """How many messages wait in a queue of RabbitMQ; 0 for one that nobody has declared yet."""
        from amqp.exceptions import NotFound

        with self._rabbitmq() as connection:  # one each: a queue that is not there costs the channel
            try:
                return int(connection.default_channel.queue_declare(queue=name, passive=True).message_count)
            except NotFound:
                return 0

    def strange_queues(self) -> list[str]:
        """Queues of RabbitMQ that stand there as other ones than ours; no worker can use them. Declares the rest."""
        from amqp.exceptions import PreconditionFailed

        strange = []
        for queue in declared_queues(self.url) if self.is_rabbitmq else ():
            with self._rabbitmq() as connection:
                try:
                    queue.bind(connection.default_channel).declare()  # type: ignore[no-untyped-call]
                except PreconditionFailed:
                    strange.append(str(queue.name))
        return strange

    @contextlib.contextmanager
    def _rabbitmq(self) -> Any:
        from kombu.connection import Connection

        options = {"read_timeout": 2, "write_timeout": 2}
        with Connection(self.url, connect_timeout=1, transport_options=options) as connection:  # type: ignore[no-untyped-call]
            yield connection

    def settings(self) -> dict[str, str] | None:
        """``maxmemory-policy`` and ``appendonly``; None where they cannot be read (hosted ones often refuse)."""
        import redis

        if not self.is_redis:
            return None
        found: dict[str, str] = {}
        try:
            with self._redis() as client:
                for name in ("maxmemory-policy", "appendonly"):
                    found |= client.config_get(name)
        except redis.RedisError:
            return None
        return found

    def time(self) -> float | None:
        """The broker's clock, in seconds since 1970; None where it is not Redis or does not say."""
        import redis

        if not self.is_redis:
            return None
        try:
            with self._redis() as client:
                seconds, micros = client.time()
        except redis.RedisError:
            return None
        return float(seconds) + float(micros) / 1e6

    def wake(self, agents: Sequence[str]) -> bool:
        """Ask the workers to look at ``agents``, the first thousand of them; the sweeper finds the others by itself.

        False if the broker does not answer.
        """
        from celery import Celery

        if self.error():
            return False
        app = Celery("mandua-cli", broker=self.url, set_as_current=False)
        app.conf.update(
            task_queues=declared_queues(self.url), task_create_missing_queues=False, task_ignore_result=True
        )
        try:
            with publishing(), app.producer_or_acquire() as producer:
                for agent_id in agents[:AGENTS_WOKEN]:
                    app.send_task(
                        TaskName.DISPATCH.value, args=(agent_id,), queue=QueueName.TURNS.value, producer=producer
                    )
        except BrokerDown:
            return False
        finally:
            app.close()
        return True

    @contextlib.contextmanager
    def _redis(self) -> Any:
        import redis

        client = redis.Redis.from_url(self.url, socket_connect_timeout=1, socket_timeout=2, decode_responses=True)
        try:
            yield client
        finally:
            client.close()
