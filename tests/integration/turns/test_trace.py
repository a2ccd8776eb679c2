"""``trace``: the whole story of a message, also of one whose extraction failed (issue 8)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine

from tests.integration.turns.test_running import GIBBERISH, read_blind, write  # noqa: F401
from tests.scripted_model import Fault, ScriptedModel
from worker import settings
from worker.cli.app import run
from worker.read import trace
from worker.turns.replay import replay

pytestmark = pytest.mark.usefixtures("no_long_waits")

SAID = "Moro em Curitiba, a senha do wifi é Tr0ub4dor9"


@pytest.fixture
def story(database: Engine, rows: Callable[..., list[dict[str, Any]]]) -> Callable[[], dict[str, Any]]:
    """The trace of the newest event, as JSON says it."""

    def do() -> dict[str, Any]:
        event: UUID = rows("SELECT id FROM memory_events ORDER BY recorded_at DESC LIMIT 1")[0]["id"]
        with database.connect() as connection:
            found = trace(connection, event)
        assert found is not None
        told: dict[str, Any] = json.loads(json.dumps(found, default=str))
        return told

    return do


def test_a_message_that_was_stored(
    write: Callable[..., list[Any]],  # noqa: F811
    model: ScriptedModel,
    story: Callable[[], dict[str, Any]],
) -> None:
    model.on(
        "informed_extraction",
        {"entities": [{"name": "Rafael", "type": "person"}, None],
         "facts": [{"subject": "Rafael", "text": "Rafael mora em Curitiba", "confidence_level": "explicit_statement"}]},
    )  # fmt: skip
    write(SAID)
    told = story()
    (run_,) = told["runs"]
    assert (run_["status"], [start["stage"] for start in run_["starts"]]) == (
        "ok", ["extract", "resolve", "reconcile", "upsert"],
    )  # fmt: skip
    (call,) = run_["starts"][0]["calls"]
    assert json.loads(call["sent"])["message"].startswith("Moro em Curitiba")
    assert "Rafael mora em Curitiba" in call["reply"]
    assert "Tr0ub4dor9" not in json.dumps(run_), "what is kept is masked"
    assert run_["result"]["rejected"] or run_["result"]["repairs"]
    steps = {step["name"]: step["data"] for step in run_["steps"]}
    assert steps["entity_resolution"]["entities"][0]["method"] == "speaker"
    assert steps["reconciliation"]["decisions"][0]["action"] == "ADD"
    assert [(fact["how"], fact["fact_text"]) for fact in told["stored"]] == [("made", "Rafael mora em Curitiba")]


def test_one_whose_informed_extraction_failed_tells_every_try(
    write: Callable[..., list[Any]],  # noqa: F811
    model: ScriptedModel,
    story: Callable[[], dict[str, Any]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    model.on("informed_extraction", GIBBERISH)
    read_blind(model, "Rafael mora em Curitiba")
    write("Moro em Curitiba")
    told = story()
    (run_,) = told["runs"]
    first, second, *_ = run_["starts"]
    assert (first["outcome"], first["cause"], first["calls"][0]["reply"]) == ("waits", "bad_reply", GIBBERISH)
    assert (second["outcome"], second["fallback"]) == ("planned", "bad_reply")
    tasks = {call["task"] for call in second["calls"]}
    assert tasks == {"informed_extraction", "entity_scan", "fact_extraction", "relation_extraction", "emotion"}
    assert run_["result"]["degradations"][0]["fell_back_to"] == "blind"
    assert run(["trace", told["event"]["event_id"]]) == 0
    shown = capsys.readouterr().out
    for line in ("extract waits: bad_reply", f"reply: {GIBBERISH}", "extract planned, falling back", "read blind:",
                 "ADD Rafael mora em Curitiba", "made person:rafael"):  # fmt: skip
        assert line in shown


def test_one_that_was_given_up_and_replayed(
    write: Callable[..., list[Any]],  # noqa: F811
    model: ScriptedModel,
    story: Callable[[], dict[str, Any]],
    rows: Callable[..., list[dict[str, Any]]],
) -> None:
    model.on("informed_extraction", Fault.refusal())
    write("Moro em Curitiba")
    (parked,) = story()["runs"]
    assert (parked["state"], parked["starts"][-1]["outcome"], parked["starts"][-1]["cause"]) == (
        "parked", "parked", "refused",
    )  # fmt: skip
    assert parked["starts"][-1]["calls"][0]["cause"] == "refused"
    replay([UUID(story()["event"]["event_id"])])
    first, second = story()["runs"]
    assert (len(first["starts"]), second["starts"]) == (1, []), "it stays with the run that it tells of"
    assert rows("SELECT count(*) AS n FROM run_plans")[0]["n"] == 1


def test_nothing_is_kept_where_nobody_wants_it(
    write: Callable[..., list[Any]],  # noqa: F811
    model: ScriptedModel,
    rows: Callable[..., list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model.on("informed_extraction", {"entities": [], "facts": []})
    monkeypatch.setenv("MANDUA_KEEP_TRACES", "0")
    settings.settings.cache_clear()
    write("Moro em Curitiba")
    assert rows("SELECT trace FROM run_results") == [{"trace": []}]


def test_an_event_that_is_not_there_is_one_line(database: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", "00000000-0000-0000-0000-000000000009"]) == 1
    assert "there is no event" in capsys.readouterr().err
