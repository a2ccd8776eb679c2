"""MemoryClient on RabbitMQ: what its queues are, what they survive, what they cannot, and that resend heals that."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from kombu import Connection
from sqlalchemy import Engine, text

from producer import MemoryClient, WriteRequest
from producer.queues import DEAD_LETTERS, DELIVERY_LIMIT, HIDDEN_ARGUMENTS, QueueName, dead_letter_queue
from tests import rabbitmq
from tests.rabbitmq import RabbitMQ
from worker.cli.broker import Broker
from worker.cli.doctor import _rabbitmq as looked_at
from worker.turns.recording import record

pytestmark = pytest.mark.skipif(not rabbitmq.URL, reason=rabbitmq.WHY_NOT)


@pytest.fixture
def broker() -> Iterator[RabbitMQ]:
    with rabbitmq.my_turn(rabbitmq.URL) as mine:
        yield mine


@pytest.fixture
def requests() -> list[WriteRequest]:
    return [
        WriteRequest(agent_id="a", message=f"m{number}", speaker_name="R", message_id=f"{number}")
        for number in range(5)
    ]


def record_all(broker: RabbitMQ, queue: str = "bulk") -> int:
    """What a worker would do with a queue's messages; how many there were."""
    taken = broker.take(queue)
    for message in taken:
        (envelope,) = json.loads(message.body)[0]
        record(envelope)
    return len(taken)


def events(database: Engine) -> int:
    with database.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM memory_events")).scalar_one())


def test_a_message_is_confirmed_into_its_lanes_queue_with_its_arguments_masked(broker: RabbitMQ):
    with MemoryClient(broker.url) as client:
        assert client.enqueue("a", "a secret", "Rafael").status == "queued"
        client.enqueue("a", "old history", "Rafael", bulk=True)
    assert broker.lengths() == {**dict.fromkeys(QueueName, 0), "record": 1, "bulk": 1, DEAD_LETTERS: 0}
    (message,) = broker.take("record")
    headers = message.properties["application_headers"]
    assert headers["argsrepr"] == HIDDEN_ARGUMENTS
    assert "secret" not in str(headers)
    assert message.properties["delivery_mode"] == 2, "kept on disk"


@pytest.mark.skipif(not rabbitmq.FOLDER, reason=rabbitmq.WHY_NOT_KILLED)
def test_what_was_confirmed_survives_a_kill_9_of_the_broker(
    broker: RabbitMQ, database: Engine, database_url: str, requests: list[WriteRequest]
):
    with MemoryClient(broker.url, database_url) as client:
        handles = client.enqueue_many(requests)
        broker.kill()
        broker.start()
        broker.wait_for("bulk", len(requests))  # its queues come back after its port
        assert record_all(broker) == len(requests)
        assert all(handle.accepted(5) for handle in handles)


def test_resend_heals_what_a_broker_lost(
    broker: RabbitMQ, database: Engine, database_url: str, requests: list[WriteRequest]
):
    """The negative control comes first: a broker whose disk is lost before a worker has recorded loses the message."""
    with MemoryClient(broker.url, database_url) as client:
        handles = client.enqueue_many(requests)
        broker.forget_all()
        assert [handle.accepted(0.02) for handle in handles] == [False] * 5

    with MemoryClient(broker.url, database_url) as client:

        def lose_then_record() -> None:
            broker.wait_for("bulk", len(requests))
            broker.take("bulk")  # the first sending is lost as well
            broker.wait_for("bulk")
            while events(database) < len(requests):
                record_all(broker)

        worker = threading.Thread(target=lose_then_record)
        worker.start()
        healed = client.enqueue_many(requests, resend=True, timeout=30)
        worker.join()
    assert {handle.status for handle in healed} == {"accepted"}
    assert events(database) == 5


def test_a_message_that_is_always_given_back_ends_among_the_dead_letters_and_a_wake_up_is_dropped(broker: RabbitMQ):
    with Connection(broker.url) as connection:
        dead_letter_queue().bind(connection.default_channel).declare()
    with MemoryClient(broker.url) as client:
        client.enqueue("a", "moro em Natal", "Rafael")
    with Connection(broker.url) as connection:
        for _ in range(DELIVERY_LIMIT + 1):
            message = None
            while message is None:
                message = connection.default_channel.basic_get("record")
            connection.default_channel.basic_reject(message.delivery_tag, requeue=True)
    broker.wait_for(DEAD_LETTERS)
    assert broker.lengths()["record"] == 0
    assert [(check.name, check.state) for check in looked_at(Broker(broker.url))] == [
        ("queues", "ok"), ("dead letters", "warning"),
    ]  # fmt: skip


def test_a_queue_that_stands_there_as_another_one_is_found(broker: RabbitMQ):
    with Connection(broker.url) as connection:
        connection.default_channel.queue_declare("live", durable=True, auto_delete=False)
    assert Broker(broker.url).strange_queues() == ["live"]
    assert [check.state for check in looked_at(Broker(broker.url))] == ["broken", "ok"]
    assert Broker(broker.url).state()["broker"] == "ok"


def test_status_counts_queues_that_nobody_has_declared_as_empty(broker: RabbitMQ):
    assert Broker(broker.url).state() == {
        "broker": "ok", "queues": {**dict.fromkeys((name.value for name in QueueName), 0), DEAD_LETTERS: 0},
    }  # fmt: skip
