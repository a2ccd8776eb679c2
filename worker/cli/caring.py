"""``forget``, ``export``, ``restore``: an owner's rights over a memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from worker.cli import console
from worker.cli.errors import FAILED, INTERRUPTED, WRONG_USE, CommandError
from worker.cli.reading import agent_named
from worker.cli.serving import AsJson, DataDir, servers

# Some readers take these for the end of a line; JSON lets them stand in a text.
_LINE_ENDS = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}

Whose = Annotated[str, typer.Option("--agent", help="Whose memory.", show_default=False)]


def forget(
    agent: Whose,
    entity: Annotated[str | None, typer.Option("--entity", help="Only this entity, by its key.")] = None,
    event: Annotated[UUID | None, typer.Option("--event", help="Only this event.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask, even at a terminal.")] = False,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Erase an agent, an entity or an event for good, and print a receipt.

    Events that name the entity are redacted whole. Nothing brings it back: no replay, no second import.
    """
    if entity is not None and event is not None:
        raise CommandError("give --entity or --event, not both", WRONG_USE)
    agent_id = agent_named(agent)
    what = entity or (f"event {event}" if event else "everything")
    if not yes and sys.stdin.isatty() and not typer.confirm(f"Forget {what} of {agent_id} for good?", err=True):
        raise CommandError("nothing was forgotten", INTERRUPTED)
    with servers(data_dir) as stack:
        receipt, searched = _forget(stack.database_url, stack.broker_url or "", agent_id, entity, event)
    told = {**asdict(receipt), "queues_searched": searched}
    if as_json:
        console.show_json(told)
    else:
        parts = ", ".join(f"{many} {name.replace('_', ' ')}" for name, many in receipt.counts.items() if many)
        console.show(f"forgotten: {parts or 'nothing was stored'} (receipt {receipt.id})")
    if not searched:
        console.say("the broker's queues were not searched: what waits there unrecorded will come in as new messages")
    if receipt.kept_names:
        console.say(f"{receipt.kept_names} other entities bear such a name; forget them by their own key")


def _forget(
    url: str, broker_url: str, agent_id: str, entity: str | None, event: UUID | None
) -> tuple[Any, bool]:
    """The receipt, and whether the broker's queues were searched."""
    import redis

    from worker.care import forget as erase
    from worker.care.forget import NothingToForget
    from worker.care.queued import take_queued
    from worker.cli.broker import Broker
    from worker.db import engine

    broker = Broker(broker_url)
    searched = broker.is_redis and broker.error() is None
    bind = engine(url)

    def queues(agent_id: str, named: str | None, events: Sequence[UUID]) -> list[UUID]:
        with redis.Redis.from_url(broker_url, decode_responses=True) as client:
            return take_queued(client, agent_id, named, events)

    try:
        receipt = erase(bind, agent_id, entity_key=entity, event_id=event, queues=queues if searched else None)
    except NothingToForget as error:
        raise CommandError(str(error)) from None
    finally:
        bind.dispose()
    broker.wake([agent_id])
    return receipt, searched


def export(
    agent: Whose,
    to: Annotated[Path | None, typer.Option("--output", "-o", help="A file; else standard output.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Write everything of an agent as JSON lines: messages, facts with their versions, the graph, the ledger."""
    agent_id = agent_named(agent)
    with servers(data_dir, need_broker=False) as stack:
        from worker.care import export as read
        from worker.db import engine

        bind = engine(stack.database_url)
        target = sys.stdout if to is None else to.open("w", encoding="utf-8")
        many = 0
        try:
            for line in read(bind, agent_id):
                target.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).translate(_LINE_ENDS) + "\n")
                many += "row" in line
        except LookupError as error:
            raise CommandError(str(error.args[0])) from None
        finally:
            bind.dispose()
            if to is not None:
                target.close()
    console.say(f"{many} rows of {agent_id} written")


def restore(
    file: Annotated[Path, typer.Argument(help="What `export` wrote; - for standard input.", show_default=False)],
    even_forgotten: Annotated[
        bool, typer.Option("--even-forgotten", help="Bring back messages that were forgotten since.")
    ] = False,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Put an exported memory back, whole; the agent must not exist."""
    with servers(data_dir, need_broker=False) as stack:
        from worker.care import restore as write
        from worker.care.restore import RestoreError
        from worker.db import engine

        bind = engine(stack.database_url)
        try:
            counts = write(bind, _lines(file), even_forgotten=even_forgotten)
        except RestoreError as error:
            raise CommandError(f"{file}: {error}") from None
        finally:
            bind.dispose()
    if as_json:
        console.show_json({"restored": counts})
    else:
        console.show(f"restored {sum(counts.values())} rows, {counts['memory_events']} messages among them")


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    source = sys.stdin if str(file) == "-" else file.open(encoding="utf-8")
    try:
        for number, line in enumerate(source, 1):
            try:
                found = json.loads(line)
            except ValueError:
                raise CommandError(f"{file}: line {number} is no JSON", FAILED) from None
            if not isinstance(found, dict):
                raise CommandError(f"{file}: line {number} is no object", FAILED)
            yield found
    finally:
        if source is not sys.stdin:
            source.close()
