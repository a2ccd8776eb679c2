from __future__ import annotations

import json

import pytest

from worker.cli.progress import Progress


def test_json_events_begin_and_end_each_phase_and_say_rate_and_rest(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(as_json=True) as told:
        for done, of in ((0, None), (5, None), (9, None)):
            told("reading", done, of)
        for done in (0, 3, 9):
            told("accepting", done, 9)
    printed = capsys.readouterr()
    assert printed.out == ""
    events = [json.loads(line) for line in printed.err.splitlines()]
    assert [(event["phase"], event["done"], event["of"]) for event in events] == [
        ("reading", 0, None), ("accepting", 0, 9), ("accepting", 9, 9),
    ]  # fmt: skip
    assert (events[-1]["seconds_left"], events[-1]["per_sec"] > 0) == (0, True)


def test_without_a_terminal_there_are_plain_lines_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter((100.0, 101.0, 110.0, 130.0, 130.0))
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    with Progress() as told:
        for done in (0, 10, 100, 250):
            told("running", done, 1000)
    assert capsys.readouterr().err.splitlines() == [
        "mandua: running: 0 of 1000",
        "mandua: running: 100 of 1000, 10 a second, 2 min left",
        "mandua: running: 250 of 1000, 8.3 a second, 2 min left",
    ]
