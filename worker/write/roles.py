"""Phrases that name a person by role: "minha namorada", "my older brother", "Ana's boss", "Carol (namorada do Rafael)".

Read only, without knowing anybody: whose role it is stays a name ("Ana") or the speaker (None).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from worker.write.kinship import FORMS, LONGEST_FORM, Role, RoleWord, role_word
from worker.write.names import fold, words
from worker.write.pronouns import is_speaker_pronoun


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


POSSESSIVES = _set(
    "my our mine meu minha nosso nossa meus minhas mi mis nuestro nuestra mio mia mon ma mes notre mein meine meinen "
    "meiner meinem unser unsere nostro nostra"
)
OTHERS_POSSESSIVES = _set("his her their your seu sua dele dela su sus son sa leur tu tua teu sein seine ihr ihre suo")
ARTICLES = _set("the a an o um uma el la un una le une der die das ein eine den il lo os as l")
INDEFINITE = _set(
    "a an um uma un una une ein eine einen einer some algum alguma alguna algun another outro outra otro otra"
)
_HAVING = _set("have i've got had tenho tinha temos tengo tenia tenemos ai avais habe hatte ho avevo")
_OF = _set("of do da de del di dos das du des von della dello d")
# What sets two holders of one role apart; other adjectives only decorate.
_QUALIFIERS = {
    "older": "older elder eldest oldest velho velha mayor aine ainee maggiore altere alterer altester",
    "younger": "younger youngest little novo nova cacula menor petit petite cadet cadette minore jungere jungerer "
    "kleine kleiner",
    "best": "best melhor mejor meilleur meilleure migliore beste bester",
    "former": "former previous antigo antiga anterior ancien ancienne ehemalige ehemaliger precedente",
    "new": "new nouveau nouvelle neue neuer nuovo nuova nuevo nueva",
    "maternal": "maternal materno materna maternel maternelle",
    "paternal": "paternal paterno paterna paternel paternelle",
    "half": "half meio meia medio media",
    "second": "second segundo segunda",
    "first": "first primeiro primeira primer primera",
    "ex": "ex",
}
_QUALIFIER_OF = {word: name for name, spelled in _QUALIFIERS.items() for word in spelled.split()}
_FILLERS = _set("mais mas dear querido querida amado amada lovely plus piu")
_TEMPLATES = {"en": "{name}'s {word}", "pt": "{word} de {name}", "es": "{word} de {name}", "fr": "{word} de {name}",
              "it": "{word} di {name}", "de": "{word} von {name}"}  # fmt: skip
# Few and frequent: they only choose between languages that share a role's word.
_COMMON = {
    "en": _set("the is and my was to in has he she his her with for that"),
    "pt": _set("o a os as e meu minha em no na do da que com foi esta nao uma um ele ela tem se mora"),
    "es": _set("el la los las y mi en que con fue esta no una un ella tiene se del vive"),
    "fr": _set("le la les et mon ma est une un il elle avec dans pas que"),
    "it": _set("il lo la e mio mia che con una un lui lei non di ha vive"),
    "de": _set("der die das und mein meine ist hat mit ein eine er sie nicht in"),
}
_LANGUAGE_OF = {
    word: code
    for code, spoken in (
        ("en", "my our mine"), ("pt", "meu minha nosso nossa meus minhas"), ("es", "mi mis nuestro nuestra"),
        ("fr", "mon ma mes notre"), ("de", "mein meine meinen meiner meinem unser unsere"), ("it", "nostro nostra"),
    )
    for word in spoken.split()
}  # fmt: skip
_HINT = re.compile(r"^(?P<name>[^()（）]+?)\s*[(（](?P<hint>[^()（）]+)[)）]\s*$")
# Role words that are given names as well, when they stand alone with a capital.
_GIVEN_NAMES = _set("neto filho sobrinho patron maestro")
_TRIM = " ,.;:!?'\"-–—"


@dataclass(frozen=True, slots=True)
class RolePhrase:
    """A person named by role.

    ``anchor`` is whose brother it is, as written; None: the speaker's. ``qualifier`` sets two holders of one role apart
    ("older"). ``word`` is the role with its adjectives as the message has it. ``rest`` is the name that follows the
    role, "" where there is none.
    """

    role: Role
    languages: tuple[str, ...]
    word: str
    qualifier: str = ""
    anchor: str | None = None
    rest: str = ""
    possessive: bool = False

    def display(self, anchor_name: str, message: str = "") -> str:
        """The placeholder's display name in the phrase's language: "irmão de Rafael", "Rafael's brother".

        ``message`` decides for a word that several languages have.
        """
        language = self.languages[0]
        if len(self.languages) > 1 and message:
            heard = set(words(message[:2000]))
            language = max(self.languages, key=lambda code: (len(heard & _COMMON[code]), code == language))
        return _TEMPLATES[language].format(word=self.word, name=anchor_name)

    @property
    def slug_part(self) -> str:
        """The English end of a placeholder's key: "older_brother"."""
        return f"{self.qualifier}_{self.role.name}" if self.qualifier else self.role.name


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a message. ``owner``: it ended in 's. ``closing``: the punctuation right behind it."""

    written: str
    folded: str
    owner: bool = False
    closing: str = ""


