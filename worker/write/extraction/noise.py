"""What in a message is not its author telling something (behaviour: 14; issue 3.6).

Two things: blocks that a backend pasted in (recalled memories, retrieved context) are cut out of the text, and a
message of which nothing is left to read is named as noise, so that no model is asked. Conservative on purpose: what
might hold a fact goes to the model, which can still answer with nothing.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from producer.contract import is_blank
from worker.write.extraction.small_talk import ANSWERS, LAUGHTER, SMALL_TALK
from worker.write.message import Message
from worker.write.names import fold

ASSISTANT_NAMES = frozenset(
    {"assistant", "ai assistant", "assistente", "assistente virtual", "asistente", "asistente virtual"}
)

_MEMORY = (
    r"(?:mem[oóò]r(?:y|ies|ias?)|memorie|m[ée]moires?|lembran[cç]as?|recuerdos?|erinnerungen|ricordi|recall(?:ed)?"
    r"|fatos conhecidos|known facts|hechos conocidos|记忆|記憶|メモリー?|기억|памят[ьи]|воспоминания|ذاكرة|ذكريات)"
)
_QUALIFIED = (
    r"(?:(?:relevant|recalled|retrieved|stored|saved|long[- ]term|previous|past|user|related)[ _]memor(?:y|ies)"
    r"|mem[oó]rias?[ _](?:relevantes?|recuperadas?|salvas?|armazenadas?|anteriores|do usu[aá]rio|de longo prazo)"
    r"|memorias?[ _](?:relevantes?|recuperadas?|guardadas?|del usuario)|known facts about|what (?:i|we) know about"
    r"|retrieved context|context from memory|contexto recuperado|contexto da mem[oó]ria)"
)
_TAG = re.compile(
    r"<(/?)([\w-]{0,30}(?:memor|recall|retrieved|known[_-]?facts|context|system|user[_-]?profile)[\w-]{0,30})\b[^<>]{0,200}>",
    re.I,
)
_BLOCKS = (
    re.compile(rf"[\[【(]\s*{_MEMORY}[^\[\]【】:：\n]{{0,60}}[:：][^\[\]【】]*[\]】]", re.I),
    re.compile(rf"\[\s*(?:{_MEMORY}|{_QUALIFIED})[^\[\]\n]{{0,40}}\].*?\[/[^\[\]\n]*\]", re.I | re.S),
    # A labelled list: the label alone on its line (or in capitals), then bullets or lines up to a blank one.
    re.compile(
        rf"^[ \t#*=>-]*(?:{_QUALIFIED}|(?-i:MEMÓRIAS|MEMORIES|MEMORIAS|MEMORY|MEMÓRIA))[^\n:]{{0,60}}:?[ \t#*=-]*\n"
        rf"(?:[ \t]*(?:[-*•]|\d+[.)])[^\n]*(?:\n|\Z))+",
        re.I | re.M,
    ),
    re.compile(rf"^[ \t#*=>-]*{_QUALIFIED}[^\n:]{{0,60}}:[ \t]*\S[^\n]*(?:\n|\Z)", re.I | re.M),
)

_HEARTBEAT = re.compile(
    r"^\W*(?:heart ?beat(?:[ _](?:ok|check|ping))?|ping|pong|keep ?-?alive|health ?-?check|no_reply|no reply)\W*$"
    r"|heartbeat_ok\b|\bheartbeat\.md\b|^\s*\[(?:heartbeat|cron|system)[^\]]*\]\s*(?:ok|check|ping|tick)?\W*$",
    re.I,
)
_SYSTEM_PROMPT = re.compile(
    r"^\W*(?:(?:system|sistema)(?:[ _](?:prompt|message|instructions?))?\s*[:\n]"
    r"|<?\|?(?:im_start\|?>?\s*)?system\|?>?\s*\n"
    r"|you(?: are|'re|’re) (?:a|an|the|now|chatgpt|gpt|claude|gemini)\b[^.\n]{0,120}\b"
    r"(?:assistant|agent|ai|bot|chatbot|language model|llm|expert|copilot)\b"
    r"|(?:você|voce|tu) (?:é|e|és) (?:um|uma|o|a|agora)\b[^.\n]{0,120}\b"
    r"(?:assistente|agente|ia|rob[oô]|modelo|especialista|chatbot)\b"
    r"|eres (?:un|una|el|la|ahora)\b[^.\n]{0,120}\b(?:asistente|agente|ia|robot|modelo|experto|experta)\b"
    r"|(?:tu es|vous êtes|vous etes) (?:un|une|l)\b[^.\n]{0,120}\b"
    r"(?:assistant|assistante|agent|ia|modèle|expert|experte)\b"
    r"|du bist (?:ein|eine|der|die)\b[^.\n]{0,120}\b(?:assistent|agent|ki|modell|experte)\b"
    r"|sei (?:un|una|l)\b[^.\n]{0,120}\b(?:assistente|agente|modello|esperto|esperta)\b"
    r"|你是(?:一个|一位|一名)?[^。\n]{0,40}(?:助手|助理|模型|专家)|あなたは[^。\n]{0,40}(?:アシスタント|モデル|専門家))",
    re.I,
)
_FIRST_PERSON = re.compile(
    r"\b(?:i|i'm|i’m|i've|my|mine|me|eu|meu|minha|meus|minhas|mim|yo|mi|mis|je|j'ai|mon|ma|mes|ich|mein|meine|io|mio|mia)\b"
    r"|我|私|僕|俺|나는|저는|내가|제가|\bя\b|\bмой\b|\bмоя\b|أنا",
    re.I,
)

_MAX_TALK_WORDS = 12
_LONGEST_PHRASE = 5  # words


@dataclass(frozen=True, slots=True)
class Spoken:
    """The part of a message that its author says; ``blocks`` counts what was cut out of it."""

    text: str
    blocks: int


def spoken(text: str) -> Spoken:
    """``text`` without recalled-memory blocks and the like that a backend pasted in. Nothing else is touched."""
    text, blocks = _without_tagged(text)
    for pattern in _BLOCKS:
        text, count = pattern.subn("\n", text)
        blocks += count
    return Spoken(text.strip() if blocks else text, blocks)


def _without_tagged(text: str) -> tuple[str, int]:
    """``text`` without ``<memories>…</memories>`` and its kin, and how many those were. Unclosed ones stay."""
    tags = list(_TAG.finditer(text))
    closing = {tag.group(2).casefold(): tag for tag in reversed(tags) if tag.group(1)}
    kept: list[str] = []
    end = blocks = 0
    for place, tag in enumerate(tags):
        name = tag.group(2).casefold()
        if tag.group(1) or tag.start() < end or name not in closing:
            continue
        if closing[name].start() < tag.end():
            later = next((t for t in tags[place + 1 :] if t.group(1) and t.group(2).casefold() == name), None)
            if later is None:
                del closing[name]
                continue
            closing[name] = later
        kept += [text[end : tag.start()], "\n"]
        end = closing[name].end()
        blocks += 1
    return "".join([*kept, text[end:]]), blocks


def noise_reason(message: Message, said: str) -> str | None:
    """Why ``message``, of which ``said`` is left, holds nothing to extract; None where it may hold something.

    The reasons: assistant_text, system_text, only_recalled_memories, blank, heartbeat, system_prompt, small_talk.
    """
    if message.role == "assistant" or fold(message.speaker) in ASSISTANT_NAMES:
        return "assistant_text"
    if message.role == "system":
        return "system_text"
    if is_blank(said):
        return "blank" if is_blank(message.text) else "only_recalled_memories"
    if len(said) < 400 and _HEARTBEAT.search(said.strip()):
        return "heartbeat"
    if _SYSTEM_PROMPT.search(said.lstrip()) and not _FIRST_PERSON.search(said):
        return "system_prompt"
    if len(said) < 200 and _is_small_talk(said, answers_too=not message.recent_messages):
        return "small_talk"
    return None


def _is_small_talk(said: str, *, answers_too: bool) -> bool:
    if not any(unicodedata.category(char)[0] in "LN" for char in said):
        return True  # emoji, dots
    words = fold(said).split()
    if len(words) > _MAX_TALK_WORDS:
        return False
    known = SMALL_TALK | ANSWERS if answers_too else SMALL_TALK
    place = 0
    while place < len(words):
        for length in range(min(_LONGEST_PHRASE, len(words) - place), 0, -1):
            if " ".join(words[place : place + length]) in known:
                place += length
                break
        else:
            if not LAUGHTER.match(words[place]) and any(char.isalnum() for char in words[place]):
                return False
            place += 1
    return True
