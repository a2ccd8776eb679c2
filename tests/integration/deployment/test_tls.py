"""TLS is asked for in the addresses alone, and a server that cannot prove who it is is refused."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sqlalchemy.exc import OperationalError

from producer import BrokerDown, MemoryClient
from producer.client import ClientError
from producer.connections import celery_app
from worker.cli.broker import Broker
from worker.cli.serving import connection_to

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost, its own authority, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    made = folder / "ca.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-out", made[0], "-keyout", made[1]],
        check=True, capture_output=True,
    )  # fmt: skip
    return made


@pytest.fixture
def tls_port(certificate: tuple[Path, Path], broker_url: str) -> Iterator[int]:
    """A port that speaks TLS and passes on to the broker, as a hosted Redis does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    behind = urlsplit(broker_url)
    with socket.create_server(("localhost", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, context, behind.hostname, behind.port), daemon=True).start()
        yield listener.getsockname()[1]


def _accept(listener: socket.socket, context: ssl.SSLContext, host: str, port: int) -> None:
    with contextlib.suppress(OSError):  # the test is over
        while True:
            plain, _ = listener.accept()
            threading.Thread(target=_serve, args=(plain, context, host, port), daemon=True).start()


def _serve(plain: socket.socket, context: ssl.SSLContext, host: str, port: int) -> None:
    with (
        contextlib.suppress(OSError),
        plain,
        socket.create_connection((host, port)) as there,
        context.wrap_socket(plain, server_side=True) as here,
    ):
        threading.Thread(target=_pump, args=(there, here), daemon=True).start()
        _pump(here, there)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError, ValueError):
        while data := source.recv(65536):
            sink.sendall(data)


def over_tls(broker_url: str, port: int, options: str) -> str:
    parts = urlsplit(broker_url)
    return f"rediss://:{parts.password}@localhost:{port}{parts.path}?{options}"


def test_redis_over_tls_for_producers_and_operators(
    broker_url: str, tls_port: int, certificate: tuple[Path, Path]
) -> None:
    url = over_tls(broker_url, tls_port, f"ssl_cert_reqs=required&ssl_ca_certs={certificate[0]}")
    with MemoryClient(url) as client:
        assert client.enqueue("a", "I live in Natal", "Rui").status == "queued"
    broker = Broker(url)
    assert broker.state() == {"broker": "ok", "queues": {**Broker(broker_url).queues(), "record": 1}}
    assert broker.time() is not None


def test_a_certificate_of_nobody_is_refused(broker_url: str, tls_port: int) -> None:
    url = over_tls(broker_url, tls_port, "ssl_cert_reqs=required")
    with MemoryClient(url) as client, pytest.raises(BrokerDown):
        client.enqueue("a", "I live in Natal", "Rui")
    assert Broker(url).error() is not None


@pytest.mark.parametrize(("host", "believed"), [("localhost", True), ("127.0.0.1", False)])
def test_rabbitmq_over_tls_has_to_be_the_host_that_was_asked_for(
    tls_port: int, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, host: str, believed: bool
) -> None:
    """Behind the port is no RabbitMQ, so a certificate that is believed ends in another error than the certificate."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    app = celery_app(f"amqps://user:secret@{host}:{tls_port}//")
    with app.connection_for_write() as connection, pytest.raises(Exception) as caught:
        connection.connect()
    assert isinstance(caught.value.__cause__ or caught.value, ssl.SSLCertVerificationError) is not believed
    app.close()


def test_a_postgres_without_tls_is_refused_where_tls_is_asked_for(database_url: str) -> None:
    url = f"{database_url}?sslmode=require"
    with pytest.raises(OperationalError, match="SSL"), connection_to(url):
        pass
    with MemoryClient(database_url=url, accept="database") as client, pytest.raises(ClientError, match="SSL"):
        client.enqueue("a", "I live in Natal", "Rui")
