"""kombu's transport for Redis with one client a channel: kombu makes one for each publish and each acknowledgement.

With the current redis-py making a client costs as much as sending the command does (4% of a busy worker's time). The
connections are the same pool's as before.
"""

from __future__ import annotations

from typing import Any

from kombu.transport import redis

ADDRESS = f"{__name__}:Transport"


class Channel(redis.Channel):
    """A channel whose blocking client lives as long as its pool."""

    _blocking: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[no-untyped-call]
        if self._blocking is None or self._blocking.connection_pool is not self.pool:
            self._blocking = super()._create_client()  # type: ignore[no-untyped-call]
        return self._blocking


class Transport(redis.Transport):
    """What ``redis://`` and ``rediss://`` mean in a worker."""

    Channel = Channel
