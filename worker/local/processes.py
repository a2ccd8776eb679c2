"""Runs the Procfile's processes in the foreground, each started again with backoff when it ends.

Not a runner that ends all when one ends: a Celery worker with tasks in flight can exit when its Redis connection
breaks, and has to come back by itself. Nothing is left behind, however this process ends (see `_guard.py`).
"""

from __future__ import annotations

import contextlib
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import BinaryIO, Literal, Self

from worker.local import proc
from worker.local.procfile import ProcessLine
from worker.local.spawn import spawn

_GUARD = Path(__file__).with_name("_guard.py")
_GUARD_GRACE = 10.0
"""Seconds that orphans have after their SIGTERM. Their servers end with their owner, so waiting longer saves nothing;
a killed worker loses nothing either (messages are kept in the database)."""


@dataclass(frozen=True)
class Backoff:
    """How long to wait before a process is started again, in seconds.

    The n-th end in a row waits between half of and the whole of `first * 2**n`, at most `longest`; a process that ran
    for `healthy_after` starts at the beginning again. Random, so that workers do not all come back in one moment.
    """

    first: float = 0.5
    longest: float = 30.0
    healthy_after: float = 20.0

    def delay(self, failures: int) -> float:
        """Seconds to wait after `failures` (>= 1) ends in a row."""
        whole = min(self.longest, self.first * 2.0 ** min(failures - 1, 30))
        return random.uniform(whole / 2, whole)


@dataclass(frozen=True)
class ProcessEvent:
    """Something that happened to a process: it started (`pid`), or ended (`code`, negative for a signal; `delay`
    seconds until it is started again, None when it is not)."""

    kind: Literal["started", "ended"]
    name: str
    pid: int
    code: int | None = None
    delay: float | None = None


