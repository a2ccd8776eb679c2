"""``doctor``: look at everything that a deployment needs, and say what to do about what is wrong."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from producer.queues import DEAD_LETTERS
from worker.cli import console
from worker.cli.broker import Broker
from worker.cli.checks import Check, broker_clock, database_clock, ledger_checks, visibility
from worker.cli.errors import FAILED, explain
from worker.cli.serving import AsJson, DataDir, connection_to, servers, worker_answers

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

EXTENSION = """
SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS installed,
       (SELECT default_version FROM pg_available_extensions WHERE name = 'vector') AS available
"""


def doctor(as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Check database, broker, clocks, model, workers and beat.

    Says what to do about each; exit code 1 if something is broken.
    """
    with servers(data_dir) as stack:
        checks = [*_database(stack.database_url), *_broker(stack.broker_url or ""), *_models()]
        checks.append(_workers(stack.broker_url or ""))
    broken = any(check.state == "broken" for check in checks)
    if as_json:
        console.show_json({"ok": not broken, "checks": [asdict(check) for check in checks]})
    else:
        for check in checks:
            console.show(f"{check.state:<8} {check.name}: {check.detail}")
            if check.remedy:
                console.show(f"         -> {check.remedy}")
    if broken:
        raise typer.Exit(FAILED)


def _database(url: str) -> list[Check]:
    from sqlalchemy.exc import SQLAlchemyError

    try:
        with connection_to(url) as connection:
            extension = _extension(connection)
            checks = [Check("database", "ok", "answers"), database_clock(connection), extension]
            if extension.state != "broken":
                revision = _revision(connection)
                checks += [revision, _width(connection)]
                checks += ledger_checks(connection) if revision.state == "ok" else []
            return checks
    except SQLAlchemyError as error:
        explained = explain(error)
        detail = explained[0] if explained else type(error).__name__
        remedy = "start it, or set DATABASE_URL; without DATABASE_URL the embedded one is used"
        return [Check("database", "broken", detail, remedy)]


def _extension(connection: Connection) -> Check:
    from sqlalchemy import text

    row = connection.execute(text(EXTENSION)).one()
    if row.installed:
        return Check("pgvector", "ok", f"version {row.installed}")
    if row.available:
        return Check("pgvector", "warning", "can be installed, but is not in this database", "run `mandua migrate`")
    remedy = "install it on the server (image pgvector/pgvector, or package postgresql-NN-pgvector)"
    return Check("pgvector", "broken", "the server does not have the extension `vector`", remedy)


def _revision(connection: Connection) -> Check:
    from worker import schema

    found, wanted = schema.current(connection), schema.head()
    if found == wanted:
        return Check("schema", "ok", f"revision {found}")
    detail = "never migrated" if found is None else f"revision {found}, this code needs {wanted}"
    return Check("schema", "broken", detail, "run `mandua migrate`")


def _width(connection: Connection) -> Check:
    from worker import schema
    from worker.settings import settings

    stored, wanted = schema.stored_width(connection), settings().embedding_dimensions
    if stored is None or stored == wanted:
        return Check("vector width", "ok", f"{wanted}")
    remedy = f"set MANDUA_EMBEDDING_DIMENSIONS={stored} and the MANDUA_EMBEDDING_MODEL that the database was made with"
    return Check("vector width", "broken", f"the database holds {stored}, the settings say {wanted}", remedy)


def _broker(url: str) -> list[Check]:
    broker = Broker(url)
    error = broker.error()
    if error:
        remedy = "start it, or set MANDUA_BROKER_URL; without MANDUA_BROKER_URL the embedded one is used"
        return [Check("broker", "broken", error, remedy)]
    from worker.app import app
    from worker.settings import settings

    options = dict(app.conf.broker_transport_options)
    checks = [visibility(options, settings().lease_sec, is_redis=broker.is_redis), broker_clock(broker)]
    found = [Check("broker", "ok", "answers"), *(check for check in checks if check is not None)]
    if broker.is_rabbitmq:
        return [*found, *_rabbitmq(broker)]
    return [*found, *_redis_settings(broker)] if broker.is_redis else found


def _redis_settings(broker: Broker) -> list[Check]:
    found = broker.settings()
    if found is None:
        return [Check("broker settings", "warning", "the server does not show them",
                      "make sure that it evicts nothing (noeviction) and writes to disk (AOF)")]  # fmt: skip
    policy, appendonly = found.get("maxmemory-policy", "?"), found.get("appendonly", "?")
    return [
        Check("eviction", "ok", policy)
        if policy == "noeviction"
        else Check("eviction", "broken", policy, "set maxmemory-policy noeviction: an evicted key is a lost queue"),
        Check("append-only file", "ok", "on")
        if appendonly == "yes"
        else Check("append-only file", "warning", "off",
                   "set appendonly yes: a restart loses messages that no worker has recorded yet"),
    ]  # fmt: skip


def _rabbitmq(broker: Broker) -> list[Check]:
    strange = broker.strange_queues()
    dead = (broker.queues() or {}).get(DEAD_LETTERS, 0)
    return [
        Check("queues", "broken", f"{', '.join(strange)} declared otherwise",
              "delete them while no worker runs; the next one declares them anew")
        if strange
        else Check("queues", "ok", "quorum queues, as declared here"),
        Check("dead letters", "warning", f"{dead} messages that no worker could record",
              f"move them from {DEAD_LETTERS} back to their queue once the cause is gone")
        if dead
        else Check("dead letters", "ok", "none"),
    ]  # fmt: skip


def _models() -> list[Check]:
    from worker.models_in_use import embedding_model
    from worker.settings import settings

    model = settings().llm_model
    checks = [
        Check("model", "ok", model)
        if model
        else Check("model", "warning", "none: the offline reader is in use, which is no language model",
                   "set MANDUA_LLM_MODEL (and its key), e.g. gpt-4o-mini, or ollama/qwen2.5"),
        *_missing_keys(),
    ]  # fmt: skip
    try:
        embedding_model()
    except (ValueError, ImportError) as error:
        checks.append(Check("embeddings", "broken", str(error), "see MANDUA_EMBEDDING_MODEL in the README"))
    else:
        checks.append(Check("embeddings", "ok", settings().embedding_model))
    return checks


def _missing_keys() -> list[Check]:
    """Models whose provider wants a key that the environment does not hold. litellm knows; its import takes seconds."""
    names = {value for name, value in os.environ.items() if name.startswith("MANDUA_LLM_MODEL") and value.strip()}
    if not names:
        return []
    import litellm

    checks = []
    for name in sorted(names):
        missing = litellm.validate_environment(name).get("missing_keys") or []
        if missing:
            checks.append(Check("model key", "warning", f"{name} has no key", f"set {' and '.join(missing)}"))
    return checks


def _workers(broker_url: str) -> Check:
    from producer.errors import BrokerDown

    try:
        alive = worker_answers(broker_url)
    except BrokerDown:
        alive = False
    if alive:
        return Check("workers", "ok", "answer")
    return Check("workers", "warning", "none answers", "start `mandua up`, or `mandua worker` and `mandua beat`")
