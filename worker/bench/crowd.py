"""What a message costs beside a million facts of other agents.

The crowd is built once, by set-based SQL and with its indexes made at the end, into a Postgres data folder that stays
in the user's cache (some 6 GB; the schema's version is part of its name). Each run measures a new agent in it, and the
same messages in an empty database of the same server.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg

from worker import schema
from worker.bench.cost import MESSAGES, measure
from worker.bench.figures import Figure
from worker.bench.scene import ROOT, Scene, cache_folder, model
from worker.local.errors import LocalStackError
from worker.local.postgres import EmbeddedPostgres

AGENTS, ENTITIES_EACH, FACTS_EACH = 500, 400, 2_000
PEOPLE = 200
DATABASE = "crowd"
NEEDED_BYTES = 16 * 2**30  # while it is built; write-ahead log included
WARMING = 40  # until the server's own buffers hold what a message reads

# Vectors are sums of four "words" of 4,096, as near to and far from each other as sentences are.
WORDS = """
CREATE TEMPORARY TABLE words AS
SELECT w, ARRAY(SELECT random() - 0.5 + 0 * w FROM generate_series(1, 384))::vector(384) AS v
  FROM generate_series(0, 4095) w;
ALTER TABLE words ADD PRIMARY KEY (w);
ANALYZE words;
"""
ENTITIES = f"""
INSERT INTO memory_entities (agent_id, canonical_key, entity_type, display_name, embedding)
SELECT 'crowd-' || a, 'person:person_' || e, 'person', 'Person ' || e, l2_normalize(one.v + two.v)
  FROM generate_series(1, {AGENTS}) a CROSS JOIN generate_series(1, {ENTITIES_EACH}) e
  JOIN words one ON one.w = e * 7 % 4096 JOIN words two ON two.w = (a * 31 + e) % 4096;
