"""``demo``: a conversation becomes memory, before one's eyes."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from worker.cli import console
from worker.cli.errors import FAILED, CommandError
from worker.cli.reading import ENTITY_COLUMNS, FACT_COLUMNS, RELATION_COLUMNS
from worker.cli.sample import AGENT, CONVERSATION
from worker.cli.serving import (
    AsJson,
    CallWorkers,
    DataDir,
    broker_is_embedded,
    check_database,
    connection_to,
    database_is_embedded,
    servers,
    worker_answers,
)

if TYPE_CHECKING:
    from rich.table import Table
    from sqlalchemy.engine import Connection

    from worker.local.stack import LocalStack

POLL_SECONDS = 0.1
STAGES = ("extract", "resolve", "reconcile", "upsert")


def demo(
    timeout: Annotated[
        float, typer.Option("--timeout", min=1.0, help="Seconds without any progress to give up after.")
    ] = 120.0,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Show how a sample conversation becomes memory.

    Needs no server, no key and no network; its memory is kept apart from yours.
    """
    with servers(_folder(data_dir)) as stack:
        check_database(stack.database_url)
        _say_which_model()
        events = _hand_in(stack)
        with connection_to(stack.database_url) as connection:
            runs = _runs(connection, events)
            if any(run["status"] is None for run in runs):
                with _workers(stack) as working:
                    runs = _follow(connection, events, working, timeout, quiet=as_json)
            elif not as_json:
                console.show("This conversation is remembered already; nothing changes.")
            memory = _memory(connection, events, runs)
    if as_json:
        console.show_json(memory)
    else:
        _show(memory)
    if memory["runs"].get("failed"):
        raise typer.Exit(FAILED)


def _folder(data_dir: Path | None) -> Path:
    """The demo has a memory of its own, beside the user's."""
    from worker.local.stack import data_folder

    return data_folder(data_dir) / "demo"


def _say_which_model() -> None:
    from worker.settings import settings

    if settings().llm_model:
        console.say(f"reading with {settings().llm_model}")
    else:
        console.say(
            "reading with the offline reader, which knows plain English and Portuguese sentences and is no language "
            "model; for a real one set MANDUA_LLM_MODEL=gpt-4o-mini and OPENAI_API_KEY, or, with Ollama, "
            "MANDUA_LLM_MODEL=ollama/qwen2.5"
        )


def _hand_in(stack: LocalStack) -> list[UUID]:
    """Hand the conversation in, in its order; the events' ids. What is known already is left alone."""
    from producer import MemoryClient, RequestError, WriteRequest

    requests = [
        WriteRequest.parse(
            agent_id=AGENT,
            message=line.text,
            speaker_name=line.speaker,
            occurred_at=line.occurred_at,
            message_id=f"demo-{number}",
            source="demo",
        )
        for number, line in enumerate(CONVERSATION, start=1)
    ]
    with MemoryClient(stack.broker_url, database_url=stack.database_url, accept="database") as client:
        handles = client.enqueue_many(requests, bulk=False)
    events = []
    for handle in handles:
        if isinstance(handle, RequestError):
            raise CommandError(f"the agent {AGENT!r} of this database holds another conversation: {handle}")
        if handle.event_id is not None:
            events.append(handle.event_id)
    return events


@contextlib.contextmanager
def _workers(stack: LocalStack) -> Iterator[CallWorkers | None]:
    """A worker and beat of the demo's own; on configured servers those that run, if any does."""
    configured = not broker_is_embedded() and not database_is_embedded()
    if configured and worker_answers(stack.broker_url or ""):
        yield None
        return
    with CallWorkers(stack) as started:
        yield started


def _runs(connection: Connection, events: Sequence[UUID]) -> list[dict[str, Any]]:
    from worker.read.ledger import runs_of

    return runs_of(connection, events)


def _follow(
    connection: Connection,
    events: Sequence[UUID],
    working: CallWorkers | None,
    timeout: float,
    *,
    quiet: bool,
) -> list[dict[str, Any]]:
    """Watch the runs until all have ended; the runs. Raises CommandError when nothing moves for ``timeout`` seconds."""
    from rich.live import Live

    terminal = console.output(stderr=True)
    with contextlib.ExitStack() as stack:
        live = None
        if terminal.is_terminal and not quiet:
            live = stack.enter_context(Live(console=terminal, refresh_per_second=10, transient=True))
        seen: list[tuple[Any, ...]] = []
        told: set[int] = set()
        moved = time.monotonic()
        while True:
            runs = _runs(connection, events)
            state = [(run["stage"], run["state"], run["status"]) for run in runs]
            if state != seen:
                seen, moved = state, time.monotonic()
                if live is not None:
                    live.update(_progress(runs))
                else:
                    _tell(runs, told)
            if all(run["status"] for run in runs):
                break
            if working is not None:
                working.check()
            if time.monotonic() - moved > timeout:
                raise CommandError(f"nothing has moved for {timeout:g} s; see `mandua status` and `mandua doctor`")
            time.sleep(POLL_SECONDS)
    if live is not None:
        terminal.print(_progress(runs))
    return runs


def _progress(runs: Sequence[dict[str, Any]]) -> Table:
    """Each message with the milliseconds of the stages that are done."""
    made = console.table("Messages", ["when", "who", "message", *STAGES, "status"])
    for line, run in zip(CONVERSATION, runs, strict=True):
        when = datetime.fromisoformat(line.occurred_at).strftime("%Y-%m-%d")
        made.add_row(when, line.speaker, console.cell(line.text), *_stages(run), run["status"] or run["state"])
    return made


def _stages(run: dict[str, Any]) -> list[str]:
    timings = run["timings"] or {}
    at_work = run["status"] is None and run["state"] == "running"
    return [
        f"{timings[stage]:.0f} ms" if stage in timings else ("…" if at_work and run["stage"] == stage else "")
        for stage in STAGES
    ]


def _tell(runs: Sequence[dict[str, Any]], told: set[int]) -> None:
    """A line for each message that has ended, where no table can be drawn over and over."""
    for number, (line, run) in enumerate(zip(CONVERSATION, runs, strict=True)):
        if run["status"] and number not in told:
            told.add(number)
            spent = run["timings"] or {}
            times = ", ".join(f"{stage} {spent[stage]:.0f} ms" for stage in STAGES if stage in spent)
            print(f"  {run['status']:<8} {line.speaker}: {line.text}  ({times})", file=sys.stderr, flush=True)


def _memory(connection: Connection, events: Sequence[UUID], runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the agent remembers now: all versions of its facts, all relations, also those that ended."""
    from worker.read.entities import entities
    from worker.read.facts import facts
    from worker.read.relations import relations

    return {
        "events": len(events),
        "runs": dict(Counter(run["status"] for run in runs)),
        "entities": entities(connection, AGENT),
        "facts": facts(connection, AGENT, everything=True),
        "relations": relations(connection, AGENT, everything=True),
    }


def _show(memory: dict[str, Any]) -> None:
    ended = ", ".join(f"{many} {status}" for status, many in sorted(memory["runs"].items()))
    console.show(f"{memory['events']} messages: {ended}")
    console.show_table("Entities", ENTITY_COLUMNS, memory["entities"])
    facts = memory["facts"]
    texts = {fact["id"]: fact["fact_text"] for fact in facts}
    rows = [{**fact, "replaces": texts.get(fact["supersedes_fact_id"])} for fact in facts]
    console.show_table("Facts, with every version", {**FACT_COLUMNS, "replaces": "replaces"}, rows)
    console.show_table("Relations, also those that ended", RELATION_COLUMNS, memory["relations"])
