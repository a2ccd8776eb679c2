"""Names in a text: where they stand, what else the thing is called, and what kind of thing it is."""

from __future__ import annotations

import re

from worker.llm.offline.text import CASELESS, UPPER, fold, word_set, words

_CAP = rf"(?:[{UPPER}][^\W_]*(?:(?!'s\b)['.&\-][^\W_]+)*[+#]*|[{CASELESS}]+(?:[ ·][{CASELESS}]+)*)"
_TITLE = (
    r"(?:(?:Mr|Mrs|Ms|Dr|Dra|Sr|Sra|Prof|Profa|St|Dona|Seu|Don|Sir|Captain|Father|Tia|Tio|capit[ãa]o"
    r"|doutora?|dona|seu)\.? )"
)
_LINK = r"(?:of(?: the)?|de|di|von|van(?: der)?|del|della|du|y|&|the)"
_SURNAME_LINK = r"(?:da|do|das|dos|de)"
_TAIL = r"(?: (?:Junior|Júnior|Jr\.?|Sr\.|Filho|Neto|Sobrinho|II|III|IV|\d{1,4}(?![\d.,]?\d)))?"
# Bounded: a run of a thousand capitals is no name, and must cost no square of its length.
NAME = rf"(?:{_TITLE})?{_CAP}(?: (?:{_LINK} )?{_CAP}| {_SURNAME_LINK} {_CAP}){{0,8}}{_TAIL}"
NAME_RE = re.compile(rf"(?<![^\W_]){NAME}")

GENERATIONAL = word_set("junior jr sr senior filho neto sobrinho ii iii iv v segundo")

# Capitalised words that are no names: days, months, languages' "I", sentence openers that people capitalise.
_NOT_NAMES = word_set(
    "i i'm i've i'll i'd im monday tuesday wednesday thursday friday saturday sunday january february march april "
    "may june july august september october november december segunda terca quarta quinta sexta sabado domingo "
    "janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro ok lol omg btw tv "
    "pc ceo cto cfo hr ia ai deus god natal pascoa christmas easter o os as um uma no na nos nas em de do da dos "
    "das e com por para pelo pela se que ao ontem hoje amanha depois antes quando in on at to of for with from by "
    "and but or so if when after before during since his her their its this that these those not no yes today "
    "yesterday tomorrow later now then there here also just nunca sempre sim nao mas seu sua nosso nossa minhas "
    "meus eu voce ele ela nos eles elas meu minha he she they we it you my our the a an mr mrs ms dr"
)
_PLACES = word_set(
    "brazil brasil portugal spain espanha france franca germany alemanha italy italia england inglaterra uk usa "
    "eua us japan japao china canada mexico argentina chile peru colombia uruguai uruguay ireland irlanda "
    "scotland escocia wales australia india angola mocambique london londres paris lyon berlin berlim madrid "
    "barcelona lisbon lisboa porto rome roma milan milao dublin cork galway manchester leeds bristol oxford "
    "cambridge edinburgh glasgow boston chicago austin seattle denver dallas houston miami toronto vancouver "
    "montreal tokyo toquio osaka kyoto beijing shanghai seoul sydney melbourne amsterdam vienna prague zurich "
    "geneva stockholm oslo copenhagen helsinki warsaw istanbul cairo nairobi lagos recife olinda natal maceio "
    "salvador fortaleza belem manaus curitiba florianopolis brasilia goiania campinas santos niteroi teresina "
    "aracaju cuiaba londrina joinville uberlandia sorocaba bahia pernambuco alagoas parana ceara california texas "
    "florida europe europa africa asia america germany nyc brooklyn"
) | frozenset(
    {
        "sao paulo",
        "rio de janeiro",
        "belo horizonte",
        "porto alegre",
        "joao pessoa",
        "sao luis",
        "new york",
        "los angeles",
        "san francisco",
        "buenos aires",
        "minas gerais",
        "santa catarina",
        "new zealand",
        "south africa",
        "united states",
        "united kingdom",
        "estados unidos",
        "rio",
        "ribeirao preto",
        "campo grande",
        "juiz de fora",
    }
)
_LANGUAGES = word_set(
    "english french german italian spanish portuguese japanese chinese mandarin korean russian arabic dutch greek "
    "hebrew hindi latin polish swedish turkish ingles frances alemao italiano espanhol portugues japones chines "
    "coreano russo arabe"
)
_PRODUCTS = word_set(
    "github gitlab python java javascript typescript rust docker kubernetes postgres linux windows whatsapp "
    "instagram facebook telegram slack discord iphone android excel word photoshop netflix spotify youtube "
    "playstation xbox nintendo fusca corolla civic tesla kindle macbook notion figma golang kotlin swift react "
    "django c++ c#"
)
_ORG = re.compile(
    r"\b(?:bank|banco|inc|ltd|llc|ltda|s\.?a|corp|company|companhia|tech|labs?|university|universidade|college"
    r"|faculdade|school|escola|"
    r"colegio|instituto|institute|hospital|clinic|clinica|politecnico|group|grupo|studio|studios|agency|agencia"
    r"|restaurant|restaurante|"
    r"padaria|bakery|cafe|foundation|fundacao|ong|prefeitura|ministerio|tribunal|solutions|systems|software"
    r"|consultoria|"
    r"supermercado|store|loja|editora|press|airlines|motors|usp|ufba|ufpe|unicamp|ufrj|ufmg|mit|google"
    r"|microsoft|amazon|"
    r"apple|ibm|petrobras|nubank|itau|bradesco|club|clube|church|igreja|society)\b"
)
_PLACE = re.compile(
    r"\b(?:street|st|avenue|road|park|river|lake|mountain|beach|island|square|city|county|rua|avenida|praia"
    r"|parque|serra|vila|"
    r"bairro|praca|ilha|lagoa|cidade|vale|santo|sao|santa)\b"
)
_HEADS = word_set(
    "hospital banco universidade faculdade escola colegio instituto praia rua parque rio sao santa santo igreja "
    "clube museu teatro casa loja padaria restaurante prefeitura camara tribunal ministerio serra vila ilha lagoa"
)


