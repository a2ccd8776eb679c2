"""worker.redis_transport: one client a channel, a new one where the pool is new."""

from __future__ import annotations

from kombu import Connection

from worker import redis_transport
from worker.app import app


def test_a_channel_keeps_its_client_as_long_as_its_pool(broker_url: str):
    with Connection(broker_url, transport=redis_transport.ADDRESS) as connection:
        channel = connection.default_channel
        with channel.conn_or_acquire() as one, channel.conn_or_acquire() as other:
            assert one is other
            assert one.ping()
        channel._disconnect_pools()
        with channel.conn_or_acquire() as later:
            assert later is not one
            assert later.ping()


def test_the_worker_speaks_to_redis_by_it():
    for address in ("redis://127.0.0.1", "rediss://127.0.0.1"):
        assert issubclass(app.connection(address).get_transport_cls(), redis_transport.Transport)
