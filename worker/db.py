"""Engine and sessions.

The engine is made lazily and keyed by process id: a forked child must never share its parent's sockets, and
``worker_process_init`` does not fire on a thread pool.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import Any, Protocol

import psycopg
from pgvector.psycopg import register_vector
from psycopg import Connection as PsycopgConnection
from sqlalchemy import Engine, TextClause, create_engine, event, text
from sqlalchemy.engine import Connection
from sqlalchemy.orm import Session

from worker.settings import settings

_engines: dict[tuple[int, str], Engine] = {}
_lock = threading.Lock()


@lru_cache(maxsize=512)
def sql(statement: str) -> TextClause:
    """``statement`` as SQLAlchemy executes it. To look for its parameters takes as long as a small one, so once."""
    return text(statement)


class ReadSession(Protocol):
    """Opens a session for one read phase of a stage and closes it before the next outside call."""

    def __call__(self) -> AbstractContextManager[Session]: ...


def engine(url: str | None = None) -> Engine:
    """The engine of this process for ``url`` (DATABASE_URL if None), its pool sized to the threads.

    Its sessions keep the plans of their statements, which may have been made while the tables were small, so that a
    sequential scan looked cheap; there is an index for all that a message asks.
    """
    url = url or settings().require_database_url()
    key = (os.getpid(), url)
    with _lock:
        if key not in _engines:
            _engines[key] = make_engine(url, pool_size=settings().pool_size, options="-c enable_seqscan=off")
        return _engines[key]


def make_engine(url: str, *, pool_size: int = 5, options: str = "") -> Engine:
    """A new engine. Statements end after 30 s, a transaction left idle after 60 s: nothing here needs longer.

    ``options`` are more settings of its sessions, as libpq takes them.
    """
    made = create_engine(
        "postgresql+psycopg://" + url.split("://", 1)[1],
        pool_size=pool_size,
        max_overflow=8,
        pool_pre_ping=False,
        pool_use_lifo=True,
        connect_args={
            "connect_timeout": 5,
            "prepare_threshold": 1,  # planning took half of the database's time; the default waits for the fifth use
            "application_name": "mandua",
            "options": f"-c statement_timeout=30000 -c idle_in_transaction_session_timeout=60000 -c jit=off {options}",
            "keepalives_idle": 30,
            "tcp_user_timeout": 20000,
        },
    )
    event.listen(made, "connect", _prepare_connection)
    return made


def _prepare_connection(dbapi_connection: PsycopgConnection[Any], _record: object) -> None:
    # The extension may be missing on a database that was never migrated; migrate and doctor still have to connect.
    autocommit = dbapi_connection.autocommit
    try:
        dbapi_connection.autocommit = True
        if dbapi_connection.execute("SELECT 1 FROM pg_type WHERE typname = 'vector'").fetchone():
            register_vector(dbapi_connection)
        dbapi_connection.autocommit = autocommit
    except psycopg.Error:
        dbapi_connection.close()  # the pool has not got it yet, so nobody else would
        raise


@contextmanager
def read_session(bind: Engine | None = None) -> Iterator[Session]:
    """A session for reading: what it begins is READ ONLY, so that nothing a planner does can be stored.

    It ends with COMMIT: at a ROLLBACK psycopg forgets all prepared statements of the connection, and Postgres would
    plan each of them anew.
    """
    with Session(bind or engine()) as session:
        session.connection(execution_options={"postgresql_readonly": True})
        yield session
        session.commit()


def take_back(session: Session) -> None:
    """End the transaction with nothing stored, and keep the connection's prepared statements.

    Of them psycopg forgets all at a ``rollback()``, for the sake of those who roll a change of a table back. This is
    for what is often taken back and changes rows only.
    """
    driver: PsycopgConnection[Any] = session.connection().connection.driver_connection  # type: ignore[assignment]
    driver.pgconn.exec_(b"ROLLBACK")
    session.rollback()


def within(session: Session) -> ReadSession:
    """Reading in a transaction that is open already, and sees what it has written; nothing is taken back."""

    @contextmanager
    def same() -> Iterator[Session]:
        yield session

    return same


@contextmanager
def autocommit(bind: Engine | None = None) -> Iterator[Connection]:
    """A connection on which every statement is a transaction of its own: one round trip each."""
    with (bind or engine()).connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection
