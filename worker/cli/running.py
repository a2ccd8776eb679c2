"""``up``, ``worker``, ``beat``, ``flower``: the processes that do the work, in the foreground."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from worker.cli import console
from worker.cli.errors import CommandError
from worker.cli.serving import (
    DataDir,
    bring_up_to_date,
    broker_is_embedded,
    check_database,
    database_is_embedded,
    servers,
    worker_answers,
)

if TYPE_CHECKING:
    from worker.local.stack import LocalStack

FLOWER_PORTS = range(5555, 5655)


def up(data_dir: DataDir = None) -> None:
    """Run everything in the foreground until Ctrl-C.

    Servers (unless configured), workers, beat, Flower; what ends is started again.
    """
    from worker.local.processes import ProcessRunner
    from worker.local.procfile import read_procfile

    with servers(data_dir) as stack, _alone(stack.data_dir):
        bring_up_to_date(stack.database_url)
        check_database(stack.database_url)
        environment = stack.environment()
        environment["FLOWER_BASIC_AUTH"] = stack.flower_login()
        environment.setdefault("MANDUA_FLOWER_PORT", str(_free_port()))
        with _address_file(stack) as addresses:
            runner = ProcessRunner(read_procfile(), environment, cwd=stack.data_dir)
            ended = threading.Event()
            told = threading.Thread(target=_tell_when_ready, args=(stack, environment, addresses, ended), daemon=True)
            told.start()
            try:
                runner.run()
            finally:
                ended.set()
                told.join(2)


def worker(context: typer.Context, data_dir: DataDir = None) -> None:
    """Run a Celery worker.

    Further options are Celery's, as in `-Q live --concurrency 4`.
    """
    _run_celery("worker", context.args, data_dir)


def beat(context: typer.Context, data_dir: DataDir = None) -> None:
    """Run Celery beat, the clock; one is enough.

    Further options are Celery's.
    """
    _run_celery("beat", context.args, data_dir)


def flower(context: typer.Context, data_dir: DataDir = None) -> None:
    """Run Flower, which shows what the workers do.

    Further options are Flower's, as in `--port=8080`.
    """
    _run_celery("flower", context.args, data_dir)


def _run_celery(name: str, arguments: list[str], data_dir: Path | None) -> NoReturn:
    """Become the Procfile's process ``name``, or run it as a child where servers have to be kept for it."""
    from worker.local.stack import data_folder

    if name == "flower" and not os.environ.get("FLOWER_BASIC_AUTH"):
        console.say("Flower's login is the one in the data folder (flower-login); set FLOWER_BASIC_AUTH for your own")
    if not broker_is_embedded() and (name == "flower" or not database_is_embedded()):
        from worker.local.stack import LocalStack

        folder = data_folder(data_dir)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stack = LocalStack(folder, os.environ.get("DATABASE_URL", ""), os.environ["MANDUA_BROKER_URL"], owns=False)
        argv, environment = _command(name, arguments, stack)
        os.chdir(folder)
        sys.stderr.flush()
        os.execve(argv[0], argv, dict(environment))
    with servers(data_dir) as stack:
        argv, environment = _command(name, arguments, stack)
        raise SystemExit(_wait_for_child(argv, environment, stack.data_dir))


def _command(name: str, arguments: list[str], stack: LocalStack) -> tuple[list[str], Mapping[str, str]]:
    """The Procfile's line with ``arguments`` behind it, and its environment."""
    from worker.local.procfile import read_procfile, select

    (line,) = select(read_procfile(), [name])
    environment = stack.environment()
    if not environment["DATABASE_URL"]:
        del environment["DATABASE_URL"]
    if name == "flower":
        environment["FLOWER_BASIC_AUTH"] = stack.flower_login()
    # `celery` in the line is the one next to this Python, whether or not its environment is activated.
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment.get('PATH', os.defpath)}"
    return ["/bin/sh", "-c", f'exec {line.command} "$@"', name, *arguments], environment


def _wait_for_child(argv: list[str], environment: Mapping[str, str], folder: Path) -> int:
    """Run a child that ends with us; SIGTERM and Ctrl-C are passed on, once, and it is waited for."""
    from worker.local.spawn import spawn

    child = spawn(argv, death_signal=signal.SIGTERM, environment=environment, cwd=folder)
    try:
        return _exit_code(child.wait())
    except BaseException:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            return _exit_code(child.wait(60))
        os.killpg(child.pid, signal.SIGKILL)
        raise


def _exit_code(code: int) -> int:
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Refuse a second `up` on the same folder. Raises CommandError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / "up.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(f"it is up already, with the data in {folder}") from None
        yield


@contextlib.contextmanager
def _address_file(stack: LocalStack) -> Iterator[Path]:
    """The addresses with their passwords, in a file for its owner alone that a shell can read, while we are up."""
    from worker.local.server import write_private

    file = stack.data_dir / "urls.env"
    write_private(file, f"DATABASE_URL={stack.database_url}\nMANDUA_BROKER_URL={stack.broker_url or ''}\n")
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)


def _tell_when_ready(
    stack: LocalStack, environment: Mapping[str, str], addresses: Path, ended: threading.Event
) -> None:
    """Print the addresses once a worker answers."""
    from producer.errors import BrokerDown

    while not ended.is_set():
        try:
            if worker_answers(stack.broker_url or "", timeout=0.5):
                break
        except BrokerDown:
            ended.wait(0.5)
    else:
        return
    host = environment.get("MANDUA_FLOWER_ADDRESS", "127.0.0.1")
    console.show("mandua is up")
    console.show(f"  database  {_masked(stack.database_url)}")
    console.show(f"  broker    {_masked(stack.broker_url or '')}")
    console.show(f"            with passwords: set -a; . {addresses}")
    console.show(f"  Flower    http://{host}:{environment['MANDUA_FLOWER_PORT']}")
    console.show(f"            login: {_login_place(stack)}")
    console.show("Ctrl-C ends it.")


def _login_place(stack: LocalStack) -> str:
    if os.environ.get("FLOWER_BASIC_AUTH"):
        return "as FLOWER_BASIC_AUTH says"
    return f"in {stack.data_dir / 'flower-login'}"


def _masked(url: str) -> str:
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", url)


def _free_port() -> int:
    """Flower's usual port, else the next one that is free."""
    for port in FLOWER_PORTS:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port
    raise CommandError("no port is free for Flower; set MANDUA_FLOWER_PORT")
