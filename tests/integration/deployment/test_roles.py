"""deploy/roles.sql: each role can do its work, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Engine

from producer import MemoryClient
from producer.contract import ConflictError, WriteRequest
from producer.importing import Options, run
from tests.conftest import bound
from tests.scripted_model import ScriptedModel
from worker import models_in_use
from worker.db import make_engine
from worker.metrics import LedgerCollector
from worker.read import ledger
from worker.turns.dispatch import dispatch
from worker.turns.running import Applied, run_stage
from worker.turns.sweep import clean_up, due_agents, note_sweep

ROLES = Path(__file__).parents[3] / "deploy" / "roles.sql"
SECRET = "Xyloquartz"


def apply_roles(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(ROLES.read_text())


@pytest.fixture
def roles(database_url: str) -> Iterator[dict[str, str]]:
    """The url of the database by role, for one login of each."""
    apply_roles(database_url)
    names = ("mandua_producer", "mandua_worker", "mandua_operator")
    with psycopg.connect(database_url, autocommit=True) as connection:
        for name in names:
            login = sql.Identifier(f"{name}_login")
            connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(login))
            create = sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'x' IN ROLE {}")
            connection.execute(create.format(login, sql.Identifier(name)))
        address = database_url.partition("@")[2]
        yield {name: f"postgresql://{name}_login:x@{address}" for name in names}
        for name in names:
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(f"{name}_login")))


def allowed(url: str, *statements: str) -> list[str]:
    """Those of ``statements`` that the database does not refuse for want of a right."""
    found = []
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            try:
                connection.execute(statement)
            except psycopg.errors.InsufficientPrivilege:
                continue
            found.append(statement)
    return found


def test_it_can_be_run_again(database_url: str) -> None:
    apply_roles(database_url)
    apply_roles(database_url)


def test_a_producer_hands_in_and_asks_and_reads_nothing_else(roles: dict[str, str], tmp_path: Path) -> None:
    url = roles["mandua_producer"]
    with MemoryClient(database_url=url, accept="database", max_lag=60) as client:
        first = client.enqueue("a", f"I live in {SECRET}", "Rui", message_id="m1")
        assert first.status == "accepted"
        assert first.accepted()
        assert client.enqueue("a", f"I live in {SECRET}", "Rui", message_id="m1").status == "duplicate"
        with pytest.raises(ConflictError):
            client.enqueue("a", "another text", "Rui", message_id="m1")
        assert first.event_id is not None
        assert client.result(first.event_id) is None
        assert client.finished([first.event_id]) == {}
        assert client.wait_accepted([first.event_id], 0) == set()
        assert client.lag() >= 0
        file = tmp_path / "history.jsonl"
        file.write_text('{"agent_id": "a", "message": "I moved", "speaker_name": "Rui", "occurred_at": null}\n{')
        imported = run.start(client, file, Options())
        assert (imported.accepted, imported.rejected, imported.unfinished) == (1, 1, 1)
        assert [item.line for item in run.rejects(client, imported.import_id)] == [2]
        run.forget_rejects(client, imported.import_id)
    with psycopg.connect(url, autocommit=True) as connection:
        (row,) = connection.execute("INSERT INTO dry_runs (id, request) VALUES (gen_random_uuid(), '{}') RETURNING id")
        connection.execute("SELECT result FROM dry_runs WHERE id = %s", row)
        connection.execute("DELETE FROM dry_runs WHERE id = %s", row)
    assert allowed(
        url,
        "SELECT message FROM memory_events",
        "SELECT fact_text FROM memory_facts",
        "SELECT display_name FROM memory_entities",
        "SELECT request FROM runs",
        "SELECT item FROM import_rows",
        "SELECT result FROM run_results",
        "SELECT extraction FROM run_plans",
        "INSERT INTO memory_events (id, agent_id, speaker_name, message) VALUES (gen_random_uuid(), 'a', 'b', 'c')",
        "UPDATE runs SET state = 'done'",
        "DELETE FROM memory_events",
        "CREATE TABLE mine (x int)",
    ) == []  # fmt: skip


def test_a_client_with_a_broker_knows_duplicates_without_reading_texts(
    roles: dict[str, str], broker_url: str, database_url: str
) -> None:
    with MemoryClient(database_url=database_url, accept="database") as owner:
        owner.enqueue("a", "tea", "Rui", message_id="m1")
    with MemoryClient(broker_url, roles["mandua_producer"]) as client:
        assert client.enqueue("a", "tea", "Rui", message_id="m1").status == "duplicate"
        with pytest.raises(ConflictError):
            client.enqueue("a", "coffee", "Rui", message_id="m1")
        same, other = client.enqueue_many(
            [WriteRequest(agent_id="a", message=said, speaker_name="Rui", message_id=said) for said in ("x", "y")]
        )
        assert [getattr(handle, "status", None) for handle in (same, other)] == ["queued", "queued"]


def test_a_worker_applies_sweeps_and_cleans_up_and_changes_no_event(
    roles: dict[str, str], database_url: str, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryClient(database_url=database_url, accept="database") as client:
        event = client.enqueue("a", "I live in Natal", "Rui").event_id
    for name, value in scripted.environment(embeddings=True).items():
        monkeypatch.setenv(name, value)
    with bound(roles["mandua_worker"], monkeypatch):
        models_in_use.language_model.cache_clear()
        given = dispatch("a")
        assert given.run_id is not None
        outcomes = [run_stage(stage, given.run_id, given.fence) for stage in given.stages]
        assert isinstance(outcomes[-1], Applied)
        due_agents()
        note_sweep()
        clean_up()
    with MemoryClient(database_url=roles["mandua_producer"], accept="database") as client:
        assert event is not None
        result = client.result(event)
    assert result is not None
    assert result.status == "ok"
    assert allowed(
        roles["mandua_worker"],
        "UPDATE memory_events SET message = 'x'",
        "SET mandua.forgetting = 'on'; DELETE FROM memory_events",
        "DROP TABLE runs",
        "UPDATE alembic_version SET version_num = '0'",
    ) == []  # fmt: skip


def test_an_operator_sees_the_ledger_and_no_text(roles: dict[str, str], database: Engine, database_url: str) -> None:
    with MemoryClient(database_url=database_url, accept="database") as client:
        client.enqueue("a", f"I live in {SECRET}", "Rui", recent_messages=[SECRET])
    engine = make_engine(roles["mandua_operator"], pool_size=1)
    seen: list[Any] = []
    try:
        with engine.connect() as connection:
            seen += [ledger.ledger(connection), ledger.failures(connection, ledger.Choice()),
                     ledger.workers_alive(connection), ledger.models_cooling(connection),
                     ledger.last_sweep_sec(connection)]  # fmt: skip
        seen += list(LedgerCollector(engine.connect).collect())
    finally:
        engine.dispose()
    assert seen[0]["by_status"]["accepted"] == 1
    assert SECRET not in str(seen)
    assert allowed(
        roles["mandua_operator"],
        "SELECT message FROM memory_events",
        "SELECT request FROM runs",
        "SELECT fact_text FROM memory_facts",
        "SELECT result FROM run_results",
        "SELECT extraction FROM run_plans",
        "UPDATE runs SET state = 'done'",
        "SELECT accept_events('[]')",
    ) == []  # fmt: skip
