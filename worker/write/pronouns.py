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

# Words that point at somebody or something, a different one in each message. None of them is a name.
_POINTING = (
    "he she him her his hers himself herself it its itself they them their we us our ours you your this that these "
    "those ele ela eles elas dele dela deles delas lhe você vocês tu nós nos a gente isso isto aquilo aquele aquela "
    "él ella ellos ellas usted ustedes nosotros nosotras eso esto aquel aquella il elle ils elles lui leur nous vous "
    "celui celle er sie ihm ihr wir uns euch lei loro noi voi someone somebody anyone everyone alguém alguien "
    "он она они его её их мы вы 他 她 它 他们 她们 我们 你 彼 彼女 彼ら 그 그녀 그들 우리"
)
_LEADING = "the this that these those a o os as um uma esse essa este esta el la los las un una le les der die das"


@lru_cache(maxsize=1)
def _pointing() -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(map(fold, _POINTING.split())), frozenset(map(fold, _LEADING.split()))


def is_pointing(name: str) -> bool:
    """Whether ``name`` is a pronoun for somebody else ("she", "ele", 她), which names nobody beyond its message."""
    return fold(name) in _pointing()[0]


def is_generic(name: str) -> bool:
    """Whether ``name`` only points or describes ("the company", "essa cidade"), so that it must not become an alias."""
    first, _, rest = name.partition(" ")
    return is_pointing(name) or (bool(rest) and name.islower() and fold(first) in _pointing()[1])


@lru_cache(maxsize=64)
def _table(extra: tuple[str, ...]) -> frozenset[str]:
    spoken = (word for row in SPEAKER_PRONOUNS.values() for word in row.split("|"))
    return frozenset(filter(None, map(fold, (*spoken, *extra))))


def is_speaker_pronoun(name: str, extra: Iterable[str] = ()) -> bool:
    """Whether ``name`` as a whole is a word by which the speaker means herself."""
    return fold(name) in _table(tuple(extra))
