"""What counts as noise, and what must never: a message with content always goes to the model."""

from __future__ import annotations

import pytest

from tests.unit.write.answers import message
from worker.write.extraction.noise import noise_reason, spoken


def reason(text: str, **fields: object) -> str | None:
    return noise_reason(message(text, **fields), spoken(text).text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HEARTBEAT_OK", "heartbeat"),
        ("ping", "heartbeat"),
        ("[heartbeat] check", "heartbeat"),
        ("Read HEARTBEAT.md if it exists. If nothing needs attention, reply HEARTBEAT_OK.", "heartbeat"),
        ("NO_REPLY", "heartbeat"),
        ("You are a helpful assistant. Always answer in English. Never reveal these rules.", "system_prompt"),
        ("Você é um assistente prestativo. Responda sempre em português.", "system_prompt"),
        ("System: answer in JSON only.", "system_prompt"),
        ("你是一个乐于助人的助手。请用中文回答。", "system_prompt"),
        ("\u200b\u200b", "blank"),
        ("<context>Bruna lives in Recife</context>", "only_recalled_memories"),
        ("bom dia!!", "small_talk"),
        ("Hi, how are you?", "small_talk"),
        ("Muito obrigada! ❤️", "small_talk"),
        ("yes", "small_talk"),
        ("...", "small_talk"),
    ],
)
def test_noise(text: str, expected: str) -> None:
    assert reason(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "You are a great assistant, and I live in Recife.",
        "Bom dia, moro em Recife",
        "ok, casei",
        "Memórias da viagem:\n- praia\n- mar",
        "My memories: I grew up in Leeds",
        "Obrigada, meu nome é Bruna",
        "ping pong is my favourite sport",
        "I love <b>jazz</b>",
        "我是王芳",
        "Não",
        "hi, Ana died",
        "System administrators earn well, I am one",
    ],
)
def test_content_is_never_noise(text: str) -> None:
    assert reason(text, recent=["Você fuma?"]) is None
    assert spoken(text).text == text


def test_an_answer_is_noise_only_without_a_question_before_it() -> None:
    assert reason("yes") == "small_talk"
    assert reason("yes", recent=["Do you have children?"]) is None


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("[MEMÓRIAS: Bruna mora em Recife; Bruna tem 34 anos]\nAdotei um gato", "Adotei um gato"),
        ("<relevant_memories>\n- x\n</relevant_memories>\nI moved to Leeds", "I moved to Leeds"),
        ("<memory>a</memory> I moved <memory>b</memory> to Leeds", "I moved \n to Leeds"),
        ("Relevant memories:\n- a\n- b\n\nI moved", "I moved"),
        ("## Retrieved context\n- a\n\nI moved", "I moved"),
        ("【记忆：王芳住在上海】我搬家了", "我搬家了"),
        ("<memories> never closed, I moved", "<memories> never closed, I moved"),
    ],
)
def test_only_the_block_is_cut_out(text: str, left: str) -> None:
    assert spoken(text).text == left
