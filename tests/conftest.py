"""Real servers for every test: one embedded Postgres and one Valkey a session, a fresh database a test.

A database is a copy of a migrated template (milliseconds), so tests share nothing.
"""

from __future__ import annotations

import itertools
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import psycopg
import pytest
import redis
from sqlalchemy import Engine

from tests.scripted_model import ScriptedModel
from worker import db, models_in_use, schema, settings
from worker.local.postgres import EmbeddedPostgres
from worker.local.valkey import EmbeddedValkey
from worker.turns import life

TEMPLATE = "mandua_template"
ROOM = 4_000_000_000  # bytes; the tests' servers take less than one
_numbers = itertools.count(1)
_broker_databases = itertools.cycle(range(1, 15))

# The same examples every time: a suite that fails by luck holds up whoever changed something else. To look for new
# ones: ``./mandua test --hypothesis-profile=default --hypothesis-seed=N …``.
hypothesis.settings.register_profile("repeatable", derandomize=True)
hypothesis.settings.load_profile("repeatable")

# A developer's own settings must not leak into a test.
for _name in [name for name in os.environ if name.startswith("MANDUA_") or name in ("DATABASE_URL", "OPENAI_API_KEY")]:
    if not _name.startswith("MANDUA_TEST_"):
        del os.environ[_name]

# A shell's background job ignores Ctrl-C, and so would all that the tests start in order to interrupt it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def server_folder() -> Iterator[Path]:
    """A folder for the servers' data. Not pytest's own: an embedded Postgres of root runs as another user."""
    with tempfile.TemporaryDirectory(prefix="mandua-test-", dir=_in_memory()) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _in_memory() -> str | None:
    """A place in memory, where there is one with room; else None. A database a test, made and dropped, costs a tenth of
    what it costs on a disk."""
    place = Path("/dev/shm")
    try:
        found = os.statvfs(place)
    except OSError:
        return None
    roomy = found.f_bavail * found.f_frsize >= ROOM
    return str(place) if roomy and os.access(place, os.W_OK | os.X_OK) else None


@pytest.fixture(scope="session")
def postgres(server_folder: Path) -> Iterator[EmbeddedPostgres]:
    """The session's Postgres. Not durable: no test of this suite crashes this one."""
    server = EmbeddedPostgres(server_folder / "postgres", durable=False)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def template(postgres: EmbeddedPostgres) -> str:
    """The url of a migrated, empty database, to be copied."""
    url = database_address(postgres.url, TEMPLATE)
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {TEMPLATE}")
    schema.upgrade(url)
    return url


@pytest.fixture
def database_url(postgres: EmbeddedPostgres, template: str) -> Iterator[str]:
    """A fresh, migrated database."""
    with fresh_database(postgres.url, template) as url:
        yield url


@pytest.fixture
def database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """A fresh database to which this process's own ``worker.db.engine()`` is bound."""
    with bound(database_url, monkeypatch) as engine:
        yield engine


@pytest.fixture(scope="session")
def valkey(server_folder: Path) -> Iterator[EmbeddedValkey]:
    """The session's broker."""
    server = EmbeddedValkey(server_folder / "valkey")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def broker_url(valkey: EmbeddedValkey) -> str:
    """An empty database of the session's broker."""
    return empty_broker(valkey.url)


@pytest.fixture
def own_valkey(server_folder: Path, request: pytest.FixtureRequest) -> Iterator[EmbeddedValkey]:
    """A broker to be killed."""
    server = EmbeddedValkey(server_folder / f"valkey-{request.node.name[:40]}")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def scripted() -> Iterator[ScriptedModel]:
    """A scripted model over HTTP."""
    with ScriptedModel() as model:
        yield model


def database_address(url: str, name: str) -> str:
    """``url`` with another database."""
    head, _, _ = url.rpartition("/")
    return f"{head}/{name}"


@contextmanager
def fresh_database(server_url: str, template_url: str) -> Iterator[str]:
    """A copy of the template, dropped at the end whoever is still connected."""
    name = f"mandua_test_{os.getpid()}_{next(_numbers)}"
    source = template_url.rpartition("/")[2]
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {source}")
        try:
            yield database_address(server_url, name)
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def bound(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """Bind this process's settings and engine to ``url``."""
    monkeypatch.setenv("DATABASE_URL", url)
    _forget_settings()
    life.leave()  # each database sees its own worker
    engine = db.engine()
    yield engine
    life.leave()
    engine.dispose()
    _forget_settings()


def _forget_settings() -> None:
    caches: list[Callable[..., object]] = [
        settings.settings, models_in_use.language_model, models_in_use.embedding_model,
    ]  # fmt: skip
    for cached in caches:
        cached.cache_clear()  # type: ignore[attr-defined]


def empty_broker(url: str) -> str:
    """The address of the next database of the broker, emptied."""
    address = f"{url.rpartition('/')[0]}/{next(_broker_databases)}"
    with redis.Redis.from_url(address) as client:
        client.flushdb()
    return address
