"""Entities and pending operations by hand, from sync and from asyncio code."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from worker import settings
from worker.write import (
    clear_pending,
    create_or_update_entity,
    get_entities_for_user,
    get_entity_by_key,
    get_pending,
    save_pending_execution,
    save_pending_selection,
)


def test_an_entity_is_made_once_and_seen_again(database: Engine):
    with Session(database) as session, session.begin():
        made = create_or_update_entity(session, "a", "person:ana", "Ana", "person")
        assert (made.display_name, made.entity_type) == ("Ana", "person")
        again = create_or_update_entity(session, "a", "person:ana", "Ana Maria")
        assert (again.canonical_key, again.display_name) == ("person:ana", "Ana"), "a real name stays"
        assert again.last_seen_at >= made.first_seen_at
    with Session(database) as session:
        found = get_entity_by_key(session, "a", "person:ana")
        assert found is not None
        assert found.display_name == "Ana"
        assert get_entity_by_key(session, "b", "person:ana") is None, "nothing crosses the agent"


def test_the_type_may_be_left_to_the_key(database: Engine):
    with Session(database) as session, session.begin():
        assert create_or_update_entity(session, "a", "place:sao_paulo").display_name == "sao paulo"


@pytest.mark.parametrize(("key", "kind"), [("ana", "other"), ("person:", "other"), ("person:ana", "place")])
def test_a_key_that_is_none_is_refused(database: Engine, key: str, kind: str):
    with Session(database) as session, pytest.raises(ValueError, match="canonical_key"):
        create_or_update_entity(session, "a", key, "Ana", kind)


def test_the_last_seen_comes_first_and_the_merged_are_left_out(database: Engine):
    with Session(database) as session, session.begin():
        for name in ("ana", "bia", "caio"):
            create_or_update_entity(session, "a", f"person:{name}")
        caio = get_entity_by_key(session, "a", "person:caio")
        assert caio is not None
        caio.merged_into = "person:ana"
    with Session(database) as session, session.begin():
        create_or_update_entity(session, "a", "person:ana")
    with Session(database) as session:
        assert [e.canonical_key for e in get_entities_for_user(session, "a")] == ["person:ana", "person:bia"]
        assert len(get_entities_for_user(session, "a", active_only=False)) == 3


async def _from_asyncio(url: str) -> str:
    engine = create_async_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    async with AsyncSession(engine) as session:
        made = await session.run_sync(create_or_update_entity, "a", "person:ana", "Ana")
        name = made.display_name
        await session.commit()
    await engine.dispose()
    return name


def test_an_async_session_runs_them_too(database: Engine, database_url: str):
    assert asyncio.run(_from_asyncio(database_url)) == "Ana"


@pytest.mark.parametrize("where", ["session", "database", "memory"])
def test_one_pending_operation_an_agent_for_five_minutes(
    database: Engine, monkeypatch: pytest.MonkeyPatch, where: str
):
    if where == "memory":
        monkeypatch.delenv("DATABASE_URL")
        settings.settings.cache_clear()
    with Session(database) as session:
        given = {"session": session} if where == "session" else {}
        save_pending_selection("a", "delete", [{"id": 1}], "Which one?", {"n": 1}, **given)
        found = get_pending("a", **given)
        assert found == {"type": "selection", "intent": "delete", "transactions": [{"id": 1}],
                         "confirmation_text": "Which one?", "edit_params": {"n": 1}}  # fmt: skip
        save_pending_execution("a", [{"name": "delete"}], "2 found", "Delete both?", **given)
        assert get_pending("a", **given)["type"] == "execution", "a new one takes the place of the old"
        assert get_pending("b", **given) is None
        clear_pending("a", **given)
        assert get_pending("a", **given) is None


def test_a_pending_operation_ends_after_five_minutes(database: Engine):
    save_pending_execution("a", [], "x", "sure?")
    with database.begin() as connection:
        connection.execute(text("UPDATE pending_operations SET expires_at = expires_at - interval '299 seconds'"))
    assert get_pending("a") is not None
    with database.begin() as connection:
        connection.execute(text("UPDATE pending_operations SET expires_at = expires_at - interval '2 seconds'"))
    assert get_pending("a") is None
