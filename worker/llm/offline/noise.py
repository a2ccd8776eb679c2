"""What in a message is not its author speaking: pasted memories, prompts, machine traffic, quotations, secrets."""

from __future__ import annotations

import re

from worker.llm.offline.text import fold

SECRET = "\u241fsecret\u241f"

_MEMORY_WORDS = r"(?:mem[oó]rias?|memories|memory|recalled|recall|lembran[cç]as?|recuerdos?|contexto?|context)"
_BLOCKS = [
    re.compile(r"```.*?(?:```|\Z)", re.S),
    re.compile(r"<(\w[\w-]*)\b[^<>]*>.*?</\1>", re.S),
    re.compile(rf"\[[^\[\]]*\b{_MEMORY_WORDS}\b[^\[\]]*:[^\[\]]*\]", re.I),
    re.compile(rf"\[[^\[\]/]*\b{_MEMORY_WORDS}\b[^\[\]]*\].*?(?:\[/[^\[\]]*\]|\n\s*\n|\Z)", re.I | re.S),
    re.compile(rf"^\W*{_MEMORY_WORDS}(?: \w+){{0,3}}\s*:\s*\n(?:\s*[-*•\d].*(?:\n|\Z))+", re.I | re.M),
    re.compile(r"^\s*>.*$", re.M),
    re.compile(r"^\s*(?:assistant|assistente|ai|bot|system|sistema)\s*:.*$", re.I | re.M),
    re.compile(r"\bSYSTEM\s*:.*", re.S),
    re.compile(r"https?://\S+|www\.\S+"),
    re.compile(r"</?\w[^<>]{0,60}>"),
]
_ORDERS = re.compile(
    r"\b(?:(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instruct|prompt|rules?\b|above|asked|previous)"
    r"|(?:ignor\w+|esquec\w+|desconsider\w+)\b.{0,40}\b(?:instru|pedid|regras?\b|anterior|acima|prompt)"
    r"|(?:delete|erase|apagu?e|apagar|remova|remove)\b.{0,30}\b(?:facts?|fatos?|memor)"
    r"|(?:return|reply|respond|output|devolva|responda|retorne)\b.{0,20}\b(?:only|just|json|so)\b)"
)
_PROMPT = re.compile(
    r"^\W*(?:(?:system|sistema|system prompt)\s*[:\n]"
    r"|you are (?:a|an|the|now)\b.{0,80}\b(?:assistant|agent|ai|bot|model|expert)\b"
    r"|(?:voce|vc) e (?:um|uma|o|a)\b.{0,80}\b(?:assistente|agente|ia|robo|modelo|especialista)\b)"
)
_HEARTBEAT = re.compile(
    r"^\W*(?:heartbeat(?:[_ ]ok)?|ping|pong|keep-?alive|health ?check|no_reply|ok)\W*$|\bheartbeat\.md\b"
    r"|^\W*\[?heartbeat\b"
)
_SECRETS = [
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S),
    re.compile(
        r"(?<![A-Za-z0-9])(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[abprs]|hf|AKIA|ASIA"
        r"|AIza)[-_]?[A-Za-z0-9_\-]{12,}"
    ),
    re.compile(r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-.]{8,}"),
    re.compile(r"(?<!\d)(?:\d[ -]?){13,19}(?!\d)"),
    re.compile(r"(?<![A-Za-z0-9])(?=[A-Za-z0-9_\-]*\d)(?=[A-Za-z0-9_\-]*[A-Za-z])[A-Za-z0-9_\-]{24,}"),
    re.compile(
        r"\b(?:password|passcode|senha|pin|api[ -]?key|token|secret|cvv)\b(?:\s+(?:is|[eé]|for|d[aoe]"
        r"|[^\s:=]{1,15})){0,4}"
        r"\s*(?:[:=]|\bis\b|\b[eé](?=\s))\s*\S+",
        re.I,
    ),
]
_QUOTATION = re.compile(r'"[^"\n]{0,400}"|«[^»\n]{0,400}»')


def mask_secrets(text: str) -> str:
    """``text`` with keys, tokens, passwords and card numbers replaced by one mark that no fact may carry."""
    for pattern in _SECRETS:
        text = pattern.sub(SECRET, text)
    return text


def _without_json(text: str) -> str:
    """Drop balanced ``{…}`` and ``[{…}]`` spans: data that was pasted, not said."""
    kept: list[str] = []
    depth = 0
    for char in text:
        if char == "{":
            depth += 1
        elif char == "}" and depth:
            depth -= 1
        elif not depth:
            kept.append(char)
    return "".join(kept)


def is_machine(text: str) -> bool:
    """Heartbeats and pasted system prompts: the whole message says nothing about anybody."""
    folded = fold(text).strip()
    return bool(_HEARTBEAT.search(folded) or _PROMPT.search(folded))


def is_order(sentence: str) -> bool:
    """A sentence that talks to the reader ("ignore the previous instructions…") instead of telling something."""
    return _ORDERS.search(fold(sentence)) is not None


def speech(text: str) -> str:
    """The part of a message that its author says in their own name, with secrets masked."""
    if is_machine(text):
        return ""
    for pattern in _BLOCKS:
        text = pattern.sub("\n", text)
    text = _without_json(mask_secrets(text))
    # A quotation of one or two words is a title or a nickname; a longer one is somebody else's sentence.
    return _QUOTATION.sub(lambda m: m.group()[1:-1] if len(m.group().split()) <= 3 else " ", text)
