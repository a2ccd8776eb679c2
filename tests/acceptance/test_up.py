"""`mandua up`: everything in the foreground, found by the other commands, gone with Ctrl-C."""

from __future__ import annotations

import base64
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from tests.acceptance.command import Mandua, fresh_home, interrupt


@pytest.fixture
def mandua() -> Iterator[Mandua]:
    with fresh_home() as made:
        made.environment["MANDUA_FLOWER_PORT"] = str(free_port())
        yield made


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answer(url: str, login: str | None, timeout: float = 60.0) -> int:
    """The HTTP status that ``url`` answers with, once somebody listens there."""
    request = urllib.request.Request(url)
    if login is not None:
        request.add_header("Authorization", "Basic " + base64.b64encode(login.encode()).decode())
    deadline = time.monotonic() + timeout
    while True:
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:
                return int(reply.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def test_up_serves_the_other_commands_and_leaves_nothing(mandua: Mandua) -> None:
    up = mandua.start("up")
    assert up.stdout is not None
    told = ""
    while not (line := up.stdout.readline()).startswith("Ctrl-C"):
        assert line, "it ended before it was up"
        told += line
    flower = f"http://127.0.0.1:{mandua.environment['MANDUA_FLOWER_PORT']}"
    assert flower in told
    data = mandua.home / ".local/share/mandua"
    addresses = dict(line.split("=", 1) for line in (data / "urls.env").read_text().splitlines())
    assert addresses["DATABASE_URL"].startswith("postgresql://")
    password = addresses["DATABASE_URL"].split(":")[2].partition("@")[0]
    assert password not in told

    written = mandua.run("write", "--agent", "a", "--speaker", "Rui", "--wait", "--json", "I live in Braga.")
    assert written.json["status"] == "ok", written.err
    assert not (data / "logs").exists()  # no worker was started for the call
    assert mandua.run("status").code == 0
    assert "up already" in mandua.run("up").complaint
    assert answer(flower, (data / "flower-login").read_text().strip()) == 200
    assert answer(flower, None) == 401

    interrupt(up, signal.SIGTERM)
    up.communicate(timeout=90)
    assert up.returncode == 0
    assert not (data / "urls.env").exists()
    assert mandua.processes() == []
    # What was written is still there, read by a command that starts the database for itself.
    (fact,) = mandua.run("facts", "--agent", "a", "--json").json["facts"]
    assert fact["fact_text"] == "Rui lives in Braga"
    assert mandua.processes() == []
