"""A total deadline, whatever the call does."""

from __future__ import annotations

import threading
import time

import pytest

from worker.llm import deadline
from worker.llm.deadline import DeadlineExceeded, call_within, remaining


def test_a_result_and_an_error_come_through() -> None:
    assert call_within(5, lambda: 42) == 42
    with pytest.raises(KeyError):
        call_within(5, lambda: dict[str, int]()["x"])


def test_a_call_that_takes_too_long_is_given_up() -> None:
    go, ended = threading.Event(), threading.Event()
    with pytest.raises(DeadlineExceeded):
        call_within(0.1, lambda: go.wait(60) and ended.set())
    assert not ended.is_set()
    go.set()
    assert ended.wait(10)


def test_no_time_left_means_no_call() -> None:
    calls: list[int] = []
    with pytest.raises(DeadlineExceeded):
        call_within(0, lambda: calls.append(1))
    assert calls == []


def test_the_call_knows_what_is_left() -> None:
    assert remaining() is None
    left = call_within(5, remaining)
    assert left is not None
    assert 4 < left <= 5


def test_too_many_hanging_calls_refuse_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "MAX_ABANDONED", 1)
    go = threading.Event()
    ended = threading.Event()

    def hang() -> None:
        go.wait(10)
        ended.set()

    with pytest.raises(DeadlineExceeded):
        call_within(0.05, hang)
    with pytest.raises(DeadlineExceeded):
        call_within(5, lambda: 1)
    go.set()
    assert ended.wait(5)
    for _ in range(100):
        if not deadline._abandoned:
            break
        time.sleep(0.01)
    assert call_within(5, lambda: 1) == 1
