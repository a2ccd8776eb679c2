"""Run by `./mandua` with any Python 3.11+ as `python bootstrap.py CHECKOUT ARG…`: installs, then becomes the command.

Standard library only. The environment is `.venv` in the checkout, or in the user's cache folder when the checkout is
not writable. It is installed from `requirements.lock` by a pinned uv, itself fetched by pip into a folder of its own
(`--target`), which works where Debian forbids pip to install and ships no `venv`. Three files in the environment say
how far it is: `.mandua-installing` while it is being made (found later, it is made anew), `.mandua-lock` (a copy of
what it was installed from) and `.mandua-home` (the checkout that it was made for).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NoReturn

DEFAULT_TESTS = "not chaos and not bench"


class CannotInstallError(Exception):
    """Why the installation did not work, in one line; `details` is what the installer printed."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


class Installation:
    """The environment of one checkout."""

    def __init__(self, checkout: Path) -> None:
        self.checkout = checkout
        self.lock_file = checkout / "requirements.lock"
        self.base = _base_folder(checkout)
        self.venv = self.base / ".venv"
        self.python = self.venv / "bin" / "python"
        self._installing = self.venv / ".mandua-installing"
        self._installed_lock = self.venv / ".mandua-lock"
        self._installed_home = self.venv / ".mandua-home"

    def is_current(self) -> bool:
        """Whether the environment is complete, for this checkout, and from the lock as it is now."""
        with contextlib.suppress(OSError):
            return (
                os.access(self.python, os.X_OK)
                and not self._installing.exists()
                and self._installed_home.read_text().strip() == str(self.checkout)
                and self._installed_lock.read_bytes() == self.lock_file.read_bytes()
            )
        return False

    def ensure(self) -> None:
        """Install unless that is done; a second caller waits for the first. Raises CannotInstallError."""
        if self.is_current():
            return
        private = self.base / ".mandua"
        private.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (private / "install.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.is_current():
                _say("installing into " + str(self.venv) + " (the first time, and when requirements.lock changes) …")
                began = time.monotonic()
                self._install(private)
                _say(f"installed in {time.monotonic() - began:.0f} s")

    def _install(self, private: Path) -> None:
        environment = _installer_environment(private)
        uv = _uv(private, self.checkout / "requirements-uv.lock", environment)
        if not self._can_be_updated():
            _run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(self.venv)], environment)
        self._installing.touch()
        self._installed_lock.unlink(missing_ok=True)
        lock = self.lock_file.read_bytes()
        # Wheels only: no compiler is needed, and no package's own code runs while it is installed. Compiled to
        # bytecode at once (about 5 s), since otherwise each process of the first run does it for itself.
        options = ["--quiet", "--require-hashes", "--no-build", "--compile-bytecode", "--python", str(self.python)]
        _run([uv, "pip", "sync", *options, str(self.lock_file)], environment)
        self._link_checkout()
        self._installed_home.write_text(f"{self.checkout}\n")
        self._installed_lock.write_bytes(lock)
        self._installing.unlink()

    def _can_be_updated(self) -> bool:
        """False for an environment that is missing, half made, without its Python, or moved: its scripts name it."""
        with contextlib.suppress(FileNotFoundError):
            if self._installed_home.read_text().strip() != str(self.checkout):
                return False
        return os.access(self.python, os.X_OK) and not self._installing.exists()

    def _link_checkout(self) -> None:
        """Make `import worker` work from every folder: a line in the environment's path, no build."""
        asked = [str(self.python), "-I", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
        folder = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        (Path(folder) / "mandua_checkout.pth").write_text(f"{self.checkout}\n")


def _base_folder(checkout: Path) -> Path:
    if os.access(checkout, os.W_OK):
        return checkout
    return _cache_folder() / "mandua" / hashlib.sha256(str(checkout).encode()).hexdigest()[:16]


def _cache_folder() -> Path:
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    home = os.path.expanduser("~")  # noqa: PTH111 - unlike Path's, it does not raise for a user without a home
    return Path(chosen) if chosen.startswith("/") else Path(home) / ".cache"


def _uv(private: Path, pinned: Path, environment: dict[str, str]) -> str:
    """The path of the pinned uv, installed if it is not there yet; else of one that the user has."""
    label = hashlib.sha256(pinned.read_bytes()).hexdigest()[:12]
    folder = private / f"uv-{label}"
    program = folder / "bin" / "uv"
    if program.exists():
        return str(program)
    with tempfile.TemporaryDirectory(prefix="uv-", dir=private) as draft:
        pip = _pip(Path(draft), environment)
        if pip is None:
            own = shutil.which("uv")
            if own is not None:
                return own
            raise CannotInstallError(
                f"{sys.executable} has neither pip nor venv: install one of them "
                "(Debian, Ubuntu: apt install python3-pip; Fedora: dnf install python3-pip), or uv"
            )
        target = Path(draft) / "uv"
        options = ["--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]
        _run([*pip, "install", *options, "--target", str(target), "--requirement", str(pinned)], environment)
        shutil.rmtree(folder, ignore_errors=True)
        target.rename(folder)
    return str(program)


def _pip(draft: Path, environment: dict[str, str]) -> list[str] | None:
    """A command that runs pip: this Python's, else that of a throw-away environment, else None."""
    if _works([sys.executable, "-m", "pip", "--version"], environment):
        return [sys.executable, "-m", "pip"]
    venv = draft / "pip"
    if _works([sys.executable, "-m", "venv", str(venv)], environment):
        return [str(venv / "bin" / "python"), "-m", "pip"]
    return None


def _installer_environment(private: Path) -> dict[str, str]:
    """The environment for pip and uv: what the user configured for pip holds for uv as well."""
    environment = dict(os.environ)
    environment.pop("PYTHONPATH", None)
    environment |= {
        "PIP_USER": "0",  # both would forbid --target
        "PIP_REQUIRE_VIRTUALENV": "0",
        "PIP_ROOT_USER_ACTION": "ignore",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_PYTHON_DOWNLOADS": "never",
    }
    cache = _cache_folder()
    nearest = next((folder for folder in (cache, *cache.parents) if folder.exists()), cache)
    if "UV_CACHE_DIR" not in environment and not os.access(nearest, os.W_OK):
        environment["UV_CACHE_DIR"] = str(private / "uv-cache")
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], env=environment, capture_output=True, text=True, check=False
    )
    configured: dict[str, str] = {}
    for line in listed.stdout.splitlines():
        name, _, value = line.partition("=")
        configured[name.rpartition(".")[2]] = value.strip("'\"")  # later lines (the environment) win
    # One registry and its certificate; further ones are left to uv's own settings, whose order is another one.
    for setting, variable in (("index-url", "UV_DEFAULT_INDEX"), ("cert", "SSL_CERT_FILE")):
        if configured.get(setting):
            environment.setdefault(variable, configured[setting])
    return environment


