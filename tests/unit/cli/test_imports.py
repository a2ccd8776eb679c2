"""``import --dry-run`` and what a user can get wrong in an import; no server is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.producer.importing.exports import FIXTURES, written, zipped
from worker.cli.app import run

CHAT = "03/04/24 10:00 - Rita: oi\n25/04/24 10:00 - Rita: ok\n26/04/24 10:00 - Helper: claro\n"


@pytest.fixture(autouse=True)
def _no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a server was asked for")

    monkeypatch.setattr("worker.cli.imports.servers", refuse)


def test_a_preview_says_who_is_who_and_what_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chat = written(tmp_path, "c.txt", CHAT + "26/04/24 10:01 - Rita: <Mídia oculta>\n")
    people = written(tmp_path, "people.json", {"Helper": "assistant", "Rita": "Rita Souza"})
    options = ["--speaker-map", str(people), "--timezone", "America/Recife", "--since", "2024-04-20"]
    assert run(["import", str(chat), "--agent", "a", "--dry-run", "--json", *options]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert (seen["messages"], seen["calls"], seen["date_order"]) == (2, 1, "DMY")
    assert seen["roles"] == {"Rita Souza": "user", "assistant": "assistant"}
    assert seen["first"] == "2024-04-25T10:00:00-03:00"
    assert seen["skipped"] == {"before --since": 1, "picture, file or the like without a caption": 1}
    assert seen["warnings"] == []


def test_a_preview_needs_no_agent_and_takes_folders_and_archives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["import", str(FIXTURES / "slack"), "--dry-run"]) == 0
    assert 'format: "slack"' in capsys.readouterr().out
    archive = zipped(tmp_path / "a.zip", {"_chat.txt": CHAT})
    assert run(["import", str(archive), "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["messages"] == 3


def test_what_to_do_is_said_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    known = "0f0626a9-4243-47e8-bbc5-ff7eaf9c2995"
    file = str(written(tmp_path, "c.txt", CHAT))
    for arguments, said in (
        ([], "say one thing"), ([file, "--resume", known], "say one thing"),
        (["--follow", "7"], "Invalid value for '--follow'"),
        (["--resume", known, "--dry-run"], "--dry-run looks into a file"),
        ([file, "--agent", "a", "--limit-cost", "0"], "must be more than 0"),
        ([file, "--agent", "a", "--batch", "17"], "less than or equal to 16"),
    ):  # fmt: skip
        assert run(["import", *arguments]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        ("just a note\n", ["--dry-run"], "is no export known here; seen: text"),
        ("03/04/24 10:00 - R: oi\n", ["--dry-run"], "say which with --date-order DMY or MDY"),
        (CHAT, ["--dry-run", "--date-order", "DYM"], "write DMY, MDY or YMD"),
        (CHAT, ["--dry-run", "--timezone", "Nowhere"], "no time zone known here"),
        (CHAT, ["--dry-run", "--format", "telegramm"], "did you mean 'telegram'"),
        (CHAT, ["--dry-run", "--until", "later"], "neither a date nor a time"),
        (CHAT, [], "give an agent_id (--agent)"),
    ],
)
def test_wrong_use_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, arguments: list[str], said: str
) -> None:
    assert run(["import", str(written(tmp_path, "c.txt", content)), *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err
    assert len(printed.err.splitlines()) == 1, printed.err
