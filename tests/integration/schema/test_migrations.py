"""Up from nothing, down to nothing, up again; one head; a database that cannot be used is refused in one line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest
from alembic.script import ScriptDirectory

from tests.conftest import database_address
from worker import schema
from worker.local.postgres import EmbeddedPostgres


@pytest.fixture
def empty_url(postgres: EmbeddedPostgres) -> Iterator[str]:
    """A database that was never migrated."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE never_migrated")
        yield database_address(postgres.url, "never_migrated")
        connection.execute("DROP DATABASE never_migrated WITH (FORCE)")


def leftovers(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname !~ '^alembic'"
            " AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = pg_class.oid AND d.deptype = 'e')"
            " UNION ALL SELECT proname FROM pg_proc p WHERE pronamespace = 'public'::regnamespace"
            " AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')"
        ).fetchall()
    return [row[0] for row in rows]


def test_up_down_and_up_again(empty_url: str):
    schema.upgrade(empty_url)
    schema.check(empty_url, 384)
    schema.downgrade(empty_url)
    assert leftovers(empty_url) == []
    schema.upgrade(empty_url)
    schema.check(empty_url, 384)


def test_there_is_one_head():
    assert len(ScriptDirectory.from_config(schema.alembic_config("postgresql://")).get_heads()) == 1


def test_a_database_that_was_never_migrated_says_what_to_do(empty_url: str):
    with pytest.raises(schema.SchemaError, match="never been migrated; run `mandua migrate`"):
        schema.check(empty_url, 384)


def test_vec_01_another_width_is_refused_at_start_up(database_url: str):
    with pytest.raises(schema.SchemaError, match="384 wide, the embeddings are 768 wide; set MANDUA_EMBEDDING"):
        schema.check(database_url, 768)


def test_the_width_is_chosen_when_the_database_is_made(empty_url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MANDUA_EMBEDDING_DIMENSIONS", "3072")
    schema.upgrade(empty_url)
    schema.check(empty_url, 3072)
    with psycopg.connect(empty_url) as connection:
        kind = connection.execute(
            "SELECT format_type(atttypid, NULL) FROM pg_attribute"
            " WHERE attrelid = 'memory_facts'::regclass AND attname = 'embedding'"
        ).fetchone()
    assert kind == ("halfvec",)


def test_a_database_without_pgvector_says_what_to_install(empty_url: str, monkeypatch: pytest.MonkeyPatch):
    from alembic import op

    execute = op.execute

    def on_a_server_without_it(sql: str) -> None:
        execute(sql.replace("CREATE EXTENSION IF NOT EXISTS vector", "CREATE EXTENSION no_such_vector"))

    monkeypatch.setattr(op, "execute", on_a_server_without_it)
    with pytest.raises(schema.SchemaError, match="install the extension `vector`"):
        schema.upgrade(empty_url)
    assert leftovers(empty_url) == []


def test_a_database_that_does_not_answer_says_so():
    with pytest.raises(schema.SchemaError, match="the database does not answer"):
        schema.upgrade("postgresql://nobody@127.0.0.1:1/none")


def test_two_deploys_at_once_take_turns(empty_url: str):
    code = "import sys; from worker import schema; schema.upgrade(sys.argv[1])"
    deploys = [subprocess.Popen([sys.executable, "-c", code, empty_url]) for _ in range(3)]
    assert [deploy.wait(60) for deploy in deploys] == [0, 0, 0]
    schema.check(empty_url, 384)


def test_every_foreign_key_has_an_index(database_url: str):
    """Deleting or changing the far end must not scan the near one."""
    with psycopg.connect(database_url) as connection:
        bare = connection.execute(
            """
            SELECT c.conrelid::regclass::text, c.conname FROM pg_constraint c
             WHERE c.contype = 'f' AND c.connamespace = 'public'::regnamespace
               AND NOT EXISTS (
                 SELECT 1 FROM pg_index i WHERE i.indrelid = c.conrelid
                    AND (i.indkey::int2[])[0:cardinality(c.conkey) - 1] @> c.conkey
                    AND (i.indkey::int2[])[0:cardinality(c.conkey) - 1] <@ c.conkey)
            """
        ).fetchall()
    assert bare == []
