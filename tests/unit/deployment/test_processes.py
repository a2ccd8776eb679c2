"""Every task has a queue, every queue is served, and the Procfile, the compose file and the app agree on it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from producer.queues import AHEAD_QUEUE, RECORD_QUEUE, STAGE_QUEUE, STAGE_TASKS, QueueName, TaskName
from worker.app import app

TOP = Path(__file__).parents[3]
ALL = [name.value for name in QueueName]


def served(text: str) -> list[list[str]]:
    """The -Q lists of a file, in order."""
    return [found.split(",") for found in re.findall(r"-Q ([\w,]+)", text)]


@pytest.mark.parametrize("file", ["Procfile", "docker-compose.yml"])
def test_one_process_serves_all_but_bulk_and_records_first_and_one_serves_all_and_works_first(file: str):
    working_first = ["turns", "live", "record", "ahead", "maintenance", "bulk", "bulk_ahead"]
    assert sorted(working_first) == sorted(ALL)
    assert served((TOP / file).read_text()) == [ALL[: ALL.index("bulk")], working_first]


@pytest.mark.parametrize("file", ["Procfile", "docker-compose.yml"])
def test_beat_and_a_read_only_flower_run_once(file: str):
    text = (TOP / file).read_text()
    assert len(re.findall(r"-A worker\.app beat", text)) == 1
    (flower,) = re.findall(r"-A worker\.app flower.*", text)
    assert "--read-only" in flower


def test_every_task_is_registered_under_its_listed_name():
    app.loader.import_default_modules()
    ours = {name for name in app.tasks if not name.startswith("celery.")}
    assert ours == {name.value for name in TaskName}


def test_every_task_has_a_queue_that_exists():
    routed = {TaskName(name) for name in app.conf.task_routes}
    by_lane = {*STAGE_TASKS.values(), TaskName.EXTRACT_AHEAD}  # published with the queue of their run's lane
    assert routed | by_lane == set(TaskName)
    queues = {route["queue"] for route in app.conf.task_routes.values()}
    assert queues | set(STAGE_QUEUE.values()) | set(AHEAD_QUEUE.values()) | set(RECORD_QUEUE.values()) <= set(QueueName)


def test_a_queue_that_is_not_listed_fails_instead_of_being_made():
    with pytest.raises(Exception, match="bluk"):
        app.amqp.router.route({"queue": "bluk"}, "x")


def test_what_beat_sends_does_not_pile_up():
    for entry in app.conf.beat_schedule.values():
        assert entry["options"]["expires"] <= entry["schedule"]
        assert entry["task"] in {name.value for name in TaskName}


def test_settings_that_keep_work_when_something_dies():
    conf = app.conf
    assert conf.task_acks_late
    assert conf.task_reject_on_worker_lost
    assert conf.task_acks_on_failure is True
    assert conf.task_acks_on_timeout is True
    assert conf.accept_content == ["json"]
    assert conf.broker_transport_options["queue_order_strategy"] == "priority"
    assert conf.broker_transport_options["visibility_timeout"] > conf.task_time_limit + 60
