"""``write``: hand one message in, and wait for what becomes of it if asked to."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from worker.cli import console
from worker.cli.errors import FAILED, WRONG_USE, CommandError
from worker.cli.serving import (
    AsJson,
    DataDir,
    broker_is_embedded,
    check_addresses,
    database_is_embedded,
    servers,
    workers,
)

if TYPE_CHECKING:
    from producer.client import MemoryClient
    from producer.contract import WriteRequest, WriteResult


def write(
    message: Annotated[str, typer.Argument(help="What was said; `-` reads standard input.", show_default=False)],
    agent: Annotated[str, typer.Option("--agent", help="Whose memory.", show_default=False)],
    speaker: Annotated[str, typer.Option("--speaker", help="Who said it.", show_default=False)],
    occurred_at: Annotated[
        str | None,
        typer.Option("--occurred-at", help="ISO time with zone, or `unknown`; now if left out.", show_default=False),
    ] = None,
    message_id: Annotated[
        str | None, typer.Option("--message-id", help="The platform's own id: makes a message unique.")
    ] = None,
    recent: Annotated[
        list[str] | None, typer.Option("--recent", help="A message from before, oldest first; repeatable.")
    ] = None,
    override: Annotated[
        list[str] | None, typer.Option("--set", help="key=value: a setting for this message; repeatable.")
    ] = None,
    source: Annotated[str, typer.Option("--source", help="Where it comes from.")] = "cli",
    session: Annotated[str | None, typer.Option("--session", help="Which conversation.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the result.")] = False,
    timeout: Annotated[float, typer.Option("--timeout", min=0.0, help="Seconds to wait at most.")] = 120.0,
    verbose: Annotated[bool, typer.Option("--verbose", help="Keep and show what each step did.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be extracted; store nothing.")] = (
        False
    ),
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Hand one message in."""
    from producer.contract import WriteRequest

    request = WriteRequest.parse(
        agent_id=agent,
        message=sys.stdin.buffer.read().decode("utf-8", "replace") if message == "-" else message,
        speaker_name=speaker,
        occurred_at=occurred_at,
        message_id=message_id,
        recent_messages=recent or [],
        config_overrides=_overrides(override or []),
        source=source,
        session_id=session,
        verbose=verbose,
    )
    if request.blank:  # nothing to remember: not even a server is started
        _show_handed_in(None, "empty", as_json)
    elif wait or dry_run:
        result = _written(request, data_dir, timeout, dry_run=dry_run)
        _show_result(result, as_json, verbose=verbose, dry_run=dry_run)
        if result.status == "failed":
            raise typer.Exit(FAILED)
    else:
        with _client(data_dir) as client:
            handle = client.enqueue_request(request)
        _show_handed_in(handle.event_id, handle.status, as_json)


@contextlib.contextmanager
def _client(data_dir: Path | None) -> Iterator[MemoryClient]:
    """A client for a message that nobody waits for. With a database at hand the event is committed here and now."""
    from producer.client import MemoryClient

    if not broker_is_embedded() and database_is_embedded():
        check_addresses()
        with MemoryClient(os.environ["MANDUA_BROKER_URL"]) as client:
            yield client
        return
    with (
        servers(data_dir) as stack,
        MemoryClient(stack.broker_url, database_url=stack.database_url, accept="database") as client,
    ):
        yield client


def _written(request: WriteRequest, data_dir: Path | None, timeout: float, *, dry_run: bool) -> WriteResult:
    from producer.client import MemoryClient

    with (
        servers(data_dir) as stack,
        MemoryClient(stack.broker_url, database_url=stack.database_url, accept="database") as client,
        workers(stack),
    ):
        if not dry_run:
            return client.enqueue_request(request).result(timeout)
        fields = request.model_dump(exclude={"agent_id", "message", "speaker_name", "dry_run"})
        return client.dry_run(request.agent_id, request.message, request.speaker_name, timeout=timeout, **fields)


def _overrides(pairs: list[str]) -> dict[str, Any]:
    """``key=value`` pairs; a value that is JSON (a number, true, a list) is taken as such, else as text."""
    from producer.contract import MemoryConfig

    found: dict[str, Any] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            raise CommandError(f"--set {pair}: write it as key=value, as in --set extraction_timeout_sec=60", WRONG_USE)
        try:
            found[key.strip()] = json.loads(value)
        except ValueError:
            found[key.strip()] = value
    for key in found:
        if key not in MemoryConfig.model_fields:
            console.say(f"warning: --set {key}: there is no such setting; it is ignored")
    return found


def _show_handed_in(event_id: object, status: str, as_json: bool) -> None:
    if as_json:
        console.show_json({"event_id": event_id, "status": status} if event_id else {"status": status})
    else:
        console.show(f"{status} {event_id}" if event_id else f"{status}: nothing to remember")


def _show_result(result: WriteResult, as_json: bool, *, verbose: bool, dry_run: bool) -> None:
    if as_json:
        console.show_json(result.model_dump(mode="json"))
        return
    what = "dry run, nothing stored" if dry_run else f"event {result.event_id}"
    console.show(f"{result.status} ({what}; {result.duration_ms:.0f} ms, {result.tokens_used.total_tokens} tokens)")
    if result.error:
        console.show(f"  error: {result.error}")
    for sign, facts in (
        ("+", result.facts_added),
        ("~", result.facts_updated),
        ("=", result.facts_unchanged),
        ("-", result.facts_deleted),
    ):
        for fact in facts:
            replaced = f"  (was: {fact.replaced_text})" if fact.replaced_text else ""
            console.show(f"  {sign} {fact.entity_key or fact.subject}: {fact.fact_text}{replaced}")
    for edge in result.relations:
        console.show(f"  > {edge.source} {edge.rel_type} {edge.target}")
    for fallback in result.degradations:
        console.show(f"  ! {fallback.stage} fell back to {fallback.fell_back_to} ({fallback.cause})")
    for item in result.rejected:
        console.show(f"  x {item.stage}: {item.kind} not stored ({item.reason})")
    for step in result.pipeline.steps if verbose and result.pipeline else ():
        plain = {name: value for name, value in step.data.items() if name != "prompts"}
        console.show(f"  {step.name} ({step.duration_ms:.0f} ms): {json.dumps(plain, ensure_ascii=False)}")
        for prompt in step.data.get("prompts", ()):
            _show_prompt(prompt)


def _show_prompt(prompt: dict[str, Any]) -> None:
    """A prompt as a dry run sent it, with its estimated tokens by part."""
    parts = ", ".join(f"{part} {count}" for part, count in prompt["tokens"].items() if part != "total")
    console.show(f"\nprompt of {prompt['task']}, about {prompt['tokens']['total']} tokens ({parts})")
    console.show(f"--- system\n{prompt['system']}")
    if prompt["instructions"]:
        console.show(f"--- instructions of this deployment\n{prompt['instructions']}")
    console.show(f"--- user\n{json.dumps(prompt['user'], ensure_ascii=False, indent=2)}")
