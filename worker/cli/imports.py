"""``import``: hand a history in."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from worker.cli import console
from worker.cli.errors import FAILED, CommandError
from worker.cli.serving import AsJson, DataDir, servers, workers

if TYPE_CHECKING:
    from producer.importing.options import Options
    from producer.importing.rows import Row, Skipped
    from producer.importing.run import Report
    from producer.importing.times import DateOrder


def import_(
    path: Annotated[
        Path, typer.Argument(metavar="FILE|FOLDER|ZIP", help="JSON lines, CSV, or an app's export.", exists=True)
    ],
    agent: Annotated[
        str | None, typer.Option("--agent", help="Whose memory, where a row names none.", show_default=False)
    ] = None,
    speaker: Annotated[
        str | None, typer.Option("--speaker", help="Who spoke, where a row names nobody.", show_default=False)
    ] = None,
    format_: Annotated[str, typer.Option("--format", help="What it is; auto looks into it.")] = "auto",
    speaker_map: Annotated[
        Path | None,
        typer.Option(help="JSON: who is who, who is the assistant, who is left out.", exists=True, show_default=False),
    ] = None,
    timezone: Annotated[
        str | None, typer.Option(help="Of times without one, such as America/Recife.", show_default=False)
    ] = None,
    date_order: Annotated[
        str | None, typer.Option(help="DMY, MDY or YMD, where the file does not tell.", show_default=False)
    ] = None,
    since: Annotated[str | None, typer.Option(help="Only from this date or time on.", show_default=False)] = None,
    until: Annotated[str | None, typer.Option(help="Only up to this date or time.", show_default=False)] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until all messages are through.")] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.0, help="With --wait: seconds without any progress to give up after.")
    ] = 300.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it holds; store nothing.")] = False,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Import a history, in the order in which it happened."""
    from producer.importing.options import Options, load_speakers

    options = Options(
        agent_id=agent,
        format=format_,
        speaker=speaker,
        speakers=load_speakers(speaker_map) if speaker_map is not None else {},
        timezone=timezone,
        date_order=cast("DateOrder | None", date_order.upper() if date_order else None),
        since=since,
        until=until,
    )
    if dry_run:
        _show_preview(path, options, as_json=as_json)
        return
    rows, rejected = _found(path, options)
    report, unfinished = _imported(rows, rejected, data_dir, wait=wait, timeout=timeout)
    _keep_rejections(path, report)
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


def _show_preview(path: Path, options: Options, *, as_json: bool) -> None:
    from producer.importing import previewing, reading
    from producer.importing.rows import Notes

    seen = previewing.Preview(notes := Notes())
    for item in reading.rows(path, options, notes, counted_only=True):
        seen.note(item)
    report = seen.report()
    if as_json:
        console.show_json(report)
        return
    for name, value in report.items():
        console.show(f"{name}: {json.dumps(value, ensure_ascii=False)}")


def _found(path: Path, options: Options) -> tuple[list[Row], list[Skipped]]:
    """The rows in order, and the broken ones; what was noticed on the way is said."""
    from producer.importing import previewing, reading
    from producer.importing.rows import Notes
    from producer.importing.run import in_order

    seen = previewing.Preview(notes := Notes())
    rows, rejected = in_order(seen.counting(reading.rows(path, options, notes)))
    agent = options.agent_id
    if agent is not None and any(row.request.agent_id != agent.strip() for row in rows):
        console.say("warning: some rows name an agent of their own; --agent is only for those that name none")
    for warning in notes.warnings + seen.suspicions():
        console.say(f"warning: {warning}")
    return rows, rejected


def _imported(
    rows: list[Row], rejected: list[Skipped], data_dir: Path | None, *, wait: bool, timeout: float
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
        json.dumps(
            {"line": item.line, "reason": item.reason, "row": item.content, "file": item.file}, ensure_ascii=False
        )
        for item in report.rejections
    )
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as out:
            out.writelines(f"{row}\n" for row in rows)
        console.say(f"{report.rejected} rows were rejected; they are in {target}, with reasons")
    except OSError as error:
        console.say(f"{report.rejected} rows were rejected; {target} cannot be written: {error.strerror}")
