"""Names of queues, lanes and tasks: the one list. Producer, worker, Procfile and tests read it here.

A queue carries only wake-ups (ids), except for ``record_event``, which brings the message itself. State lives in
Postgres; whatever a broker loses, the sweeper finds again.
"""

from __future__ import annotations

import ssl
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from kombu.entity import Queue as KombuQueue



class Lane(IntEnum):
    """Where a run stands among its agent's runs: all live ones first, then bulk, then background jobs."""

    LIVE = 0
    BULK = 1
    JOB = 2


class Stage(StrEnum):
    """The stages of a message. ``record`` makes the event; four more make a run. A job's run has one of its own, gone
    through once a step."""

    RECORD = "record"
    EXTRACT = "extract"
    RESOLVE = "resolve"
    RECONCILE = "reconcile"
    UPSERT = "upsert"
    JOB = "job"


RUN_STAGES = (Stage.EXTRACT, Stage.RESOLVE, Stage.RECONCILE, Stage.UPSERT)


class QueueName(StrEnum):
    """In the order in which a worker takes from them (``queue_order_strategy = "priority"``)."""

    TURNS = "turns"
    RECORD = "record"
    LIVE = "live"
    AHEAD = "ahead"
    MAINTENANCE = "maintenance"
    BULK = "bulk"
    BULK_AHEAD = "bulk_ahead"


class TaskName(StrEnum):
    """Task names as Flower shows them."""

    RECORD_EVENT = "mandua.record_event"
    DISPATCH = "mandua.dispatch"
    EXTRACT = "mandua.extract"
    EXTRACT_AHEAD = "mandua.extract_ahead"
    RESOLVE = "mandua.resolve"
    RECONCILE = "mandua.reconcile"
    UPSERT = "mandua.upsert"
    DRY_RUN = "mandua.dry_run"
    SWEEP = "mandua.sweep"
    CLEAN_UP = "mandua.clean_up"
    PLAN_JOBS = "mandua.plan_jobs"
    JOB_STEP = "mandua.job_step"


STAGE_TASKS = {
    Stage.EXTRACT: TaskName.EXTRACT,
    Stage.RESOLVE: TaskName.RESOLVE,
    Stage.RECONCILE: TaskName.RECONCILE,
    Stage.UPSERT: TaskName.UPSERT,
    Stage.JOB: TaskName.JOB_STEP,
}

STAGE_QUEUE = {Lane.LIVE: QueueName.LIVE, Lane.BULK: QueueName.BULK, Lane.JOB: QueueName.MAINTENANCE}

# Extraction ahead stands behind the turns of its lane: what an agent waits for is never behind what it may need later.
# In one queue a backlog of a hundred agents began with 500 extractions, and nobody's first message was applied before.
AHEAD_QUEUE = {Lane.LIVE: QueueName.AHEAD, Lane.BULK: QueueName.BULK_AHEAD}

# Bulk messages are recorded in the bulk queue: an import's thousands never stand ahead of a chat's next message.
RECORD_QUEUE = {Lane.LIVE: QueueName.RECORD, Lane.BULK: QueueName.BULK}

# What Flower and the logs show in place of a recorded message's arguments.
HIDDEN_ARGUMENTS = "('<message>',)"


# RabbitMQ's own names. Dead letters are messages that were taken and given back DELIVERY_LIMIT times: more than an hour
# of a database that is gone, since a worker keeps a message for a minute before it gives it back.
EXCHANGE = "mandua"
DEAD_LETTERS = "mandua.dead"
DELIVERY_LIMIT = 100


def is_rabbitmq(broker_url: str) -> bool:
    """Whether an address is one of RabbitMQ."""
    return broker_url.startswith(("amqp://", "amqps://", "pyamqp://"))


def tls_options(broker_url: str) -> dict[str, Any] | None:
    """Celery's ``broker_use_ssl`` for the broker at ``broker_url``; None where its address says all there is to say.

    The AMQP client takes any certificate of a known authority for any host, unless it is told the host's name.
    """
    if not broker_url.startswith("amqps://"):
        return None
    return {"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": urlsplit(broker_url).hostname}


def declared_queues(broker_url: str = "") -> list[KombuQueue]:
    """The queues as kombu declares them on the broker at ``broker_url``, in the order of QueueName.

    Whoever declares a queue first decides on its kind and RabbitMQ refuses everybody who disagrees, so producers and
    workers both take it from here.
    """
    from kombu.entity import Exchange  # here, so that importing the producer stays light
    from kombu.entity import Queue as KombuQueue

    if not is_rabbitmq(broker_url):
        return [KombuQueue(name.value, routing_key=name.value) for name in QueueName]  # type: ignore[no-untyped-call]
    # A topic exchange: on a direct one a countdown is waited for by the worker that took it.
    exchange = Exchange(EXCHANGE, type="topic")  # type: ignore[no-untyped-call]
    return [
        KombuQueue(name.value, exchange, routing_key=name.value, queue_arguments=_quorum(name))  # type: ignore[no-untyped-call]
        for name in QueueName
    ]


def _quorum(name: QueueName) -> dict[str, object]:
    """Quorum queues: a confirmed message is on disk, on a majority of the nodes, and survives the broker's SIGKILL."""
    arguments: dict[str, object] = {"x-queue-type": "quorum", "x-delivery-limit": DELIVERY_LIMIT}
    if name in RECORD_QUEUE.values():
        # Only where the message itself travels. A wake-up that is dropped is found by the sweeper.
        arguments["x-dead-letter-exchange"] = DEAD_LETTERS
    return arguments


def dead_letter_queue() -> KombuQueue:
    """Where RabbitMQ puts messages that no worker could record; nothing takes from it but an operator."""
    from kombu.entity import Exchange
    from kombu.entity import Queue as KombuQueue

    exchange = Exchange(DEAD_LETTERS, type="topic")  # type: ignore[no-untyped-call]
    arguments = {"x-queue-type": "quorum"}
    return KombuQueue(DEAD_LETTERS, exchange, routing_key="#", queue_arguments=arguments)  # type: ignore[no-untyped-call]
