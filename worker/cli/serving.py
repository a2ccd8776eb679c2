"""The servers and workers that a command uses: configured, found running, or started for the call."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from worker.cli import console
from worker.cli.errors import CommandError

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from worker.local.processes import ProcessEvent, ProcessRunner
    from worker.local.stack import LocalStack

DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder of the embedded servers' data.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, nothing else.")]

# A worker imports for some seconds; on a busy machine for many.
WORKER_START_TIMEOUT = 90.0


def database_is_embedded() -> bool:
    """Whether no DATABASE_URL is configured, so that the database is our own."""
    return not os.environ.get("DATABASE_URL")


def broker_is_embedded() -> bool:
    """Whether no MANDUA_BROKER_URL is configured, so that the broker is our own."""
    return not os.environ.get("MANDUA_BROKER_URL")


def check_addresses() -> None:
    """Refuse configured addresses that are none, before a library stumbles over them. Raises CommandError."""
    database, broker = os.environ.get("DATABASE_URL", ""), os.environ.get("MANDUA_BROKER_URL", "")
    if database and not re.match(r"postgres(ql)?(\+\w+)?://.", database):
        raise CommandError("DATABASE_URL is not an address like postgresql://user:password@host:5432/name")
    if broker:
        from kombu.transport import TRANSPORT_ALIASES

        if broker.partition("://")[0].partition("+")[0] not in TRANSPORT_ALIASES or "://" not in broker:
            raise CommandError("MANDUA_BROKER_URL is not an address like redis://host:6379/0 or amqp://host")


@contextlib.contextmanager
def servers(data_dir: Path | None, *, need_broker: bool = True) -> Iterator[LocalStack]:
    """The servers while the block runs; an embedded database is brought up to date, a configured one is not.

    Raises CommandError for an address that is none, LocalStackError, SchemaError.
    """
    from worker.local.stack import ensure_stack

    check_addresses()
    with ensure_stack(data_dir, need_broker=need_broker) as stack:
        if database_is_embedded():
            bring_up_to_date(stack.database_url)
        yield stack


def database_at_hand(data_dir: Path | None) -> str | None:
    """The configured database's address, else that of the embedded one if it runs; nothing is started."""
    from worker.local.stack import data_folder, running_address

    check_addresses()
    return os.environ.get("DATABASE_URL") or running_address(data_folder(data_dir) / "postgres")


def bring_up_to_date(database_url: str) -> None:
    """Migrate the database to what this code needs. Raises SchemaError, SettingsError."""
    from worker import schema
    from worker.settings import SettingsError

    try:
        schema.upgrade(database_url)
    except ValueError as error:  # a width that cannot be
        raise SettingsError(str(error)) from None


def check_database(database_url: str) -> None:
    """Refuse what a worker would refuse, before one is started. Raises SchemaError, SettingsError."""
    from worker import schema
    from worker.settings import settings

    schema.check(database_url, settings().embedding_dimensions)


@contextlib.contextmanager
def connection_to(database_url: str) -> Iterator[Connection]:
    """A connection in autocommit, closed at the end. Raises OperationalError when the database does not answer."""
    from worker.db import autocommit, make_engine

    engine = make_engine(database_url, pool_size=1)
    try:
        with autocommit(engine) as connection:
            yield connection
    finally:
        engine.dispose()


def worker_answers(broker_url: str, timeout: float = 1.0) -> bool:
    """Whether a worker answers a ping over the broker within ``timeout`` seconds.

    Asked over the broker and not in the table of life signs: a worker that has not taken a message yet has given
    none, and one that was killed has a fresh one. Raises BrokerDown.
    """
    from celery import Celery
    from kombu.exceptions import OperationalError as KombuError

    from producer.errors import BrokerDown

    app = Celery("mandua-cli", broker=broker_url, set_as_current=False)
    app.conf.update(
        broker_connection_timeout=1,
        broker_connection_retry=False,
        broker_transport_options={"socket_connect_timeout": 1, "socket_timeout": 5, "max_retries": 1},
    )
    try:
        with app.connection_for_write(connect_timeout=1) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0.1, timeout=2)
            return bool(app.control.ping(timeout=timeout, limit=1, connection=connection))
    except (KombuError, OSError) as error:
        raise BrokerDown(f"the broker does not answer ({type(error).__name__})") from None
    finally:
        app.close()


class CallWorkers:
    """A worker and a beat for one call, in the Procfile's words, logging to the data folder."""

    def __init__(self, stack: LocalStack, threads: int = 8) -> None:
        from worker.local.processes import ProcessRunner
        from worker.local.procfile import read_procfile, select

        self._broker_url = stack.broker_url or ""
        self._log_dir = stack.data_dir / "logs"
        self._deaths = 0
        environment = stack.environment()
        environment.setdefault("MANDUA_WORKER_THREADS", str(threads))
        stack.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._runner: ProcessRunner = ProcessRunner(
            select(read_procfile(), ["worker", "beat"]),
            environment,
            cwd=stack.data_dir,
            log_dir=self._log_dir,
            grace=20,
            on_event=self._note,
        )

    def __enter__(self) -> CallWorkers:
        self._runner.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.stop()

    def _note(self, event: ProcessEvent) -> None:
        if event.kind == "ended" and event.name == "worker" and event.delay is not None:
            self._deaths += 1

    def check(self) -> None:
        """Raise CommandError if the worker keeps ending instead of working."""
        if self._deaths >= 3:
            raise CommandError(f"the worker does not stay up; its log is {self._log_dir / 'worker.log'}")

    def wait_ready(self) -> None:
        """Wait until the worker takes tasks. Raises CommandError, BrokerDown."""
        deadline = time.monotonic() + WORKER_START_TIMEOUT
        while not worker_answers(self._broker_url, timeout=0.5):
            self.check()
            if time.monotonic() > deadline:
                raise CommandError(f"the worker does not get ready; its log is {self._log_dir / 'worker.log'}")


@contextlib.contextmanager
def workers(stack: LocalStack) -> Iterator[None]:
    """Workers while the block runs: the running ones; where none runs on an embedded server, some for the call.

    On configured servers none is started: whoever runs those servers runs the workers as well.
    """
    broker_url = stack.broker_url or ""
    ours_alone = broker_is_embedded() and any(server.name == "valkey" for server in stack.servers)
    if not ours_alone and worker_answers(broker_url):
        yield
    elif broker_is_embedded() or database_is_embedded():
        check_database(stack.database_url)
        with CallWorkers(stack) as started:
            started.wait_ready()
            yield
    else:
        console.say("no worker answers on the configured broker; waiting for one (start it with `mandua worker`)")
        yield
