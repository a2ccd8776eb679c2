"""Forgetting: what is gone is gone from everywhere, what is left is sound, and nothing brings it back (issue 8)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
import redis
from sqlalchemy import Engine, text

from producer import MemoryClient, WriteRequest
from producer.accepting import staged
from producer.queues import Lane
from tests.integration.care.conftest import Tell, broker_text, everything, found_in, reply, run_all
from tests.integration.turns.test_dispatch import dispatch
from tests.scripted_model import Fault, ScriptedModel
from worker.care import export, forget
from worker.care.forget import NothingToForget
from worker.care.queued import take_queued
from worker.cli.app import run
from worker.local.postgres_files import wheel_folder
from worker.read import get_facts, neighbours, search, trace
from worker.turns.replay import replay
from worker.turns.running import Moved, Stale, run_stage
from worker.write.names import fold

ZENAIDE = "person:zenaide_quixada"
WORDS = ("zenaide", "quixada", "zeze")


@pytest.fixture
def life_of_rafael(tell: Tell) -> dict[str, UUID]:
    """Messages that name his sister in all ways, and some that do not."""
    return {
        "sister": tell(
            "Minha irmã Zenaide Quixadá, a Zezé, mora em Sobral e conhece a Bia",
            reply([("Zenaide Quixadá", "Zenaide Quixadá mora em Sobral")],
                  [("Zenaide Quixadá", "lives_in", "Sobral"), ("Rafael", "sibling_of", "Zenaide Quixadá"),
                   ("Bia", "knows", "Zenaide Quixadá")],
                  {"Zenaide Quixadá": ["Zezé"]}, {"Sobral": "place"}),
            message_id="m1"),
        "home": tell("Moro em Curitiba", reply([("Rafael", "Rafael mora em Curitiba")],
                                               [("Rafael", "lives_in", "Curitiba")], types={"Curitiba": "place"}),
                     message_id="m2", recent_messages=["A Zezé ligou", "Tudo bem?"],
                     speaker_aliases=["Irmão da Zezé"]),
        "gift": tell("Ganhei um livro da zeze", reply([("Rafael", "Rafael ganhou um livro de Zezé")])),
        "refused": tell("ZENAIDE QUIXADÁ é longe", Fault.refusal(), message_id="m4"),
        "tea": tell("Gosto de chá", reply([("Rafael", "Rafael gosta de chá")])),
    }  # fmt: skip


def stage(database: Engine, *messages: list[str]) -> None:
    """An import that was broken off: messages that wait, each with its recent ones."""
    with database.begin() as connection:
        connection.execute(
            text("INSERT INTO imports (id, path, options, state)"
                 " VALUES (:id, :path, CAST(:options AS jsonb), 'accepting')"),
            {"id": UUID(int=7), "path": "/chats/Zenaide Quixadá.txt",
             "options": json.dumps({"agent_id": "a", "speaker": "Zezé", "speakers": {"Zenaide": {"name": "Z"}}})},
        )  # fmt: skip
        for number, (said, *recent) in enumerate(messages):
            request = WriteRequest(agent_id="a", message=said, speaker_name="Rafael", message_id=f"s{number}",
                                   recent_messages=recent, speaker_aliases=["Irmão da Zezé"])  # fmt: skip
            item, _ = staged(request, Lane.BULK)
            connection.execute(
                text("INSERT INTO import_rows (import_id, at, ordinal, line, file, item)"
                     " VALUES (:id, now(), :n, :n, 'chat.txt', CAST(:item AS jsonb))"),
                {"id": UUID(int=7), "n": number, "item": item},
            )  # fmt: skip


def dumped(database_url: str) -> str:
    """What pg_dump writes of the whole database, folded."""
    tool = wheel_folder() / "bin" / "pg_dump"
    done = subprocess.run([tool, "--dbname", database_url], capture_output=True, text=True, check=True)
    assert "Rafael gosta de ch" in done.stdout, "of what is left, so that the dump is one"
    return fold(done.stdout)


def test_an_entity_is_gone_from_everywhere(
    life_of_rafael: dict[str, UUID],
    client: MemoryClient,
    database: Engine,
    broker_url: str,
    database_url: str,
    rows: Callable[..., list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with MemoryClient(broker_url, accept="worker") as other:  # it is in no database yet
        other.enqueue("a", "Zenaide vem jantar\ncom a Zezé", "Rafael", message_id="q1")
        other.enqueue("a", "Vou ao cinema", "Rafael")
        other.enqueue("b", "Zenaide é outra aqui", "Rafael")
    stage(database, ["Zenaide Quixadá: oi"], ["Bom dia", "A zezé!"], ["Boa noite"])
    with database.begin() as connection:
        connection.execute(text("ANALYZE"))
    assert {"pg_stats", "memory_facts", "run_results"} <= {table for table, _ in found_in(database, *WORDS)}
    monkeypatch.setenv("MANDUA_BROKER_URL", broker_url)
    assert run(["forget", "--agent", "a", "--entity", ZENAIDE, "--json"]) == 0
    seen = capsys.readouterr()
    receipt = json.loads(seen.out)
    assert receipt["counts"]["events_redacted"] == 3
    assert (receipt["counts"]["queued"], receipt["counts"]["staged"]) == (1, 1)
    waiting = rows("SELECT item ->> 'message' AS said, item #> '{request,recent_messages}' AS r FROM import_rows")
    assert sorted((row["said"], row["r"]) for row in waiting) == [("Boa noite", []), ("Bom dia", [])]
    assert receipt["queues_searched"] is True
    assert not [word for word in WORDS if word in seen.err.casefold()], "what was logged meanwhile"

    assert found_in(database, *WORDS) == []
    assert not [word for word in WORDS if word in dumped(database_url)]
    assert "zenaide e outra aqui" in broker_text(broker_url), "another agent's"
    assert "vem jantar" not in broker_text(broker_url)
    assert "cinema" in broker_text(broker_url)
    exported = " ".join(json.dumps(line, ensure_ascii=False) for line in export(database, "a")).casefold()
    assert not [word for word in WORDS if word in exported]

    with database.connect() as connection:
        left = {row["fact_text"] for row in get_facts(connection, "a")}
        assert left == {"Rafael mora em Curitiba", "Rafael gosta de chá"}
        assert {row["entity_key"] for row in neighbours(connection, "a", "person:rafael")} == {"place:curitiba"}
        told = trace(connection, life_of_rafael["sister"])
    assert told is not None
    assert (told["event"]["message"], told["event"]["speaker_name"]) == ("[forgotten]", "[forgotten]")
    (kept,) = rows("SELECT request -> 'recent_messages' AS r FROM runs WHERE event_id = :e", e=life_of_rafael["home"])
    assert kept["r"] == ["Tudo bem?"]
    assert client.result(life_of_rafael["refused"]) is not None, "it has ended; nobody waits for ever"
    tombstones = everything(database)["forget_receipts"]
    assert len(tombstones) == 1
    assert "rafael" not in tombstones[0]
    assert "person" not in tombstones[0].replace("entity", "")


def test_nothing_brings_it_back(
    life_of_rafael: dict[str, UUID], client: MemoryClient, database: Engine, broker_url: str
) -> None:
    with MemoryClient(broker_url, accept="worker") as other:
        queued = other.enqueue("a", "Zenaide vem jantar", "Rafael", message_id="q1").event_id
    with redis.Redis.from_url(broker_url, decode_responses=True) as broker:
        forget(database, "a", entity_key=ZENAIDE, queues=lambda *asked: take_queued(broker, *asked))
    assert replay(list(life_of_rafael.values())) == []
    for lane in Lane:
        again = [
            client.enqueue("a", said, "Rafael", message_id=message_id, bulk=lane is Lane.BULK).status
            for said, message_id in (
                ("Minha irmã Zenaide Quixadá, a Zezé, mora em Sobral e conhece a Bia", "m1"),
                ("QUIXADÁ, com outras palavras", "m4"),
                ("Zenaide vem jantar", "q1"),
            )
        ]
        assert again == ["duplicate"] * 3
    assert queued is not None
    assert client.wait_accepted([queued], 0) == set()
    result = client.result(queued)
    assert result is not None
    assert result.status == "empty"
    run_all("a")
    assert found_in(database, *WORDS) == []


def test_names_of_others_are_theirs(tell: Tell, database: Engine) -> None:
    tell("Paulo mora em São Paulo", reply([("Paulo", "Paulo mora em São Paulo")], [("Paulo", "lives_in", "São Paulo")],
                                          types={"São Paulo": "place"}))  # fmt: skip
    other = tell("Bia visitou São Paulo", reply([("Bia", "Bia visitou São Paulo")], types={"São Paulo": "place"}))
    tell("A Bia comeu banana com paulada", reply([("Bia", "Bia comeu banana com paulada")]))
    receipt = forget(database, "a", entity_key="person:paulo")
    assert receipt.kept_names == 1
    with database.connect() as connection:
        assert {row["fact_text"] for row in get_facts(connection, "a")} == {
            "Bia visitou São Paulo", "Bia comeu banana com paulada",
        }  # fmt: skip
        told = trace(connection, other)
    assert told is not None
    assert told["event"]["message"] == "Bia visitou São Paulo"


def test_an_event_takes_along_what_it_alone_said(
    tell: Tell, client: MemoryClient, database: Engine, rows: Callable[..., list[dict[str, Any]]]
) -> None:
    both = reply([("Bia", "Bia mora em Natal")], [("Bia", "lives_in", "Natal")], types={"Natal": "place"})
    said = "Bia mora em Natal e Xulia (Xuxu) canta"
    first = tell(said, {**both, "facts": [*both["facts"], *reply([("Xulia", "Xulia canta")])["facts"]],
                                       "entities": [*both["entities"], {"name": "Xulia", "type": "person",
                                                                        "aliases": ["Xuxu"]}]},
                 message_id="m1")  # fmt: skip
    second = tell("A Bia mora em Natal", both)
    receipt = forget(database, "a", event_id=first)
    assert (receipt.counts["facts"], receipt.counts["entities"]) == (1, 1)
    assert found_in(database, "xulia", "xuxu") == []
    (fact,) = rows("SELECT fact_text, source_event_id, valid_to FROM memory_facts")
    assert (fact["fact_text"], fact["source_event_id"]) == ("Bia mora em Natal", second)
    (edge,) = rows("SELECT valid_to, evidence_fact_id IS NOT NULL AS stands FROM memory_entity_relationships")
    assert (edge["valid_to"], edge["stands"]) == (None, True)
    assert client.enqueue("a", said, "Rafael", message_id="m1").status == "duplicate"
    with pytest.raises(NothingToForget, match="no event"):
        forget(database, "a", event_id=UUID(int=3))


def test_an_agent_is_gone_with_all_its_rows(
    life_of_rafael: dict[str, UUID], tell: Tell, client: MemoryClient, database: Engine
) -> None:
    tell("Moro em Lima", reply([("Rafael", "Rafael mora em Lima")]), agent="keeps")
    receipt = forget(database, "a")
    assert receipt.counts["events"] == 5
    left = everything(database)
    assert [table for table, found in left.items() for row in found if row.startswith("(a,") or ",a," in row] == []
    assert found_in(database, *WORDS, "curitiba") == []
    with database.connect() as connection:
        assert len(get_facts(connection, "keeps")) == 1
        assert search(connection, "a", "Curitiba") == []
    assert client.enqueue("a", "Moro em Curitiba", "Rafael", message_id="m2").status == "duplicate"
    assert client.wait_accepted([life_of_rafael["tea"]], 0) == set()
    assert client.enqueue("a", "Voltei", "Rafael").status == "accepted", "the agent may come back, as somebody new"
    with pytest.raises(NothingToForget, match="no agent"):
        forget(database, "never")


def test_who_is_at_work_meanwhile_writes_nothing(
    tell: Tell, client: MemoryClient, database: Engine, model: ScriptedModel
) -> None:
    tell("Bia canta", reply([("Bia", "Bia canta")]))
    model.on("informed_extraction", reply([("Zuleica", "Zuleica dança")]))
    client.enqueue("a", "A Zuleica dança", "Rafael")
    given = dispatch("a")
    assert given.run_id is not None
    begun = [run_stage(stage, given.run_id, given.fence) for stage in given.stages[:2]]
    assert all(isinstance(one, Moved) for one in begun)
    forget(database, "a", entity_key="person:bia")
    assert [run_stage(stage, given.run_id, given.fence) for stage in given.stages[2:]] == [Stale(), Stale()]
    assert found_in(database, "bia", "canta") == []
    run_all("a")  # it is read anew, with a memory that knows nothing of it
    with database.connect() as connection:
        assert {row["fact_text"] for row in get_facts(connection, "a")} == {"Zuleica dança"}


def test_a_worker_may_not_forget(database: Engine) -> None:
    with database.begin() as connection:
        connection.execute(text("INSERT INTO agent_seq (agent_id) VALUES ('a')"))
        connection.execute(text("INSERT INTO agent_turns (agent_id) VALUES ('a')"))
        connection.execute(
            text("INSERT INTO memory_events (id, agent_id, speaker_name, message) VALUES (:id, 'a', 'b', 'c')"),
            {"id": UUID(int=1)},
        )
    with pytest.raises(Exception, match="immutable"), database.begin() as connection:
        connection.execute(text("UPDATE memory_events SET message = '[forgotten]'"))


WRONG = [
    (["--agent", "a", "--entity", "person:x"], 1, "a has no entity person:x"),
    (["--agent", "never"], 1, "there is no agent never"),
    (["--agent", "a", "--entity", "x", "--event", str(UUID(int=1))], 2, "not both"),
    (["--agent", " "], 2, "--agent is blank"),
]


def test_wrong_use_is_one_line(
    client: MemoryClient, broker_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client.enqueue("a", "oi", "Rafael")
    monkeypatch.setenv("MANDUA_BROKER_URL", broker_url)
    for arguments, code, said in WRONG:
        assert run(["forget", *arguments]) == code
        seen = capsys.readouterr()
        assert said in seen.err
        assert (seen.out, len(seen.err.splitlines())) == ("", 1)
