"""A model and embeddings in the test's own process, for the stages' unit tests: they answer by task and count."""

from __future__ import annotations

import json
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from uuid import uuid4

import numpy as np
from sqlalchemy import Engine, event
from sqlalchemy.orm import Session

from producer.contract import MemoryConfig
from tests.scripted_model import hashing_vector
from worker.embedding.provider import Vectors
from worker.llm.provider import Cause, Completion, ModelError, Usage
from worker.write.calls import Calls
from worker.write.message import Message

EMPTY: dict[str, Any] = {"entities": [], "facts": [], "relations": [], "updated_profiles": [], "emotion": None}


class Answers:
    """An LLMProvider: ``on`` says what a task is answered with, ``queue`` what its next calls are."""

    def __init__(self) -> None:
        self._on: dict[str, Any] = {}
        self._queue: defaultdict[str, deque[Any]] = defaultdict(deque)
        self._lock = threading.Lock()
        self.calls: list[tuple[str, dict[str, Any], str]] = []
        self.bounds: list[int | None] = []  # the max_tokens of each call

    def on(self, task: str, reply: Any) -> Answers:
        self._on[task] = reply
        return self

    def queue(self, task: str, *replies: Any) -> Answers:
        self._queue[task].extend(replies)
        return self

    def count(self, task: str | None = None) -> int:
        return sum(task in (None, called) for called, _, _ in self.calls)

    def payloads(self, task: str) -> list[dict[str, Any]]:
        return [payload for called, payload, _ in self.calls if called == task]

    def complete(
        self,
        task: str,
        system: str,
        payload: Mapping[str, Any],
        *,
        schema: Mapping[str, Any] | None = None,  # noqa: ARG002
        timeout: float = 30.0,  # noqa: ARG002
        max_tokens: int | None = None,
    ) -> Completion:
        with self._lock:
            self.calls.append((task, json.loads(json.dumps(payload)), system))
            self.bounds.append(max_tokens)
            reply = self._queue[task].popleft() if self._queue[task] else self._on.get(task, EMPTY)
        if callable(reply):
            reply = reply(payload)
        if isinstance(reply, Cause):
            raise ModelError(reply)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Completion):
            return reply
        text = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
        return Completion(text, Usage(10, 5))


class Embeddings:
    """An EmbeddingProvider: scripted vectors, else ones by which similar texts are near; ``fails`` is raised."""

    dimensions = 384

    def __init__(self, vectors: Mapping[str, Sequence[float]] | None = None, fails: Cause | None = None) -> None:
        self._vectors = dict(vectors or {})
        self.fails = fails
        self.batches: list[list[str]] = []

    def embed(self, texts: Sequence[str], *, timeout: float = 30.0) -> Vectors:  # noqa: ARG002
        self.batches.append(list(texts))
        if self.fails is not None:
            raise ModelError(self.fails)
        return np.array([self._one(text) for text in texts], dtype=np.float32)

    def _one(self, text: str) -> list[float]:
        if text not in self._vectors:
            return hashing_vector(text, self.dimensions)
        row = list(self._vectors[text])
        return row + [0.0] * (self.dimensions - len(row))


def message(
    text: str, speaker: str = "Bruna", *, at: str | None = "2025-03-18T15:00:00+00:00", **fields: Any
) -> Message:
    config = MemoryConfig(**fields.pop("config", {}))
    recent = tuple(fields.pop("recent", ()))
    return Message(
        event_id=uuid4(),
        agent_id=fields.pop("agent", "a1"),
        text=text,
        speaker=speaker,
        occurred_at=datetime.fromisoformat(at) if at else None,
        recent_messages=recent,
        config=config,
        **fields,
    )


def fact(subject: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"subject": subject, "text": text, "action": "NEW", "confidence_level": "explicit_statement"} | fields


def person(name: str, *aliases: str) -> dict[str, Any]:
    return {"name": name, "type": "person", "aliases": list(aliases)}


def reply(
    facts: Sequence[Any] = (), entities: Sequence[Any] = (), relations: Sequence[Any] = (), **more: Any
) -> dict[str, Any]:
    return EMPTY | {"facts": list(facts), "entities": list(entities), "relations": list(relations)} | more


def calls_of(model: Any, embeddings: Any = None) -> Calls:
    return Calls(model, embeddings or Embeddings())


class Statements:
    """A ReadSession over ``engine`` that counts statements and knows whether a session is open."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.open = 0
        self.sent: list[str] = []
        event.listen(engine, "before_cursor_execute", self._note)

    def _note(self, _c: Any, _cur: Any, statement: str, *_: Any) -> None:
        self.sent.append(statement)

    @contextmanager
    def __call__(self) -> Iterator[Session]:
        self.open += 1
        try:
            with Session(self._engine) as session:
                yield session
                session.rollback()
        finally:
            self.open -= 1


def no_memory() -> Callable[[], Any]:
    """A ReadSession for an agent that knows nothing, without a database."""

    class _Nothing:
        def execute(self, *_: Any) -> _Nothing:
            return self

        def all(self) -> list[Any]:
            return []

    @contextmanager
    def read() -> Iterator[Any]:
        yield _Nothing()

    return read
