"""The real command as a user runs it: a process of its own, a clean home, only what is given in the environment."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worker.local import proc

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one JSON text that it must be."""
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line on standard error. Fails on a traceback, on more lines, and on anything on standard output."""
        assert self.out == "", self.out
        assert len(self.err.splitlines()) == 1, self.err
        return self.err


class Mandua:
    """The command with an environment of its own; ``home`` holds its data."""

    def __init__(self, home: Path, environment: Mapping[str, str] | None = None) -> None:
        self.home = home
        self.environment = {
            "HOME": str(home),
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(CHECKOUT),
            "LC_ALL": "C.UTF-8",
            **(environment or {}),
        }

    def start(self, *arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        """Start the command; the caller waits for it and reads its pipes."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "worker.cli", *arguments],
            env=self.environment,
            cwd=self.home,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, timeout: float = 90.0, text: str = "") -> Ended:
        """Run the command to its end, with ``text`` on its standard input."""
        process = self.start(*arguments, stdin=subprocess.PIPE)
        try:
            out, err = process.communicate(text, timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"mandua {arguments} did not end in {timeout} s:\n{out}\n{err}") from None
        return Ended(process.returncode, out, err)

    def processes(self) -> list[int]:
        """The running processes of this home, whoever's children they are."""
        mark = f"HOME={self.home}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                environment = (entry / "environ").read_bytes().split(b"\0")
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if (mark in environment or str(self.home).encode() in command) and proc.is_running(int(entry.name)):
                found.append(int(entry.name))
        return found


@contextlib.contextmanager
def fresh_home() -> Iterator[Mandua]:
    """The command with an empty home and no servers configured; whatever it leaves behind is ended and deleted.

    Not in pytest's own folder, which is closed to others: the embedded Postgres of root runs as another user.
    """
    home = Path(tempfile.mkdtemp(prefix="mandua-home-"))
    home.chmod(0o755)
    made = Mandua(home)
    try:
        yield made
    finally:
        proc.kill_all(made.processes())
        shutil.rmtree(home, ignore_errors=True)


def interrupt(process: subprocess.Popen[str], number: signal.Signals = signal.SIGINT) -> None:
    """What Ctrl-C in a terminal does: the signal to the command's whole process group."""
    os.killpg(process.pid, number)
