"""worker.celery_events: what Flower is told comes gathered, and whole."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery, bootsteps
from kombu import Consumer, Exchange, Queue
from kombu.asynchronous import Hub

from worker.celery_events import GatheredEvents


@pytest.fixture
def consumer() -> Iterator[Any]:
    """As much of a Celery consumer as a step sees: its loop, and its dispatcher on a broker in memory."""
    app = Celery(broker="memory://")
    with app.connection() as connection:
        hub = Hub()
        made = SimpleNamespace(hub=hub, told=[], on_send_event_buffered=lambda: made.told.append("at once"))
        made.blueprint = SimpleNamespace(state=bootsteps.RUN)
        made.event_dispatcher = app.events.Dispatcher(
            connection, buffer_group=["task"], on_send_buffered=made.on_send_event_buffered
        )
        queue = Queue("seen", Exchange(app.conf.event_exchange, type="topic"), routing_key="#")
        made.received = []
        with Consumer(connection, [queue], on_message=lambda message: made.received.append(message.decode())):
            made.look = lambda: [connection.drain_events(timeout=0.1) for _ in range(10)]
            yield made
        hub.close()


def received(consumer: Any) -> list[list[str]]:
    """The events of each message that came."""
    with pytest.raises(TimeoutError):
        consumer.look()
    return [[event["uuid"] for event in message] for message in consumer.received]


def tick(hub: Hub) -> None:
    """What the loop does when the timer is due."""
    for scheduled in list(hub.timer.queue):
        scheduled.entry()


def test_events_go_together_when_the_clock_says_so(consumer: Any):
    step = GatheredEvents(consumer)
    step.start(consumer)
    for number in ("1", "2", "3"):
        consumer.event_dispatcher.send("task-received", uuid=number)
    assert received(consumer) == []
    tick(consumer.hub)
    assert received(consumer) == [["1", "2", "3"]]
    assert consumer.told == []


def test_a_consumer_that_ends_sends_what_is_left_and_leaves_the_rest_to_celery(consumer: Any):
    step = GatheredEvents(consumer)
    step.start(consumer)
    consumer.event_dispatcher.send("task-started", uuid="1")
    consumer.blueprint.state = bootsteps.CLOSE
    step.stop(consumer)
    assert received(consumer) == [["1"]]
    consumer.event_dispatcher.send("task-succeeded", uuid="1")
    assert consumer.told == ["at once"]
    assert not [scheduled for scheduled in consumer.hub.timer.queue if not scheduled.entry.canceled]


def test_a_lost_connection_is_not_tried_once_more(consumer: Any):
    step = GatheredEvents(consumer)
    step.start(consumer)
    consumer.event_dispatcher.send("task-started", uuid="1")
    step.stop(consumer)
    assert received(consumer) == []


def test_however_many_there_are_the_loop_alone_sends_them(consumer: Any):
    many = 3 * consumer.event_dispatcher.buffer_limit
    GatheredEvents(consumer).start(consumer)
    for number in range(many):
        consumer.event_dispatcher.send("task-received", uuid=str(number))
    assert received(consumer) == []
    tick(consumer.hub)
    assert [len(message) for message in received(consumer)] == [many]
