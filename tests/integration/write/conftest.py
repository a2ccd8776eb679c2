"""What the tests of the pipeline share."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from worker.turns import life


@pytest.fixture
def working(database: Engine) -> None:
    """This process is a worker of the test's database, as long as the test takes."""
    life.worker_name()
