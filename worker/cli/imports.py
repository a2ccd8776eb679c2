"""``import``: hand a history in, take an import up again, follow it. ``imports``: list them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast
from uuid import UUID

import typer

from worker.cli import console
from worker.cli.errors import FAILED, WRONG_USE, CommandError
from worker.cli.progress import Progress
from worker.cli.serving import AsJson, DataDir, database_at_hand, servers, workers

if TYPE_CHECKING:
    from producer.client import MemoryClient
    from producer.importing.options import Options
    from producer.importing.previewing import Preview
    from producer.importing.run import Report
    from producer.importing.times import DateOrder
    from worker.local.stack import LocalStack

SHOWN_REJECTS = 5
COLUMNS = {
    "started_at": "started", "state": "state", "stopped": "stopped", "messages": "messages", "accepted": "accepted",
    "duplicates": "duplicates", "rejected": "rejected", "id": "import", "path": "file",
}  # fmt: skip


def import_(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE|FOLDER|ZIP", help="JSON lines, CSV, or an app's export.", exists=True, show_default=False
        ),
    ] = None,
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
    limit_cost: Annotated[
        float | None,
        typer.Option(min=0.0, help="US dollars that it may come to; then it stops and can be resumed.",
                     show_default=False),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            min=1, max=16, help="Neighbouring messages that share calls and turns; 1: one by one.", show_default=False
        ),
    ] = None,
    resume: Annotated[
        UUID | None, typer.Option("--resume", help="Take up this import where it stands.", show_default=False)
    ] = None,
    follow: Annotated[
        UUID | None, typer.Option("--follow", help="Wait until this import's messages are through.", show_default=False)
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until all messages are through.")] = False,
    timeout: Annotated[
        float,
        typer.Option("--timeout", min=0.0, help="When waiting: seconds without any progress to give up after."),
    ] = 300.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it holds; store nothing.")] = False,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Import a history, in the order in which it happened.

    It can be interrupted at any time, and taken up again with --resume and the id that it prints.
    """
    if sum(given is not None for given in (path, resume, follow)) != 1:
        raise CommandError("say one thing: a file to import, --resume ID or --follow ID", WRONG_USE)
    if path is None and dry_run:
        raise CommandError("--dry-run looks into a file; --follow ID shows where an import stands", WRONG_USE)
    if limit_cost is not None and limit_cost <= 0:
        raise CommandError("--limit-cost must be more than 0", WRONG_USE)
    if path is None:
        _go_on(resume, follow, limit_cost, _Call(data_dir, wait=wait or follow is not None, timeout=timeout,
                                                 as_json=as_json))  # fmt: skip
        return
    from producer.importing import run
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
        batch=batch,
    )
    if dry_run:
        _show_preview(path, options, data_dir, as_json=as_json)
        return
    run.check(path, options)
    call = _Call(data_dir, wait=wait, timeout=timeout, as_json=as_json)

    def hand_in(client: MemoryClient, told: Progress) -> Report:
        return run.start(
            client, path, options, limit_usd=limit_cost, told=told, begun=call.begun, seen=call.seen
        )

    call.do(hand_in, own_agent=agent)