def is_name_word(word: str) -> bool:
    """A capitalised word (or one in a script without capitals) that is not merely a day, a month or a pronoun."""
    return bool(re.match(_CAP, word) or re.match(_TITLE, word + " ")) and fold(word) not in _NOT_NAMES


def trim(name: str, known_names: frozenset[str] = frozenset()) -> str:
    """Cut what was taken too much: "GitHub da Nortec" is two names, "Maria da Silva" and "Banco do Povo" one."""
    name = re.sub(r"'s$", "", name)
    folded = fold(name)
    if folded in known_names:
        return name
    parts = name.split()
    for i in range(1, len(parts) - 1):
        if parts[i] in ("da", "do", "das", "dos"):
            head = fold(parts[0])
            single_other = head in _PRODUCTS or re.fullmatch(r"\w*[A-Z]\w*[A-Z]\w*", parts[0]) is not None
            known_tail = fold(" ".join(parts[i + 1 :])) in known_names or fold(" ".join(parts[:i])) in known_names
            if head not in _HEADS and (single_other or known_tail):
                return " ".join(parts[:i])
    while parts and fold(parts[-1]).strip(".") in _NOT_NAMES and len(parts) > 1:
        parts.pop()
    return " ".join(parts)


def find_names(text: str, known_names: frozenset[str] = frozenset()) -> list[str]:
    """The names in ``text`` in order; a capital at the head of a sentence alone does not make a name."""
    found: list[str] = []
    for match in NAME_RE.finditer(text):
        name = trim(match.group(), known_names)
        first = name.split()[0]
        while name and not is_name_word(first):
            name = name[len(first) :].strip()
            if not name or not re.match(_CAP, name):
                name = ""
                break
            first = name.split()[0]
        if name and name not in found:
            found.append(name)
    return found


def kind_of(name: str, *, default: str = "other") -> str:
    """The type of a named thing by the name alone; ``default`` where the name says nothing."""
    folded = fold(name)
    if folded in _PLACES:
        return "place"
    if folded in _LANGUAGES:
        return "concept"
    if folded in _PRODUCTS or folded.split()[-1] in _PRODUCTS:
        return "product"
    if _ORG.search(folded):
        return "organization"
    if _PLACE.search(folded) and len(folded.split()) > 1:
        return "place"
    # Capitals alone are an acronym: a company, an office, a school; people are hardly ever written so.
    if re.fullmatch(r"[A-Z]{3,6}\d*", name):
        return "organization"
    return default


def fullest(names: list[str]) -> str:
    """The name that says most: more words first, then more letters."""
    return max(names, key=lambda name: (len(words(name)), len(name)))


def compatible(shorter: str, longer: str) -> bool:
    """Whether two person names can be one person's: "Clara" and "Clara Rezende", never across Junior/Filho/Neto."""
    a, b = [fold(w).strip(".") for w in words(shorter)], [fold(w).strip(".") for w in words(longer)]
    if not a or not b:
        return False
    if (set(a) & GENERATIONAL) != (set(b) & GENERATIONAL):
        return False
    return set(a) <= set(b) or set(b) <= set(a)


_CAREFREE = re.compile(
    r"\b(?:live|living|moved?|moving|born|moro|morei|mora|vivo|nasci|mudei|mudo|work|working|worked|trabalho"
    r"|trabalhei|estudo|study)\b"
    r"(?: (?:\w+ ){0,3}?)?(?P<lead>in|to|em|para|no|na|at|for) (?P<v>[^\W\d_]+(?: [^\W\d_]+)?)"
)


def capitalise_known(sentence: str) -> str:
    """Chats are often all lower case: a known place or company after "moro em", "i work at" gets its capitals back."""

    def put(m: re.Match[str]) -> str:
        both, first = m["v"], m["v"].split()[0]
        for candidate in (both, first):
            known = fold(candidate) in _PLACES or (
                m["lead"] in ("at", "for", "na", "no") and _ORG.fullmatch(fold(candidate))
            )
            if known and candidate.islower():
                return m.group()[: m.start("v") - m.start()] + candidate.title() + both[len(candidate) :]
        return m.group()

    return _CAREFREE.sub(put, sentence)
