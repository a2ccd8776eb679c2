"""The list of commands, and the one place where an error becomes a line and an exit code."""

from __future__ import annotations

import signal
import sys
import warnings
from types import FrameType
from typing import Annotated

import typer

from worker.cli import (
    asking,
    bench,
    caring,
    console,
    demo,
    doctor,
    entities,
    exporting,
    imports,
    jobs,
    migrate,
    operating,
    reading,
    running,
    status,
    tracing,
    write,
)
from worker.cli.errors import explain

PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}

app = typer.Typer(
    name="mandua",
    help="Long-term memory for AI agents.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"mandua {version('mandua')}")
        except PackageNotFoundError:
            typer.echo("mandua (from a checkout)")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = (
        False
    ),
) -> None:
    del version


app.command("demo")(demo.demo)
app.command("up")(running.up)
app.command("write")(write.write)
app.command("import")(imports.import_)
app.command("imports")(imports.imports)
app.command("facts")(reading.facts)
app.command("search")(asking.search)
app.command("history")(asking.history)
app.command("timeline")(asking.timeline)
app.add_typer(entities.app, name="entities")
app.command("relations")(reading.relations)
app.command("neighbours")(asking.neighbours)
app.command("forget")(caring.forget)
app.command("export")(caring.export)
app.command("restore")(caring.restore)
app.command("status")(status.status)
app.command("watch")(status.watch)
app.command("failures")(operating.failures)
app.command("trace")(tracing.trace)
app.command("replay")(operating.replay)
app.add_typer(jobs.app, name="jobs")
app.command("metrics")(exporting.metrics)
app.command("doctor")(doctor.doctor)
app.command("bench")(bench.bench)
app.command("migrate")(migrate.migrate)
app.command("worker", context_settings=PASS_ON)(running.worker)
app.command("beat", context_settings=PASS_ON)(running.beat)
app.command("flower", context_settings=PASS_ON)(running.flower)


def run(arguments: list[str]) -> int:
    """Run one command; returns the exit code. Nothing that a user can cause ends in a traceback."""
    # What ends politely takes its servers and workers along, as Ctrl-C does.
    signal.signal(signal.SIGTERM, _terminate)
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    try:
        code = app(args=arguments, prog_name="mandua", standalone_mode=False)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 1
    except KeyboardInterrupt:
        console.say("interrupted")
        return 130
    except BrokenPipeError:  # `mandua facts | head`
        sys.stdout = None  # nothing may be flushed into it at exit
        return 1
    except Exception as error:
        explained = explain(error)
        if explained is None:
            raise
        line, code = explained
        if line:
            console.say(line)
        return code
    return code if isinstance(code, int) else 0


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(143)


def _show_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    """A warning of our own is for the user and fits in a line; others are for developers."""
    if category is UserWarning:
        console.say(f"warning: {message}")
