"""A stage failure is FAILURE under its task's name in a real Flower, and no answer of Flower quotes a message."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tests.acceptance.stack import Stack, lives_in
from tests.processes import CeleryProcess
from tests.scripted_model import Fault
from worker.local.server import free_port

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SECRET = "Xyloquartz"
LOGIN = "operator:let-me-look"


class Flower:
    """A running Flower, asked over HTTP."""

    def __init__(self, port: int) -> None:
        self._port = port

    def page(self, path: str, *, login: str = LOGIN) -> str:
        """A page as a browser has it in the end, scripts and their requests included."""
        assert CHROMIUM is not None
        with tempfile.TemporaryDirectory(prefix="mandua-chromium-") as profile:
            shown = subprocess.run(
                [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 f"--user-data-dir={profile}", "--virtual-time-budget=8000", "--dump-dom",
                 f"http://{login}@127.0.0.1:{self._port}{path}"],
                check=True, capture_output=True, text=True, errors="replace", timeout=90,
            )  # fmt: skip
        return shown.stdout

    def __call__(self, path: str, *, login: str | None = LOGIN, post: bytes | None = None) -> str:
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}{path}", data=post)
        if login is not None:
            request.add_header("Authorization", "Basic " + base64.b64encode(login.encode()).decode())
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.read().decode("utf-8", "replace")
        except urllib.error.HTTPError as error:
            error.close()
            raise

    def answers(self) -> bool:
        """Whether it is up."""
        try:
            return "OK" in self("/healthcheck")
        except OSError:
            return False


@pytest.fixture
def flower(stack: Stack) -> Flower:
    """A real Flower beside the stack."""
    port = free_port()
    process = CeleryProcess(
        ["flower", "--address=127.0.0.1", f"--port={port}", "--read-only"],
        {**stack.environment, "FLOWER_BASIC_AUTH": LOGIN},
    )
    stack.processes.append(process)

    asked = Flower(port)
    stack.until(asked.answers)
    return asked


def failures(ask: Flower, task: str) -> list[dict]:
    """What Flower's API knows of failed tasks of one name."""
    return list(json.loads(ask(f"/api/tasks?state=FAILURE&taskname={task}")).values())


@contextmanager
def without_table(stack: Stack, table: str) -> Iterator[None]:
    """An injected database error: the table is gone meanwhile."""
    with psycopg.connect(stack.database_url, autocommit=True) as connection:
        connection.execute(f"ALTER TABLE {table} RENAME TO {table}_gone")
        try:
            yield
        finally:
            connection.execute(f"ALTER TABLE {table}_gone RENAME TO {table}")


def test_failures_show_under_their_stage_and_the_text_nowhere(stack: Stack, flower: Flower):
    worker = stack.worker()
    stack.model.on("informed_extraction", lives_in)
    with stack.client() as client:
        fine = client.enqueue("fine", f"I live in {SECRET} Town", "Rafael")
        fine.result(30)

        stack.model.queue("informed_extraction", Fault.refusal(f"I will not talk about {SECRET}"))
        refused = client.enqueue("refused", f"I live in {SECRET} City", "Rafael").result(30)
        assert (refused.status, refused.error) == ("failed", "extract: refused")

        with stack.model.hold("informed_extraction") as hold:
            broken = client.enqueue("broken", f"I live in {SECRET} Village", "Rafael")
            hold.wait_arrived()
            with without_table(stack, "memory_entity_aliases"):
                hold.release()
                result = broken.result(30)
        assert (result.status, result.error) == ("failed", "resolve: own_error")

    (extract,) = stack.until(lambda: failures(flower, "mandua.extract"))
    (resolve,) = stack.until(lambda: failures(flower, "mandua.resolve"))
    assert extract["exception"].startswith("StageFailed('extract: refused")
    assert resolve["exception"].startswith("StageFailed('resolve: own_error (UndefinedTable 42P01)")
    seen = [flower("/api/tasks"), flower("/tasks"), flower("/workers"), flower("/metrics"), flower("/api/workers")]
    seen += [flower(f"/api/task/info/{task['uuid']}") for task in (extract, resolve)]
    seen += [flower(f"/task/{task['uuid']}") for task in (extract, resolve)]
    assert any("mandua.record_event" in page for page in seen)
    assert [page for page in seen if SECRET in page] == []
    assert SECRET not in worker.output


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt install chromium")
def test_a_browser_shows_a_failed_resolve_under_its_name_and_no_text(stack: Stack, flower: Flower):
    stack.worker()
    stack.model.on("informed_extraction", lives_in)
    with stack.client() as client, stack.model.hold("informed_extraction") as hold:
        broken = client.enqueue("broken", f"I live in {SECRET} Village", "Rafael")
        hold.wait_arrived()
        with without_table(stack, "memory_entity_aliases"):
            hold.release()
            assert broken.result(30).error == "resolve: own_error"
    (resolve,) = stack.until(lambda: failures(flower, "mandua.resolve"))

    page = flower.page("/tasks")
    rows = [row for row in re.findall(r"<tr.*?</tr>", page, re.DOTALL) if resolve["uuid"] in row]
    assert len(rows) == 1, page[-3000:]
    assert "mandua.resolve" in rows[0]
    assert "FAILURE" in rows[0]
    assert "mandua.record_event" in page
    detail = flower.page(f"/task/{resolve['uuid']}")
    assert "resolve: own_error" in detail
    for shown in (page, detail, flower.page("/workers")):
        assert SECRET not in shown
        assert "Rafael" not in shown


def test_flower_changes_nothing_and_shows_nothing_without_its_login(stack: Stack, flower: Flower):
    stack.worker()
    with pytest.raises(urllib.error.HTTPError) as unknown:
        flower("/api/tasks", login=None)
    assert unknown.value.code == 401
    with pytest.raises(urllib.error.HTTPError) as refused:
        flower("/api/task/send-task/mandua.sweep", post=b'{"args": []}')
    assert refused.value.code == 403
