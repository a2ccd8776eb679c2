"""Acceptance: the real processes, as a user runs them, on either broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests import rabbitmq
from tests.acceptance.stack import Stack, running
from tests.conftest import empty_broker, fresh_database
from worker.local.postgres import EmbeddedPostgres
from worker.local.valkey import EmbeddedValkey

# Skipped where there is none, and the reason says how to get one.
BROKERS = [
    "redis",
    pytest.param("rabbitmq", marks=pytest.mark.skipif(not rabbitmq.URL, reason=rabbitmq.WHY_NOT)),
]
BROKERS_TO_KILL = [
    "redis",
    pytest.param(
        "rabbitmq",
        marks=[
            pytest.mark.skipif(not rabbitmq.URL, reason=rabbitmq.WHY_NOT),
            pytest.mark.skipif(not rabbitmq.FOLDER, reason=rabbitmq.WHY_NOT_KILLED),
        ],
    ),
]


@pytest.fixture(params=BROKERS)
def stack(database_url: str, request: pytest.FixtureRequest) -> Iterator[Stack]:
    """A stack of this test's own, without processes yet."""
    with ExitStack() as turn:
        if request.param == "rabbitmq":
            url = turn.enter_context(rabbitmq.my_turn(rabbitmq.URL)).url
        else:
            url = request.getfixturevalue("broker_url")
        yield turn.enter_context(running(database_url, url))


@pytest.fixture(scope="module", params=BROKERS)
def shared(
    postgres: EmbeddedPostgres, valkey: EmbeddedValkey, template: str, request: pytest.FixtureRequest
) -> Iterator[Stack]:
    """A stack with one worker, for all tests of a module that break nothing; each uses an agent of its own."""
    with ExitStack() as turn:
        if request.param == "rabbitmq":
            broker_url = turn.enter_context(rabbitmq.my_turn(rabbitmq.URL)).url
        else:
            broker_url = empty_broker(valkey.url)
        url = turn.enter_context(fresh_database(postgres.url, template))
        made = turn.enter_context(running(url, broker_url))
        made.worker()
        yield made


@pytest.fixture(params=BROKERS_TO_KILL)
def own_broker(request: pytest.FixtureRequest) -> Iterator[EmbeddedValkey | rabbitmq.RabbitMQ]:
    """A broker to be killed and started again."""
    if request.param == "rabbitmq":
        with rabbitmq.my_turn(rabbitmq.URL) as broker:
            yield broker
    else:
        yield request.getfixturevalue("own_valkey")
