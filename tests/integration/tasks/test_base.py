"""Wake-ups as a worker publishes them, in a process of its own: the worker's app is that of its environment."""

import os
import subprocess
import sys

import redis

LOSES_ITS_CHANNEL = """
from producer.errors import BrokerDown
from worker.app import app
from worker.tasks.base import send_dispatch

send_dispatch("first")
with app.producer_pool.acquire(block=True) as producer:
    channel = producer.channel
    channel.connection = channel._pool = None
try:
    send_dispatch("lost")
except BrokerDown as error:
    print(error)
send_dispatch("next")
"""


def test_a_channel_that_an_outage_closed_is_a_broker_that_is_down_for_a_worker_too(broker_url: str):
    ended = subprocess.run(
        [sys.executable, "-c", LOSES_ITS_CHANNEL],
        env={**os.environ, "MANDUA_BROKER_URL": broker_url},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ended.stdout.strip() == "the broker's connection was lost; nothing was sent"
    with redis.Redis.from_url(broker_url) as client:
        assert client.llen("turns") == 2
