"""Life signs, and the end of a process whose slot is stuck."""

from __future__ import annotations

import subprocess
import sys

from sqlalchemy import Engine

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


def test_a_stuck_slot_ends_its_process_so_that_it_is_started_again(database_url: str):
    environment = {"DATABASE_URL": database_url, "MANDUA_LEASE_SEC": "0.05", "MANDUA_HEARTBEAT_SEC": "0.05"}
    ended = subprocess.run([sys.executable, "-c", STUCK], env=environment, cwd=".", timeout=25, check=False)
    assert ended.returncode == life.STUCK_EXIT