INSERT INTO memory_entity_aliases (agent_id, alias_folded, entity_type, alias, entity_key)
SELECT agent_id, lower(display_name), entity_type, display_name, canonical_key FROM memory_entities;
"""  # noqa: S608
# Two facts a message, five an entity.
FACTS = f"""
INSERT INTO memory_events (id, agent_id, speaker_name, message, occurred_at, offset_minutes)
SELECT md5('event ' || a || ' ' || n)::uuid, 'crowd-' || a, 'Rafael Moura',
       'Person ' || n % {ENTITIES_EACH} + 1 || ' told me about club number ' || n || ', for report ' || n || '.',
       now() - n * interval '1 hour', 0
  FROM generate_series(1, {AGENTS}) a CROSS JOIN generate_series(1, {FACTS_EACH // 2}) n;
INSERT INTO memory_facts (id, agent_id, entity_key, fact_text, text_hash, embedding, confidence, speaker,
                          source_event_id, valid_from)
SELECT gen_random_uuid(), 'crowd-' || a, 'person:person_' || e, said, decode(md5(said), 'hex'),
       l2_normalize(one.v + two.v + three.v + four.v), 0.95, 'Rafael Moura',
       md5('event ' || a || ' ' || (n + 1) / 2)::uuid, now() - n * interval '30 minutes'
  FROM generate_series(1, {AGENTS}) a CROSS JOIN generate_series(1, {FACTS_EACH}) n
 CROSS JOIN LATERAL (SELECT n % {ENTITIES_EACH} + 1 AS e) entity
 CROSS JOIN LATERAL (SELECT 'Person ' || e || ' runs club number ' || n || ' for report ' || a AS said) fact
  JOIN words one ON one.w = e * 7 % 4096 JOIN words two ON two.w = (a * 31 + e) % 4096
  JOIN words three ON three.w = n * 13 % 4096 JOIN words four ON four.w = (a * n) % 4096;
INSERT INTO memory_fact_entity_links (fact_id, agent_id, entity_key, is_primary)
SELECT id, agent_id, entity_key, true FROM memory_facts;
"""  # noqa: S608
# Invariant: only what the migrations made as indexes; those of constraints stay.
INDEXES = """
SELECT c.oid::regclass::text, pg_get_indexdef(c.oid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
 WHERE i.indrelid IN ('memory_facts'::regclass, 'memory_fact_entity_links'::regclass, 'memory_entities'::regclass,
                      'memory_entity_aliases'::regclass, 'memory_events'::regclass)
   AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = c.oid)
"""
SIZES = """
SELECT (SELECT count(*) FROM memory_facts), pg_database_size(current_database()),
       pg_total_relation_size('memory_facts') + pg_total_relation_size('memory_fact_entity_links'),
       pg_relation_size('memory_facts_nearest'), pg_relation_size('memory_facts_words')
"""


def beside_a_crowd(scene: Scene) -> list[Figure]:
    """CPU of a message of a new agent beside a million facts of others, and as a ratio to an empty store."""
    with _crowd(scene) as crowd, model(people=PEOPLE, latency=0.0) as answering:
        environment, crowded = answering.environment(), crowd.database_url
        agent = f"bench-{uuid.uuid4().hex[:8]}"
        scene.say(f"crowd: {MESSAGES} messages on an empty store, as many beside {AGENTS * FACTS_EACH:,} facts")
        empty = measure(replace(crowd, database_url=crowd.fresh()), environment, people=PEOPLE, warm=WARMING)
        crowd.database_url = crowded
        beside = measure(crowd, environment, people=PEOPLE, agent=agent, warm=WARMING)
        facts, database, of_facts, nearest, words = crowd.rows(SIZES)[0]
    whole = (beside["cpu"] + beside["database"]) / (empty["cpu"] + empty["database"])
    return [
        Figure("CPU of a message beside 1 M facts of others", beside["cpu"] * 1000, "ms",
               note=f"database {beside['database'] * 1000:.0f} ms; empty: {empty['cpu'] * 1000:.0f} and "
                    f"{empty['database'] * 1000:.0f} ms"),
        Figure("CPU beside 1 M facts of others / empty", whole, "×", at_most=1.3, note="worker and database"),
        Figure("own time beside 1 M facts of others, median", beside["wall"] * 1000, "ms", at_most=60),
        Figure("SQL statements beside 1 M facts of others, most", beside["statements_most"], "", at_most=42),
        Figure("database of a million facts", database / 2**30, "GiB", note=f"{facts:,} facts"),
        Figure("bytes of a fact with its links and indexes", of_facts / facts, "bytes",
               note=f"nearest neighbours {nearest / facts:.0f}, words {words / facts:.0f}"),
    ]  # fmt: skip


@contextmanager
def _crowd(scene: Scene) -> Iterator[Scene]:
    """A scene on the server with the crowd, which is built where it is missing."""
    root = cache_folder() / f"crowd-{_version()}"
    root.mkdir(parents=True, exist_ok=True)
    postgres = EmbeddedPostgres(root, durable=True)
    if not (root / "built").exists():
        _remove_older(root)
        _check_room(root)
        postgres.start()
        postgres.remove()  # what an interrupted build left
    postgres.start()
    try:
        crowd = replace(scene, postgres=postgres, database_url=f"{postgres.url.rpartition('/')[0]}/{DATABASE}")
        if not (root / "built").exists():
            began = time.monotonic()
            _build(crowd)
            (root / "built").write_text(f"{time.monotonic() - began:.0f} s\n", encoding="utf-8")
        _read_in(crowd)
        yield crowd
    finally:
        _drop_all_but_the_crowd(postgres)
        postgres.stop()


def _read_in(crowd: Scene) -> None:
    """Have the machine's memory hold what a server that has run for a while has there."""
    with psycopg.connect(crowd.database_url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
        connection.execute("SELECT pg_prewarm('memory_facts_nearest', 'read'), pg_prewarm('memory_facts', 'read')")


def _version() -> str:
    """Changes with the schema and with what is stored."""
    migrations = sorted((ROOT / "migrations" / "versions").glob("*.py"))
    made_by = [WORDS, ENTITIES, FACTS, *(path.read_text(encoding="utf-8") for path in migrations)]
    return hashlib.sha256("".join(made_by).encode()).hexdigest()[:12]


def _remove_older(current: Path) -> None:
    """Crowds of other versions; one that is in use stays."""
    for root in cache_folder().glob("crowd-*"):
        if root != current:
            with contextlib.suppress(LocalStackError):
                older = EmbeddedPostgres(root, durable=True)
                older.start()
                older.remove()
                shutil.rmtree(root, ignore_errors=True)


def _check_room(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES:
        raise LocalStackError(
            f"a store of a million facts needs {NEEDED_BYTES >> 30} GiB while it is built; {folder} has {free >> 30}"
        )


def _build(crowd: Scene) -> None:
    """Fill the tables without their indexes and triggers, then make the indexes."""
    crowd.say(f"crowd: storing {AGENTS * FACTS_EACH:,} facts of {AGENTS} agents (once; takes minutes)")
    with psycopg.connect(crowd.postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}")
    schema.upgrade(crowd.database_url)
    with psycopg.connect(crowd.database_url, autocommit=True) as connection:
        indexes = connection.execute(INDEXES).fetchall()
        connection.execute("SET session_replication_role = replica")  # keys are right by construction
        connection.execute("".join(f"DROP INDEX {name};" for name, _ in indexes))
        for statements in (WORDS, ENTITIES, FACTS):
            connection.execute(statements)
        crowd.say("crowd: making its indexes")
        memory, workers = _room_for_indexes()
        connection.execute(f"SET maintenance_work_mem = '{memory}MB'; SET max_parallel_maintenance_workers = {workers}")
        for _, definition in indexes:
            connection.execute(definition)
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CHECKPOINT")


def _room_for_indexes() -> tuple[int, int]:
    """Megabytes, and helpers: these share their memory by way of /dev/shm, which containers often keep small."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    memory = max(64, min(3_000, free // 3))
    shared = shutil.disk_usage("/dev/shm").free >> 20 if Path("/dev/shm").is_dir() else 0
    return memory, (os.cpu_count() or 1) - 1 if shared > 2 * memory else 0


def _drop_all_but_the_crowd(postgres: EmbeddedPostgres) -> None:
    """What was measured on the empty store; the crowd's own agents stay, and weigh nothing."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        names = connection.execute("SELECT datname FROM pg_database WHERE datname LIKE 'bench%'").fetchall()
        for (name,) in names:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
