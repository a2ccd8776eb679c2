"""The RabbitMQ of the tests, where MANDUA_TEST_AMQP_URL names one (``.ci/rabbitmq`` starts one from a package).

A broker has one set of our queues, so tests take turns at it, over all processes of a run. MANDUA_TEST_AMQP_FOLDER is
the folder that ``.ci/rabbitmq`` was given, so that a test can kill the broker and start it again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from amqp.exceptions import NotFound, PreconditionFailed
from kombu import Connection

from producer.connections import poll
from producer.queues import DEAD_LETTERS, QueueName
from worker.cli.broker import Broker

URL = os.environ.get("MANDUA_TEST_AMQP_URL", "")
FOLDER = os.environ.get("MANDUA_TEST_AMQP_FOLDER", "")
WHY_NOT = "MANDUA_TEST_AMQP_URL names no RabbitMQ; .ci/rabbitmq start FOLDER starts one"
WHY_NOT_KILLED = "MANDUA_TEST_AMQP_FOLDER is not set: the folder of the RabbitMQ that .ci/rabbitmq started"

_SCRIPT = Path(__file__).parents[1] / ".ci" / "rabbitmq"


class RabbitMQ:
    """The broker, empty, for one test at a time."""

    def __init__(self, url: str) -> None:
        self.url = url

    def kill(self) -> None:
        """SIGKILL; returns when it is gone.

        RabbitMQ writes its list of quorum queues every half second; one that is younger would never find its leader
        again. Nothing announces that it was written, hence the one wait for time in these tests.
        """
        time.sleep(2)
        self._control("kill")

    def start(self) -> None:
        """Start it again; returns when it answers."""
        self._control("start")

    def _control(self, action: str) -> None:
        subprocess.run([str(_SCRIPT), action, FOLDER], check=True, stdout=subprocess.DEVNULL, timeout=90)

    def lengths(self) -> dict[str, int]:
        """Messages ready, by queue."""
        return Broker(self.url).queues() or {}

    def take(self, queue: str) -> list[Any]:
        """The messages of a queue, oldest first, taken out of it."""
        taken = []
        with Connection(self.url) as connection:
            while (message := connection.default_channel.basic_get(queue, no_ack=True)) is not None:
                taken.append(message)
        return taken

    def wait_until_left(self, timeout: float = 20.0) -> None:
        """Wait until nobody takes from our queues. Raises TimeoutError: a worker of another run would take ours."""
        if not poll(lambda: not any(self._consumers(name.value) for name in QueueName) or None, timeout):
            raise TimeoutError("a worker that is none of this test's takes from the RabbitMQ of the tests; end it")

    def wait_for(self, queue: str, many: int = 1, timeout: float = 30.0) -> None:
        """Wait until ``many`` messages are ready in ``queue``. Raises TimeoutError."""
        if not poll(lambda: self.lengths().get(queue, 0) >= many or None, timeout):
            raise TimeoutError(f"{queue} has {self.lengths().get(queue)} messages, not {many}")

    def _consumers(self, name: str) -> int:
        with Connection(self.url) as connection:
            try:
                return int(connection.default_channel.queue_declare(name, passive=True).consumer_count)
            except NotFound:
                return 0

    def forget_all(self) -> None:
        """Lose every queue with what is in it: what a broker does whose disk is gone."""
        for name in (*(name.value for name in QueueName), DEAD_LETTERS):
            with Connection(self.url) as connection:
                try:
                    connection.default_channel.queue_delete(name)
                except (NotFound, PreconditionFailed):
                    continue


@contextmanager
def my_turn(url: str) -> Iterator[RabbitMQ]:
    """The broker at ``url``, emptied, nobody else's meanwhile."""
    label = hashlib.sha256(url.encode()).hexdigest()[:12]
    with (Path(tempfile.gettempdir()) / f"mandua-test-amqp-{label}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        broker = RabbitMQ(url)
        broker.wait_until_left()
        broker.forget_all()
        yield broker
