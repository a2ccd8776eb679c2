"""Which database and broker a command uses: the configured ones, else the running embedded ones, else its own.

Every command that needs servers enters `ensure_stack`. The first one on a data folder starts the servers and owns
them; others meanwhile join, and an owner that wants to end waits a while for those who joined.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from worker.local import proc
from worker.local.errors import LocalStackError, ServerBusyError
from worker.local.postgres import EmbeddedPostgres
from worker.local.server import START_TIMEOUT, EmbeddedServer, make_private_folder, secret_file, write_private
from worker.local.valkey import EmbeddedValkey

LINGER = 30.0
"""Seconds that an ending owner waits for the commands that use its servers; a second Ctrl-C ends the wait."""


def data_folder(chosen: Path | str | None = None, environment: Mapping[str, str] = os.environ) -> Path:
    """The data folder: the chosen one, else MANDUA_DATA_DIR, else `mandua` in the XDG data folder. Not made here."""
    named = str(chosen or "") or environment.get("MANDUA_DATA_DIR", "")
    if named:
        return Path(named).expanduser().absolute()
    xdg = environment.get("XDG_DATA_HOME", "")
    if xdg and Path(xdg).is_absolute():  # the XDG specification has relative ones ignored
        return Path(xdg) / "mandua"
    return Path("~/.local/share/mandua").expanduser().absolute()


@dataclass(frozen=True)
class LocalStack:
    """The addresses that a command uses, and whether this process runs any of the servers itself (`owns`)."""

    data_dir: Path
    database_url: str
    broker_url: str | None
    owns: bool
    servers: tuple[EmbeddedServer, ...] = field(default=(), repr=False)
    """The embedded servers that this process owns."""

    def environment(self) -> dict[str, str]:
        """The environment for child processes: ours, with DATABASE_URL, MANDUA_BROKER_URL and MANDUA_DATA_DIR set."""
        environment = dict(os.environ) | {"DATABASE_URL": self.database_url, "MANDUA_DATA_DIR": str(self.data_dir)}
        if self.broker_url is not None:
            environment["MANDUA_BROKER_URL"] = self.broker_url
        return environment

    def flower_login(self) -> str:
        """`user:password` for Flower: FLOWER_BASIC_AUTH, else one made once and kept in the data folder.

        Without a login Flower shows its pages to every user of the machine.
        """
        configured = os.environ.get("FLOWER_BASIC_AUTH", "")
        if configured:
            return configured
        make_private_folder(self.data_dir)
        return secret_file(self.data_dir / "flower-login", f"mandua:{secrets.token_urlsafe(12)}")


@contextlib.contextmanager
def ensure_stack(
    data_dir: Path | str | None = None, *, need_broker: bool = True, durable: bool = True, linger: float = LINGER
) -> Iterator[LocalStack]:
    """The servers to use while the block runs; started for it when none is configured and none runs.

    DATABASE_URL and MANDUA_BROKER_URL each take the place of their server. Without `need_broker`, broker_url is the
    configured one or None. Raises LocalStackError when a server cannot be started.
    """
    folder = data_folder(data_dir)
    with contextlib.ExitStack() as stack:
        owned: list[EmbeddedServer] = []

        def use(server: EmbeddedServer) -> str:
            url, owner = stack.enter_context(shared(server, linger=linger))
            if owner:
                owned.append(server)
            return url

        database_url = os.environ.get("DATABASE_URL", "") or use(EmbeddedPostgres(folder / "postgres", durable=durable))
        broker_url: str | None = os.environ.get("MANDUA_BROKER_URL", "") or None
        if broker_url is None and need_broker:
            broker_url = use(EmbeddedValkey(folder / "valkey"))
        yield LocalStack(folder, database_url, broker_url, bool(owned), tuple(owned))


@contextlib.contextmanager
def shared(server: EmbeddedServer, *, linger: float = LINGER) -> Iterator[tuple[str, bool]]:
    """The server's address, and whether this process runs it: started here, or joined where another runs it.

    Two files in the server's folder do this, besides the owner's lock: `address.json` (mode 0600) is there while
    the server may be joined, and `users.lock` is held, shared, by everyone who joined. Who joined reads the address
    again after taking the lock: an owner that ends removes the address first and then waits for the lock.
    """
    address = server.root / "address.json"
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        try:
            url = server.start()
        except ServerBusyError as busy:
            users = _join(server.root, address)
            if users is not None:
                with _closing(users):
                    yield _read(address) or "", False
                return
            if time.monotonic() > deadline:
                raise LocalStackError(f"{busy}, but it does not get ready") from None
            time.sleep(0.05)  # its owner is starting or ending it
            continue
        try:
            write_private(address, json.dumps({"url": url, "owner": os.getpid()}) + "\n")
            try:
                yield url, True
            finally:
                address.unlink(missing_ok=True)
                _wait_for_users(server.root, linger)
        finally:
            server.stop()
        return


def running_address(root: Path) -> str | None:
    """The address of the embedded server that some process runs in this folder, None when none does."""
    with contextlib.suppress(OSError), (root / "owner.lock").open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read(root / "address.json")
    return None


def _join(root: Path, address: Path) -> int | None:
    """Take the users' lock if the server may be joined; the lock's descriptor, to be closed at the end."""
    if _read(address) is None:
        return None
    users = _lock_file(root)
    with contextlib.suppress(BlockingIOError):  # the owner is ending it at this moment
        fcntl.flock(users, fcntl.LOCK_SH | fcntl.LOCK_NB)
        if _read(address) is not None:
            return users
    os.close(users)
    return None


def _wait_for_users(root: Path, seconds: float) -> None:
    with _closing(_lock_file(root)) as users:
        deadline = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    return
                time.sleep(0.05)
            else:
                return


def _lock_file(root: Path) -> int:
    return os.open(root / "users.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read(address: Path) -> str | None:
    """The address in the file; None without one and for one whose owner was killed before it could remove it."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        content = json.loads(address.read_text())
        if proc.is_running(int(content["owner"])):
            return str(content["url"])
    return None