def _works(command: list[str], environment: dict[str, str]) -> bool:
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        program = Path(command[0]).name if command[1] != "-m" else command[2]
        words = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise CannotInstallError(
            f"the installation failed in {program}; is the package registry reachable?", "\n".join(words)
        )


def _say(text: str) -> None:
    print(f"mandua: {text}", file=sys.stderr, flush=True)


def command_line(arguments: list[str]) -> list[str]:
    """Python's arguments: pytest for `test [chaos|bench] …`, else the CLI."""
    if arguments[:1] != ["test"]:
        # -P: a folder `worker` where the user happens to be must not be taken for ours
        return ["-P", "-m", "worker.cli", *arguments]
    rest = arguments[1:]
    if rest[:1] in (["chaos"], ["bench"]):
        return ["-m", "pytest", "-m", *rest]
    # A process a core, a module's tests together (they share a stack); `-n 0` to debug. In the order of the folders:
    # by default the modules with the fewest tests go last, and those are the longest, so that a core would idle.
    spread = ["-n", "auto", "--dist", "loadscope", "--no-loadscope-reorder"]
    return ["-m", "pytest", *spread, "-m", DEFAULT_TESTS, *rest]


def main(arguments: list[str]) -> NoReturn:
    """Install if needed and become the command; exits with 1 and one clear line when the installation fails."""
    checkout = Path(arguments[0])
    installation = Installation(checkout)
    try:
        installation.ensure()
    except (CannotInstallError, OSError) as error:
        if isinstance(error, CannotInstallError) and error.details:
            print(error.details, file=sys.stderr)
        _say(str(error))
        sys.exit(1)
    except KeyboardInterrupt:
        _say("interrupted; the next run installs anew")
        sys.exit(130)
    command = command_line(arguments[1:])
    if arguments[1:2] == ["test"]:
        os.chdir(checkout)
        if not os.access(checkout, os.W_OK):
            command += ["-p", "no:cacheprovider"]
    os.execv(installation.python, [str(installation.python), *command])


if __name__ == "__main__":
    main(sys.argv[1:])
