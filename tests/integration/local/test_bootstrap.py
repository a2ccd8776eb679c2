"""The launcher with stand-ins for the programs that it runs: what it calls, when, and what it leaves.

A real installation takes many seconds and a registry; CI makes one each time it calls `./mandua`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.local.conftest import CHECKOUT
from worker.local import bootstrap
from worker.local.bootstrap import CannotInstallError, Installation, command_line

# Makes an environment as uv does, and fails in `pip sync` while a file `broken` stands next to it.
UV = """#!/bin/sh
echo "$@" >> {log}
case $1 in
venv) for last; do :; done; rm -rf "$last"; {python} -m venv --without-pip "$last" ;;
pip) [ ! -e {broken} ] || {{ echo "no registry" >&2; exit 2; }} ;;
esac
"""


class Checkout:
    """A checkout with a lock, an installer that keeps a log, and the calls in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "requirements.lock").write_text("one==1\n")
        (folder / "requirements-uv.lock").write_text("uv==1\n")
        self.broken = folder / "broken"
        self._log = folder / "log"
        self.uv = folder / "uv"
        self.uv.write_text(UV.format(log=self._log, python=sys.executable, broken=self.broken))
        self.uv.chmod(0o755)

    def calls(self) -> list[str]:
        """The first word of each call of uv since the last time."""
        words = [line.split()[0] for line in self._log.read_text().splitlines()] if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return words


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    checkout = Checkout(tmp_path / "checkout")
    monkeypatch.setattr(bootstrap, "_uv", lambda *_: str(checkout.uv))
    return checkout


def test_installs_once_and_again_when_the_lock_changes(checkout: Checkout) -> None:
    installation = Installation(checkout.folder)
    installation.ensure()
    assert checkout.calls() == ["venv", "pip"]
    installation.ensure()
    assert checkout.calls() == []
    (checkout.folder / "requirements.lock").write_text("one==2\n")
    installation.ensure()
    assert checkout.calls() == ["pip"]


def test_the_checkout_can_be_imported_from_everywhere(checkout: Checkout) -> None:
    (checkout.folder / "worker_of_this_test.py").write_text("")
    installation = Installation(checkout.folder)
    installation.ensure()
    subprocess.run([installation.python, "-P", "-c", "import worker_of_this_test"], cwd="/", check=True)


def test_a_failed_or_interrupted_installation_is_made_anew(checkout: Checkout) -> None:
    installation = Installation(checkout.folder)
    checkout.broken.touch()
    with pytest.raises(CannotInstallError, match="is the package registry reachable") as caught:
        installation.ensure()
    assert caught.value.details == "no registry"
    assert not installation.is_current()
    checkout.broken.unlink()
    checkout.calls()
    installation.ensure()
    assert checkout.calls() == ["venv", "pip"]


def test_a_moved_checkout_is_installed_anew(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    Installation(checkout.folder).ensure()
    moved = checkout.folder.with_name("moved")
    checkout.folder.rename(moved)
    monkeypatch.setattr(bootstrap, "_uv", lambda *_: str(moved / "uv"))
    installation = Installation(moved)
    assert not installation.is_current()
    (moved / "log").unlink()
    checkout.folder.mkdir()  # the log's place
    installation.ensure()
    assert checkout.calls() == ["venv", "pip"]


def test_what_python_is_asked_to_run() -> None:
    assert command_line(["write", "--agent", "a"]) == ["-P", "-m", "worker.cli", "write", "--agent", "a"]
    default = ["-m", "pytest", "-n", "auto", "--dist", "loadscope", "--no-loadscope-reorder"]
    default += ["-m", "not chaos and not bench"]
    assert command_line(["test"]) == default
    assert command_line(["test", "-k", "x"]) == [*default, "-k", "x"]
    assert command_line(["test", "chaos", "-x"]) == ["-m", "pytest", "-m", "chaos", "-x"]
    assert command_line(["test", "bench"]) == ["-m", "pytest", "-m", "bench"]


def stand_in(path: Path, says: str, version_check: str = "True True") -> None:
    """A program in Python's place: it answers the launcher's version check, else prints what it was called with."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\ncase "$*" in *version_info*) echo {version_check} ;; *) echo {says} "$@" ;; esac\n')
    path.chmod(0o755)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The launcher in a folder of its own, called through a link; PATH of `run` holds little but stand-ins."""
    here = tmp_path / "here"
    here.mkdir()
    shutil.copy(CHECKOUT / "mandua", here / "mandua")
    (here / "requirements.lock").write_text("one==1\n")
    for program in ("readlink", "dirname", "cat", "cmp", "sh"):
        found = shutil.which(program)
        assert found is not None
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / program).symlink_to(found)
    link = tmp_path / "link"
    link.symlink_to(here / "mandua")
    return link


def run(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(script.parent / "bin"), "HOME": os.environ.get("HOME", "/")}
    return subprocess.run([script, *arguments], env=environment, capture_output=True, text=True, check=False)


def test_a_finished_installation_is_used_at_once(script: Path) -> None:
    here = script.parent / "here"
    stand_in(here / ".venv" / "bin" / "python", "installed")
    stand_in(script.parent / "bin" / "python3", "found")
    assert run(script, "facts").stdout.startswith("found -B -I ")
    (here / ".venv" / ".mandua-home").write_text(f"{here.resolve()}\n")
    (here / ".venv" / ".mandua-lock").write_text("one==1\n")
    assert run(script, "facts", "a b").stdout == "installed -P -m worker.cli facts a b\n"
    assert run(script, "test").stdout.startswith("found -B -I ")
    (here / "requirements.lock").write_text("one==2\n")
    assert run(script, "facts").stdout.startswith("found -B -I ")


def test_the_first_python_that_fits_is_taken(script: Path) -> None:
    programs = script.parent / "bin"
    stand_in(programs / "python3", "too-old", "False True")
    nothing = run(script, "status")
    assert nothing.returncode == 1
    assert nothing.stdout == ""
    assert nothing.stderr.startswith("mandua: needs Python 3.11 or newer, and found none")
    assert nothing.stderr.count("\n") == 1
    stand_in(programs / "python3.14", "newest", "True False")
    assert run(script).stdout.startswith("newest ")
    stand_in(programs / "python3.12", "tried")
    assert run(script).stdout.startswith("tried ")
