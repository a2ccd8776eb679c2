"""CHR and DUP-07, DUP-09: what stands in a text, and what of it must not count."""

from __future__ import annotations

import pytest

from tests.cases.conftest import Memory
from tests.cases.replies import edge, entity, extraction, fact, on_every
from tests.scripted_model import EMBEDDING


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("olha isso \ud83d <|endoftext|> e continuo em Maceió", "Bruna continua em Maceió"),
        ("still in Leeds \udfff <|im_start|>\x00 honestly", "Bruna is still in Leeds"),
        ("continuo em Maceió [INST] <s> </s> \ud800\ud800", "Bruna continua em Maceió"),
        ("我还在上海 \ud83d <|endoftext|>", "Bruna还在上海"),
    ],
)
def test_chr_02_a_lone_surrogate_and_a_tokenizers_words_break_nothing(memory: Memory, said: str, text: str) -> None:
    # The reply has them too, as a model that repeats what it read.
    raw = (
        '{"entities": [{"name": "Bruna", "type": "person"}], "facts": [{"subject": "Bruna", "text": "TEXT \\ud83d",'
        ' "confidence_level": "explicit_statement"}, {"subject": "Bruna\\u0000", "text": "TEXT <|endoftext|>"}]}'
    )
    memory.model.on("informed_extraction", raw.replace("TEXT", text))
    result = memory.write(said)
    assert result.status == "ok"
    assert memory.texts()[0].startswith(text)
    assert {row["entity_key"] for row in memory.facts(0)} == {"person:bruna"}


def test_chr_02_read_by_the_offline_reader(memory: Memory) -> None:
    memory.write("olha isso \ud83d <|endoftext|> e continuo em Maceió")
    assert memory.texts() == ["Bruna continua em Maceió"]


def test_chr_04_facts_keep_the_language_of_their_message_through_an_update(memory: Memory) -> None:
    memory.model.queue(
        "informed_extraction",
        extraction([fact("Bruna", "Bruna每天早上喝豆浆")], [entity("Bruna")]),
        extraction([fact("Bruna", "A cor favorita de Bruna é grená")], [entity("Bruna")]),
        extraction([fact("Bruna", "Bruna每天早上喝牛奶")], [entity("Bruna")]),
        extraction([fact("Bruna", "A cor favorita de Bruna agora é azul")], [entity("Bruna")]),
    )
    memory.model.on("reconciliation", on_every("UPDATE"))
    for text in ("Bruna每天早上喝豆浆", "Bruna每天早上喝牛奶"):
        memory.model.vector(text, [1.0] + [0.0] * 383)
    memory.write("我每天早上喝豆浆。")
    memory.write("A minha cor favorita é grená.")
    assert memory.texts() == ["A cor favorita de Bruna é grená", "Bruna每天早上喝豆浆"]
    memory.write("我现在每天早上喝牛奶。", at="2025-04-01T08:00:00+00:00")
    memory.write("A minha cor favorita agora é azul.", at="2025-04-01T09:00:00+00:00")
    assert memory.texts() == ["A cor favorita de Bruna agora é azul", "Bruna每天早上喝牛奶"]


def test_dup_07_white_space_in_a_name_makes_no_second_entity(memory: Memory) -> None:
    memory.model.queue(
        "informed_extraction",
        extraction([fact("Padaria Sol", "A Padaria Sol abre cedo")], [entity("Padaria Sol", "organization")]),
        extraction(
            [fact("Padaria\n\tSol", "A Padaria Sol vende broa"), fact("Padaria  Sol", "A Padaria Sol fecha tarde")],
            [entity("Padaria\n\tSol", "organization"), entity(" \n ", "place"), entity("\u200b", "place")],
            [edge(" \t", "located_in", "Padaria\u00a0Sol")],
        ),
    )
    memory.write("A Padaria Sol abre cedo.")
    result = memory.write("A Padaria Sol vende broa e fecha tarde.")
    assert memory.entity_keys() == ["organization:padaria_sol", "person:bruna"]
    names = memory.rows("SELECT display_name FROM memory_entities WHERE agent_id = :agent ORDER BY 1")
    assert [row["display_name"] for row in names] == ["Bruna", "Padaria Sol"]
    assert memory.texts() == ["A Padaria Sol abre cedo", "A Padaria Sol fecha tarde", "A Padaria Sol vende broa"]
    assert [(item.kind, item.reason) for item in result.rejected] == [
        ("entity", "blank_name"), ("entity", "blank_name"), ("relation", "missing_end"),
    ]  # fmt: skip


BLOCKS = [
    "[MEMÓRIAS: Bruna mora em Recife; Bruna tem 34 anos]\n",
    "<memories>\n- Bruna mora em Recife\n- Bruna tem 34 anos\n</memories>\n",
    "## Relevant memories\n- Bruna mora em Recife\n- Bruna tem 34 anos\n\n",
    "【记忆：Bruna mora em Recife】",
    "[Recuerdos: Bruna mora em Recife]\n",
]


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(
    ("rest", "kept"), [("Oi, tudo bem?", []), ("Adotei o gato Nilo.", ["Bruna adotou o gato Nilo"])]
)
def test_dup_09_a_recalled_block_adds_and_confirms_nothing(
    memory: Memory, block: str, rest: str, kept: list[str]
) -> None:
    memory.model.queue("informed_extraction", extraction([fact("Bruna", "Bruna mora em Recife")], [entity("Bruna")]))
    memory.write("Moro em Recife.", at="2025-01-01T10:00:00+00:00")
    before = memory.facts()[0]
    # A model that repeats what it knows, whether or not it was shown the block.
    memory.model.on(
        "informed_extraction",
        extraction([*(fact("Bruna", text) for text in kept), fact("Bruna", "Bruna mora em Recife"),
                    fact("Bruna", "Bruna tem 34 anos")], [entity("Bruna")]),
    )  # fmt: skip
    result = memory.write(block + rest)
    assert [item.fact_text for item in result.facts_added if item.confidence > 0.40] == kept
    assert result.facts_unchanged == []
    assert memory.texts() == sorted(["Bruna mora em Recife", *kept])
    after = next(row for row in memory.facts() if row["fact_text"] == "Bruna mora em Recife")
    assert after["last_confirmed_at"] == before["last_confirmed_at"]
    sent = [str(call.payload) for call in memory.model.calls if call.task == EMBEDDING]
    assert not any("34 anos" in call.payload.get("message", "") for call in memory.model.calls)
    assert not any("MEMÓRIAS" in text for text in sent)
