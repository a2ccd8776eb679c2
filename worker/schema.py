"""The database's schema: make it, check it. Alembic, driven without an ini file."""

from __future__ import annotations

import logging
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.engine import Connection
from sqlalchemy.exc import OperationalError, ProgrammingError

import migrations
from worker.db import make_engine


class SchemaError(Exception):
    """The database cannot be used as it is; ``str()`` is one line that says what to do."""


def alembic_config(url: str) -> Config:
    """Alembic's configuration for ``url``."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    return config


def upgrade(url: str, revision: str = "head") -> None:
    """Bring the database to ``revision``. Raises SchemaError when it cannot be reached or lacks the extension."""
    logging.getLogger("alembic").setLevel(logging.WARNING)
    try:
        command.upgrade(alembic_config(url), revision)
    except OperationalError as error:
        raise SchemaError(f"the database does not answer: {_first_line(error)}") from None
    except ProgrammingError as error:
        if "vector" in str(error.orig) and "extension" in str(error.orig):
            raise SchemaError(
                "the database has no pgvector: install the extension `vector` on the server "
                "(image pgvector/pgvector, or package postgresql-NN-pgvector), then run `mandua migrate`"
            ) from None
        raise
    except Exception as error:
        if "vector" in str(error) and "not available" in str(error):
            raise SchemaError(
                "the database has no pgvector: install the extension `vector` on the server "
                "(image pgvector/pgvector, or package postgresql-NN-pgvector), then run `mandua migrate`"
            ) from None
        raise


def downgrade(url: str, revision: str = "base") -> None:
    """Take the database back to ``revision``; ``base`` drops everything."""
    command.downgrade(alembic_config(url), revision)


def head() -> str:
    """The newest revision that this code knows."""
    found = ScriptDirectory.from_config(alembic_config("postgresql://")).get_current_head()
    if found is None:
        raise SchemaError("no migrations are installed with this package")
    return found


def current(connection: Connection) -> str | None:
    """The revision that the database is at, or None where it was never migrated."""
    return MigrationContext.configure(connection).get_current_revision()


def stored_width(connection: Connection) -> int | None:
    """The width of the vector columns, or None where there are none yet."""
    return connection.execute(
        text(
            "SELECT atttypmod FROM pg_attribute WHERE attname = 'embedding'"
            " AND attrelid = to_regclass('memory_facts')"
        )
    ).scalar()


def check(url: str, dimensions: int) -> None:
    """Refuse to start on a database that this worker cannot use.

    Raises SchemaError: not reachable, not migrated, of another revision, or with vectors of another width.
    """
    engine = make_engine(url, pool_size=1)
    try:
        with engine.connect() as connection:
            found = current(connection)
            if found != head():
                state = "has never been migrated" if found is None else f"is at revision {found}, this code at {head()}"
                raise SchemaError(f"the database {state}; run `mandua migrate`")
            width = stored_width(connection)
            if width != dimensions:
                raise SchemaError(
                    f"the database holds vectors {width} wide, the embeddings are {dimensions} wide; set "
                    "MANDUA_EMBEDDING_MODEL and MANDUA_EMBEDDING_DIMENSIONS to what the database was made with"
                )
    except OperationalError as error:
        raise SchemaError(f"the database does not answer: {_first_line(error)}") from None
    finally:
        engine.dispose()


def _first_line(error: OperationalError) -> str:
    return str(error.orig).strip().splitlines()[0]
