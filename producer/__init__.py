"""mandua's producer: hand messages in, ask what became of them.

>>> from producer import MemoryClient
>>> client = MemoryClient("redis://localhost:6379/0")          # doctest: +SKIP
>>> handle = client.enqueue("user-123", "I live in Curitiba", "Rafael")   # doctest: +SKIP
"""

from producer.client import Handle, MemoryClient
from producer.contract import ConflictError, MemoryConfig, RequestError, WriteRequest, WriteResult
from producer.errors import BrokerDown, ClientError, StillRunning, TooBusy
from producer.queues import Lane

__all__ = [
    "BrokerDown",
    "ClientError",
    "ConflictError",
    "Handle",
    "Lane",
    "MemoryClient",
    "MemoryConfig",
    "RequestError",
    "StillRunning",
    "TooBusy",
    "WriteRequest",
    "WriteResult",
]
