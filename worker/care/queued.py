"""Messages that lie in the broker and were never recorded: what is to be forgotten is taken out of there as well."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from producer.queues import RECORD_QUEUE, TaskName
from worker.care.forgotten_names import folded, python_pattern

UNACKED = "unacked"  # kombu's own: what a worker has taken and not finished
A_BATCH = 500


def take_queued(client: Any, agent_id: str, named: str | None, events: Sequence[UUID]) -> list[UUID]:
    """Take messages of an agent out of a Redis broker: all (``named`` None), or those that match ``named`` or are one
    of ``events``. Returns their event ids. ``client`` is a redis client that decodes. One that a worker records at this
    moment is recorded, or found forgotten, by its event's id.
    """
    matches = None if named is None else python_pattern(named)
    wanted = {str(event) for event in events}
    taken: list[UUID] = []

    def due(envelope: dict[str, Any]) -> bool:
        request = envelope["request"]
        if request["agent_id"] != agent_id:
            return False
        if matches is None or envelope["event_id"] in wanted:
            return True
        said = [request["message"], request["speaker_name"], *request.get("recent_messages", ()),
                *request.get("speaker_aliases", ())]  # fmt: skip
        return any(matches.search(folded(words)) for words in said)

    for queue in sorted({name.value for name in RECORD_QUEUE.values()}):
        for raw in list(_items(client, queue)):
            envelope = _envelope(raw)
            if envelope is not None and due(envelope):
                client.lrem(queue, 0, raw)
                taken.append(UUID(envelope["event_id"]))
    for tag, raw in list(client.hscan_iter(UNACKED)):
        envelope = _envelope(json.dumps(json.loads(raw)[0]))
        if envelope is not None and due(envelope):
            client.hdel(UNACKED, tag)
            taken.append(UUID(envelope["event_id"]))
    return taken


def _items(client: Any, queue: str) -> Iterator[str]:
    for start in range(0, int(client.llen(queue)), A_BATCH):
        yield from client.lrange(queue, start, start + A_BATCH - 1)


def _envelope(raw: str) -> dict[str, Any] | None:
    """The envelope that a queued ``record_event`` carries; None for any other task."""
    message = json.loads(raw)
    if message.get("headers", {}).get("task") != TaskName.RECORD_EVENT.value:
        return None
    arguments = json.loads(base64.b64decode(message["body"]))[0]
    return dict(arguments[0])
