"""``failures`` and ``replay``: what was given up, and giving it another try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from worker.cli import console
from worker.cli.errors import FAILED, WRONG_USE, CommandError
from worker.cli.moments import moment
from worker.cli.serving import AsJson, DataDir, connection_to, servers

if TYPE_CHECKING:
    from worker.read.ledger import Choice
    from worker.turns.replay import Replayed

OnStage = Annotated[
    str | None, typer.Option("--stage", help="extract, resolve, reconcile or upsert.", show_default=False)
]
OnCause = Annotated[str | None, typer.Option("--cause", help="As `failures` shows it.", show_default=False)]
OfAgent = Annotated[str | None, typer.Option("--agent", help="Only of this agent.", show_default=False)]
Since = Annotated[
    str | None, typer.Option("--since", help="Given up since then: 2h, 7d, or a time with zone.", show_default=False)
]

COLUMNS = {
    "since": "since",
    "stage": "stage",
    "cause": "cause",
    "error_code": "code",
    "attempts": "attempts",
    "agent_id": "agent",
    "event_id": "event",
}
MANY = 100


def failures(
    stage: OnStage = None,
    cause: OnCause = None,
    agent: OfAgent = None,
    since: Since = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many, the newest.")] = MANY,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List the messages that were given up, newest first: stage, cause, code, never a text."""
    choice = _choice(stage, cause, agent, since)
    with servers(data_dir, need_broker=False) as stack, connection_to(stack.database_url) as connection:
        from worker.read.ledger import failures as read

        rows = read(connection, choice, limit=limit)
    if as_json:
        console.show_json({"failures": rows})
        return
    more = f", the newest {limit}" if len(rows) == limit else ""
    console.show_table(f"Failures ({len(rows)}{more})", COLUMNS, rows)


def replay(
    events: Annotated[
        list[UUID] | None, typer.Option("--event", help="This event; may be given often.", show_default=False)
    ] = None,
    stage: OnStage = None,
    cause: OnCause = None,
    agent: OfAgent = None,
    since: Since = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would be replayed; change nothing.")] = False,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Give failed messages another try.

    They keep their time and request, and go behind what is live; what was extracted is not paid for again.
    """
    if not any((events, stage, cause, agent, since)):
        raise CommandError("say what to replay: --event, or --stage, --cause, --agent, --since", WRONG_USE)
    choice = _choice(stage, cause, agent, since, events)
    with servers(data_dir) as stack:
        done = _replay(stack.database_url, choice, dry_run=dry_run)
        if done.runs and not dry_run:
            from worker.cli.broker import Broker

            if not Broker(stack.broker_url or "").wake(list(done.by_agent)):
                console.say("the broker does not answer; the sweeper starts them as soon as it does")
    _tell(done, dry_run=dry_run, as_json=as_json)
    if events and done.runs < len(set(events)):
        console.say(f"{len(set(events)) - done.runs} of the events are not among the failures (see `mandua failures`)")
        raise typer.Exit(FAILED)


def _replay(database_url: str, choice: Choice, *, dry_run: bool) -> Replayed:
    from worker.db import engine
    from worker.turns.replay import replay_chosen

    bind = engine(database_url)
    try:
        return replay_chosen(choice, dry_run=dry_run, bind=bind)
    finally:
        bind.dispose()


def _tell(done: Replayed, *, dry_run: bool, as_json: bool) -> None:
    told: dict[str, Any] = {
        "replayed": done.runs,
        "from_stage": dict(sorted(done.by_stage.items())),
        "agents": len(done.by_agent),
        "dry_run": dry_run,
    }
    if as_json:
        console.show_json(told)
        return
    stages = ", ".join(f"{many} from {name}" for name, many in told["from_stage"].items())
    would = "would replay" if dry_run else "replayed"
    console.show(f"{would} {done.runs} of {told['agents']} agents" + (f": {stages}" if stages else ""))


def _choice(
    stage: str | None, cause: str | None, agent: str | None, since: str | None, events: list[UUID] | None = None
) -> Choice:
    """The choice that the options make. Raises CommandError for a stage or a time that is none."""
    from producer.queues import Stage

    known = [found.value for found in Stage]
    if stage is not None and stage not in known:
        raise CommandError(f"--stage {stage} is no stage; there are {', '.join(known)}", WRONG_USE)
    from_then = None if since is None else moment(since, "--since")
    from worker.read.ledger import Choice

    return Choice(stage, cause, agent, from_then, events or None)
