"""The plans of the hot queries: no message may read a table from end to end (design: promise 7)."""

from __future__ import annotations

from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from tests.integration.write.scene import Scene, day
from worker.write.candidates import CANDIDATES
from worker.write.fact_rows import LOCK_VERSIONS, as_rows, vector_text
from worker.write.relationships import REFRESH_EDGES


def _crowd(engine: Engine) -> Scene:
    """An agent with one small entity among many facts of others."""
    scene = Scene(engine)
    scene.write("x", [("Ana", "Ana sings")], at=day(1))
    for number in range(8):
        people = [f"P{number}x{index}" for index in range(150)]
        scene.write("x", [(name, f"{name} sings song {n}") for name in people for n in range(2)], at=day(2))
    with engine.begin() as connection:
        connection.execute(text("ANALYZE"))
    return scene


def test_hot_queries_use_indexes(database: Engine) -> None:
    scene = _crowd(database)
    vector = vector_text(scene.embeddings._vector("Ana sings"))
    query = {"number": 0, "entity_key": "person:ana", "text_hash": b"\0" * 16, "embedding": vector}
    (ana,) = scene.rows("SELECT id FROM memory_facts WHERE agent_id = :agent AND entity_key = 'person:ana'")
    for at in (day(1), day(9), None):
        for statement, values in (
            (CANDIDATES, {"agent_id": scene.agent, "at": at, "k": 5, "rows": as_rows([query])}),
            (LOCK_VERSIONS, {"agent_id": scene.agent, "at": at, "targets": [ana.id], "texts": "[]"}),
            (REFRESH_EDGES, {"edges": [], "facts": [ana.id], "now": day(9)}),
        ):
            with Session(database) as session:
                explained = session.execute(text(f"EXPLAIN {statement.text}"), values).scalars().all()
                session.rollback()
            assert not [line for line in explained if "Seq Scan on memory_facts" in line], "\n".join(explained)
