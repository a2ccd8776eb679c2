"""``metrics``: a small process from which Prometheus scrapes what all workers do."""

from __future__ import annotations

import threading
from typing import Annotated

import typer

from worker.cli import console
from worker.cli.errors import CommandError
from worker.cli.serving import DataDir, connection_to, servers

PORT = 9464


def metrics(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Where to listen; 0: any free one.")] = PORT,
    address: Annotated[str, typer.Option("--address", help="Which address to listen on.")] = "127.0.0.1",
    once: Annotated[bool, typer.Option("--once", help="Print the metrics and end.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Serve metrics of all workers for Prometheus.

    They are read from the database at each scrape, so one such process is enough.
    """
    from prometheus_client import CollectorRegistry, generate_latest, start_http_server

    from worker.cli.broker import Broker
    from worker.metrics import LedgerCollector

    with servers(data_dir) as stack:
        broker = Broker(stack.broker_url or "")
        registry = CollectorRegistry()
        registry.register(
            LedgerCollector(lambda: connection_to(stack.database_url), lambda: broker.state()["queues"])
        )
        if once:
            console.show(generate_latest(registry).decode().rstrip("\n"))
            return
        try:
            server, thread = start_http_server(port, addr=address, registry=registry)
        except OSError as error:
            raise CommandError(f"cannot listen on {address}:{port}: {error.strerror}") from None
        console.say(f"metrics on http://{address}:{server.server_port}/metrics")
        try:
            threading.Event().wait()
        finally:
            server.shutdown()
            server.server_close()
            thread.join(2)
