"""What the embedded servers have in common: a folder, one owner at a time, a stable port, a password, a log."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import signal
import socket
import subprocess
import time
from pathlib import Path

from worker.local import proc
from worker.local.errors import LocalStackError, ServerBusyError

START_TIMEOUT = 60.0
"""Seconds a server has to answer after its start; recovery from a crash of a large memory needs some."""

LEFTOVER_PATIENCE = 10.0
"""Seconds that a server whose owner was killed has to end by itself before the next owner ends it."""

_STABLE_PORTS = range(20_000, 32_000)


class EmbeddedServer:
    """A server that this process starts, owns and ends. Subclasses say how it is prepared, started and asked.

    One process owns the folder at a time (`ServerBusyError` for a second one), from `start()` until `stop()`; the
    kernel takes the ownership back when the process ends, however it ends. The port and so the address stay the same
    over restarts of one object, so that clients only have to reconnect.
    """

    name: str
    stop_signal: signal.Signals

    def __init__(self, root: Path) -> None:
        self.root = Path(root).absolute()
        self.log_path = self.root / f"{self.name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._port: int | None = None
        self._owner_lock: int | None = None
        self._log_start = 0

    # What a subclass says.

    def _prepare(self) -> None:
        """Everything that has to be there before the server starts, and nothing of an earlier owner left running."""
        raise NotImplementedError

    def _launch(self, port: int) -> subprocess.Popen[bytes]:
        raise NotImplementedError

    def _is_ready(self, port: int) -> bool:
        """Whether the server answers (cheap: asked every few milliseconds while it starts)."""
        raise NotImplementedError

    def _address(self, port: int) -> str:
        raise NotImplementedError

    # What callers use.

    @property
    def running(self) -> bool:
        """True while the server's process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The server's process id. Raises LocalStackError when it does not run."""
        if self._process is None or self._process.poll() is not None:
            raise LocalStackError(f"the embedded {self.name} is not running")
        return self._process.pid

    @property
    def port(self) -> int:
        """The TCP port on 127.0.0.1. Raises LocalStackError before the first start."""
        if self._port is None:
            raise LocalStackError(f"the embedded {self.name} has not been started")
        return self._port

    @property
    def url(self) -> str:
        """The address with user and password; it stays the same over restarts. LocalStackError before the first."""
        return self._address(self.port)

    def start(self) -> str:
        """Start the server, or start it again, and wait until it answers; returns its address.

        Raises ServerBusyError when another process owns the folder, LocalStackError when it cannot start.
        """
        if self.running:
            return self.url
        self._take_ownership()
        try:
            self._prepare()
            return self._start_on_a_port()
        except BaseException:
            self.kill()
            self._give_up_ownership()
            raise

    def stop(self) -> None:
        """End the server cleanly (SIGKILL after 30 s) and give its folder up. Does nothing when it does not run."""
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(self.stop_signal)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
        self._process = None
        self._give_up_ownership()

    def kill(self) -> None:
        """End the server as a crash would: SIGKILL for it and its children. `start()` brings it back, with its data."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGSTOP)  # it must not start another child while we list them
            family = [process.pid, *proc.children(process.pid)]
            proc.kill_all(family)
            process.wait()
            proc.wait_gone(family, 10)
        self._process = None

    # How it is done.

    def _start_on_a_port(self) -> str:
        ports = [self._port] if self._port is not None else [free_port() for _ in range(5)]
        for attempt, port in enumerate(ports, start=1):
            self._log_start = self.log_path.stat().st_size if self.log_path.exists() else 0
            self._process = self._launch(port)
            if self._wait_ready(port):
                self._port = port
                return self.url
            self._process = None
            lost_the_port = "address already in use" in self.log_tail().lower()
            if not lost_the_port or attempt == len(ports):
                break
        raise LocalStackError(f"the embedded {self.name} did not start: {self._last_words()} (log: {self.log_path})")

    def _wait_ready(self, port: int) -> bool:
        """False when the process ended. The wait polls: a starting server offers no event to wait for."""
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT
        while not self._is_ready(port):
            if self._process.poll() is not None:
                return False
            if time.monotonic() > deadline:
                raise LocalStackError(
                    f"the embedded {self.name} did not answer within {START_TIMEOUT:.0f} s (log: {self.log_path})"
                )
            time.sleep(0.01)
        return True

    def log_tail(self, size: int = 2000) -> str:
        """The end of what the server logged since its last start, at most `size` bytes of it."""
        with contextlib.suppress(OSError), self.log_path.open("rb") as log:
            log.seek(max(self._log_start, self.log_path.stat().st_size - size))
            return log.read().decode(errors="replace")
        return ""

    def _last_words(self) -> str:
        lines = [line.strip() for line in self.log_tail().splitlines() if line.strip()]
        grave = [line for line in lines if any(word in line for word in ("FATAL", "PANIC", "error", "Error"))]
        return (grave or lines or ["it said nothing"])[-1]

    def _open_log(self) -> int:
        return os.open(self.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def _take_ownership(self) -> None:
        if self._owner_lock is not None:
            return
        make_private_folder(self.root)
        try:
            lock = os.open(self.root / "owner.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise LocalStackError(f"cannot use the folder {self.root}: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise ServerBusyError(f"another process already runs the embedded {self.name} in {self.root}") from None
        self._owner_lock = lock

    def _give_up_ownership(self) -> None:
        if self._owner_lock is not None:
            os.close(self._owner_lock)
            self._owner_lock = None


def make_private_folder(folder: Path) -> None:
    """Make a folder, and the missing ones above it, closed to other users.

    Root's may be passed through (0711) though not listed: Postgres, which refuses to run as root, has to reach its
    data as another user. Folders that are there already keep their modes.
    """
    missing = [part for part in (folder, *folder.parents) if not part.exists()]
    for part in reversed(missing):
        try:
            part.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, exist_ok=True)
        except OSError as error:
            raise LocalStackError(
                f"cannot make the folder {part}: {error.strerror}; choose another data folder (MANDUA_DATA_DIR)"
            ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise LocalStackError(f"the folder {folder} is not writable; choose another data folder (MANDUA_DATA_DIR)")


def secret_file(path: Path, content: str | None = None) -> str:
    """The secret kept in a file that only its owner can read; made when missing, random unless `content` is given."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        secret = content or secrets.token_urlsafe(24)
        write_private(path, secret + "\n")
        return secret


def write_private(path: Path, content: str) -> None:
    """Write a file (mode 0600) in one step: readers see the old content or the new one, never a part."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        draft.unlink()
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(path)


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nothing listens on now.

    Below the range the kernel gives to outgoing connections: in there, a client that reconnects while the server is
    down for a moment can be given the server's own port.
    """
    for _ in range(50):
        port = secrets.choice(_STABLE_PORTS)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
