from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from tests.integration.local.conftest import Owner, assert_ends
from worker.local.postgres import EmbeddedPostgres
from worker.local.server import START_TIMEOUT
from worker.local.stack import data_folder, ensure_stack, running_address
from worker.local.valkey import EmbeddedValkey

USER = """
import sys, psycopg
from worker.local.stack import ensure_stack
with ensure_stack(sys.argv[1], durable=False) as stack:
    print(stack.owns, stack.database_url, stack.broker_url, *(server.pid for server in stack.servers), flush=True)
    for _ in sys.stdin:
        with psycopg.connect(stack.database_url) as connection:
            print(connection.execute("SELECT 42").fetchone()[0], flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data folder, with no server configured; its database goes with the test."""
    for name in ("DATABASE_URL", "MANDUA_BROKER_URL", "MANDUA_DATA_DIR", "FLOWER_BASIC_AUTH"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "data"
    yield folder
    server = EmbeddedPostgres(folder / "postgres", durable=False)
    if server.root.exists():
        server.start()
        server.remove()


def test_data_folder_by_option_variable_and_xdg() -> None:
    variables = {"MANDUA_DATA_DIR": "/b", "XDG_DATA_HOME": "/c"}
    assert data_folder("/a", variables) == Path("/a")
    assert data_folder(None, variables) == Path("/b")
    assert data_folder(None, {"XDG_DATA_HOME": "/c"}) == Path("/c/mandua")
    home = Path("~/.local/share/mandua").expanduser()
    assert data_folder(None, {"XDG_DATA_HOME": "relative"}) == home
    assert data_folder(None, {}) == home


def test_configured_servers_are_used_and_nothing_is_started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/memory")
    monkeypatch.setenv("MANDUA_BROKER_URL", "amqp://elsewhere")
    with ensure_stack(folder) as stack:
        assert (stack.database_url, stack.broker_url) == ("postgresql://elsewhere/memory", "amqp://elsewhere")
        assert not stack.owns
    assert not folder.exists()


def test_starts_what_is_missing_and_ends_it(folder: Path) -> None:
    with ensure_stack(folder, durable=False) as stack:
        assert stack.owns
        assert stack.broker_url is not None
        with psycopg.connect(stack.database_url) as connection:
            connection.execute("CREATE TABLE kept ()")
        with redis.Redis.from_url(stack.broker_url) as client:
            assert client.ping()
        environment = stack.environment()
        assert environment["DATABASE_URL"] == stack.database_url
        assert environment["MANDUA_BROKER_URL"] == stack.broker_url
        assert environment["MANDUA_DATA_DIR"] == str(folder)
        assert environment["PATH"] == os.environ["PATH"]
        pids = [server.pid for server in stack.servers]
        for name in ("postgres", "valkey"):
            assert stat.S_IMODE((folder / name / "address.json").stat().st_mode) == 0o600
        assert running_address(folder / "postgres") == stack.database_url
    assert len(pids) == 2
    for pid in pids:
        assert_ends(pid)
    assert running_address(folder / "postgres") is None
    with ensure_stack(folder, need_broker=False, durable=False) as stack:
        assert stack.broker_url is None
        assert len(stack.servers) == 1
        with psycopg.connect(stack.database_url) as connection:
            connection.execute("SELECT FROM kept")


def test_a_second_command_joins_and_the_owner_waits_for_it(folder: Path, owners: list[Owner]) -> None:
    begun, leave = threading.Event(), threading.Event()
    addresses: list[object] = []

    def own() -> None:
        with ensure_stack(folder, durable=False) as stack:
            addresses.extend([stack.database_url, stack.broker_url])
            begun.set()
            leave.wait(60)

    owner = threading.Thread(target=own)
    owner.start()
    try:
        assert begun.wait(60)
        user = Owner(USER, folder)
        owners.append(user)
        assert user.hear() == f"False {addresses[0]} {addresses[1]}"
    finally:
        leave.set()
    while (folder / "valkey" / "address.json").exists():  # the last one entered is the first one left
        assert owner.is_alive()
        time.sleep(0.01)
    owner.join(0.5)  # without the wait it would be through with everything in a tenth of that
    assert owner.is_alive()
    user.tell("ask")
    assert user.hear() == "42"
    assert owner.is_alive()
    user.close()
    owner.join(START_TIMEOUT)
    assert not owner.is_alive()


def test_many_commands_at_once_start_one_stack(folder: Path, owners: list[Owner]) -> None:
    owners += [Owner(USER, folder) for _ in range(3)]
    heard = [owner.hear().split() for owner in owners]
    assert sorted(words[0] for words in heard).count("True") in (1, 2)  # database and broker may have two owners
    assert len({tuple(words[1:3]) for words in heard}) == 1


def test_a_killed_owner_is_replaced(folder: Path, owners: list[Owner]) -> None:
    owner = Owner(USER, folder)
    owners.append(owner)
    owns, database_url, _broker_url, *pids = owner.hear().split()
    assert owns == "True"
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE TABLE kept ()")
    owner.signal(signal.SIGKILL)
    assert (folder / "postgres" / "address.json").exists()  # stale by now
    assert running_address(folder / "postgres") is None
    with ensure_stack(folder, durable=False) as stack:
        assert stack.owns
        with psycopg.connect(stack.database_url) as connection:
            connection.execute("SELECT FROM kept")
    for pid in pids:
        assert_ends(int(pid))


def test_the_address_of_a_killed_owner_is_not_given_while_the_next_one_starts(tmp_path: Path) -> None:
    server = EmbeddedValkey(tmp_path)
    url = server.start()  # holds the folder, and has not written its address yet
    try:
        address = {"url": url, "owner": os.getpid()}
        (tmp_path / "address.json").write_text(json.dumps(address))
        assert running_address(tmp_path) == url
        ended = subprocess.Popen(["/bin/true"])
        ended.wait()
        (tmp_path / "address.json").write_text(json.dumps(address | {"owner": ended.pid}))
        assert running_address(tmp_path) is None
    finally:
        server.remove()


def test_flower_gets_one_login_for_good(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/memory")
    with ensure_stack(folder, need_broker=False) as stack:
        login = stack.flower_login()
        assert login.startswith("mandua:")
        assert stack.flower_login() == login
        assert stat.S_IMODE((folder / "flower-login").stat().st_mode) == 0o600
        monkeypatch.setenv("FLOWER_BASIC_AUTH", "me:mine")
        assert stack.flower_login() == "me:mine"
