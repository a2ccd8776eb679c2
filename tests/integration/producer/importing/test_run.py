"""A history is staged, accepted in its order, counted; what is broken costs itself alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from producer import ClientError, MemoryClient, RequestError
from producer.importing import Options, run
from tests.integration.producer.importing.conftest import row

History = Callable[..., Path]
Select = Callable[..., list[Any]]

IN_ORDER = """
SELECT e.message FROM runs r JOIN memory_events e ON e.id = r.event_id WHERE r.lane = 1 ORDER BY r.agent_id, r.seq
"""


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("producer.importing.run.CHUNK", 2)
    monkeypatch.setattr("producer.importing.staging.BLOCK", 3)


def test_history_is_handed_in_in_the_order_in_which_it_happened(
    history: History, client: MemoryClient, select: Select
) -> None:
    now = row("now")
    del now["occurred_at"]
    file = history(
        row("b", "2021-01-01T00:00:00Z"), now, row("a", "2020-12-31T23:30:00-03:00"), row("?", None),
        row("c", "2021-01-01T03:00:00+01:00"), row("same", "2021-01-01T00:00:00Z"), row(" "),
    )  # fmt: skip
    done = run.start(client, file, Options())
    assert (done.state, done.accepted, done.empty, done.unfinished, done.waiting) == ("accepted", 6, 1, 6, 0)
    assert select(IN_ORDER) == ["?", "b", "same", "c", "a", "now"]
    assert select("SELECT count(*) FROM import_rows") == [0]
    assert select("SELECT count(*) FROM agent_seq WHERE wake_at <= mandua_now()") == [1]


def test_a_longer_export_adds_only_what_is_new_and_conflicts_are_rejected(
    history: History, client: MemoryClient, select: Select
) -> None:
    first = run.start(client, history(row("one"), row("two", message_id="m2")), Options())
    again = run.start(
        client, history(row("one"), row("other", message_id="m2"), row("three"), "{", name="longer.jsonl"), Options()
    )
    assert (first.accepted, again.accepted, again.duplicates, again.rejected) == (2, 1, 1, 2)
    assert select(IN_ORDER) == ["one", "two", "three"]
    found = [(item.line, item.reason, item.content) for item in run.rejects(client, again.import_id)]
    assert [line for line, _, _ in found] == [2, 4]
    assert "'m2' was used for another text" in found[0][1]
    assert (found[0][2]["message"], found[1][2]) == ("other", "{")
    run.forget_rejects(client, again.import_id)
    assert select("SELECT count(*) FROM import_rows") == [0]
    assert run.report(client, again.import_id) == again, "counts stay when the rows go"


def test_masking_switched_on_between_two_imports_makes_no_conflict(
    history: History, client: MemoryClient, select: Select, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = history(row("my password is hunter22x"), row("tea"))
    run.start(client, file, Options())
    monkeypatch.setenv("MANDUA_REDACT_EVENTS", "1")
    again = run.start(client, file, Options())
    assert (again.accepted, again.duplicates, again.rejected) == (0, 2, 0)
    run.start(client, history(row("my password is hunter33x", message_id="new"), name="new.jsonl"), Options())
    assert [said for said in select(IN_ORDER) if "hunter33x" in said] == []


def test_what_postgres_cannot_store_is_cleaned_and_costs_no_neighbour(history: History, client: MemoryClient) -> None:
    odd = row("a\0b", config_overrides={"extraction_instructions": "x\0\ud800y"})
    assert run.start(client, history(odd, row("c \\u0000 d")), Options()).accepted == 2


def test_an_unreadable_export_leaves_no_import_behind(tmp_path: Path, client: MemoryClient, select: Select) -> None:
    (tmp_path / "note.txt").write_text("just a note")
    with pytest.raises(RequestError, match="is no export known here"):
        run.start(client, tmp_path / "note.txt", Options(agent_id="a"))
    assert select("SELECT count(*) FROM imports") == [0]


def test_two_processes_are_not_at_one_import(history: History, client: MemoryClient, database_url: str) -> None:
    refused: list[str] = []

    def meanwhile(_phase: str, _done: int, _of: int | None) -> None:
        with (
            MemoryClient(database_url=database_url, accept="database") as other,
            pytest.raises(ClientError, match="another process is at import") as caught,
        ):
            run.resume(other, begun[0])
        refused.append(str(caught.value))

    begun: list[Any] = []
    assert run.start(client, history(row("one")), Options(), told=meanwhile, begun=begun.append).accepted == 1
    assert refused


def test_a_cost_limit_stops_it_and_what_was_saved_or_allowed_lets_it_go_on(
    history: History, client: MemoryClient, select: Select, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gpt-4o-mini: some 0.0005 dollars a message that is read alone by the estimate, so ten of them for 0.005."""
    monkeypatch.setenv("MANDUA_LLM_MODEL", "gpt-4o-mini")
    file = history(*(row(f"m{number}", message_id=f"{number}") for number in range(30)))
    first = run.start(client, file, Options(batch=1), limit_usd=0.005)
    assert (first.state, first.stopped) == ("accepting", "cost_limit")
    assert 5 <= first.accepted <= 10
    assert first.accepted + first.waiting == 30
    assert run.resume(client, first.import_id).accepted == first.accepted, "nothing has been saved yet"

    monkeypatch.setattr(run, "AT_THE_LIMIT", 0.0)
    select("UPDATE runs SET usage = %s", '{"cost_usd": 0.001}')
    waits = run.follow(client, first.import_id)
    assert (waits.stopped, waits.unfinished) == ("cost_limit", first.accepted), "nobody waits for a new limit"

    select("UPDATE runs SET state = 'done', status = 'ok', finished_at = mandua_now(), usage = %s",
           '{"cost_usd": 0.0001}')  # fmt: skip
    second = run.resume(client, first.import_id)
    assert first.accepted < second.accepted < 30, "they cost less than expected"
    assert second.cost_usd == pytest.approx(first.accepted * 0.0001)
    third = run.resume(client, first.import_id, limit_usd=1.0)
    assert (third.state, third.stopped, third.accepted, third.waiting) == ("accepted", None, 30, 0)

    monkeypatch.setenv("MANDUA_LLM_MODEL", "no-such-model")
    with pytest.raises(RequestError, match="price of no-such-model is not known"):
        run.start(client, file, Options(), limit_usd=1.0)
    assert os.environ["MANDUA_LLM_MODEL"]


