"""First person to third: "I moved with my wife" said by Rafael becomes "Rafael moved with their wife"."""

from __future__ import annotations

import re

from worker.llm.offline import english, portuguese
from worker.llm.offline.text import word_list, word_set

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


_HAS_AFTER = (
    r"(?:(?:just|already|finally|never|always|recently|also) )?(?:been|got|had|gone|moved|started|finished|bought|sold"
    r"|become|taken|given|left|lost|won|passed|joined|quit|turned|decided|made|seen|died|switched|learned|broken up"
    r"|worked|lived|known|written|grown)\b"
)


def english_other(text: str, speaker: str) -> str:
    """A sentence about somebody else in which the speaker appears ("Dave hired me")."""
    text = re.sub(rf"^'(s|re) (?={_HAS_AFTER})", "has ", text)
    text = re.sub(r"^'s ", "is ", text)
    text = re.sub(r"^'re ", "are ", text)
    text = re.sub(r"^'ve ", "have ", text)
    text = re.sub(r"^'ll ", "will ", text)
    text = re.sub(r"^'d ", "had ", text)
    text = _english_inner_i(text, speaker)
    text = re.sub(r"\b(?:my|our)\b", lambda _m: f"{speaker}'s", text, flags=re.I)
    text = re.sub(r"\b(?:mine|ours)\b", lambda _m: f"{speaker}'s", text)
    return re.sub(r"\b(?:me|myself|us|ourselves)\b", lambda _m: speaker, text)


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
    if any(form.person == 1 and form.number == 2 for form in portuguese.known(verb)):  # "ficamos noivos": one of two
        tail = re.sub(r"^(noiv|casad|separad|divorciad|viciad|junt)([oa])s\b", r"\1\2", tail)
    return spoken(" ".join([*head, third, portuguese_own(tail, speaker)]).strip())


_INNER_VERB = re.compile(
    r"\b(que|quando|porque|onde|enquanto|pois|como|e|mas)( eu)?((?: não| nunca| já| sempre"
    r"| também)*)( me)? ([^\W\d_]+)",
    re.I,
)


def portuguese_own(text: str, speaker: str) -> str:
    """The speaker's own pronouns and verbs inside the speaker's own sentence."""

    def inner(match: re.Match[str]) -> str:
        third = portuguese.first_person(match[5])
        if third is None or match[5].lower() in ("como", "trabalho", "gosto"):
            return match.group()
        return f"{match[1]}{match[3]}{' se' if match[4] else ''} {third}"

    text = _INNER_VERB.sub(inner, text)
    for pattern, put in (
        (r"\b(?:meu|nosso)\b", "seu"), (r"\b(?:minha|nossa)\b", "sua"), (r"\b(?:meus|nossos)\b", "seus"),
        (r"\b(?:minhas|nossas)\b", "suas"), (r"\bcomigo\b", f"com {speaker}"), (r"\bconosco\b", f"com {speaker}"),
        (r"\bmim\b", speaker), (r"\bme\b", "se"), (r"\beu\b", speaker), (r"\bnos (?=\w+(?:ar|er|ir)\b)", "se "),
    ):  # fmt: skip
        text = re.sub(pattern, put.replace("\\", r"\\"), text, flags=re.I)
    return text


_INNER_I = re.compile(
    r"\b(que|quando|onde|porque|enquanto|se) eu ((?:não |nunca |já |sempre |também )*)([^\W\d_]+)", re.I
)


