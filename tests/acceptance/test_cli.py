"""The command line against real servers and a real worker. Each test has an agent of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from producer.queues import QueueName
from tests.acceptance.command import Mandua
from tests.conftest import database_address, empty_broker, fresh_database
from tests.processes import start_worker
from worker.llm.prompts import prompt
from worker.local.postgres import EmbeddedPostgres
from worker.local.valkey import EmbeddedValkey


@pytest.fixture(scope="module")
def addresses(postgres: EmbeddedPostgres, valkey: EmbeddedValkey, template: str) -> Iterator[dict[str, str]]:
    with fresh_database(postgres.url, template) as url:
        yield {"DATABASE_URL": url, "MANDUA_BROKER_URL": empty_broker(valkey.url)}


@pytest.fixture(scope="module")
def mandua(addresses: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mandua]:
    """The command, on servers with one worker that reads with the offline reader."""
    with start_worker(addresses):
        yield Mandua(tmp_path_factory.mktemp("home"), addresses)


def write(mandua: Mandua, agent: str, *rest: str) -> list[str]:
    return ["write", "--agent", agent, "--speaker", "Rafael", *rest]


def events(mandua: Mandua, agent: str) -> int:
    with psycopg.connect(mandua.environment["DATABASE_URL"]) as connection:
        row = connection.execute("SELECT count(*) FROM memory_events WHERE agent_id = %s", [agent]).fetchone()
    return row[0] if row else 0


def test_a_message_becomes_memory_and_a_later_one_replaces_it(mandua: Mandua) -> None:
    first = ("--occurred-at", "2020-05-01T10:00:00-03:00", "--wait", "--json", "I live in Curitiba.")
    told = mandua.run(*write(mandua, "moves", *first))
    assert told.code == 0
    assert told.json["status"] == "ok"
    assert [fact["fact_text"] for fact in told.json["facts_added"]] == ["Rafael lives in Curitiba"]
    assert told.json["pipeline"] is None

    later = ("--occurred-at", "2022-05-01T10:00:00-03:00", "--wait", "--verbose", "--json", "I live in Recife.")
    replaced = mandua.run(*write(mandua, "moves", *later)).json
    assert replaced["facts_updated"][0]["replaced_text"] == "Rafael lives in Curitiba"
    assert [step["name"] for step in replaced["pipeline"]["steps"]] == [
        "extraction", "semantic_dedup", "entity_resolution", "reconciliation", "upsert",
    ]  # fmt: skip

    (now,) = mandua.run("facts", "--agent", "moves", "--json").json["facts"]
    assert now["fact_text"] == "Rafael lives in Recife"
    versions = mandua.run("facts", "--agent", "moves", "--all", "--json").json["facts"]
    assert {fact["id"]: fact["valid_to"] for fact in versions}[now["supersedes_fact_id"]] == now["valid_from"]
    (linked,) = mandua.run("facts", "--agent", "moves", "--entity", "place:recife", "--json").json["facts"]
    assert linked["id"] == now["id"]

    keys = [entity["canonical_key"] for entity in mandua.run("entities", "--agent", "moves", "--json").json["entities"]]
    assert keys == ["person:rafael", "place:curitiba", "place:recife"]
    (edge,) = mandua.run("relations", "--agent", "moves", "--json").json["relations"]
    assert (edge["rel_type"], edge["target_entity_key"]) == ("lives_in", "place:recife")
    everything = mandua.run("relations", "--agent", "moves", "--all", "--json").json["relations"]
    assert [edge["invalidated_at"] is None for edge in everything] == [False, True]
    assert "Rafael lives in Recife" in mandua.run("facts", "--agent", "moves").out


def test_one_message_id_is_one_message(mandua: Mandua) -> None:
    asked = write(mandua, "ids", "--message-id", "m1", "--json")
    first = mandua.run(*asked, "I like tea.").json
    again = mandua.run(*asked, "I like tea.")
    assert (again.code, again.json) == (0, {"event_id": first["event_id"], "status": "duplicate"})
    other = mandua.run(*asked, "I like coffee.")
    assert other.code == 1
    assert "m1" in other.complaint
    assert events(mandua, "ids") == 1


def test_a_dry_run_stores_nothing(mandua: Mandua) -> None:
    told = mandua.run(*write(mandua, "dry", "--dry-run", "--json", "I live in Olinda."))
    assert told.code == 0
    assert [fact["fact_text"] for fact in told.json["facts_added"]] == ["Rafael lives in Olinda"]
    assert events(mandua, "dry") == 0
    assert mandua.run("entities", "--agent", "dry", "--json").json == {"entities": []}


def test_a_verbose_dry_run_shows_the_prompt_and_its_tokens_by_part(mandua: Mandua) -> None:
    for said in ("Ana lives in Olinda.", "Caio works at Vertix.", "I live in Recife."):
        mandua.run(*write(mandua, "prompts", "--wait", said))
    told = mandua.run(*write(mandua, "prompts", "--dry-run", "--verbose", "Ana met Caio at Vertix."))
    assert told.code == 0
    counted = next(line for line in told.out.splitlines() if line.startswith("prompt of informed_extraction, about "))
    assert all(f"{part} " in counted for part in ("system", "message", "recent_messages", "known", "rest"))
    _, _, user = told.out.partition("--- user\n")
    sent, _ = json.JSONDecoder().raw_decode(user)
    assert {"Ana", "Caio", "Vertix"} <= {item["name"] for item in sent["known"]}
    begins = prompt("informed_extraction").text.splitlines()[0]
    assert begins in told.out
    assert begins not in mandua.run(*write(mandua, "prompts", "--dry-run", "I sing.")).out


def test_a_message_over_the_limit_is_one_clear_line_and_stores_nothing(mandua: Mandua) -> None:
    """From standard input: a single argument cannot be that long on Linux. Other bad input: tests/unit/cli."""
    ended = mandua.run(*write(mandua, "bad", "-"), text="x" * 200_001)
    assert ended.code == 2
    assert "at most 200000 fit" in ended.complaint
    assert events(mandua, "bad") == 0


def test_a_history_lands_in_the_order_in_which_it_happened(mandua: Mandua, tmp_path: Path) -> None:
    def row(year: int, text: str, **more: str) -> str:
        return json.dumps({"speaker_name": "Tom", "message": text, "occurred_at": f"{year}-03-01T10:00:00Z", **more})

    file = tmp_path / "history.jsonl"
    rows = [
        row(2022, "I live in Leeds."),
        row(2019, "I live in Bristol."),
        row(2021, "I live in Cardiff."),
        row(2020, " "),
        row(2020, "x", occurred_at="2020-03-01T10:00:00"),
        row(2020, "x" * 200_001),
        "not json",
    ]
    file.write_text("\n".join(rows) + "\n")

    seen = mandua.run("import", str(file), "--agent", "history", "--dry-run", "--json").json
    assert (seen["messages"], seen["first"], seen["last"]) == (
        3, "2019-03-01T10:00:00+00:00", "2022-03-01T10:00:00+00:00",
    )  # fmt: skip
    assert events(mandua, "history") == 0

    ended = mandua.run("import", str(file), "--agent", "history", "--wait", "--json")
    assert ended.code == 1  # rows were rejected
    expected = {"accepted": 3, "duplicates": 0, "rejected": 3, "ok": 3, "degraded": 0, "empty": 1, "failed": 0}
    assert {name: ended.json[name] for name in expected} == expected
    followed = mandua.run("import", "--follow", ended.json["import_id"], "--json")
    assert followed.json == ended.json
    rejected = [json.loads(line) for line in (tmp_path / "history.rejected.jsonl").read_text().splitlines()]
    assert [item["line"] for item in rejected] == [5, 6, 7]
    assert ["zone" in rejected[0]["reason"], "200000" in rejected[1]["reason"]] == [True, True]
    assert rejected[2]["row"] == "not json"

    (now,) = mandua.run("facts", "--agent", "history", "--json").json["facts"]
    assert (now["fact_text"], now["valid_from"][:4]) == ("Tom lives in Leeds", "2022")
    again = mandua.run("import", str(file), "--agent", "history", "--wait", "--json").json
    assert (again["accepted"], again["duplicates"]) == (0, 3)
    listed = mandua.run("imports", "--json").json["imports"]
    assert [(item["id"], item["state"]) for item in listed] == [
        (again["import_id"], "accepted"), (ended.json["import_id"], "accepted"),
    ]  # fmt: skip
    assert events(mandua, "history") == 3


def test_status_and_doctor_find_all_well(mandua: Mandua) -> None:
    told = mandua.run("status", "--json")
    assert told.code == 0
    assert (told.json["database"], told.json["broker"]) == ("ok", "ok")
    assert set(told.json["runs"]) >= {"by_status", "by_stage", "by_lane", "oldest_waiting_sec"}
    assert set(told.json["queues"]) == {name.value for name in QueueName}
    found = mandua.run("doctor", "--json")
    assert found.code == 0, found.out
    states = {check["name"]: check["state"] for check in found.json["checks"]}
    assert states == {
        "database": "ok", "pgvector": "ok", "schema": "ok", "vector width": "ok", "broker": "ok", "eviction": "ok",
        "append-only file": "ok", "model": "warning", "embeddings": "ok", "workers": "ok", "silent workers": "ok",
        "clock of the database": "ok", "clock of the broker": "ok", "visibility timeout": "ok", "breakers": "ok",
        "waiting runs": "ok", "beat": "warning",
    }  # fmt: skip


def with_changes(mandua: Mandua, **changes: str) -> Mandua:
    return Mandua(mandua.home, {**mandua.environment, **changes})


def test_another_vector_width_is_refused(mandua: Mandua) -> None:
    wide = with_changes(mandua, MANDUA_EMBEDDING_MODEL="text-embedding-3-small", MANDUA_EMBEDDING_DIMENSIONS="1536")
    found = wide.run("doctor", "--json")
    assert found.code == 1
    (width,) = [check for check in found.json["checks"] if check["name"] == "vector width"]
    assert width["state"] == "broken"
    assert "384" in width["remedy"]
    refused = wide.run("up")
    assert refused.code == 1
    assert "384 wide" in refused.complaint


def test_a_database_without_the_extension(mandua: Mandua, postgres: EmbeddedPostgres) -> None:
    bare = f"bare_{os.getpid()}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {bare}")
        connection.execute(f"ALTER DATABASE {bare} SET extension_control_path = '/nowhere'")
    there = with_changes(mandua, DATABASE_URL=database_address(postgres.url, bare))
    ended = there.run("migrate")
    assert ended.code == 1
    assert "pgvector" in ended.complaint
    assert "never migrated" in there.run(*write(there, "x", "I live in Olinda.")).complaint
    found = there.run("doctor", "--json")
    assert found.code == 1
    (extension,) = [check for check in found.json["checks"] if check["name"] == "pgvector"]
    assert extension["state"] == "broken"


def test_servers_that_do_not_answer(mandua: Mandua) -> None:
    no_database = with_changes(mandua, DATABASE_URL="postgresql://u:p@127.0.0.1:1/x")
    assert "does not answer" in no_database.run("facts", "--agent", "x").complaint
    told = no_database.run("status", "--json")
    assert told.code == 1
    assert "does not answer" in told.json["database"]
    no_broker = with_changes(mandua, MANDUA_BROKER_URL="redis://127.0.0.1:1/0")
    told = no_broker.run("status", "--json")
    assert told.code == 1
    assert "does not answer" in told.json["broker"]
    assert "broker does not answer" in no_broker.run(*write(mandua, "nb", "--wait", "I live in Olinda.")).complaint
