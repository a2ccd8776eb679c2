"""Real servers and real processes, each test with its own; waiting is on pidfds, pipes and queues."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.local.postgres import EmbeddedPostgres

CHECKOUT = Path(__file__).resolve().parents[3]


def assert_ends(pid: int, seconds: float = 15) -> None:
    """Wait until the process has ended (a zombie has); fails the test when it still runs after `seconds`."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with contextlib.closing(os.fdopen(descriptor)) as watched:
        poll = select.poll()
        poll.register(watched, select.POLLIN)
        assert poll.poll(seconds * 1000), f"process {pid} still runs"


class Owner:
    """Another Python process that runs a script and talks over its pipes, one line at a time."""

    def __init__(self, script: str, *arguments: object, environment: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, *(str(argument) for argument in arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=CHECKOUT,
            env=environment,
        )

    def hear(self) -> str:
        """The next line; fails the test when the process ended instead."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the process ended without the line that was waited for"
        return line.strip()

    def tell(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def signal(self, number: signal.Signals) -> int:
        """Send the signal and wait for the end; returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(30)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def owners() -> Iterator[list[Owner]]:
    """Owners appended here are ended with the test."""
    started: list[Owner] = []
    yield started
    for owner in started:
        owner.close()


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    """A server object that is not started yet; its data goes with the test."""
    server = EmbeddedPostgres(tmp_path / "postgres", durable=False)
    yield server
    server.remove()
