"""Acceptance: the real processes, as a user runs them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.stack import Stack, running
from tests.conftest import empty_broker, fresh_database
from worker.local.postgres import EmbeddedPostgres
from worker.local.valkey import EmbeddedValkey


@pytest.fixture
def stack(database_url: str, broker_url: str) -> Iterator[Stack]:
    """A stack of this test's own, without processes yet."""
    with running(database_url, broker_url) as made:
        yield made


@pytest.fixture(scope="module")
def shared(postgres: EmbeddedPostgres, valkey: EmbeddedValkey, template: str) -> Iterator[Stack]:
    """A stack with one worker, for all tests of a module that break nothing; each uses an agent of its own."""
    with fresh_database(postgres.url, template) as url, running(url, empty_broker(valkey.url)) as made:
        made.worker()
        yield made
