"""Alias lookup and pre-retrieval against a real Postgres: whom a message names, what is shown, what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from sqlalchemy import Engine, text

from tests.unit.write.answers import Embeddings, Statements, calls_of, message
from worker.db import make_engine
from worker.llm.provider import Cause
from worker.write.calls import EmbeddingError
from worker.write.context import NAMED_ENTITIES, estimated_tokens, known_context
from worker.write.names import entity_key, fold, text_hash


@pytest.fixture
def memory(database_url: str) -> Iterator[Engine]:
    engine = make_engine(database_url, pool_size=2)
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO memory_events (id, agent_id, speaker_name, message) VALUES"
                " ('00000000-0000-0000-0000-000000000001', 'a1', 's', 'm')"
            )
        )
    yield engine
    engine.dispose()


def entity(
    engine: Engine, name: str, *aliases: str, kind: str = "person", profile: str | None = None, agent: str = "a1",
    merged_into: str | None = None,
) -> str:  # fmt: skip
    key = entity_key(kind, name)
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO memory_entities (agent_id, canonical_key, entity_type, display_name, profile_text,"
                " profile_source, merged_into) VALUES (:agent, :key, :kind, :name, :profile, :source, :merged)"
            ),
            {"agent": agent, "key": key, "kind": kind, "name": name, "profile": profile, "merged": merged_into,
             "source": profile and "model"},
        )  # fmt: skip
        for alias in dict.fromkeys((name, *aliases)):
            connection.execute(
                text(
                    "INSERT INTO memory_entity_aliases (agent_id, alias_folded, entity_type, alias, entity_key)"
                    " VALUES (:agent, :folded, :kind, :alias, :key)"
                ),
                {"agent": agent, "folded": fold(alias), "kind": kind, "alias": alias, "key": key},
            )
    return key


def store_fact(engine: Engine, key: str, said: str, vector: list[float] | None = None, **columns: Any) -> None:
    row = None if vector is None else np.array(vector + [0.0] * (384 - len(vector)), dtype=np.float32)
    extra = "".join(f", {name}" for name in columns)
    values = "".join(f", {value}" for value in columns.values())
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO memory_facts (id, agent_id, entity_key, fact_text, text_hash, confidence, source_event_id,"
                f" embedding{extra}) VALUES (:id, 'a1', :key, :said, :hash, 0.9,"
                f" '00000000-0000-0000-0000-000000000001', :row{values})"
            ),
            {"id": uuid4(), "key": key, "said": said, "hash": text_hash(said), "row": row},
        )


def context_of(engine: Engine, said: str, speaker: str = "Bruna", *, embeddings: Any = None, **fields: Any) -> Any:
    read = Statements(engine)
    provider = embeddings or Embeddings()
    found = known_context(message(said, speaker, **fields), read, calls_of(None, provider), embed_as=said)
    return found, read, provider


def test_a_profile_needs_one_statement_and_no_embedding(memory: Engine) -> None:
    entity(memory, "Clara Rezende", "Clara", profile="Software engineer at Vertix since 2023.")
    found, read, embeddings = context_of(memory, "Clara saiu da Vertix.")
    assert found.payload == [
        {
            "name": "Clara Rezende",
            "type": "person",
            "aliases": ["Clara"],
            "profile": "Software engineer at Vertix since 2023.",
        }
    ]
    assert len(read.sent) == 1
    assert embeddings.batches == []
    assert 0 < found.tokens <= 800


def test_nearest_active_facts_of_all_entities_in_one_statement(memory: Engine) -> None:
    clara, vertix = entity(memory, "Clara"), entity(memory, "Vertix", kind="organization")
    store_fact(memory, clara, "Clara likes tea", [0.0, 1.0])
    store_fact(memory, clara, "Clara works at Vertix", [1.0, 0.1])
    store_fact(
        memory, clara, "Clara lived in Leeds", [1.0], valid_from="now()", valid_to="now()", invalidated_at="now()"
    )
    store_fact(memory, vertix, "Vertix makes bridges", [0.9, 0.4])
    said = "Clara saiu da Vertix."
    found, read, embeddings = context_of(memory, said, embeddings=Embeddings({said: [1.0]}))
    facts = {item["name"]: item["facts"] for item in found.payload}
    assert facts == {"Clara": ["Clara works at Vertix", "Clara likes tea"], "Vertix": ["Vertix makes bridges"]}
    assert len(read.sent) == 2
    assert embeddings.batches == [[said]]


def test_top_k_bounds_the_facts_of_each(memory: Engine) -> None:
    key = entity(memory, "Clara")
    for number in range(15):
        store_fact(memory, key, f"Clara has book {number}", [1.0, number / 10])
    found, _, _ = context_of(memory, "Clara lê", config={"informed_extraction_topk": 3})
    assert len(found.payload[0]["facts"]) == 3
    found, _, embeddings = context_of(memory, "Clara lê", config={"informed_extraction_topk": 0})
    assert "facts" not in found.payload[0]
    assert embeddings.batches == []


@pytest.mark.parametrize(
    ("name", "said", "named"),
    [
        ("Ana", "comi uma banana", False),
        ("Ana", "a ANA chegou!", True),
        ("São Paulo", "moro em sao paulo", True),
        ("王芳", "我昨天见了王芳。", True),
        ("박서준", "박서준이 왔다", True),
        ("สมชาย", "เมื่อวานเจอสมชายที่ตลาด", True),
        ("Ann Lee", "Ann was there", False),
    ],
)
def test_whole_words_in_every_script(memory: Engine, name: str, said: str, named: bool) -> None:
    key = entity(memory, name)
    found, _, _ = context_of(memory, said)
    assert (found.keys == [key]) is named


def test_a_longer_name_hides_the_shorter_one_inside_it(memory: Engine) -> None:
    entity(memory, "Ana")
    longer = entity(memory, "Ana Paula")
    assert context_of(memory, "vi a Ana Paula")[0].keys == [longer]
    assert len(context_of(memory, "vi a Ana Paula e a Ana")[0].keys) == 2


def test_the_speaker_counts_as_named_and_comes_first(memory: Engine) -> None:
    other, speaker = entity(memory, "Ana", profile="A friend."), entity(memory, "Bruna", profile="Lives in Recife.")
    found, _, _ = context_of(memory, "vi a Ana")
    assert found.keys == [speaker, other]
    assert [item["name"] for item in found.payload] == ["Bruna", "Ana"]


def test_the_speaker_by_an_alias(memory: Engine) -> None:
    key = entity(memory, "Bruna Farias", "Bruna")
    assert context_of(memory, "choveu")[0].keys == [key]


def test_a_merged_entity_leads_to_where_it_went(memory: Engine) -> None:
    real = entity(memory, "Guilherme Maturana", profile="An architect.")
    entity(memory, "Guili", merged_into=real)
    found, read, _ = context_of(memory, "vi o Guili")
    assert found.keys == [real]
    assert len(read.sent) == 1


def test_agents_are_apart(memory: Engine) -> None:
    entity(memory, "Clara", agent="a2")
    assert context_of(memory, "vi a Clara")[0].keys == []


def test_no_memory_costs_one_statement(memory: Engine) -> None:
    found, read, embeddings = context_of(memory, "vi a Clara")
    assert (found.payload, found.tokens, len(read.sent), embeddings.batches) == ([], 0, 1, [])


def test_the_budget_is_never_passed_and_shared_out(memory: Engine) -> None:
    names = [f"Pessoa{letter}" for letter in "ABCDEF"]
    for name in names:
        key = entity(memory, name)
        for number in range(10):
            store_fact(memory, key, f"{name} gosta muito de uma coisa bem comprida número {number}", [1.0, number / 10])
    entity(memory, "Bruna", profile="Lives in Recife. " * 20)
    for budget in (0, 40, 120, 300, 800):
        found, _, _ = context_of(memory, " ".join(names), config={"informed_extraction_context_budget_tokens": budget})
        assert found.tokens <= budget
        assert estimated_tokens(found.payload) <= budget or not found.payload
        if budget >= 120:
            assert found.payload[0]["name"] == "Bruna"
        if budget == 800:
            counts = [len(item["facts"]) for item in found.payload[1:]]
            assert len(counts) == 6
            assert max(counts) - min(counts) <= 1
            assert min(counts) >= 2


def test_without_embeddings_facts_come_by_importance(memory: Engine) -> None:
    key = entity(memory, "Clara")
    store_fact(memory, key, "Clara had lunch", [1.0], importance="0.3")
    store_fact(memory, key, "Clara was born in Recife", [0.0, 1.0], importance="0.95")
    found, _, _ = context_of(memory, "vi a Clara", embeddings=Embeddings(fails=Cause.TIMEOUT))
    assert found.payload[0]["facts"] == ["Clara was born in Recife", "Clara had lunch"]
    assert found.embedding_failed == "timeout"
    with pytest.raises(EmbeddingError):
        context_of(memory, "vi a Clara", embeddings=Embeddings(fails=Cause.RATE_LIMITED))


def test_no_session_is_open_while_the_message_is_embedded(memory: Engine) -> None:
    entity(memory, "Clara")
    read = Statements(memory)
    open_then: list[int] = []

    class Watching(Embeddings):
        def embed(self, texts: Any, *, timeout: float = 30.0) -> Any:
            open_then.append(read.open)
            return super().embed(texts, timeout=timeout)

    known_context(message("vi a Clara"), read, calls_of(None, Watching()), embed_as="vi a Clara")
    assert open_then == [0]


def test_the_lookup_reads_by_index_however_many_aliases_are_stored(memory: Engine) -> None:
    key = entity(memory, "Clara")
    with memory.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO memory_entity_aliases (agent_id, alias_folded, entity_type, alias, entity_key)"
                " SELECT 'a1', 'name ' || n, 'person', 'Name ' || n, :key FROM generate_series(1, 20000) n"
            ),
            {"key": key},
        )
    with memory.connect() as connection:
        connection.execute(text("ANALYZE memory_entity_aliases"))
        plan = connection.execute(
            text("EXPLAIN (ANALYZE, BUFFERS) " + str(NAMED_ENTITIES)),
            {"agent_id": "a1", "grams": ["vi", "a", "clara", "vi a"], "speaker_key": "person:bruna", "speaker": "bruna",
             "aliases": 8},
        ).scalars().all()  # fmt: skip
    hit = next(line for line in plan if "memory_entity_aliases a" in line and "Scan" in line)
    assert "Index" in hit
    assert "rows=1" in hit.split("actual")[1]
