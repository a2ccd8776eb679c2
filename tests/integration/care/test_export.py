"""Export, drop everything, restore: equal row by row; and what is no export is refused, whole (issue 8)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from producer import MemoryClient
from tests.conftest import fresh_database
from tests.integration.care.conftest import Tell, everything, reply
from tests.scripted_model import Fault
from worker.care import export, forget, restore
from worker.care.restore import RestoreError
from worker.care.tables import AGENT_TABLES, DEPLOYMENT_TABLES
from worker.cli.app import run
from worker.db import make_engine
from worker.local.postgres import EmbeddedPostgres


@pytest.fixture
def told(tell: Tell, client: MemoryClient) -> MemoryClient:
    """A life with a bit of everything: a chain, an edge that ended, a split, a failure, a message that waits."""
    lives = lambda city: reply([("Ana", f"Ana mora em {city}")], [("Ana", "lives_in", city)], types={city: "place"})  # noqa: E731
    tell("Ana mora em Natal", lives("Natal"), occurred_at="2020-01-01T10:00:00-03:00", message_id="m1")
    tell("Ana mora em Lima", lives("Lima"), occurred_at="2022-01-01T10:00:00-03:00")
    tell("Ana mora em Natal mesmo", lives("Natal"), occurred_at="2019-01-01T10:00:00-03:00", verbose=True)
    tell("Ana \u2028 \"gosta\" de chá\n\\n\t😀", reply([("Ana", "Ana gosta de chá")]))
    tell("Ana ri", Fault.refusal())
    tell("outro agente", reply([("Rui", "Rui ri")]), agent="b")
    client.enqueue("a", "Ana espera", "Rafael", recent_messages=["antes"])
    return client


def rows_of(engine: Engine, agent: str = "a") -> dict[str, list[str]]:
    """What the agent has, table by table."""
    with engine.connect() as connection:
        return {
            table: list(
                connection.execute(text(f"SELECT t::text FROM {table} t WHERE {which} ORDER BY 1"), {"agent": agent})
                .scalars()
            )
            for table, which, _ in AGENT_TABLES
        }  # fmt: skip


def without_revision_ids(rows: dict[str, list[str]]) -> dict[str, list[str]]:
    """The number of a revision is the database's own."""
    return {**rows, "memory_fact_revisions": [row.partition(",")[2] for row in rows["memory_fact_revisions"]]}


def test_every_table_is_exported_or_the_deployments_own(database: Engine) -> None:
    named = {table for table, _, _ in AGENT_TABLES}
    assert named | DEPLOYMENT_TABLES == set(everything(database)) - {"pg_stats"}
    assert not named & DEPLOYMENT_TABLES


def test_it_comes_back_row_by_row_in_another_database(
    told: MemoryClient,
    database: Engine,
    postgres: EmbeddedPostgres,
    template: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = rows_of(database)
    assert all(before[table] for table in ("memory_fact_revisions", "run_plans", "run_results", "memory_facts"))
    file = tmp_path / "a.jsonl"
    assert run(["export", "--agent", "a", "--output", str(file)]) == 0
    with fresh_database(postgres.url, template) as url:
        monkeypatch.setenv("DATABASE_URL", url)
        assert run(["restore", str(file), "--json"]) == 0
        restored = json.loads(capsys.readouterr().out)["restored"]
        other = make_engine(url)
        try:
            assert without_revision_ids(rows_of(other)) == without_revision_ids(before)
            assert {table: len(found) for table, found in before.items()} == restored
            again = list(export(other, "a"))
            assert again == [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        finally:
            other.dispose()


def test_it_comes_back_in_its_own_database_only_when_asked(told: MemoryClient, database: Engine) -> None:
    lines = list(export(database, "a"))
    before = rows_of(database)
    with pytest.raises(RestoreError, match="agent a is there already"):
        restore(database, lines)
    forget(database, "a")
    assert not any(rows_of(database).values())
    with pytest.raises(RestoreError, match="were forgotten since"):
        restore(database, lines)
    assert not any(rows_of(database).values()), "nothing by halves"
    restore(database, lines, even_forgotten=True)
    assert without_revision_ids(rows_of(database)) == without_revision_ids(before)
    assert told.enqueue("a", "Ana mora em Natal", "Rafael", message_id="m1").status == "duplicate"


def test_what_was_forgotten_before_stays_forgotten_elsewhere(
    told: MemoryClient, database: Engine, postgres: EmbeddedPostgres, template: str
) -> None:
    event = told.enqueue("a", "Ana mora em Natal", "Rafael", message_id="m1").event_id
    forget(database, "a", event_id=event)
    lines = list(export(database, "a"))
    with fresh_database(postgres.url, template) as url:
        other = make_engine(url)
        try:
            restore(other, lines)
        finally:
            other.dispose()
        with MemoryClient(database_url=url, accept="database") as elsewhere:
            assert elsewhere.enqueue("a", "Ana mora em Natal", "Rafael", message_id="m1").status == "duplicate"
    forget(database, "a")
    restore(database, lines, even_forgotten=True)
    assert told.enqueue("a", "Ana mora em Natal", "Rafael", message_id="m1").status == "duplicate"


def changed(lines: list[dict[str, Any]], **header: Any) -> list[dict[str, Any]]:
    return [{**lines[0], **header}, *lines[1:]]


def test_what_is_no_whole_export_changes_nothing(told: MemoryClient, database: Engine) -> None:
    lines = list(export(database, "a"))
    forget(database, "a")
    other = [*lines[:-1], {"table": "runs", "row": {"agent_id": "b"}}, lines[-1]]
    for broken, why in (
        (lines[1:], "no export of mandua"),
        ([], "no export of mandua"),
        (changed(lines, mandua_export=9), "has format 9"),
        (changed(lines, vectors="vector(7)"), r"vectors of vector\(7\)"),
        (changed(lines, columns={"runs": ["id", "new"]}), "columns of runs that are unknown here: new"),
        (lines[:-1], "cut off"),
        ([*lines[:-2], lines[-1]], "cut off"),
        (other, "rows of runs that are another agent's"),
    ):
        with pytest.raises(RestoreError, match=why):
            restore(database, broken, even_forgotten=True)
    assert not any(rows_of(database).values())
    with pytest.raises(LookupError, match="no agent nobody"):
        next(export(database, "nobody"))
