"""``search``, ``history``, ``timeline``, ``neighbours``: questions to an agent's memory."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import typer

from worker.cli import console
from worker.cli.errors import FAILED, WRONG_USE, CommandError
from worker.cli.moments import moment
from worker.cli.reading import Agent, AsOf, KnownAt, Limit, Offset, opened, show_rows
from worker.cli.serving import AsJson, DataDir

Entity = Annotated[
    list[str] | None, typer.Option("--entity", help="Only about or mentioning this key; may be given often.")
]
SinceThen = Annotated[str | None, typer.Option("--since", help="From then on: a time with zone, or 7d.")]
UntilThen = Annotated[str | None, typer.Option("--until", help="Before then: a time with zone, or 7d.")]

HIT_COLUMNS = {
    "similarity": "alike",
    "fact_text": "fact",
    "valid_from": "valid from",
    "valid_to": "valid to",
    "source_message": "said as",
}
VERSION_COLUMNS = {
    "fact_text": "fact",
    "valid_from": "valid from",
    "valid_to": "valid to",
    "ingested_at": "learnt",
    "invalidated_at": "ended",
    "said_by": "messages",
}
HAPPENING_COLUMNS = {
    "at": "when",
    "change": "",
    "fact_text": "fact",
    "entity_key": "about",
    "source_message": "said as",
}
NEIGHBOUR_COLUMNS = {
    "depth": "steps",
    "entity_key": "key",
    "display_name": "name",
    "source_entity_key": "from",
    "rel_type": "relation",
    "target_entity_key": "to",
    "strength": "strength",
    "evidence_text": "because",
}


def search(
    query: Annotated[str, typer.Argument(help="What to look for, in your own words.", show_default=False)],
    agent: Agent,
    entity: Entity = None,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    since: SinceThen = None,
    until: UntilThen = None,
    closed: Annotated[bool, typer.Option("--closed", help="What has ended as well.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many hits.")] = 10,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Find facts by meaning and by words, the best first."""
    then, known = _then(as_of, "--as-of"), _then(known_at, "--known-at")
    first, last = _then(since, "--since"), _then(until, "--until")
    if not query.strip():
        raise CommandError("there is nothing to look for", WRONG_USE)
    with opened(agent, data_dir) as (agent_id, connection):
        from worker.llm.provider import ModelError
        from worker.read import finding

        try:
            rows = finding.search(
                connection, agent_id, query, limit=limit, entity_keys=entity or None, include_closed=closed,
                as_of=then, known_at=known, since=first, until=last,
            )  # fmt: skip
        except ModelError as error:
            if entity or closed or any((then, known, first, last)):
                raise CommandError(f"the embeddings do not answer ({error.cause.value})") from None
            console.say(f"the embeddings do not answer ({error.cause.value}); searched by words alone")
            rows = finding.search_words(connection, agent_id, query, limit=limit)
    show_rows("hits", "Hits", HIT_COLUMNS, rows, as_json)


def history(
    fact: Annotated[UUID, typer.Argument(help="The id of any version of the fact.", show_default=False)],
    agent: Agent,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Show all versions of a fact, the oldest first, and the messages that said each."""
    with opened(agent, data_dir) as (agent_id, connection):
        from worker.read.chronicle import history as read

        rows = read(connection, agent_id, fact)
    if not rows:
        raise CommandError(f"{agent_id} has no fact {fact} (see `mandua facts --json`)", FAILED)
    if not as_json:
        for row in rows:
            row["said_by"] = "\n".join(f"{item['speaker']}: {item['message']}" for item in row["sources"])
    show_rows("versions", "Versions", VERSION_COLUMNS, rows, as_json)


def timeline(
    agent: Agent,
    entity: Annotated[str | None, typer.Option("--entity", help="Only about or mentioning this key.")] = None,
    since: SinceThen = None,
    until: UntilThen = None,
    limit: Limit = None,
    offset: Offset = 0,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Show what happened, in the order of the world: what began, what ended, what was withdrawn."""
    from_then, to_then = _then(since, "--since"), _then(until, "--until")
    with opened(agent, data_dir) as (agent_id, connection):
        from worker.read.chronicle import timeline as read

        rows = read(
            connection, agent_id, entity_key=entity, since=from_then, until=to_then, limit=limit, offset=offset
        )
    show_rows("timeline", "Timeline", HAPPENING_COLUMNS, rows, as_json)


def neighbours(
    entity: Annotated[str, typer.Argument(help="The entity's key, like person:ana.", show_default=False)],
    agent: Agent,
    depth: Annotated[int, typer.Option("--depth", min=1, max=6, help="How many steps.")] = 1,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many entities.")] = 50,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Show the entities around one: who and what it is connected with now."""
    with opened(agent, data_dir) as (agent_id, connection):
        from worker.read.entities import get_entity
        from worker.read.graph import neighbours as read

        found = get_entity(connection, agent_id, entity)
        if found is None:
            raise CommandError(f"{agent_id} has no entity {entity} (see `mandua entities`)", FAILED)
        rows = read(connection, agent_id, found["canonical_key"], depth=depth, limit=limit)
    show_rows("neighbours", "Neighbours", NEIGHBOUR_COLUMNS, rows, as_json)


def _then(written: str | None, option: str) -> datetime | None:
    return None if written is None else moment(written, option)
