"""Life signs, and the end of a process whose slot is stuck."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest
from sqlalchemy import Engine, event

from worker import settings
from worker.turns import life

STUCK = """
import threading, uuid
from worker.turns import life
life.worker_name()
with life.at_work(uuid.uuid4()):
    threading.Event().wait(30)
"""


def test_a_process_beats_under_one_name_and_leaves_the_list(database: Engine, rows):
    assert life.worker_name() == life.worker_name()
    assert [row["name"] for row in rows("SELECT name FROM workers")] == [life.worker_name()]
    life.leave()
    assert rows("SELECT name FROM workers") == []


def test_a_beat_under_way_does_not_put_who_leaves_on_the_list_again(
    database: Engine, rows, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MANDUA_HEARTBEAT_SEC", "0.001")
    settings.settings.cache_clear()
    life.worker_name()
    under_way, left = threading.Event(), threading.Event()

    @event.listens_for(database, "before_cursor_execute")
    def _hold_the_beat(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if threading.current_thread().name == "life-signs" and "INSERT INTO workers" in statement:
            under_way.set()
            left.wait(0.3)  # whoever leaves first, and beats then, is found on the list

    assert under_way.wait(10)
    life.leave()
    left.set()
    assert "life-signs" not in [thread.name for thread in threading.enumerate()]
    assert rows("SELECT name FROM workers") == []


def test_a_stuck_slot_ends_its_process_so_that_it_is_started_again(database_url: str):
    environment = {"DATABASE_URL": database_url, "MANDUA_LEASE_SEC": "0.05", "MANDUA_HEARTBEAT_SEC": "0.05"}
    ended = subprocess.run([sys.executable, "-c", STUCK], env=environment, cwd=".", timeout=25, check=False)
    assert ended.returncode == life.STUCK_EXIT