def test_following_counts_how_messages_ended_by_their_newest_run(
    history: History, client: MemoryClient, select: Select
) -> None:
    done = run.start(client, history(*(row(f"m{number}") for number in range(4))), Options())
    ends = iter([("done", "ok", None), ("parked", "failed", "refused"), ("done", "empty", None)])

    def work(_phase: str, _through: int, _of: int | None) -> None:
        """A message gets through each time that somebody looks; the last is the failed one's replay."""
        state, status, cause = next(ends, ("done", "degraded", None))
        select(
            "UPDATE runs SET state = %s, status = %s, cause = %s, finished_at = mandua_now() WHERE id ="
            " (SELECT id FROM runs WHERE finished_at IS NULL ORDER BY seq LIMIT 1)", state, status, cause,
        )  # fmt: skip

    through = run.follow(client, done.import_id, told=work)
    assert (through.ok, through.degraded, through.empty, through.failed, through.unfinished) == (1, 1, 1, 1, 0)
    assert not through.success
    select("INSERT INTO runs (id, event_id, agent_id, seq, lane, state, status, finished_at, import_id)"
           " SELECT gen_random_uuid(), event_id, agent_id, 99, 1, 'done', 'ok', mandua_now(), import_id FROM runs"
           " WHERE status = 'failed'")  # fmt: skip
    assert run.follow(client, done.import_id).success


def test_the_rate_counts_the_time_in_which_messages_were_before_the_workers(
    history: History, client: MemoryClient, select: Select
) -> None:
    """Twelve messages that waited for an hour and got through in 22 s, then nothing, then a chat of nine for 2 s each:
    20 after the first one, in 22 + 18 s."""
    run.start(client, history(*(row(f"m{number}") for number in range(21))), Options())
    finish = (
        "UPDATE runs SET state = 'done', status = 'ok', created_at = mandua_now() - make_interval(secs => %s),"
        " finished_at = mandua_now() - make_interval(secs => %s) WHERE seq = %s"
    )
    for number in range(1, 13):
        select(finish, 3600, 500 - 2 * number, number)
        assert (run.rate(client) is None) == (number < 10)
    for number in range(13, 22):
        select(finish, 402 - 10 * (number - 12), 400 - 10 * (number - 12), number)
    assert run.rate(client) == pytest.approx(20 / 40, rel=0.02)
