"""``status``: is everything there, and what waits."""

from __future__ import annotations

from typing import Any

import typer

from worker.cli import console
from worker.cli.broker import Broker
from worker.cli.errors import FAILED, explain
from worker.cli.serving import AsJson, DataDir, connection_to, servers


def status(as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Show what answers and what waits.

    Exit code 0 only if database and broker answer.
    """
    with servers(data_dir) as stack:
        found = {**_database(stack.database_url), **Broker(stack.broker_url or "").state()}
    if as_json:
        console.show_json(found)
    else:
        _show(found)
    if found["database"] != "ok" or found["broker"] != "ok":
        raise typer.Exit(FAILED)


def _database(url: str) -> dict[str, Any]:
    from sqlalchemy.exc import SQLAlchemyError

    from worker.read.ledger import ledger, workers_alive

    try:
        with connection_to(url) as connection:
            return {
                "database": "ok",
                "runs": ledger(connection),
                "workers": [row["name"] for row in workers_alive(connection)],
            }
    except SQLAlchemyError as error:
        explained = explain(error)
        if explained is None:
            raise
        return {"database": explained[0], "runs": None, "workers": []}


def _show(found: dict[str, Any]) -> None:
    console.show(f"database: {found['database']}")
    console.show(f"broker: {found['broker']}")
    if found["queues"] is not None:
        console.show(f"queues: {_counts(found['queues'])}")
    runs = found["runs"]
    if runs is None:
        return
    console.show(f"workers at work lately: {len(found['workers'])}")
    console.show(f"runs by status: {_counts(runs['by_status'])}")
    console.show(f"unfinished by stage: {_counts(runs['by_stage'])}")
    console.show(f"unfinished by lane: {_counts(runs['by_lane'])}")
    if runs["oldest_waiting_sec"] is not None:
        console.show(f"oldest unfinished: {runs['oldest_waiting_sec']:.0f} s")
    for item in runs["failed"]:
        console.show(f"failed in {item['stage']} ({item['cause']}): {item['count']}")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {many}" for name, many in counts.items())
