"""Real worker processes for tests: started as a user would, awaited by what they print, killed without mercy."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Self


class CeleryProcess:
    """``celery -A worker.app …`` in a process group of its own; its standard error is read as it comes."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self._lines: list[str] = []
        self._news = threading.Condition()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "worker.app", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**_plain_environment(), **environment},
            start_new_session=True,
            text=True,
            errors="replace",
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def output(self) -> str:
        """Everything printed so far."""
        with self._news:
            return "".join(self._lines)

    def wait_for(self, pattern: str, timeout: float = 40.0) -> str:
        """Wait until a line matches ``pattern``; returns it. Raises TimeoutError with the last lines."""
        seen = 0
        with self._news:
            while True:
                for line in self._lines[seen:]:
                    if re.search(pattern, line):
                        return line
                seen = len(self._lines)
                if self.process.poll() is not None and not self._reader.is_alive():
                    raise TimeoutError(f"ended with {self.process.returncode}:\n{''.join(self._lines[-30:])}")
                if not self._news.wait(timeout):
                    raise TimeoutError(f"no line matches {pattern!r}:\n{''.join(self._lines[-30:])}")

    def kill(self) -> None:
        """SIGKILL to the whole group: what an out-of-memory killer or a lost machine does."""
        _signal_group(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def stop(self, timeout: float = 20.0) -> int:
        """SIGTERM, then SIGKILL if it does not end; returns the exit code."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                _signal_group(self.process.pid, signal.SIGKILL)
        code = self.process.wait(10)
        self._reader.join(5)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._news:
                self._lines.append(line)
                self._news.notify_all()
        with self._news:
            self._news.notify_all()


def start_worker(
    environment: Mapping[str, str],
    *,
    queues: str = "turns,record,live,ahead,maintenance,bulk,bulk_ahead",
    threads: int = 8,
    pool: str = "threads",
    wait: bool = True,
) -> CeleryProcess:
    """A worker, ready to take tasks when this returns."""
    worker = CeleryProcess(
        ["worker", "--pool", pool, "--concurrency", str(threads), "-Q", queues, "-n", f"w{os.urandom(3).hex()}@%h",
         "--without-gossip", "--without-mingle"],
        environment,
    )  # fmt: skip
    if wait:
        worker.wait_for(r"\bready\.")
    return worker


def start_beat(environment: Mapping[str, str]) -> CeleryProcess:
    """The one beat."""
    beat = CeleryProcess(["beat"], environment)
    beat.wait_for("beat: Starting")
    return beat


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return


def _plain_environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("MANDUA_") and name not in ("DATABASE_URL", "COVERAGE_PROCESS_START")
    }
