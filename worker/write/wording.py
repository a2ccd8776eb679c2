"""Words: relations said as sentences, and sentences that say that something is over (behaviour: 7, 8 and 14).

Sentences are written in the message's language where the words are here (English, Portuguese, Spanish). What ends is
left to the model; these few rules serve where no model is asked, and where a weak one misses a plain reversal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from worker.write.names import fold, words
from worker.write.polarity import polarity
from worker.write.relationships import normalise_rel_type

Language = Literal["en", "pt", "es"]


def _words(line: str) -> frozenset[str]:
    return frozenset(line.split())


_COMMON: dict[Language, frozenset[str]] = {
    "en": _words(
        "the is are was were i my me you he she his her it they we to of in at on with for and but not this that have "
        "has had will am an from yesterday today tomorrow"
    ),
    "pt": _words(
        "o os um uma eu meu minha voce ele ela nos e em no na nos nas do da dos das ao com para pra por que nao mas "
        "foi esta sou tem tenho vou ontem hoje amanha muito tambem ja sao seu sua"
    ),
    "es": _words(
        "el los un una yo mi tu usted ella nosotros y en del al con para por que no pero fue esta soy tiene tengo voy "
        "ayer hoy manana muy tambien ya es su le las lo"
    ),
}
_TELLING: tuple[tuple[Language, re.Pattern[str]], ...] = (
    ("es", re.compile(r"[ñ¿¡]")),
    ("pt", re.compile(r"[ãõç]|lh[aeo]|nh[aeo]\b", re.IGNORECASE)),
)

# rel_type -> how it is said between two names. Without gender wherever the language allows.
_PHRASES: dict[str, dict[Language, str]] = {
    rel_type: {"en": en, "pt": pt, "es": es}
    for rel_type, en, pt, es in (
        ("works_at", "works at", "trabalha em", "trabaja en"),
        ("lives_in", "lives in", "mora em", "vive en"),
        ("born_in", "was born in", "nasceu em", "nació en"),
        ("from", "is from", "é de", "es de"),
        ("married_to", "is married to", "é cônjuge de", "es cónyuge de"),
        ("partner_of", "is in a relationship with", "tem um relacionamento com", "tiene una relación con"),
        ("ex_partner_of", "used to be in a relationship with", "teve um relacionamento com", "tuvo una relación con"),
        ("engaged_to", "is engaged to", "tem casamento marcado com", "está por casarse con"),
        ("parent_of", "is a parent of", "é mãe ou pai de", "es madre o padre de"),
        ("child_of", "is a child of", "é filha ou filho de", "es hija o hijo de"),
        ("sibling_of", "is a sibling of", "é irmã ou irmão de", "es hermana o hermano de"),
        ("grandparent_of", "is a grandparent of", "é avó ou avô de", "es abuela o abuelo de"),
        ("grandchild_of", "is a grandchild of", "é neta ou neto de", "es nieta o nieto de"),
        ("cousin_of", "is a cousin of", "é prima ou primo de", "es prima o primo de"),
        ("family_of", "is family of", "é da família de", "es familia de"),
        ("friend_of", "is a friend of", "tem amizade com", "tiene amistad con"),
        ("knows", "knows", "conhece", "conoce a"),
        ("colleague_of", "is a colleague of", "é colega de", "es colega de"),
        ("neighbor_of", "is a neighbor of", "mora ao lado de", "vive al lado de"),
        ("manages", "manages", "gerencia", "dirige"),
        ("reports_to", "reports to", "responde a", "responde a"),
        ("mentored_by", "is mentored by", "tem mentoria de", "recibe mentoría de"),
        ("mentors", "mentors", "dá mentoria a", "da mentoría a"),
        ("studies_at", "studies at", "estuda em", "estudia en"),
        ("graduated_from", "graduated from", "se formou em", "se graduó de"),
        ("owns", "owns", "possui", "posee"),
        ("has_pet", "has the pet", "tem o animal de estimação", "tiene la mascota"),
        ("likes", "likes", "gosta de", "le gusta"),
        ("loves", "loves", "ama", "ama a"),
        ("dislikes", "dislikes", "não gosta de", "no le gusta"),
        ("member_of", "is a member of", "faz parte de", "forma parte de"),
        ("part_of", "is part of", "faz parte de", "forma parte de"),
        ("founded", "founded", "fundou", "fundó"),
        ("located_in", "is located in", "fica em", "está en"),
        ("visited", "visited", "visitou", "visitó"),
        ("traveled_to", "traveled to", "viajou para", "viajó a"),
        ("moved_to", "moved to", "se mudou para", "se mudó a"),
        ("uses", "uses", "usa", "usa"),
        ("plays", "plays", "joga", "juega a"),
        ("speaks", "speaks", "fala", "habla"),
        ("created", "created", "criou", "creó"),
        ("works_on", "works on", "trabalha em", "trabaja en"),
        ("client_of", "is a client of", "é cliente de", "es cliente de"),
        ("participates_in", "takes part in", "participa de", "participa en"),
    )
}

# "It is over", and nothing else: what a bare retraction is made of. Events that end something (a sale, a divorce,
# leaving) are not here: they are worth keeping as facts of their own.
_OVER = re.compile(
    r"\bno longer\b|\b(?:any ?more|any longer)\b|\bstopped \w+ing\b|\bja nao\b"
    r"|\bnao\b.{1,40}\bmais\b(?! (?:do )?que\b| de \d)"
    r"|\b(?:deixou|deixei|parou|parei) de\b|\bya no\b|\b(?:dejo|deje|ha dejado) de\b|\bne\b.*\bplus\b"
    r"|\bnicht mehr\b|\bkeine?n? .*\bmehr\b|\bnon\b.*\bpiu\b|больше не|不再|もう.*ない"
)
_GOES_ON = re.compile(
    r"[,;:]|\b(?:and|but|because|so|since|now|instead|prefers?|e|mas|porque|agora|prefere|y|pero|ahora|prefiere|et"
    r"|und|aber|ma)\b(?!\s*$)"
)
_OVER_WORDS = _words(
    "no longer any more anymore not stopped ja nao mais deixou deixei parou parei ya dejo deje dejado ha ne pas plus "
    "nicht mehr kein keine non piu nunca never doesn't don't didn't isn't wasn't doesnt dont didnt isnt wasnt "
    "t s"
)
_STOP = _words(
    "a an the to of in at on with for and but is are was were be been has have had do does did it its his her their my "
    "o os as um uma de do da dos das em no na nos nas e com para por que se ao foi esta sou ser era seu sua meu minha "
    "el la los las un una del al y en con su mi es fue lo le"
)

# An event and the state that it ends: (words of the event, words of the state). A shared object is asked for as well.
_ENDINGS: tuple[tuple[frozenset[str], frozenset[str]], ...] = tuple(
    (_words(event), _words(state))
    for event, state in (
        (
            "sold sells vendeu vendi vendio vendido donated doou gave lost perdeu perdio",
            "has have owns own bought tem tenho possui comprou tiene tengo posee compro got ganhou",
        ),
        (
            "left quit resigned fired saiu sai demitiu demitido demitida largou renuncio dejo despedido despedida "
            "laid retired aposentou jubilo",
            "works work working job trabalha trabalho trabaja trabajo employed joined entrou started comecou empezo "
            "studies study studying estuda estudo estudia enrolled",
        ),
        (
            "divorced separated broke split terminou terminaram separou separaram divorciou divorciaram rompio "
            "divorcio separo terminaron",
            "married wed wife husband engaged fiance fiancee dating dates girlfriend boyfriend partner relationship "
            "namora namorada namorado noiva noivo casada casado casou casaram esposa marido relacionamento novia novio "
            "caso casaron prometida prometido relacion",
        ),
    )
)


# States that more than one verb tells of: "no longer lives in Lima" ends "moved to Lima".
_STATES_ALIKE: tuple[frozenset[str], ...] = (
    *(states for _, states in _ENDINGS),
    _words(
        "live lives living lived moved moving resides mora moro mudou mudei reside resido vive vivo vivem mudo muda "
        "viviendo"
    ),
    _words(
        "like likes liked love loves loved enjoy enjoys adore adores gosta gosto adora adoro ama amo curte curto gusta "
        "encanta"
    ),
)
_EVENTS = frozenset().union(*(events for events, _ in _ENDINGS))
_STATES = frozenset().union(*(states for _, states in _ENDINGS))


def guess_language(text: str) -> Language:
    """The language of a message out of English, Portuguese and Spanish; English where nothing tells."""
    tokens = words(text)
    scores = {language: sum(token in common for token in tokens) for language, common in _COMMON.items()}
    for language, signs in _TELLING:
        if signs.search(text):
            scores[language] += 2
    best = max(scores.values())
    return next(language for language, score in scores.items() if score == best) if best else "en"


def relation_sentence(source: str, rel_type: str, target: str, language: Language) -> str:
    """A relation as one plain sentence, without a full stop; an uncommon type is said in its own words."""
    phrase = _PHRASES.get(rel_type, {}).get(language) or normalise_rel_type(rel_type).replace("_", " ")
    return f"{source} {phrase} {target}"


@lru_cache(maxsize=1024)
def says_over(text: str) -> bool:
    """Whether ``text`` says in so many words that something no longer is."""
    return _OVER.search(fold(text).lower()) is not None


def bare_ending(text: str) -> bool:
    """Whether ``text`` says that something no longer is and, as far as can be seen without knowing what, only that."""
    return says_over(text) and _GOES_ON.search(text.casefold()) is None


def says_more(new: str, old: str, names: Iterable[str] = ()) -> bool:
    """Whether an ending says more than that ``old`` is over: "no longer likes tea, prefers coffee".

    ``names`` (of the subject) count as said already.
    """
    known = _content(old) | {token for name in names for token in words(name)}
    return any(not _known(token, known) for token in _content(new) - _OVER_WORDS)


def ends(new: str, old: str, names: Iterable[str] = ()) -> bool:
    """Whether ``new`` plainly ends or reverses ``old``: the same said the other way round, or an event that ends it.

    ``names`` are the subject's: sharing only them means nothing. In doubt False; the model decides everything else.
    """
    subject = {token for name in names for token in words(name)}
    fresh, stale = _content(new) - subject, _content(old) - subject
    if not fresh or not stale:
        return False
    if polarity(new) and not polarity(old) and all(_known(token, fresh) for token in stale):
        return True
    if polarity(new) and not polarity(old) and says_over(new):
        for states in _STATES_ALIKE:
            objects = {token for token in stale if not _known(token, states)}
            if not objects or len(objects) == len(stale) or not any(_known(token, states) for token in fresh):
                continue
            if all(_known(token, fresh) for token in objects):
                return True
    for events, states in _ENDINGS:
        if fresh & events and stale & states and not fresh & states:
            shared = {token for token in stale - states if _known(token, fresh - events)}
            if shared:
                return True
    return False


def stays_over(over: str, new: str, names: Iterable[str] = ()) -> bool:
    """Whether ``over`` tells of an event that ended something, and ``new`` is plainly about something else.

    "Ana left Acme" stays true when she starts at Orion; it is over only when she is at Acme again. ``names`` are the
    subject's: sharing only them means nothing.
    """
    if not tells_of_an_end(over):
        return False
    subject = {token for name in names for token in words(name)}
    objects = _content(over) - subject - _EVENTS - _STATES - _OVER_WORDS
    return bool(objects) and not any(_known(token, _content(new)) for token in objects)


@lru_cache(maxsize=1024)
def tells_of_an_end(text: str) -> bool:
    """Whether ``text`` tells of an event that ended a state ("left Acme", "vendeu o carro"), and of no state."""
    content = _content(text)
    return any(content & events and not content & states for events, states in _ENDINGS)


@lru_cache(maxsize=2048)
def _content(text: str) -> frozenset[str]:
    return frozenset(token for token in words(text) if token not in _STOP)


def _known(token: str, known: Iterable[str]) -> bool:
    """Whether the word, in another inflection perhaps, is among ``known``."""
    return any(token == other or _inflected(token, other) for other in known)


def _inflected(one: str, other: str) -> bool:
    """Whether two words are alike but for their endings: "likes" and "like", "trabalha" and "trabalho", "works" and
    "working". Crude, and shy of short words and long differences ("Porto", "Portugal")."""
    short, long = sorted((len(one), len(other)))
    if short <= 3:
        return False
    shared = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), short)
    return shared >= max(3, short - 2) and shared > long / 2
