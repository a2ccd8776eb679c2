"""The Celery app. ``celery -A worker.app worker|beat|flower|inspect`` do what any Celery user expects.

Each unusual setting stands with its reason. Booleans are settled (they were tried against kills and outages); numbers
are judgement, to be tuned by measurement.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from typing import Any

# One BLAS thread a task: sixteen tasks with a pool of BLAS threads each fight for the same cores.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

from amqp.exceptions import AMQPError  # noqa: E402
from celery import Celery, signals  # noqa: E402
from kombu.exceptions import OperationalError as KombuError  # noqa: E402

from producer.queues import QueueName, TaskName, dead_letter_queue, declared_queues, is_rabbitmq, tls_options  # noqa: E402
from worker import logs  # noqa: E402
from worker.celery_events import GatheredEvents  # noqa: E402
from worker.settings import settings  # noqa: E402

# With many threads on a full core the default of 5 ms turned SQL round trips of 4 ms into seconds.
sys.setswitchinterval(0.0005)

CLEAN_UP_SECONDS = 600.0

_broker = settings().broker_url
_broker_url = _broker.get_secret_value() if _broker else "redis://localhost:6379/0"

REDIS = {
    # Above time limit and countdown together: shorter, Redis delivers a running task a second time.
    "visibility_timeout": 300,
    # The default looks for unacknowledged messages about every 100 s.
    "unacked_restore_interval": 10,
    "unacked_restore_throttle": 1,
    # "sorted" is alphabetical (bulk before live), the default alternates.
    "queue_order_strategy": "priority",
    # By default a publish can hang for ever.
    "socket_timeout": 15,
    "socket_connect_timeout": 5,
    "socket_keepalive": True,
}
RABBITMQ = {
    # A publish returns when the message is on disk; without it a crash of the broker loses what was sent and more.
    "confirm_publish": True,
    # By default a write to a broker that stands still hangs for ever. No limit on reading: a consumer waits for work.
    "write_timeout": 15,
}

app = Celery("mandua", broker=_broker_url)
app.conf.update(
    include=["worker.tasks.record", "worker.tasks.turns", "worker.tasks.stages", "worker.tasks.maintenance"],
    # A killed child redelivers at once; the run's own counter of starts bounds it.
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    # False would lose work (failure) or loop (timeout): a stage that gives up has stored its cause before it raises.
    task_acks_on_failure=True,
    task_acks_on_timeout=True,
    # The truth is in Postgres; nothing may grow in the broker.
    task_ignore_result=True,
    result_backend=None,
    # Fairness: no process sits on tasks that another could take.
    worker_prefetch_multiplier=1,
    # Only prefork enforces them; on threads every outside call has a deadline of its own.
    task_soft_time_limit=90,
    task_time_limit=120,
    # A typo in a queue's name must fail, not make a queue that nobody serves.
    task_queues=declared_queues(_broker_url),
    task_create_missing_queues=False,
    task_default_queue=QueueName.TURNS.value,
    task_routes={
        TaskName.RECORD_EVENT: {"queue": QueueName.RECORD},
        TaskName.DISPATCH: {"queue": QueueName.TURNS},
        TaskName.SWEEP: {"queue": QueueName.TURNS},
        TaskName.DRY_RUN: {"queue": QueueName.LIVE},
        TaskName.CLEAN_UP: {"queue": QueueName.MAINTENANCE},
        TaskName.PLAN_JOBS: {"queue": QueueName.MAINTENANCE},
    },
    broker_transport_options=RABBITMQ if is_rabbitmq(_broker_url) else REDIS,
    broker_use_ssl=tls_options(_broker_url),
    visibility_timeout=300,
    # RabbitMQ: quorum queues know no global prefetch, and countdowns go through the broker's own delayed queues instead
    # of waiting in a worker.
    worker_detect_quorum_queues=True,
    broker_native_delayed_delivery_queue_type="quorum",
    broker_heartbeat=30,  # a connection that died without a word is noticed; the default takes two minutes
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,  # the default gives up after 100
    task_publish_retry=True,
    task_publish_retry_policy={"max_retries": 3, "interval_start": 0.1, "interval_step": 0.2, "interval_max": 0.5},
    # Let a paid model call finish; what it writes is fenced.
    worker_cancel_long_running_tasks_on_connection_loss=False,
    # Prefork only: SIGQUIT (REMAP_SIGTERM) drains for so long. On threads SIGTERM waits for running tasks.
    worker_soft_shutdown_timeout=30.0,
    worker_enable_soft_shutdown_on_idle=True,
    worker_eta_task_limit=1000,  # an outage must not fill memory with countdowns
    worker_max_memory_per_child=1_500_000,  # prefork's net under a native leak, in KiB
    # Flower needs these two; sent events would make one metric series per producer process.
    worker_send_task_events=True,
    task_track_started=True,
    task_send_sent_event=False,
    accept_content=["json"],  # no pickle
    task_serializer="json",
    worker_hijack_root_logger=False,  # structlog owns logging
    beat_scheduler="celery.beat:Scheduler",  # what is due is decided in SQL, so no schedule file has to survive
    beat_schedule={
        "sweep": {
            "task": TaskName.SWEEP.value,
            "schedule": settings().sweep_sec,
            "options": {"expires": settings().sweep_sec, "queue": QueueName.TURNS.value},
        },
        "clean_up": {
            "task": TaskName.CLEAN_UP.value,
            "schedule": CLEAN_UP_SECONDS,
            "options": {"expires": CLEAN_UP_SECONDS, "queue": QueueName.MAINTENANCE.value},
        },
        "plan_jobs": {
            "task": TaskName.PLAN_JOBS.value,
            "schedule": settings().job_plan_sec,
            "options": {"expires": settings().job_plan_sec, "queue": QueueName.MAINTENANCE.value},
        },
    },
    enable_utc=True,
    timezone="UTC",
)


app.steps["consumer"].add(GatheredEvents)


@signals.setup_logging.connect
def _set_up_logging(**_: Any) -> None:
    logs.set_up(settings().log_level)


@signals.worker_init.connect
def _refuse_a_wrong_database(**_: Any) -> None:
    """A worker that cannot use its database says so in one line and ends, before it takes a message."""
    from worker import schema
    from worker.settings import SettingsError

    try:
        schema.check(settings().require_database_url(), settings().embedding_dimensions)
    except (SettingsError, schema.SchemaError) as error:
        print(f"mandua worker: {error}", file=sys.stderr)
        raise SystemExit(1) from None


@signals.worker_ready.connect
def _have_a_place_for_dead_letters(**_: Any) -> None:
    """RabbitMQ drops what it cannot deliver to a dead-letter exchange that has no queue."""
    if not is_rabbitmq(_broker_url):
        return
    try:
        with app.connection_for_write() as connection:
            dead_letter_queue().bind(connection.default_channel).declare()  # type: ignore[no-untyped-call]
    except (KombuError, AMQPError, OSError) as error:
        print(f"mandua worker: dead letters have no queue ({type(error).__name__})", file=sys.stderr)


@signals.worker_ready.connect
def _be_seen(**_: Any) -> None:
    """Show the first life sign at once, so that `mandua status` counts an idle worker too."""
    from worker.turns.life import worker_name

    worker_name()


@signals.worker_ready.connect
def _warm_up_threads(sender: Any = None, **_: Any) -> None:
    if type(getattr(sender, "pool", None)).__module__ == "celery.concurrency.thread":
        _warm_up()


@signals.worker_process_init.connect  # a child of prefork
def _warm_up(**_: Any) -> None:
    """A hosted model's library takes three seconds to import: from now on, beside the first messages' recording."""
    threading.Thread(target=_import_and_freeze, name="warm-up", daemon=True).start()


def _import_and_freeze() -> None:
    from worker.models_in_use import warm_up

    warm_up()
    # Half a million objects of imported code will live as long as the process: to look through them took the collector
    # 0.2 s each time. A message makes some thousands of objects; by the default it looks after each 700.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


@signals.worker_shutdown.connect
@signals.worker_process_shutdown.connect
def _leave(**_: Any) -> None:
    from worker.turns.life import leave

    leave()
