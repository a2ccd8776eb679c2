"""``trace``: what became of a message, stage by stage."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import typer

from worker.cli import console
from worker.cli.errors import FAILED, CommandError
from worker.cli.serving import AsJson, DataDir, connection_to, servers

SHOWN_CHARS = 600


def trace(
    event: Annotated[UUID, typer.Argument(help="The id of the event.", show_default=False)],
    full: Annotated[bool, typer.Option("--full", help="Prompts and replies whole, not their beginnings.")] = False,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Tell what became of a message: what was sent, answered, repaired, dropped, decided, stored.

    It shows texts, so it is for who may read the memory.
    """
    with servers(data_dir, need_broker=False) as stack, connection_to(stack.database_url) as connection:
        from worker.read.traces import trace as read

        story = read(connection, event)
    if story is None:
        raise CommandError(f"there is no event {event}", FAILED)
    if as_json:
        console.show_json(story)
        return
    for line in _lines(story, None if full else SHOWN_CHARS):
        console.show(line)


def _lines(story: dict[str, Any], chars: int | None) -> list[str]:
    event = story["event"]
    when = event["occurred_at"].isoformat() if event["occurred_at"] else "at a time that nobody knows"
    lines = [f"{event['speaker_name']} ({event['role']}, agent {event['agent_id']}), {when}:",
             f"  {_short(event['message'], chars)}"]  # fmt: skip
    for run in story["runs"]:
        why = f", {run['cause']} ({run['error_code']})" if run["cause"] else ""
        lines += ["", f"run {run['seq']}: {run['state']} at {run['stage']}, status {run['status']}{why}, "
                      f"{run['attempts']} starts"]  # fmt: skip
        for start in run["starts"]:
            lines += _start(start, chars)
        for step in run["steps"]:
            lines += _step(step)
        lines += _read(run)
    lines += ["", f"stored ({len(story['stored'])}):"]
    for fact in story["stored"]:
        ended = "" if fact["valid_to"] is None else f", ended {fact['valid_to'].isoformat()}"
        lines.append(f"  {fact['how']} {fact['entity_key']}: {fact['fact_text']} ({fact['kind']}{ended})")
    return lines


def _start(start: dict[str, Any], chars: int | None) -> list[str]:
    back = f", falling back because of {start['fallback']}" if start.get("fallback") else ""
    why = f": {start['cause']} ({start['code']})" if start.get("cause") else ""
    lines = [f"  {start['stage']} {start['outcome']}{why}{back}"]
    for call in start["calls"]:
        kept = ", kept from an earlier try" if call.get("kept") else ""
        tokens = f"{call['input_tokens']}+{call['output_tokens']} tokens"
        lines.append(f"    {call['task']} ({call['prompt']}), {call['ms']:.0f} ms, {tokens}{kept}")
        lines.append(f"      sent: {_short(call['sent'], chars)}")
        if "reply" in call:
            lines.append(f"      reply: {_short(call['reply'], chars)}")
        if "cause" in call:
            lines.append(f"      failed: {call['cause']} ({call['detail']})")
    return lines


def _step(step: dict[str, Any]) -> list[str]:
    data = step["data"]
    if step["name"] == "extraction":
        many = f"{data['entities']} entities, {data['facts']} facts, {data['relations']} relations"
        return [f"  read {data['mode']}: {many}"]
    if step["name"] == "semantic_dedup":
        return [f"    dropped as said twice: {item['text']} ({item['similarity']:.2f})" for item in data["dropped"]]
    if step["name"] == "entity_resolution":
        return [f"  {item['name']} is {item['key']}: {item['method']}{_score(item['score'])}{_because(item['why'])}"
                for item in data["entities"]]  # fmt: skip
    if step["name"] == "reconciliation":
        return [f"  {item['action']} {item['text']}{_score(item['similarity'])}{_because(item['reason'])}"
                for item in data["decisions"]]  # fmt: skip
    return []


def _read(run: dict[str, Any]) -> list[str]:
    """What the result, or the plans so far, say of repairs and of what was dropped."""
    lines = []
    for plan in (run["result"] or {}, *run["plans"].values()):
        lines += [f"  repaired: {kind} ({many})" for kind, many in (plan.get("repairs") or {}).items()]
        for item in plan.get("rejected") or ():
            lines.append(f"  rejected at {item['stage']}: {item['kind']} {item.get('item') or ''} ({item['reason']})")
        for item in plan.get("degradations") or ():
            lines.append(f"  {item['stage']} fell back to {item['fell_back_to']}: {item['cause']}")
    return lines


def _score(score: float | None) -> str:
    return "" if score is None else f" {score:.2f}"


def _because(why: str | None) -> str:
    return f", {why}" if why else ""


def _short(text: str | None, chars: int | None) -> str:
    if text is None:
        return "(left out: too long)"
    flat = " ".join(text.split())
    return flat if chars is None or len(flat) <= chars else flat[:chars] + " …"
