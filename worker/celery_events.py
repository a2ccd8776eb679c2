"""Celery's events of tasks (what Flower shows), sent a tenth of a second's worth at a time.

Celery buffers them and sends the buffer in the next round of its loop, which is nearly one by one: three events of each
of a message's five tasks, and a publish of each, took 7% of a busy worker's time.
"""

from __future__ import annotations

import sys
from typing import Any

from celery import bootsteps

SECONDS = 0.1


class GatheredEvents(bootsteps.StartStopStep):  # type: ignore[misc]
    """A consumer's step: its dispatcher's buffer is sent by the loop's clock, and by nothing else.

    Celery has the thread that fills the buffer send it. On RabbitMQ that thread then waits for a confirmation which the
    loop reads from the same connection, and both stand still.
    """

    requires = ("celery.worker.consumer.events:Events",)

    def __init__(self, consumer: Any, **options: Any) -> None:
        self._timer: Any = None
        self._limit = 0
        super().__init__(consumer, **options)

    def start(self, consumer: Any) -> None:
        """Begin; also after each new connection, which has a dispatcher of its own."""
        dispatcher = consumer.event_dispatcher
        if consumer.hub is None or dispatcher is None or not dispatcher.enabled:
            return
        dispatcher.on_send_buffered = None
        self._limit, dispatcher.buffer_limit = dispatcher.buffer_limit, sys.maxsize
        self._timer = consumer.hub.call_repeatedly(SECONDS, self._send, consumer)

    def stop(self, consumer: Any) -> None:
        """End: what comes while running tasks end goes Celery's own way. What is left is sent, but not where the
        connection was lost, for trying would put off the next one."""
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        if consumer.event_dispatcher is not None:
            consumer.event_dispatcher.on_send_buffered = consumer.on_send_event_buffered
            consumer.event_dispatcher.buffer_limit = self._limit
        if consumer.blueprint.state != bootsteps.RUN:
            self._send(consumer)

    @staticmethod
    def _send(consumer: Any) -> None:
        if consumer.event_dispatcher is not None:
            consumer.event_dispatcher.flush()
