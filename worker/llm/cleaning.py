"""Characters that must cross neither way: Postgres refuses NUL, UTF-8 has no lone surrogates."""

from __future__ import annotations

import re
from typing import Any

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_FORBIDDEN = re.compile("[\x00\ud800-\udfff]")


def _join(pair: re.Match[str]) -> str:
    high, low = ord(pair.group()[0]), ord(pair.group()[1])
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def clean_text(text: str) -> str:
    """Return ``text`` without NUL and lone surrogates; a surrogate pair becomes the character that it stands for."""
    if not _FORBIDDEN.search(text):
        return text
    return _FORBIDDEN.sub("", _PAIR.sub(_join, text))


def clean_json(value: Any) -> Any:
    """Return a JSON-like value with every string in it (keys included) cleaned as ``clean_text`` does."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(key) if isinstance(key, str) else key: clean_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_json(item) for item in value]
    return value
