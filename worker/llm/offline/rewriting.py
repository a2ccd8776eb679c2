"""First person to third: "I moved with my wife" said by Rafael becomes "Rafael moved with their wife"."""

from __future__ import annotations

import re

from worker.llm.offline import english, portuguese
from worker.llm.offline.text import word_set

_CONTRACTED = re.compile(r"\b(I|we|he|she|it|they|who|there|that)'(m|s|re|ve|ll|d)\b", re.I)


def english_predicate(rest: str, speaker: str) -> str | None:
    """What follows "I"/"we", agreeing with the speaker's name; None if no verb follows."""
    agreed = english.agree(rest.split())
    return None if agreed is None else _english_own(" ".join(agreed), speaker)


def _english_own(text: str, speaker: str) -> str:
    """The speaker's own pronouns inside the speaker's own sentence."""
    text = _english_inner_i(text, speaker)
    for pattern, put in (
        (r"\bI and\b", f"{speaker} and"), (r"\band I\b", f"and {speaker}"), (r"\b(?:my|our)\b", "their"),
        (r"\b(?:mine|ours)\b", "theirs"), (r"\b(?:myself|ourselves)\b", "themselves"), (r"\bus\b", "them"),
        (r"\bme\b", speaker), (r"\bwe\b", "they"),
    ):  # fmt: skip
        text = re.sub(pattern, put.replace("\\", r"\\"), text, flags=re.I if pattern != r"\bus\b" else 0)
    return text


def _english_inner_i(text: str, speaker: str) -> str:
    """ "when I was a child" inside a sentence: the name and the verb's third person."""
    out: list[str] = []
    tokens = re.sub(r"\b[Ii]'(m|ve|ll|d)\b", r"I '\1", text).split()
    index = 0
    while index < len(tokens):
        if tokens[index] in ("I", "i") and index + 1 < len(tokens):
            agreed = english.agree(tokens[index + 1 :])
            if agreed is not None:
                out.append(speaker)
                tokens = tokens[: index + 1] + agreed
                index += 1
                continue
        out.append(tokens[index])
        index += 1
    return " ".join(out)


def english_other(text: str, speaker: str) -> str:
    """A sentence about somebody else in which the speaker appears ("Dave hired me")."""
    text = re.sub(r"^'(s|re) (?=been|got|had|gone)", "has ", text)
    text = re.sub(r"^'s ", "is ", text)
    text = re.sub(r"^'re ", "are ", text)
    text = re.sub(r"^'ve ", "have ", text)
    text = re.sub(r"^'ll ", "will ", text)
    text = re.sub(r"^'d ", "had ", text)
    text = _english_inner_i(text, speaker)
    text = re.sub(r"\b(?:my|our)\b", lambda _m: f"{speaker}'s", text, flags=re.I)
    text = re.sub(r"\b(?:mine|ours)\b", lambda _m: f"{speaker}'s", text)
    return re.sub(r"\b(?:me|myself)\b", lambda _m: speaker, text)


def portuguese_predicate(rest: str, speaker: str, *, guess: bool) -> str | None:
    """A first person predicate in the third ("me mudei para Natal": "se mudou para Natal"); None if none heads it."""
    tokens = rest.split()
    head: list[str] = []
    clitic = False
    while tokens and tokens[0].lower().strip(",") in portuguese.ADVERBS | {"me", "nos", "se", "a", "o", "lhe"}:
        token = tokens.pop(0)
        if token.lower() in ("me", "nos"):
            clitic, token = True, "se"
        elif token.lower() in ("a", "o") and not head:
            return None
        head.append(token)
    if not tokens:
        return None
    verb, _, enclitic = tokens[0].rstrip(",").partition("-")
    third = portuguese.first_person(verb, guess=guess or clitic)
    if third is None or (clitic and any(f.person == 3 for f in portuguese.known(verb)) and third == verb):
        return None
    if enclitic:
        third += "-se" if enclitic in ("me", "nos") else f"-{enclitic}"
    tail = " ".join(tokens[1:])
    return " ".join([*head, third, _portuguese_own(tail, speaker)]).strip()


