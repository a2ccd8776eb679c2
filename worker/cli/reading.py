"""``facts``, ``entities``, ``relations``: what an agent's memory holds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from worker.cli import console
from worker.cli.errors import WRONG_USE, CommandError
from worker.cli.moments import moment
from worker.cli.serving import AsJson, DataDir, connection_to, servers

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

Agent = Annotated[str, typer.Option("--agent", help="Whose memory.", show_default=False)]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="At most so many rows.", show_default=False)]
Offset = Annotated[int, typer.Option("--offset", min=0, help="Pass over so many rows.", show_default=False)]
_TIME = "a time with zone, or 2h, 7d ago."
AsOf = Annotated[str | None, typer.Option("--as-of", help=f"What was true then: {_TIME}", show_default=False)]
KnownAt = Annotated[
    str | None, typer.Option("--known-at", help=f"What the system believed then: {_TIME}", show_default=False)
]

FACT_COLUMNS = {
    "entity_key": "about",
    "fact_text": "fact",
    "confidence": "conf.",
    "event_date": "date",
    "valid_from": "valid from",
    "valid_to": "valid to",
    "speaker": "said by",
}
ENTITY_COLUMNS = {
    "canonical_key": "key",
    "display_name": "name",
    "aliases": "also",
    "fact_count": "facts",
    "profile_text": "profile",
}
RELATION_COLUMNS = {
    "source_entity_key": "from",
    "rel_type": "relation",
    "target_entity_key": "to",
    "strength": "strength",
    "valid_from": "valid from",
    "valid_to": "valid to",
}


def facts(
    agent: Agent,
    entity: Annotated[
        str | None, typer.Option("--entity", help="Only facts that are about or mention this key.", show_default=False)
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Closed versions, retractions and doubtful facts as well.")
    ] = False,
    min_confidence: Annotated[
        float | None, typer.Option("--min-confidence", min=0.0, max=1.0, help="Instead of 0.55.", show_default=False)
    ] = None,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    limit: Limit = None,
    offset: Offset = 0,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List the facts of an agent: those that hold, or that held then, or that were believed then."""
    then = None if as_of is None else moment(as_of, "--as-of")
    known = None if known_at is None else moment(known_at, "--known-at")
    if everything and (then or known):
        raise CommandError("--all shows every version there is; leave out --as-of and --known-at", WRONG_USE)
    with opened(agent, data_dir) as (agent_id, connection):
        from worker.read.facts import MIN_CONFIDENCE, get_facts
        from worker.read.facts import facts as read

        floor = MIN_CONFIDENCE if min_confidence is None else min_confidence
        if everything:
            rows = read(connection, agent_id, entity_key=entity, everything=True, limit=limit, offset=offset)
        else:
            rows = get_facts(
                connection, agent_id, entity_key=entity, min_confidence=floor, as_of=then, known_at=known,
                limit=limit, offset=offset,
            )  # fmt: skip
    show_rows("facts", "Facts", FACT_COLUMNS, rows, as_json)


def entities(
    agent: Agent,
    everything: Annotated[bool, typer.Option("--all", help="Those merged into another as well.")] = False,
    limit: Limit = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List the entities of an agent."""
    with opened(agent, data_dir) as (agent_id, connection):
        from worker.read.entities import entities as read

        rows = read(connection, agent_id, everything=everything, limit=limit)
    show_rows("entities", "Entities", ENTITY_COLUMNS, rows, as_json)


def relations(
    agent: Agent,
    everything: Annotated[bool, typer.Option("--all", help="Those that ended as well.")] = False,
    limit: Limit = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List the relations of an agent."""
    with opened(agent, data_dir) as (agent_id, connection):
        from worker.read.relations import relations as read

        rows = read(connection, agent_id, everything=everything, limit=limit)
    show_rows("relations", "Relations", RELATION_COLUMNS, rows, as_json)


def agent_named(agent: str) -> str:
    """The agent id as it is stored. Raises CommandError for a blank one."""
    from producer.contract import clean_text, is_blank

    if is_blank(agent):
        raise CommandError("--agent is blank; say whose memory", WRONG_USE)
    return clean_text(agent).strip()


@contextlib.contextmanager
def opened(agent: str, data_dir: Path | None) -> Iterator[tuple[str, Connection]]:
    """The agent id as it is stored, and a connection. Raises CommandError for a blank one."""
    agent_id = agent_named(agent)
    with servers(data_dir, need_broker=False) as stack, connection_to(stack.database_url) as connection:
        yield agent_id, connection


def show_rows(name: str, title: str, columns: dict[str, str], rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        console.show_json({name: rows})
    else:
        console.show_table(f"{title} ({len(rows)})", columns, rows)