class ProcessRunner:
    """Starts, restarts and ends a set of processes; a context manager that starts on entry and stops on exit.

    Each runs in its own session and process group, through `/bin/sh` (for the variables in the line), which it
    replaces. Its output goes to standard error, each line behind the process's name, or to `log_dir/NAME.log`.
    `on_event` is called from the process's thread and must return quickly.
    """

    def __init__(
        self,
        lines: Sequence[ProcessLine],
        environment: Mapping[str, str],
        *,
        cwd: Path,
        log_dir: Path | None = None,
        backoff: Backoff | None = None,
        grace: float = 60.0,
        on_event: Callable[[ProcessEvent], None] | None = None,
        output: BinaryIO | None = None,
    ) -> None:
        self._lines = list(lines)
        self._environment = dict(environment)
        # `celery` in a line is the one next to this Python, whether or not its environment is activated
        own_programs = str(Path(sys.executable).parent)
        self._environment["PATH"] = f"{own_programs}:{self._environment.get('PATH', os.defpath)}"
        self._cwd = cwd
        self._log_dir = log_dir
        self._backoff = backoff or Backoff()
        self._grace = grace
        self._on_event = on_event
        self._output = output if output is not None else sys.stderr.buffer
        self._write_lock = threading.Lock()
        self._lock = threading.Lock()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        # what asks run() to stop; the one primitive that a signal handler may use on its own thread
        self._stop_requests: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def pids(self) -> dict[str, int]:
        """Name to pid of the processes that run now."""
        with self._lock:
            return {name: process.pid for name, process in self._running.items()}

    def start(self) -> None:
        """Start every process and return; each is watched by a thread of its own."""
        if self._log_dir is not None:
            self._log_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_GUARD), str(_GUARD_GRACE)],
            stdin=subprocess.PIPE,
            cwd="/",
            start_new_session=True,  # a Ctrl-C in the terminal must not reach it
        )
        width = max((len(line.name) for line in self._lines), default=0)
        for line in self._lines:
            thread = threading.Thread(target=self._keep_running, args=(line, width), name=line.name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def run(self) -> None:
        """Start everything and return after SIGTERM or SIGINT (or `request_stop`), when all has ended.

        Call it in the main thread. A second signal ends the grace: what still runs gets SIGKILL.
        """
        with _on_signals(self.request_stop):
            self.start()
            self._stop_requests.get()
            self.stop()

    def request_stop(self) -> None:
        """Make `run()` stop; returns at once. Asked again while it stops, it waits no longer."""
        self._stop_requests.put(None)

    def stop(self) -> None:
        """SIGTERM to every process, SIGKILL to its whole group after the grace; returns when none is left."""
        self._stopping.set()
        with self._lock:
            for process in self._running.values():
                proc.kill_all([process.pid], signal.SIGTERM)  # not the group: a Celery main ends its children itself
        deadline = time.monotonic() + self._grace
        for thread in self._threads:
            while thread.is_alive() and time.monotonic() < deadline and self._stop_requests.empty():
                thread.join(0.1)
        with self._lock:
            for process in self._running.values():
                proc.kill_group(process.pid)
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._end_guard()

    def _keep_running(self, line: ProcessLine, width: int) -> None:
        prefix = f"{line.name:<{width}} | "
        failures = 0
        while True:
            with self._lock:  # under the lock, so that stop() sees every process that was started
                if self._stopping.is_set():
                    return
                process = self._spawn(line)
                self._running[line.name] = process
                self._tell_guard(f"+{process.pid}")
            started = time.monotonic()
            self._emit(ProcessEvent("started", line.name, process.pid))
            code = self._watch(line, process, prefix)
            failures = 1 if time.monotonic() - started >= self._backoff.healthy_after else failures + 1
            delay = None if self._stopping.is_set() else self._backoff.delay(failures)
            if delay is not None:
                self._say(f"{prefix}ended with {_code_name(code)}; again in {delay:.1f} s\n".encode())
            self._emit(ProcessEvent("ended", line.name, process.pid, code, delay))
            if delay is None or self._stopping.wait(delay):
                return

    def _watch(self, line: ProcessLine, process: subprocess.Popen[bytes], prefix: str) -> int:
        """Wait for the end of a process and of its group; returns its exit code (negative for a signal)."""
        reader = self._copy_output(process, prefix)
        # Not collected yet: as long as it is a zombie, no new process can be given its number, which is the group's.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        # What it leaves of its group (the children of a killed Celery main) ends with it.
        proc.kill_group(process.pid)
        proc.wait_gone(proc.group_members(process.pid), 10)
        if reader is not None:
            reader.join()
        with self._lock:
            del self._running[line.name]
            self._tell_guard(f"-{process.pid}")
            return process.wait()

    def _spawn(self, line: ProcessLine) -> subprocess.Popen[bytes]:
        argv = ["/bin/sh", "-c", f"exec {line.command}"]
        with contextlib.ExitStack() as stack:
            output: int | BinaryIO = subprocess.PIPE
            if self._log_dir is not None:
                output = stack.enter_context((self._log_dir / f"{line.name}.log").open("ab"))
            return spawn(
                argv,
                death_signal=signal.SIGTERM,
                environment=self._environment,
                cwd=self._cwd,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def _copy_output(self, process: subprocess.Popen[bytes], prefix: str) -> threading.Thread | None:
        if process.stdout is None:
            return None
        stream = process.stdout

        def copy() -> None:
            with stream:
                for text in stream:
                    self._say(prefix.encode() + text.removesuffix(b"\n") + b"\n")

        thread = threading.Thread(target=copy, daemon=True)
        thread.start()
        return thread

    def _say(self, text: bytes) -> None:
        # a closed terminal must not stop the copying: a process whose pipe is full would stand still
        with self._write_lock, contextlib.suppress(OSError, ValueError):
            self._output.write(text)
            self._output.flush()

    def _emit(self, event: ProcessEvent) -> None:
        if self._on_event is not None:
            self._on_event(event)

    def _tell_guard(self, message: str) -> None:
        if self._guard is not None and self._guard.stdin is not None:
            with contextlib.suppress(OSError):  # a guard that was killed is missed only if we are killed too
                self._guard.stdin.write(f"{message}\n".encode())
                self._guard.stdin.flush()

    def _end_guard(self) -> None:
        if self._guard is not None:
            if self._guard.stdin is not None:
                with contextlib.suppress(OSError):
                    self._guard.stdin.close()
            self._guard.wait()
            self._guard = None


@contextlib.contextmanager
def _on_signals(handler: Callable[[], None]) -> Iterator[None]:
    def handle(_number: int, _frame: FrameType | None) -> None:
        handler()

    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _code_name(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"
