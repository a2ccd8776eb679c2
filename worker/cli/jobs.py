"""``jobs list`` and ``jobs run``: what the memory does while it sleeps, and doing it now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from worker.cli import console
from worker.cli.errors import WRONG_USE, CommandError
from worker.cli.serving import AsJson, DataDir, servers

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from worker.maintenance.job import Job

app = typer.Typer(help="Background jobs: list them, run one now.", no_args_is_help=True, rich_markup_mode=None)

COLUMNS = {
    "job": "job",
    "interval_sec": "every (s)",
    "agents_due": "agents due",
    "under_way": "under way",
    "last_finished_at": "last finished",
    "items": "items",
    "outcome": "outcome",
    "total_tokens": "tokens",
}
MANY = 10_000

# The newest finished run of a job, of whichever agent; and how many have not ended.
LAST_RUN = """
SELECT m.finished_at AS last_finished_at, m.items, m.outcome, m.input_tokens + m.output_tokens AS total_tokens
  FROM maintenance_runs m WHERE m.job = :job AND m.finished_at IS NOT NULL ORDER BY m.finished_at DESC LIMIT 1
"""
UNDER_WAY = "SELECT count(*) FROM runs r WHERE r.job = :job AND r.finished_at IS NULL"


@app.command("list")
def list_(as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """List the jobs: how often they may run for an agent, for how many something is due, and the last run."""
    with servers(data_dir, need_broker=False) as stack:
        rows = _with_engine(stack.database_url, _listed)
    if as_json:
        console.show_json({"jobs": rows})
    else:
        console.show_table(f"Jobs ({len(rows)})", COLUMNS, rows)


@app.command("run")
def run(
    name: Annotated[str, typer.Argument(help="The job, as `jobs list` names it.", show_default=False)],
    agent: Annotated[str | None, typer.Option("--agent", help="Only for this agent.", show_default=False)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what it would work on; change nothing.")] = False,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Let a job run now, whatever the schedule says.

    The workers do it, behind the messages that wait. Without --agent: for all agents for which something is due.
    """
    job = _job(name)
    with servers(data_dir, need_broker=not dry_run) as stack:
        if dry_run:
            found = _with_engine(stack.database_url, lambda bind: _previewed(bind, job, agent))
            _tell_preview(name, found, as_json)
            return
        agents = _with_engine(stack.database_url, lambda bind: _placed(bind, job, agent))
        if agents:
            from worker.cli.broker import Broker

            if not Broker(stack.broker_url or "").wake(agents):
                console.say("the broker does not answer; the sweeper starts them as soon as it does")
    if as_json:
        console.show_json({"job": name, "agents": len(agents), "dry_run": False})
    else:
        console.show(f"{name}: {len(agents)} agents" if agents else f"{name}: nothing is due")


def _job(name: str) -> Job:
    from worker.maintenance.schedule import JOBS, job_named

    try:
        return job_named(name)
    except KeyError:
        known = ", ".join(job.name for job in JOBS)
        raise CommandError(f"{name} is no job; there are {known}", WRONG_USE) from None


def _with_engine(url: str, do: Any) -> Any:
    from worker.db import engine

    bind = engine(url)
    try:
        return do(bind)
    finally:
        bind.dispose()


def _listed(bind: Engine) -> list[dict[str, Any]]:
    from sqlalchemy import text

    from worker.maintenance.planning import due_agents
    from worker.maintenance.schedule import JOBS, interval_of
    from worker.settings import settings

    rows = []
    with bind.connect() as connection:
        for job in JOBS:
            last = connection.execute(text(LAST_RUN), {"job": job.name}).mappings().one_or_none()
            rows.append(
                {
                    "job": job.name,
                    "interval_sec": interval_of(job.name, settings()),
                    "agents_due": len(due_agents(connection, job, many=MANY)),
                    "under_way": connection.execute(text(UNDER_WAY), {"job": job.name}).scalar_one(),
                    "last_finished_at": None, "items": None, "outcome": None, "total_tokens": None,
                    **(dict(last) if last else {}),
                }
            )  # fmt: skip
    return rows


def _placed(bind: Engine, job: Job, agent: str | None) -> list[str]:
    from worker.maintenance.planning import PlacedRun, due_agents, place

    with bind.connect() as connection:
        due = due_agents(connection, job, many=MANY)
    chosen = [PlacedRun(found, job.name) for found in due if agent is None or found == agent]
    return sorted(run.agent_id for run in place(chosen, bind))


def _previewed(bind: Engine, job: Job, agent: str | None) -> dict[str, list[str]]:
    from worker.db import read_session
    from worker.maintenance.planning import due_agents
    from worker.settings import settings

    config = settings().memory_config()
    with read_session(bind) as session:
        agents = due_agents(session.connection(), job, many=MANY)
        return {found: job.preview(session, found, config) for found in agents if agent is None or found == agent}


def _tell_preview(name: str, found: dict[str, list[str]], as_json: bool) -> None:
    if as_json:
        console.show_json({"job": name, "dry_run": True, "agents": found})
        return
    for agent, lines in found.items():
        console.show(f"{agent}: would work on {len(lines)}{' or more' if len(lines) >= 100 else ''}")
        for line in lines:
            console.show(f"  {line}")
    if not found:
        console.show(f"{name}: nothing is due")
