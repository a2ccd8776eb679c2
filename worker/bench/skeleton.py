"""A bare Celery app to hold mandua's against: five empty tasks and nine tiny transactions a message.

Same broker, Postgres, processes, threads and settings of delivery as ``worker.app``; Celery as it comes, nothing of
mandua's. What it makes in the same run is what this machine has to give.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import psycopg
from celery import Celery, chain, signals
from sqlalchemy import text

from producer.connections import poll
from worker.bench.scene import PATIENCE, Scene
from worker.db import engine
from worker.local.errors import LocalStackError

QUEUE = "skeleton"
TRANSACTIONS = 9

MAKE = "CREATE TABLE skeleton (id integer PRIMARY KEY, steps integer NOT NULL)"
# Invariant: each execution is a transaction of its own.
BEGIN = "INSERT INTO skeleton VALUES (:id, 1) ON CONFLICT (id) DO NOTHING"
STEP = "UPDATE skeleton SET steps = steps + 1 WHERE id = :id"
DONE = "SELECT count(*) FROM skeleton WHERE steps = %s"

app = Celery("skeleton", broker=os.environ.get("MANDUA_BROKER_URL", "redis://localhost:6379/0"))
app.conf.update(
    task_acks_late=True, task_reject_on_worker_lost=True, task_ignore_result=True, worker_prefetch_multiplier=1,
    task_soft_time_limit=90, task_time_limit=120, task_default_queue=QUEUE,
    broker_transport_options={"visibility_timeout": 300, "queue_order_strategy": "priority", "socket_timeout": 15,
                              "socket_connect_timeout": 5, "socket_keepalive": True},
    broker_connection_retry_on_startup=True, worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_send_task_events=True, task_track_started=True, accept_content=["json"], task_serializer="json",
)  # fmt: skip


@signals.worker_init.connect
def _set_up(**_: Any) -> None:
    sys.setswitchinterval(0.0005)  # as worker.app has it


def _execute(statement: str, number: int) -> None:
    """Run ``statement`` in a transaction, by the worker's own engine and pool."""
    with engine().begin() as connection:
        connection.execute(text(statement), {"id": number})


@signals.worker_ready.connect
def _tell(**_: Any) -> None:
    print("skeleton ready", flush=True)  # Celery says so in its log, from INFO on only


@app.task(name="skeleton.record")
def record(number: int) -> None:
    """One transaction, as a message is recorded."""
    _execute(BEGIN, number)


@app.task(name="skeleton.stage")
def stage(number: int, wait: float) -> None:
    """Two transactions, as a stage begins and ends."""
    _execute(STEP, number)
    time.sleep(wait)
    _execute(STEP, number)


def bare_celery(scene: Scene, *, messages: int, slots: int, latency: float = 0.0) -> float:
    """Messages a second that two worker processes of ``slots`` threads make of ``messages`` handed in at once.

    ``latency``: seconds that two of the five tasks wait, as a stage waits for a model; 0: all are empty.
    """
    scene.fresh(migrated=False)
    scene.say(f"throughput: a bare Celery chain, {messages} messages, {latency} s in two of five tasks")
    with psycopg.connect(scene.database_url, autocommit=True) as connection:
        connection.execute(MAKE)
    app.conf.broker_url = scene.valkey.url
    waits = (latency, 0.0, latency, 0.0)  # extract, resolve, reconcile, upsert
    shapes = [(slots, QUEUE)] * 2
    with scene.workers(scene.environment(), *shapes, app="worker.bench.skeleton"):
        began = time.monotonic()
        for number in range(messages):
            chain(record.si(number), *[stage.si(number, wait) for wait in waits], app=app).apply_async()
        if poll(lambda: scene.value(DONE, TRANSACTIONS) == messages or None, PATIENCE) is None:
            raise LocalStackError(f"the skeleton did not end within {PATIENCE:.0f} s")
        return messages / (time.monotonic() - began)
