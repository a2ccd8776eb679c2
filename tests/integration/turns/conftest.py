"""What the tests of the ledger share: accepting messages, looking at rows, moving the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine, event, text

from producer.accepting import Acceptance, accept, envelope
from producer.connections import poll
from producer.contract import WriteRequest
from producer.queues import Lane, Stage
from tests.scripted_model import ScriptedModel
from worker import models_in_use, settings
from worker.turns import life
from worker.turns.dispatch import dispatch, is_busy
from worker.turns.recording import record
from worker.turns.running import Applied, Moved, run_stage

Accept = Callable[..., list[Acceptance]]


@pytest.fixture
def no_long_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What waits is ready again at once, nearly."""
    monkeypatch.setenv("MANDUA_RETRY_BASE_SEC", "0.001")
    settings.settings.cache_clear()
    yield
    settings.settings.cache_clear()


@pytest.fixture
def accepted(database: Engine) -> Accept:
    """Accept messages of an agent, in order."""

    def do(*texts: str, agent: str = "a", lane: Lane = Lane.LIVE, message_ids: bool = False) -> list[Acceptance]:
        requests = [
            WriteRequest(agent_id=agent, message=said, speaker_name="Rafael", message_id=said if message_ids else None)
            for said in texts
        ]
        with database.connect() as connection:
            done = accept(connection.connection.driver_connection, [envelope(r, lane) for r in requests])
            connection.connection.commit()
        return done

    return do


@pytest.fixture
def rows(database: Engine) -> Callable[..., list[dict[str, Any]]]:
    """Rows of a query as dicts."""

    def do(query: str, **parameters: Any) -> list[dict[str, Any]]:
        with database.connect() as connection:
            return [dict(row) for row in connection.execute(text(query), parameters).mappings()]

    return do


@pytest.fixture
def later(database: Engine) -> Callable[[str], None]:
    """Move the one SQL clock forward for every connection made from now on."""

    def do(offset: str) -> None:
        with database.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            name = database.url.database
            connection.execute(text(f"ALTER DATABASE {name} SET mandua.clock_offset = '{offset}'"))
        # A connection that is out while its pool goes is never closed; a beat has one now and then.
        assert poll(lambda: database.pool.checkedout() == 0 or None, 10)  # type: ignore[attr-defined]
        database.dispose()

    return do


def run_of(rows: Callable[..., list[dict[str, Any]]], event_id: UUID) -> dict[str, Any]:
    """The newest run of an event."""
    return rows("SELECT * FROM runs WHERE event_id = :e ORDER BY seq DESC LIMIT 1", e=event_id)[0]


@contextmanager
def counted(engine: Engine) -> Iterator[list[str]]:
    """The statements that are sent meanwhile, by every connection of the process."""
    seen: list[str] = []

    def note(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    yield seen
    event.remove(engine, "before_cursor_execute", note)


@pytest.fixture
def model(database: Engine, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedModel]:
    """This process's own models are the scripted ones."""
    for name, value in scripted.environment(embeddings=True).items():
        monkeypatch.setenv(name, value)
    models_in_use.language_model.cache_clear()
    models_in_use.embedding_model.cache_clear()
    yield scripted
    models_in_use.language_model.cache_clear()
    models_in_use.embedding_model.cache_clear()


@pytest.fixture
def process(database: Engine, model: ScriptedModel) -> Callable[[str], list[str]]:
    """Record a message and run its four stages here; returns the statements that it took."""
    life.worker_name()

    def do(said: str, agent: str = "a") -> list[str]:
        with counted(database) as statements:
            record(envelope(WriteRequest(agent_id=agent, message=said, speaker_name="Rafael")).model_dump(mode="json"))
            assert not is_busy(agent)  # as record_event asks before it dispatches
            given = dispatch(agent)
            assert given.run_id is not None
            for stage in given.stages:
                outcome = run_stage(stage, given.run_id, given.fence)
                assert isinstance(outcome, Applied if stage is Stage.UPSERT else Moved), outcome
        return statements

    return do
