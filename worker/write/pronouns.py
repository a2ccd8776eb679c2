"""Words by which a speaker means himself or herself, by language (behaviour: 6, "Special cases").

A table, extended by ``MemoryConfig.extra_pronouns``. "We" is not in it: it means more people than the speaker.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from worker.write.names import fold

SPEAKER_PRONOUNS: dict[str, str] = {
    "en": "I | me | my | mine | myself | I'm | I am",
    "pt": "eu | me | mim | comigo | eu mesmo | eu mesma | meu | minha",
    "es": "yo | mí | conmigo | yo mismo | yo misma | mi",
    "fr": "je | moi | moi-même | j'",
    "it": "io | me stesso | me stessa",
    "de": "ich | mich | mir | ich selbst",
    "nl": "ik | mij | mijzelf",
    "ca": "jo",
    "sv": "jag | mig",
    "pl": "ja | mnie | mną",
    "ru": "я | меня | мне | мной",
    "uk": "мене | мені",
    "tr": "ben | beni | bana",
    "ar": "أنا",
    "he": "אני",
    "hi": "मैं | मुझे",
    "zh": "我 | 本人 | 俺",
    "ja": "私 | わたし | 僕 | ぼく | 俺 | 自分",
    "ko": "나 | 저 | 내가 | 제가",
    "vi": "tôi",
    "id": "saya | aku",
    "el": "εγώ",
    # What models write in place of a name that they were given.
    "model": "user | the user | speaker | the speaker | usuário | o usuário | a usuária | usuario | el usuario",
}


@lru_cache(maxsize=64)
def _table(extra: tuple[str, ...]) -> frozenset[str]:
    spoken = (word for row in SPEAKER_PRONOUNS.values() for word in row.split("|"))
    return frozenset(filter(None, map(fold, (*spoken, *extra))))


def is_speaker_pronoun(name: str, extra: Iterable[str] = ()) -> bool:
    """Whether ``name`` as a whole is a word by which the speaker means herself."""
    return fold(name) in _table(tuple(extra))
