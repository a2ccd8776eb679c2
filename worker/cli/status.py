"""``status`` and ``watch``: is everything there, what waits, and what today has cost."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from worker.cli import console
from worker.cli.broker import Broker
from worker.cli.errors import FAILED, explain
from worker.cli.serving import AsJson, DataDir, connection_to, servers

if TYPE_CHECKING:
    from rich.table import Table

    from worker.local.stack import LocalStack


def status(as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Show what answers, what waits, and what today has cost.

    Exit code 0 only if database and broker answer.
    """
    with servers(data_dir) as stack:
        found = look(stack)
    if as_json:
        console.show_json(found)
    else:
        for name, value in lines(found):
            console.show(f"{name}: {value}")
    if found["database"] != "ok" or found["broker"] != "ok":
        raise typer.Exit(FAILED)


def watch(
    interval: Annotated[float, typer.Option("--interval", min=0.2, help="Seconds between two looks.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Look once and end.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Show the same as `status`, live, until Ctrl-C."""
    from rich.live import Live

    with servers(data_dir) as stack:
        if once:
            console.output().print(_table(look(stack)))
            return
        with contextlib.suppress(KeyboardInterrupt), Live(_table(look(stack)), console=console.output()) as live:
            while True:
                time.sleep(interval)
                live.update(_table(look(stack)), refresh=True)


def look(stack: LocalStack) -> dict[str, Any]:
    """All that ``status --json`` shows: database, broker, queues, workers, runs (counts), lag_sec by lane, oldest,
    waiting by cause, models that are left alone, today, last_sweep_sec. What comes from a database that does not answer
    is None or empty."""
    return {**_database(stack.database_url), **Broker(stack.broker_url or "").state()}


def _database(url: str) -> dict[str, Any]:
    from sqlalchemy.exc import SQLAlchemyError

    from worker.read import ledger

    try:
        with connection_to(url) as connection:
            found = ledger.ledger(connection)
            return {
                "database": "ok",
                "runs": {name: found[name] for name in
                         ("by_status", "by_stage", "by_lane", "failed", "oldest_waiting_sec")},
                "lag_sec": found["lag_sec"],
                "oldest": found["oldest"],
                "waiting": found["waiting"],
                "models_cooling": ledger.models_cooling(connection),
                "today": found["today"],
                "workers": [row["name"] for row in ledger.workers_alive(connection)],
                "last_sweep_sec": ledger.last_sweep_sec(connection),
            }  # fmt: skip
    except SQLAlchemyError as error:
        explained = explain(error)
        if explained is None:
            raise
        nothing = dict.fromkeys(("runs", "lag_sec", "oldest", "waiting", "today", "last_sweep_sec"))
        return {"database": explained[0], **nothing, "models_cooling": [], "workers": []}


def lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    """What a person reads, line by line: names and values."""
    shown = [("database", found["database"]), ("broker", found["broker"])]
    if found["queues"] is not None:
        shown.append(("queues", _counts(found["queues"])))
    runs = found["runs"]
    if runs is None:
        return shown
    shown += [
        ("workers", str(len(found["workers"]))),
        ("last sweep", "never" if found["last_sweep_sec"] is None else f"{found['last_sweep_sec']:.0f} s ago"),
        ("runs by status", _counts(runs["by_status"])),
        ("unfinished by stage", _counts(runs["by_stage"])),
        ("unfinished by lane", _counts(runs["by_lane"])),
        ("lag by lane", ", ".join(f"{lane} {seconds:.0f} s" for lane, seconds in found["lag_sec"].items())),
    ]
    if found["oldest"] is not None:
        oldest = found["oldest"]
        why = f" ({oldest['cause']})" if oldest["cause"] else ""
        shown.append(
            ("oldest waiting", f"agent {oldest['agent_id']}, {oldest['waited_sec']:.0f} s, {oldest['stage']}{why}")
        )
    if found["waiting"]:
        shown.append(("waiting by cause", _counts(found["waiting"])))
    shown += [
        ("left alone", f"{item['model']} ({item['cause']}) for {item['seconds']:.0f} s more")
        for item in found["models_cooling"]
    ]
    shown += [
        ("failed", f"in {item['stage']} ({item['cause']}): {item['count']}, see `mandua failures`")
        for item in runs["failed"]
    ]
    today = found["today"]
    tokens = f"{today['total_tokens']} tokens ({today['input_tokens']} in, {today['output_tokens']} out"
    wasted = f", {today['wasted_tokens']} paid twice" if today["wasted_tokens"] else ""
    ended = _counts(today["runs"]) or "no run ended"
    shown.append(("today (UTC)", f"{tokens}{wasted}), {today['cost_usd']:.4f} USD; {ended}"))
    return shown


def _table(found: dict[str, Any]) -> Table:
    from rich.markup import escape

    made = console.table(f"mandua, {time.strftime('%H:%M:%S')}", ["", ""])
    made.show_header = False
    for name, value in lines(found):
        made.add_row(name, escape(value))
    return made


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {many}" for name, many in counts.items())
