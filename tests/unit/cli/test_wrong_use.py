"""What a user can get wrong before any server is asked: one line, the right exit code, no traceback."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from worker.cli import serving
from worker.cli.app import run
from worker.cli.errors import CommandError, explain
from worker.settings import Settings

WRITE = ["write", "--agent", "a", "--speaker", "S"]

# Makes the packages of the extras impossible to import, as in a base install.
BASE_INSTALL = """
import sys
from worker.cli.errors import _EXTRAS
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in _EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
from worker.cli import main
main(sys.argv[1:])
"""


@pytest.fixture(autouse=True)
def _no_servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """None of these may start a server, and what `run` sets for the process is set back."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a server was asked for")

    monkeypatch.setattr(serving, "servers", refuse)
    monkeypatch.setattr("worker.cli.write.servers", refuse)
    monkeypatch.setattr("worker.cli.imports.servers", refuse)
    monkeypatch.setattr("worker.cli.reading.servers", refuse)
    before, show = signal.getsignal(signal.SIGTERM), warnings.showwarning
    yield
    signal.signal(signal.SIGTERM, before)
    warnings.showwarning = show


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["facts", "--agent", "a", "--colour"], "No such option: --colour"),
        (["facts"], "Missing option '--agent'"),
        (["remember"], "No such command 'remember'"),
        (["facts", "--agent", "a", "--limit", "0"], "--limit"),
        (["facts", "--agent", " \u200b"], "--agent is blank"),
        (["write", "--agent", " ", "--speaker", "S", "x"], "agent_id is blank"),
        (["write", "--agent", "a", "--speaker", "\u2060", "x"], "speaker_name is blank"),
        ([*WRITE, "--occurred-at", "2024-05-01T10:00:00", "x"], "2025-06-15T23:30:00-03:00"),
        ([*WRITE, "--occurred-at", "yesterday", "x"], "is not an ISO 8601 time"),
        ([*WRITE, "x" * 200_001], "at most 200000 fit"),
        ([*WRITE, "--set", "topk", "x"], "write it as key=value"),
        ([*WRITE, "--set", "fuzzy_threshold=true", "x"], "fuzzy_threshold"),
        ([*WRITE, "--message-id", "", "x"], "message_id is blank"),
        (["import", "/nowhere/chat.jsonl"], "/nowhere/chat.jsonl"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err
    assert len(printed.err.splitlines()) == 1
    assert printed.err.startswith("mandua: ")


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    printed = capsys.readouterr()
    assert "Commands:" in printed.err
    assert printed.out == ""


@pytest.mark.parametrize("blank", ["", "  \n", "\u200b\u2060"])
def test_a_blank_message_is_no_error_and_needs_no_server(blank: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*WRITE, "--wait", "--json", blank]) == 0
    assert json.loads(capsys.readouterr().out) == {"status": "empty"}


def test_an_unknown_setting_is_said_and_ignored(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*WRITE, "--set", "no_such=1", " "]) == 0
    assert "no_such" in capsys.readouterr().err


def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MANDUA_EMBEDDING_DIMENSIONS", "wide")
    with pytest.raises(ValidationError) as raised:
        Settings()
    explained = explain(raised.value)
    assert explained is not None
    assert explained[0].startswith("MANDUA_EMBEDDING_DIMENSIONS: ")


@pytest.mark.parametrize(
    ("name", "value"),
    [("DATABASE_URL", "mysql://x"), ("DATABASE_URL", "host"), ("MANDUA_BROKER_URL", "localhost"),
     ("MANDUA_BROKER_URL", "carrier-pigeon://x")],
)  # fmt: skip
def test_an_address_that_is_none_is_named(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(CommandError, match=f"{name} is not an address like"):
        serving.check_addresses()


@pytest.mark.parametrize("value", ["redis://h/0", "amqp://u:p@h//", "rediss://h", "sentinel://h"])
def test_addresses_of_common_brokers_are_addresses(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MANDUA_BROKER_URL", value)
    serving.check_addresses()


def test_a_bug_of_ours_is_not_hidden() -> None:
    assert explain(KeyError("x")) is None


def test_help_imports_nothing_heavy() -> None:
    heavy = ["celery", "sqlalchemy", "alembic", "litellm", "numpy", "psycopg", "rich", "structlog"]
    asked = f"import sys, worker.cli.app; print([name for name in {heavy!r} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_base_install_has_help_and_says_what_is_missing(tmp_path: Path) -> None:
    def mandua(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", BASE_INSTALL, *arguments, "--data-dir", str(tmp_path)]
        return subprocess.run(command[: -2 if "--help" in arguments else None], capture_output=True, text=True)

    assert "Commands:" in mandua("--help").stdout
    failed = mandua("facts", "--agent", "a")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "pip install 'mandua[local]'" in failed.stderr
    assert len(failed.stderr.splitlines()) == 1
