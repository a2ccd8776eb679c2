"""Alembic's environment: one connection, with timeouts, one migrator at a time.

A migration that cannot get its lock in ``lock_timeout`` gives up instead of standing in front of every reader; the
advisory lock makes two deploys at once take turns.
"""

import os

from alembic import context
from sqlalchemy import NullPool, create_engine, text

# Any constant will do, as long as it never changes: it names "a mandua migration is running".
MIGRATION_LOCK = 5_772_156_649


def run() -> None:
    url = context.config.get_main_option("sqlalchemy.url") or os.environ["DATABASE_URL"]
    url = "postgresql+psycopg://" + url.split("://", 1)[1]
    engine = create_engine(url, poolclass=NullPool, connect_args={"connect_timeout": 5})
    with engine.connect() as connection:
        connection.execute(text("SET lock_timeout = '5s'"))
        connection.execute(text("SET statement_timeout = '10min'"))
        connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": MIGRATION_LOCK})
        connection.commit()
        context.configure(connection=connection, transaction_per_migration=True)
        with context.begin_transaction():
            context.run_migrations()
        connection.commit()


if context.is_offline_mode():
    raise SystemExit("mandua's migrations run against a database; offline SQL is not supported")
run()
