"""``entities``: list them; ``entities merge``, ``split``, ``merges``: make two one, undo it, see what was merged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar
from uuid import UUID

import typer

from worker.cli import console, reading
from worker.cli.errors import FAILED, WRONG_USE, CommandError
from worker.cli.reading import Agent, Limit
from worker.cli.serving import AsJson, DataDir, servers

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

T = TypeVar("T")

app = typer.Typer(help="List the entities of an agent; merge two, undo it.", rich_markup_mode=None)

MERGE_COLUMNS = {
    "id": "merge",
    "kept_key": "stays",
    "gone_key": "went into it",
    "merged_by": "by",
    "score": "likeness",
    "reason": "why",
    "merged_at": "merged",
    "split_at": "undone",
}
Wait = Annotated[float, typer.Option("--wait", min=0, help="Seconds to wait while the agent is at work.")]


@app.callback(invoke_without_command=True)
def entities(
    context: typer.Context,
    agent: Annotated[str | None, typer.Option("--agent", help="Whose memory.", show_default=False)] = None,
    everything: Annotated[bool, typer.Option("--all", help="Those merged into another as well.")] = False,
    limit: Limit = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List the entities of an agent."""
    if context.invoked_subcommand is not None:
        return
    if agent is None:
        raise CommandError("Missing option '--agent' (see `mandua entities --help`)", WRONG_USE)
    reading.entities(agent, everything, limit, as_json, data_dir)


@app.command("merge")
def merge(
    kept: Annotated[str, typer.Argument(metavar="A", help="The key of the one that stays.", show_default=False)],
    gone: Annotated[str, typer.Argument(metavar="B", help="The key of the one that goes into it.", show_default=False)],
    agent: Agent,
    reason: Annotated[str, typer.Option("--reason", help="Why, for whoever asks later.")] = "",
    wait: Wait = 30.0,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Merge B into A: all that is known of B is known of A then, and B's names mean A. `split` undoes it."""

    def do(session: Session, agent_id: str) -> UUID:
        from worker.maintenance.merging import merge_entities

        return merge_entities(session, agent_id, kept, gone, by="hand", reason=reason)

    made = _by_hand(agent, do, wait, data_dir)
    if as_json:
        console.show_json({"merge_id": made, "kept": kept, "gone": gone})
    else:
        console.show(f"{gone} is {kept} now; to undo it: mandua entities split {made} --agent {agent}")


@app.command("split")
def split(
    merge_id: Annotated[UUID, typer.Argument(help="As `entities merges` shows it.", show_default=False)],
    agent: Agent,
    wait: Wait = 30.0,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Undo a merge: each gets back what it had. What was said since stays with the one that had stayed."""

    def do(session: Session, agent_id: str) -> tuple[str, str]:
        from worker.maintenance.splitting import split_entities

        return split_entities(session, agent_id, merge_id)

    kept, gone = _by_hand(agent, do, wait, data_dir)
    if as_json:
        console.show_json({"merge_id": merge_id, "kept": kept, "gone": gone, "split": True})
    else:
        console.show(f"{kept} and {gone} are two again")


@app.command("merges")
def merges(
    agent: Agent,
    everything: Annotated[bool, typer.Option("--all", help="Those that were undone as well.")] = False,
    limit: Limit = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List the merges of an agent's entities, the newest first."""
    with reading.opened(agent, data_dir) as (agent_id, connection):
        from worker.read.merges import merges as read

        rows = read(connection, agent_id, everything=everything, limit=limit)
    reading.show_rows("merges", "Merges", MERGE_COLUMNS, rows, as_json)


def _by_hand(agent: str, do: Callable[[Session, str], T], wait: float, data_dir: Path | None) -> T:
    """``do`` under the lock of the agent's turn. Raises CommandError with one line for all that can be wrong."""
    from producer.contract import clean_text, is_blank

    if is_blank(agent):
        raise CommandError("--agent is blank; say whose memory to change", WRONG_USE)
    agent_id = clean_text(agent).strip()
    with servers(data_dir, need_broker=False) as stack:
        from worker.db import engine
        from worker.maintenance.merging import MergeRefused
        from worker.turns.by_hand import TurnTaken, UnknownAgent, by_hand

        bind = engine(stack.database_url)
        try:
            return by_hand(agent_id, lambda session: do(session, agent_id), wait=wait, bind=bind)
        except MergeRefused as refused:
            raise CommandError(str(refused), FAILED) from None
        except TurnTaken:
            raise CommandError(
                f"the agent was at work for {wait:g} s; nothing was changed, try again", FAILED
            ) from None
        except UnknownAgent:
            raise CommandError("the agent has no memory yet", FAILED) from None
        finally:
            bind.dispose()
