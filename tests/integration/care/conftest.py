"""A small life in the real pipeline, with a scripted model, and looking for words in all that there is."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

import pytest
import redis
from sqlalchemy import Engine, text

from producer import MemoryClient
from tests.integration.turns.conftest import model, rows  # noqa: F401
from tests.scripted_model import ScriptedModel
from worker.care.forgotten_names import folded
from worker.turns import life
from worker.turns.dispatch import dispatch
from worker.turns.running import Moved, run_stage

Tell = Callable[..., UUID]


def fact(subject: str, words: str) -> dict[str, Any]:
    return {"subject": subject, "text": words, "confidence_level": "explicit_statement"}


def reply(
    facts: Sequence[tuple[str, str]],
    relations: Sequence[tuple[str, str, str]] = (),
    aliases: dict[str, list[str]] | None = None,
    types: dict[str, str] | None = None,
) -> dict[str, Any]:
    """What a model reads in a message."""
    names = dict.fromkeys([*(name for name, _ in facts), *(end for s, _, t in relations for end in (s, t))])
    return {
        "entities": [
            {"name": name, "type": (types or {}).get(name, "person"), "aliases": (aliases or {}).get(name, [])}
            for name in names
        ],
        "facts": [fact(*one) for one in facts],
        "relations": [{"source": s, "rel_type": r, "target": t} for s, r, t in relations],
    }


@pytest.fixture
def client(database_url: str, broker_url: str, database: Engine) -> Iterator[MemoryClient]:
    """Hands messages in; nobody takes what it publishes."""
    with MemoryClient(broker_url, database_url, accept="database") as client:
        yield client


@pytest.fixture
def tell(client: MemoryClient, model: ScriptedModel) -> Tell:  # noqa: F811
    """Hand a message in, answer its extraction as told (None: the model refuses), run it to its end; its event."""
    life.worker_name()

    def do(said: str, answer: Any = None, agent: str = "a", **fields: Any) -> UUID:
        model.on("informed_extraction", answer)
        event = client.enqueue(agent, said, fields.pop("speaker_name", "Rafael"), **fields).event_id
        assert event is not None
        run_all(agent)
        return event

    return do


def run_all(agent: str) -> None:
    """Run what the agent has to do, until nothing is left or the rest waits."""
    while (given := dispatch(agent)).run_id is not None:
        for stage in given.stages:
            if not isinstance(run_stage(stage, given.run_id, given.fence), Moved):
                break


def everything(engine: Engine) -> dict[str, list[str]]:
    """Every row of every table as text, as a dump has it, and what the planner knows of their values."""
    with engine.connect() as connection:
        tables = connection.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).scalars().all()
        found = {
            table: list(connection.execute(text(f'SELECT t::text FROM "{table}" t')).scalars())
            for table in tables
        }
        known = connection.execute(text("SELECT s::text FROM pg_stats s WHERE schemaname = 'public'"))
        return {**found, "pg_stats": list(known.scalars())}


def found_in(engine: Engine, *words: str) -> list[tuple[str, str]]:
    """Where in the database any of ``words`` (folded) stands: table and row."""
    return [
        (table, row)
        for table, rows_ in everything(engine).items()
        for row in rows_
        if any(word in folded(row) for word in words)
    ]


def broker_text(url: str) -> str:
    """All keys of the broker and their values, bodies of messages decoded, folded."""
    parts: list[str] = []
    with redis.Redis.from_url(url, decode_responses=True) as client:
        for key in client.scan_iter():
            kind = client.type(key)
            values = {"list": lambda k: client.lrange(k, 0, -1), "hash": client.hvals,
                      "string": lambda k: [client.get(k)], "zset": lambda k: client.zrange(k, 0, -1),
                      "set": client.smembers}[kind](key)  # fmt: skip
            parts += [key, *values]
    bodies = [part.split('"body": "')[1].split('"')[0] for part in parts if '"body": "' in part]
    plain = (json.dumps(json.loads(base64.b64decode(body)), ensure_ascii=False) for body in bodies)
    return folded(" ".join([*parts, *plain]))