_INNER_VERB = re.compile(
    r"\b(que|quando|porque|onde|enquanto|pois|como|e|mas)( eu)?((?: não| nunca| já| sempre"
    r"| também)*)( me)? ([^\W\d_]+)",
    re.I,
)


def _portuguese_own(text: str, speaker: str) -> str:
    def inner(match: re.Match[str]) -> str:
        third = portuguese.first_person(match[5])
        if third is None or match[5].lower() in ("como", "trabalho", "gosto"):
            return match.group()
        return f"{match[1]}{match[3]}{' se' if match[4] else ''} {third}"

    text = _INNER_VERB.sub(inner, text)
    for pattern, put in (
        (r"\b(?:meu|nosso)\b", "seu"), (r"\b(?:minha|nossa)\b", "sua"), (r"\b(?:meus|nossos)\b", "seus"),
        (r"\b(?:minhas|nossas)\b", "suas"), (r"\bcomigo\b", f"com {speaker}"), (r"\bconosco\b", f"com {speaker}"),
        (r"\bmim\b", speaker), (r"\bme\b", "se"), (r"\beu\b", speaker),
    ):  # fmt: skip
        text = re.sub(pattern, put.replace("\\", r"\\"), text, flags=re.I)
    return text


_TO_SOMEBODY = word_set(
    "ligar contar dizer dar falar escrever mandar enviar emprestar ensinar pedir vender mostrar perguntar "
    "responder pagar trazer oferecer prometer dever apresentar comprar"
)


def portuguese_other(text: str, speaker: str) -> str:
    """A sentence about somebody else in which the speaker appears ("me ligou ontem": "ligou para Bruna ontem")."""

    def dative(match: re.Match[str]) -> str:
        verb = match[2]
        if not portuguese.is_verb(verb):
            return match.group()
        link = "para " if portuguese.lemma(verb) in _TO_SOMEBODY else ""
        return f"{match[1]}{verb} {link}{speaker}"

    text = re.sub(r"((?:^|\s)(?:não |nunca |já |também |sempre )?)(?<!\w)me ([^\W\d_]+)", dative, text, flags=re.I)
    text = owned(text, speaker)
    for pattern, put in (
        (r"\bcomigo\b", f"com {speaker}"),
        (r"\bmim\b", speaker),
        (r"\bcom a gente\b", f"com {speaker}"),
    ):
        text = re.sub(pattern, put.replace("\\", r"\\"), text, flags=re.I)
    return text.strip()


_OWNED = re.compile(
    r"(?P<lead>\b(?:[oa]s?|d[oa]s?|n[oa]s?|pel[oa]s?|aos?|à|às) )?\b(?P<mine>meu|minha|meus|minhas|nosso|nossa"
    r"|nossos|nossas)\b "
    r"(?P<noun>[^\W\d_]+(?: (?:favorit[ao]|preferid[ao]|mais (?:velh|nov)[ao]|nov[ao]|antig[ao]|predilet[ao])s?)?)",
    re.I,
)
_ARTICLE = {
    "meu": "o",
    "nosso": "o",
    "minha": "a",
    "nossa": "a",
    "meus": "os",
    "nossos": "os",
    "minhas": "as",
    "nossas": "as",
}


def owned(text: str, speaker: str) -> str:
    """ "minha cor favorita" as "a cor favorita de Bruna"."""

    def put(match: re.Match[str]) -> str:
        lead = match["lead"] or _ARTICLE[match["mine"].lower()] + " "
        return f"{lead}{match['noun']} de {speaker}"

    return _OWNED.sub(put, text)


def expand_contractions(clause: str) -> str:
    """ "I'm", "she's" as two words, so that the subject and its verb stand apart."""
    clause = re.sub(r"\b([^\W\d_]+)'s (?=(?:an?|the|not|very|in|at|from|so|also|now|still)\b)", r"\1 's ", clause)
    return _CONTRACTED.sub(lambda m: f"{m[1]} '{m[2]}", clause)