@dataclass(frozen=True, slots=True)
class SpokenRole:
    """The speaker's role word in a message and the words around it.

    ``indefinite``: "a friend", "uma amiga"; ``owned``: it is said to be the speaker's ("my", "of mine", "I have a"),
    so that who is named beside it holds the role. In "Sofia is a doctor" it is not.
    """

    phrase: RolePhrase
    before: tuple[Token, ...]
    last: Token
    behind: tuple[Token, ...]
    indefinite: bool
    owned: bool = True


@lru_cache(maxsize=2048)
def read_phrase(name: str) -> RolePhrase | None:
    """The role that ``name`` as a whole stands for, with or without a name behind it; None where it is a plain name.

    Somebody else's role ("his brother") is None too: nobody can say whose it is.
    """
    tokens = _tokens(name)
    if not tokens or len(tokens) > 10:
        return None
    anchor, owned, rest = _owner(tokens)
    if rest is None:
        return None
    found = _find_role(rest, owned=owned or anchor is not None)
    if found is None:
        return None
    word, start, end = found
    before, after = rest[:start], rest[end:]
    if len(tokens) == 1 and tokens[0].folded in _GIVEN_NAMES and tokens[0].written[:1].isupper():
        return None
    leading = _adjectives(before, owned)
    if leading is None:
        return None
    trailing, tail = _trailing(after)
    qualifier = _qualified(leading + trailing)
    written = " ".join(token.written for token in rest[start : end + len(trailing)])
    spoken = " ".join([*(token.written for token in leading), written]).lower()
    if word.languages == ("de",):
        spoken = " ".join([*(token.written.lower() for token in leading), written])
    owner = _LANGUAGE_OF.get(next((t.folded for t in tokens[:3] if t.folded in _LANGUAGE_OF), ""), "")
    languages = (owner,) if owner in word.languages else word.languages
    phrase = RolePhrase(word.role, languages, spoken, qualifier, anchor, possessive=owned)
    return _with_tail(phrase, tail)


def strip_hint(name: str) -> tuple[str, RolePhrase | None]:
    """``name`` without a relational hint in brackets, and the hint: "Carol (namorada do Rafael)" is Carol.

    Any other bracket stays: "Paris (Texas)".
    """
    match = _HINT.match(name.strip())
    if match is None:
        return name, None
    hint = read_phrase(match["hint"])
    if hint is None or hint.rest:
        return name, None
    return match["name"].strip(), hint


def phrases(role: Role, qualifier: str, anchor_name: str) -> list[str]:
    """Every folded phrase, in all languages, by which a holder of ``role`` of ``anchor_name`` may be stored."""
    made: dict[str, None] = {}
    adjectives = [""] if not qualifier else _QUALIFIERS.get(qualifier, qualifier).split()
    for form in FORMS[role.name]:
        for template in set(_TEMPLATES.values()):
            for adjective in adjectives:
                for word in {f"{adjective} {form}", f"{form} mais {adjective}", f"{form} {adjective}"}:
                    made[fold(template.format(word=word.strip(), name=anchor_name))] = None
    return list(made)


def spoken_roles(text: str) -> Iterator[SpokenRole]:
    """The speaker's role words in a message: "Meu irmão Pedro", "Pedro is my brother", "uma namorada, a Lívia"."""
    tokens = _tokens(text[:20_000])
    for place, token in enumerate(tokens):
        mine = token.folded in POSSESSIVES
        if not mine and token.folded not in INDEFINITE:
            continue
        for length in range(LONGEST_FORM + 3, 0, -1):
            window = tokens[place + 1 : place + 1 + length]
            if len(window) < length:
                continue
            owner = token.written if mine else "my"
            phrase = read_phrase(f"{owner} " + " ".join(item.written for item in window))
            if phrase is not None and not phrase.rest and phrase.anchor is None:
                if token.folded == "a" and "en" not in phrase.languages:
                    break  # "a namorada": the girlfriend, of nobody knows whom
                before = tuple(tokens[max(0, place - 12) : place])
                behind = tuple(tokens[place + 1 + length : place + 13 + length])
                owned = mine or any(one.folded in POSSESSIVES for one in window)
                owned = owned or any(one.folded in _HAVING for one in before[-1:])
                yield SpokenRole(phrase, before, window[-1], behind, indefinite=not mine, owned=owned)
                break


