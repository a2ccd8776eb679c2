"""``import``: hand a history in."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from worker.cli import console
from worker.cli.errors import FAILED, CommandError
from worker.cli.serving import AsJson, DataDir, servers, workers

if TYPE_CHECKING:
    from producer.importing.jsonl import Rejected, Row
    from producer.importing.run import Report


def import_(
    file: Annotated[Path, typer.Argument(help="JSON lines, a message a line.", exists=True, dir_okay=False)],
    agent: Annotated[
        str | None, typer.Option("--agent", help="Whose memory, where a row names none.", show_default=False)
    ] = None,
    speaker: Annotated[
        str | None, typer.Option("--speaker", help="Who spoke, where a row names nobody.", show_default=False)
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until all messages are through.")] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.0, help="With --wait: seconds without any progress to give up after.")
    ] = 300.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what the file holds; store nothing.")] = False,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Import a history, in the order in which it happened."""
    from producer.importing import jsonl
    from producer.importing.run import in_order, preview

    with file.open("rb") as lines:
        rows, rejected = in_order(jsonl.read(lines, agent_id=agent, speaker=speaker))
    if agent is not None and any(row.request.agent_id != agent.strip() for row in rows):
        console.say("warning: some rows name an agent of their own; --agent is only for those that name none")
    if dry_run:
        seen = preview(rows, rejected)
        if as_json:
            console.show_json(seen)
        else:
            for name, value in seen.items():
                console.show(f"{name}: {json.dumps(value, ensure_ascii=False)}")
        return
    report, unfinished = _imported(rows, rejected, data_dir, wait=wait, timeout=timeout)
    _keep_rejections(file, report)
    if as_json:
        console.show_json(report.counts())
    else:
        console.show(", ".join(f"{name} {many}" for name, many in report.counts().items()))
    if unfinished:
        raise CommandError(
            f"{unfinished} messages are not through after {timeout:g} s without progress; they are kept (is a worker "
            "up? see `mandua status`)"
        )
    if not report.success:
        raise typer.Exit(FAILED)


def _imported(
    rows: list[Row], rejected: list[Rejected], data_dir: Path | None, *, wait: bool, timeout: float
) -> tuple[Report, int]:
    """The report, and how many messages are not through although they were waited for."""
    from producer.client import MemoryClient
    from producer.importing import run

    with (
        servers(data_dir) as stack,
        MemoryClient(stack.broker_url, database_url=stack.database_url, accept="database") as client,
    ):
        report = run.hand_in(client, rows, rejected)
        if not wait or not report.events:
            return report, 0
        with workers(stack):
            return report, run.wait(client, report, timeout=timeout, progress=_progress)


def _progress(done: int, of: int) -> None:
    """Every hundredth message, and the last."""
    if done == of or done % 100 == 0:
        console.say(f"{done} of {of} through")


def _keep_rejections(file: Path, report: Report) -> None:
    """Write what was rejected beside the file, for its owner alone: the rows hold what people said."""
    target = file.with_name(file.name.removesuffix(".jsonl") + ".rejected.jsonl")
    if not report.rejections:
        return
    for item in report.rejections[:5]:
        console.say(f"line {item.line}: {item.reason}")
    rows = (
        json.dumps({"line": item.line, "reason": item.reason, "row": item.content}, ensure_ascii=False)
        for item in report.rejections
    )
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as out:
            out.writelines(f"{row}\n" for row in rows)
        console.say(f"{report.rejected} rows were rejected; they are in {target}, with reasons")
    except OSError as error:
        console.say(f"{report.rejected} rows were rejected; {target} cannot be written: {error.strerror}")