def spoken(text: str) -> str:
    """The short forms of speech as they are written: "tá" is "está"."""
    text = re.sub(r"\b[Tt]á\b", "está", text)
    text = re.sub(r"\btava\b", "estava", text)
    return re.sub(r"\btão (?=[^\W\d_]+ndo\b)", "estão ", text)


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
        given = portuguese.lemma(verb) == "deixar" and re.match(r" (?:um|uma|o|a|os|as|\d+) ", text[match.end() :])
        link = "para " if given or portuguese.lemma(verb) in _TO_SOMEBODY else ""
        if re.match(r" em (?:casamento|namoro)\b", text[match.end() :]):
            link = ""
        return f"{match[1]}{verb} {link}{speaker}"

    text = re.sub(r"((?:^|\s)(?:não |nunca |já |também |sempre )?)(?<!\w)me ([^\W\d_]+)", dative, text, flags=re.I)
    text = _INNER_I.sub(lambda m: f"{m[1]} {speaker} {m[2]}{portuguese.first_person(m[3]) or m[3]}", text)
    text = re.sub(r"\bme (?=[^\W\d_]+(?:ar|er|ir)\b)", "se ", text)
    text = re.sub(r"\beu\b", lambda _m: speaker, spoken(owned(text, speaker)))
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
    r"(?P<noun>[^\W\d_]+(?:-[^\W\d_]+)*(?: de [a-zà-ú]{3,}(?! que\b))?(?: (?:(?:favorit|preferid|mais (?:velh|nov)"
    r"|nov|antig|predilet|matern|patern"
    r"|fraco?|brac|vermelh|branc|pret|usad|únic|velh|car|querid|adotiv|mei|biológic|médic|trabalhist)[ao]s?|forte"
    r"|fraco|fraca|principal"
    r"|atual|azul|verde|anterior|caçula|inteir[oa]|tod[oa]|oficial|elétric[oa]))?)",
    re.I,
)
ARTICLE = {
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
        lead = match["lead"] or ARTICLE[match["mine"].lower()] + " "
        return f"{lead}{match['noun']} de {speaker}"

    return _OWNED.sub(put, text)


_NO_OWNER = r"(?!(?:master|bachelor|driver|mother|father|valentine|women|men|children|kid|new year)\b)"
_STATE_WORDS = (
    r"pregnant|married|single|divorced|retired|dead|ill|sick|allergic|afraid|scared|terrified|vegan|vegetarian|diabetic"
    r"|broken|gone|fine|obsessed|engaged|unemployed|autistic|deaf|blind|home|away|due|due|back|here|great|really|super"
    r"|called|named|half|expecting|too|about|originally|already|always|never|finally|just|only|currently|almost"
)
_IS_AFTER = re.compile(
    rf"\b(?P<n>{_NO_OWNER}[^\W\d_]+)'s (?=(?:an?|the|not|very|in|at|from|so|also|now|still|on|off|out|over|under|with"
    rf"|to|into|my|our|his|her|their|as|like|\d[\d:.]*|two|three|four|five|six|seven|eight|nine|ten"
    rf"|{_STATE_WORDS}|been|got|had|(?!wedding|building|king|ring|string|thing|morning|evening|spring|painting|wing)"
    rf"\w{{2,}}ing|(?!bed|shed|feed|need|seed|weed|speed|breed|shared|used|red)\w{{2,}}ed)\b)"
)
_HEAD_IS = re.compile(r"^(?P<n>(?:(?:[Mm]y|[Oo]ur|[Tt]he) (?:[\w-]+ ){0,2}?[\w-]+|[A-Z][\w-]+))'s (?P<r>.+)$")


def expand_contractions(clause: str) -> str:
    """ "I'm", "she's", "my birthday's on …" as two words, so that the subject and its verb stand apart."""
    clause = _IS_AFTER.sub(lambda m: f"{m['n']} 's ", clause)
    clause = _CONTRACTED.sub(lambda m: f"{m[1]} '{m[2]}", clause)
    m = _HEAD_IS.match(clause)
    if m and "'s" not in m["n"] and not _has_finite(m["r"]) and not re.search(_NO_OWNER[3:-1], m["n"]):
        return f"{m['n']} 's {m['r']}"  # "my surname's Halloran": nothing else is the verb
    return clause


def _has_finite(text: str) -> bool:
    tokens = word_list(text.lower())[1:]
    return any(t.strip(",.") in english.AUX | english.MODALS or english.is_finite(t.strip(",.")) for t in tokens)
