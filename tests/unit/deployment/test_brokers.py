"""What the app and the queues are on either broker; no broker is needed to see it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from kombu.transport.native_delayed_delivery import calculate_routing_key

from producer.connections import publish_options
from producer.queues import DEAD_LETTERS, RECORD_QUEUE, QueueName, declared_queues, is_rabbitmq
from worker.app import RABBITMQ, REDIS

AMQP = "amqp://user:password@127.0.0.1:1//"
ASKED = """
import json
from worker.app import app
from celery.utils.quorum_queues import detect_quorum_queues
conf = app.conf
quorum = detect_quorum_queues(app, "amqp")[0]
print(json.dumps([conf.broker_transport_options, quorum, conf.worker_detect_quorum_queues]))
"""


@pytest.mark.parametrize(
    ("url", "rabbitmq"),
    [(AMQP, True), ("amqps://h//", True), ("pyamqp://h", True), ("redis://h/0", False), ("rediss://h", False)],
)
def test_which_broker_an_address_means(url: str, rabbitmq: bool):
    assert is_rabbitmq(url) is rabbitmq


def test_both_brokers_have_the_same_queues_in_the_same_order():
    names = [name.value for name in QueueName]
    assert [queue.name for queue in declared_queues("redis://h/0")] == names
    assert [queue.name for queue in declared_queues(AMQP)] == names


def test_rabbitmqs_are_quorum_queues_on_a_topic_exchange_and_only_messages_have_dead_letters():
    queues = declared_queues(AMQP)
    assert {queue.exchange.type for queue in queues} == {"topic"}, "on a direct one a countdown blocks the worker"
    assert {queue.queue_arguments["x-queue-type"] for queue in queues} == {"quorum"}
    dead = {queue.name for queue in queues if queue.queue_arguments.get("x-dead-letter-exchange") == DEAD_LETTERS}
    assert dead == {name.value for name in RECORD_QUEUE.values()}


@pytest.mark.parametrize(("url", "options", "quorum"), [("redis://h/0", REDIS, False), (AMQP, RABBITMQ, True)])
def test_a_worker_takes_the_settings_of_its_broker(url: str, options: dict, quorum: bool):
    environment = {"MANDUA_BROKER_URL": url, "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path)}
    told = subprocess.run([sys.executable, "-c", ASKED], env=environment, check=True, capture_output=True, text=True)
    assert json.loads(told.stdout) == [options, quorum, True]


def test_a_publish_to_rabbitmq_is_confirmed_in_time_or_fails():
    assert publish_options(AMQP) == {"confirm_timeout": 2, "mandatory": True}
    assert publish_options("redis://h/0") == {}
    assert RABBITMQ["confirm_publish"] is True


def test_rabbitmq_knows_no_wait_below_a_second():
    """Why a dispatch's countdown is rounded up there."""
    with pytest.raises(ValueError, match="positive"):
        calculate_routing_key(int(0.4), "turns")