def imports(
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many, the newest.")] = 20,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List the imports, newest first: how far each came, and why it stopped."""
    from producer.client import MemoryClient
    from producer.importing import ledger

    with (
        servers(data_dir, need_broker=False) as stack,
        MemoryClient(database_url=stack.database_url, accept="database") as client,
        client.connection() as connection,
    ):
        rows = ledger.listed(connection, limit)
    if as_json:
        console.show_json({"imports": rows})
        return
    console.show_table(f"Imports ({len(rows)})", COLUMNS, rows)


def _go_on(resume: UUID | None, follow: UUID | None, limit_usd: float | None, call: _Call) -> None:
    """Take an import up, or only look at it."""
    from producer.importing import run

    def hand_in(client: MemoryClient, told: Progress) -> Report:
        if resume is None:
            return run.report(client, cast("UUID", follow))
        call.begun(resume)
        return run.resume(client, resume, limit_usd=limit_usd, told=told, seen=call.seen)

    call.do(hand_in)


def _show_preview(path: Path, options: Options, data_dir: Path | None, *, as_json: bool) -> None:
    from producer.importing import previewing, reading
    from producer.importing.rows import Notes

    seen = previewing.Preview(notes := Notes())
    for item in reading.rows(path, options, notes, counted_only=True):
        seen.note(item)
    report = seen.report(per_sec=_rate(data_dir))
    if as_json:
        console.show_json(report)
        return
    for name, value in report.items():
        console.show(f"{name}: {json.dumps(value, ensure_ascii=False)}")


def _rate(data_dir: Path | None) -> float | None:
    """Messages a second that the workers get through; None where that, or the database, is not known. Starts none."""
    from producer.client import MemoryClient
    from producer.errors import ClientError
    from producer.importing import run

    url = database_at_hand(data_dir)
    if url is None:
        return None
    try:
        with MemoryClient(database_url=url, accept="database") as client:
            return run.rate(client)
    except ClientError as error:
        console.say(f"warning: how long it will take is not known: {error}")
        return None


class _Call:
    """One call of the command that changes something: servers, progress, what is printed at the end."""

    def __init__(self, data_dir: Path | None, *, wait: bool, timeout: float, as_json: bool) -> None:
        from producer.importing.previewing import Preview
        from producer.importing.rows import Notes

        self._data_dir, self._wait, self._timeout, self._as_json = data_dir, wait, timeout, as_json
        self._import_id: UUID | None = None
        self.seen: Preview = Preview(Notes())

    def begun(self, import_id: UUID) -> None:
        """Say which import this is, so that it can be taken up whatever happens."""
        self._import_id = import_id
        if self._as_json:
            print(json.dumps({"event": "begun", "import_id": str(import_id)}), file=sys.stderr, flush=True)
        else:
            console.say(f"import {import_id}")

    def do(self, hand_in: Callable[[MemoryClient, Progress], Report], *, own_agent: str | None = None) -> None:
        """Do it, wait if that was asked for, and print what became of it."""
        try:
            with _connected(self._data_dir) as (stack, client), Progress(as_json=self._as_json) as progress:
                report = hand_in(client, progress)
                self._warn(own_agent)
                if self._wait and (report.unfinished or report.waiting):
                    with workers(stack):
                        report = self._through(client, report, progress)
                _keep_rejections(client, report)
        except BaseException:
            if self._import_id is not None:
                console.say(f"what was accepted stays; go on with `mandua import --resume {self._import_id}`")
            raise
        self._tell(report)

    def _through(self, client: MemoryClient, report: Report, progress: Progress) -> Report:
        """Wait for the accepted messages; what they have cost may leave room for more of them under the limit."""
        from producer.importing import run

        while True:
            before = report.waiting
            report = run.follow(client, report.import_id, timeout=self._timeout, told=progress)
            if report.unfinished or report.stopped != "cost_limit":
                return report
            report = run.resume(client, report.import_id, told=progress)
            if report.waiting == before:
                return report

    def _warn(self, own_agent: str | None) -> None:
        if own_agent is not None and self.seen.agents - {own_agent.strip()}:
            console.say("warning: some rows name an agent of their own; --agent is only for those that name none")
        for warning in self.seen.notes.warnings + self.seen.suspicions():
            console.say(f"warning: {warning}")

    def _tell(self, report: Report) -> None:
        if self._as_json:
            console.show_json(asdict(report))
        else:
            counts = {name: value for name, value in asdict(report).items() if isinstance(value, int)}
            console.show(", ".join(f"{name} {many}" for name, many in counts.items()))
        if report.stopped == "cost_limit":
            raise CommandError(
                f"the cost limit is reached, {report.waiting} messages are not handed in and {report.unfinished} not "
                f"through; go on with `mandua import --resume {report.import_id} --limit-cost USD`"
            )
        if report.unfinished and self._wait:
            raise CommandError(
                f"{report.unfinished} messages are not through after {self._timeout:g} s without progress; they are "
                f"kept (is a worker up? see `mandua status`); `mandua import --follow {report.import_id}` waits on"
            )
        if not report.success:
            raise typer.Exit(FAILED)


@contextmanager
def _connected(data_dir: Path | None) -> Iterator[tuple[LocalStack, MemoryClient]]:
    from producer.client import MemoryClient

    with (
        servers(data_dir) as stack,
        MemoryClient(stack.broker_url, database_url=stack.database_url, accept="database") as client,
    ):
        yield stack, client


def _keep_rejections(client: MemoryClient, report: Report) -> None:
    """Write what was rejected beside the file, for its owner alone: the rows hold what people said."""
    from producer.importing import run

    file = run.path_of(client, report.import_id)
    target = file.with_name(file.name.removesuffix(".jsonl") + ".rejected.jsonl")
    many = 0
    try:
        for item in run.rejects(client, report.import_id):
            if not many:
                descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                out = os.fdopen(descriptor, "w", encoding="utf-8", errors="replace")
            many += 1
            if many <= SHOWN_REJECTS:
                console.say(f"line {item.line}: {item.reason}")
            row = {"line": item.line, "reason": item.reason, "row": item.content, "file": item.file}
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    except OSError as error:
        console.say(f"{target} cannot be written: {error.strerror}; the rejected rows stay in the database")
        return
    finally:
        if many:
            out.close()
    if many:
        console.say(f"{many} rows were rejected; they are in {target}, with reasons")
        run.forget_rejects(client, report.import_id)