# -- parts -------------------------------------------------------------------------------------------------------------


def _tokens(text: str) -> list[Token]:
    tokens = []
    for part in text.replace("’", "'").split():
        written = part.strip(_TRIM)
        owner = len(written) > 2 and written.lower().endswith("'s")
        written = written[:-2] if owner else written
        if folded := fold(written):
            closing = part.rstrip("'\"”»")[-1:]
            tokens.append(Token(written, folded, owner, "" if closing.isalnum() else closing))
    return tokens


def _owner(tokens: list[Token]) -> tuple[str | None, bool, list[Token] | None]:
    """Whose role it is: (anchor name or None for the speaker, whether somebody is named, what is left)."""
    while tokens and tokens[0].folded in ARTICLES:
        tokens = tokens[1:]
    if not tokens or any(token.folded in OTHERS_POSSESSIVES for token in tokens[:2]):
        return None, False, None
    if tokens[0].folded in POSSESSIVES:
        return None, True, tokens[1:]
    for place, token in enumerate(tokens[:4]):
        if token.owner and place + 1 < len(tokens):
            anchor = " ".join(item.written for item in tokens[: place + 1])
            return (None if is_speaker_pronoun(anchor) else anchor), True, tokens[place + 1 :]
    return None, False, tokens


def _find_role(tokens: list[Token], *, owned: bool) -> tuple[RoleWord, int, int] | None:
    for start in range(min(len(tokens), 4)):
        for end in range(min(len(tokens), start + LONGEST_FORM), start, -1):
            word = role_word(" ".join(token.written for token in tokens[start:end]))
            if word is None or (word.owned and not owned):
                continue
            return word, start, end
    return None


def _adjectives(tokens: list[Token], owned: bool) -> list[Token] | None:
    """The adjectives before a role word; None where something else stands there."""
    for token in tokens:
        known = token.folded in _QUALIFIER_OF or token.folded in _FILLERS
        if not known and not (owned and token.written.islower()):
            return None
    return tokens


def _trailing(tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    """The adjectives behind a role word ("mais velho"), and what follows them."""
    end = 0
    while end < len(tokens) and (tokens[end].folded in _QUALIFIER_OF or tokens[end].folded in _FILLERS):
        end += 1
    return tokens[:end], tokens[end:]


def _qualified(adjectives: list[Token]) -> str:
    names = [_QUALIFIER_OF[token.folded] for token in adjectives if token.folded in _QUALIFIER_OF]
    return "_".join(dict.fromkeys(names))


def _with_tail(phrase: RolePhrase, tail: list[Token]) -> RolePhrase | None:
    """The phrase with what follows the role: an owner ("of Ana", "meu"), or the person's name."""
    if not tail:
        return phrase
    if tail[0].folded in POSSESSIVES and len(tail) == 1:
        return RolePhrase(phrase.role, phrase.languages, phrase.word, phrase.qualifier, None, possessive=True)
    if tail[0].folded in OTHERS_POSSESSIVES:
        return None
    if tail[0].folded in _OF and len(tail) > 1:
        names = [token for token in tail[1:] if token.folded not in ARTICLES] or tail[1:]
        anchor = " ".join(token.written for token in names)
        speaker = is_speaker_pronoun(anchor) or fold(anchor) in POSSESSIVES
        if phrase.anchor is not None or not (speaker or names[0].written[:1] != names[0].written[:1].lower()):
            return None
        owner = None if speaker else anchor
        return RolePhrase(phrase.role, phrase.languages, phrase.word, phrase.qualifier, owner, possessive=True)
    while len(tail) > 1 and tail[0].folded in ARTICLES:
        tail = tail[1:]
    if tail[0].written[:1].islower() or not (phrase.possessive or phrase.anchor):
        return None
    rest = " ".join(token.written for token in tail)
    return RolePhrase(
        phrase.role, phrase.languages, phrase.word, phrase.qualifier, phrase.anchor, rest, possessive=phrase.possessive
    )
