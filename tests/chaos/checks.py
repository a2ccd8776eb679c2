"""The promises, asked of the database afterwards. Each broken one is a line; none is what the chaos must leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.chaos.billing import Bill
from tests.chaos.scene import Producer, Scene
from tests.chaos.story import Said

RUNS = """
SELECT e.message_id, e.agent_id, r.seq, r.state, r.stage, r.status, r.cause, r.error_code, r.finished_at, r.usage,
       r.attempts
  FROM memory_events e LEFT JOIN runs r ON r.event_id = e.id ORDER BY e.agent_id, r.seq
"""
FACTS = """
SELECT e.message_id, f.fact_text, count(*) AS many FROM memory_facts f JOIN memory_events e ON e.id = f.source_event_id
 GROUP BY 1, 2
"""
# A job's run is applied once a step; its end is one of them, unless it had its share and left the rest to another.
TURNS = """
SELECT t.agent_id, t.version, t.run_id,
       coalesce(sum(CASE WHEN r.kind = 'job' THEN m.steps + (m.outcome = 'done')::int ELSE 1 END), 0) AS applied
  FROM agent_turns t
  LEFT JOIN runs r ON r.agent_id = t.agent_id AND r.state = 'done'
  LEFT JOIN maintenance_runs m ON m.run_id = r.id
 GROUP BY t.agent_id
"""
JOBS = "SELECT agent_id, job, state, cause, error_code FROM runs WHERE kind = 'job'"


@dataclass(frozen=True)
class Books:
    """Everything that the checks look at, read once."""

    said: Sequence[Said]
    statuses: Mapping[str, str]
    runs: Sequence[Mapping[str, Any]]
    facts: Sequence[Mapping[str, Any]]
    turns: Sequence[Mapping[str, Any]]
    jobs: Sequence[Mapping[str, Any]]
    bills: Mapping[str, Bill]


def books(scene: Scene, said: Sequence[Said], producers: Sequence[Producer]) -> Books:
    """What is in the books when all is over."""
    statuses = {key: status for producer in producers for key, status in producer.statuses.items()}
    found = [scene.rows(sql) for sql in (RUNS, FACTS, TURNS, JOBS)]
    return Books(said, statuses, *found, scene.model.bills)


def applied_too_often(scene: Scene) -> list[str]:
    """The agents something of whom was applied twice, as of now."""
    return [row["agent_id"] for row in scene.rows(TURNS) if row["version"] > row["applied"]]


def broken_promises(kept: Books) -> list[str]:
    """One line for each promise that was not kept, with whom it concerns."""
    checks = (
        _accepted, _one_event_one_run, _only_poison_is_parked, _applied_once, _in_order, _facts_once, _billed,
        _jobs_end,
    )  # fmt: skip
    return [f"{check.__name__.strip('_')}: {line}" for check in checks for line in check(kept)]


def _accepted(kept: Books) -> Iterator[str]:
    for item in kept.said:
        status = kept.statuses.get(item.message_id)
        if status not in ("accepted", "duplicate"):
            yield f"{item.message_id} was told {status}"


def _one_event_one_run(kept: Books) -> Iterator[str]:
    found = Counter(row["message_id"] for row in kept.runs)  # a second event, and a second run, make a second row
    for item in kept.said:
        if found[item.message_id] != 1:
            yield f"{item.message_id} has {found[item.message_id]} events with runs"
    for unknown in found.keys() - {item.message_id for item in kept.said}:
        yield f"{unknown} was never sent"


def _only_poison_is_parked(kept: Books) -> Iterator[str]:
    poison = {item.message_id for item in kept.said if item.poisonous}
    for row in kept.runs:
        end = (row["state"], row["stage"], row["cause"]) if row["state"] == "parked" else row["state"]
        if row["message_id"] in poison and end != ("parked", "extract", "refused"):
            yield f"{row['message_id']} is poison and ended as {end}"
        if row["message_id"] not in poison and end != "done":
            yield f"{row['message_id']} ended as {end} ({row['error_code']})"
        if row["state"] == "done" and row["status"] not in ("ok", "degraded"):
            yield f"{row['message_id']} says {row['status']}"


def _applied_once(kept: Books) -> Iterator[str]:
    for turn in kept.turns:
        if turn["version"] != turn["applied"]:
            yield f"{turn['agent_id']} applied {turn['version']} times, not {turn['applied']}"
        if turn["run_id"] is not None:
            yield f"{turn['agent_id']} has its turn still taken"


def _in_order(kept: Books) -> Iterator[str]:
    said = {item.message_id: item for item in kept.said}
    for agent in sorted({row["agent_id"] for row in kept.runs}):
        rows = [row for row in kept.runs if row["agent_id"] == agent and row["seq"] is not None]
        finished = [row["finished_at"] for row in rows if row["state"] == "done"]
        if finished != sorted(finished):
            yield f"{agent} was not applied in accepted order"
        for by_worker in (True, False):
            sent = [said[row["message_id"]] for row in rows if row["message_id"] in said]
            turns = [item.turn for item in sent if item.by_worker is by_worker]
            if turns != sorted(turns):
                yield f"{agent}'s messages (by {'worker' if by_worker else 'database'}) were not accepted as sent"


def _facts_once(kept: Books) -> Iterator[str]:
    found = {(row["message_id"], row["fact_text"]): row["many"] for row in kept.facts}
    wanted = {(item.message_id, item.fact) for item in kept.said if not item.poisonous}
    for key in wanted:
        if found.get(key) != 1:
            yield f"{key[0]} has its fact {found.get(key, 0)} times"
    for key in found.keys() - wanted:
        yield f"{key[0]} has a fact that nobody said"


def _billed(kept: Books) -> Iterator[str]:
    """What a run says it used is on the bill once; what is on the bill and not used is wasted."""
    places = {item.message_id: item.place for item in kept.said}
    for row in kept.runs:
        bill = kept.bills.get(places.get(row["message_id"], ""), Bill())
        used, wasted = spent(row)
        if used > bill.tokens:
            yield f"{row['message_id']} counts {used} tokens, the provider {bill.tokens}"
        elif used + wasted + bill.uncertain < bill.tokens and row["state"] == "done":
            yield f"{row['message_id']}: {bill.tokens} paid, {used} used and {wasted} wasted of it"


def _jobs_end(kept: Books) -> Iterator[str]:
    for row in kept.jobs:
        if row["state"] != "done":
            yield f"{row['agent_id']}'s {row['job']} ended as {row['state']} ({row['cause']}, {row['error_code']})"


def spent(row: Mapping[str, Any]) -> tuple[int, int]:
    """Tokens used and wasted of a run."""
    usage = row["usage"]
    wasted = usage.get("wasted_input_tokens", 0) + usage.get("wasted_output_tokens", 0)
    return usage.get("input_tokens", 0) + usage.get("output_tokens", 0), wasted


def summary(kept: Books) -> str:
    """The figures."""
    used = sum(spent(row)[0] for row in kept.runs)
    wasted = sum(spent(row)[1] for row in kept.runs)
    bills = kept.bills.values()
    return (
        f"{len(kept.said)} messages, {len(kept.jobs)} jobs; runs {dict(Counter(row['status'] for row in kept.runs))}; "
        f"{sum(row['attempts'] or 0 for row in kept.runs)} starts of stages; tokens used {used}, wasted {wasted}, "
        f"billed {sum(bill.tokens for bill in bills)}; calls answered {sum(bill.answered for bill in bills)}, silent "
        f"{sum(bill.silent for bill in bills)}, refused {sum(bill.refused for bill in bills)}"
    )
