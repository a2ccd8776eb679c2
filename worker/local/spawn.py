"""Child processes that end with us: started so that the kernel signals them when this process ends, even by SIGKILL."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import IO

_TRAMPOLINE = Path(__file__).with_name("_trampoline.py")

type_of_stream = int | IO[bytes] | None


class _Spawner:
    """One thread that starts every child and lives as long as the process.

    The kernel's parent-death signal goes out when the *thread* that started the child ends. A child started by a
    short-lived thread (a pool, a test) would be killed as soon as that thread returns.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._wanted: queue.SimpleQueue[tuple[Future[subprocess.Popen[bytes]], list[str], dict[str, object]]] = (
            queue.SimpleQueue()
        )
        threading.Thread(target=self._serve, name="spawner", daemon=True).start()

    def _serve(self) -> None:
        while True:
            future, argv, options = self._wanted.get()
            try:
                future.set_result(subprocess.Popen(argv, **options))  # type: ignore[call-overload]
            except BaseException as error:
                future.set_exception(error)

    def spawn(self, argv: list[str], options: dict[str, object]) -> subprocess.Popen[bytes]:
        future: Future[subprocess.Popen[bytes]] = Future()
        self._wanted.put((future, argv, options))
        return future.result()


_lock = threading.Lock()
_spawner: _Spawner | None = None


def spawn(
    argv: Sequence[str | Path],
    *,
    death_signal: signal.Signals,
    environment: Mapping[str, str],
    cwd: Path,
    stdin: type_of_stream = subprocess.DEVNULL,
    stdout: type_of_stream = None,
    stderr: type_of_stream = None,
    user: tuple[int, int] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program in its own session and process group (the group's id is the child's pid).

    argv[0] is an absolute path. The child gets `death_signal` when this process ends for whatever reason; that does
    not reach the child's own children. `user` is the (uid, gid) to run as, for root only.
    Raises OSError when Python itself cannot be started; a program that cannot be started ends with an exit code.
    """
    global _spawner
    with _lock:
        if _spawner is None or _spawner.pid != os.getpid():  # a fork has no threads but its own
            _spawner = _Spawner()
        spawner = _spawner
    uid, gid = user if user is not None else (-1, -1)
    trampoline = [sys.executable, "-I", "-S", str(_TRAMPOLINE)]
    settings = [str(int(death_signal)), str(os.getpid()), str(uid), str(gid)]
    options: dict[str, object] = {
        "env": dict(environment),
        "cwd": cwd,
        "stdin": stdin,
        "stdout": stdout,
        "stderr": stderr,
        "start_new_session": True,
    }
    return spawner.spawn([*trampoline, *settings, *(str(part) for part in argv)], options)
