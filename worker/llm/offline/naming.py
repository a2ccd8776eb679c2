"""Who is called what: roles with names, brackets, nicknames, "my name is…", "meu cachorro se chama…"."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from worker.llm.offline import english, portuguese
from worker.llm.offline.later_names import name_of_another, named_at_last, role_fact
from worker.llm.offline.names import NAME, compatible, find_names, is_name_word, kind_of, trim
from worker.llm.offline.roles import ADJ, ROLES, TRAIL, WORD, Role, as_mine, is_plural, role_of
from worker.llm.offline.state import Fact, Reading, possessive, role_edge
from worker.llm.offline.text import fold, mentions, plain, word_set

_MINE = r"(?:[Mm]y|[Oo]ur|[Mm]eu|[Mm]inha|[Nn]osso|[Nn]ossa)"
_MINES = rf"(?:{_MINE}|[Mm]eus|[Mm]inhas|[Nn]ossos|[Nn]ossas)"
_ANY_CASE = r"(?:[^\W\d_][\w'\-]*)"


@dataclass(frozen=True, slots=True)
class RolePhrase:
    """A role of the speaker's (or of ``owner``'s) and the one who has it."""

    role: Role
    word: str
    name: str
    owner: str


@dataclass(slots=True)
class RolePhrases:
    """A sentence in which brackets are resolved, and the roles that it names."""

    text: str
    phrases: list[RolePhrase] = field(default_factory=list)


_ROLE_NAME = re.compile(
    rf"\b(?P<mine>{_MINE}) (?P<adj>(?:{ADJ} )*)(?P<role>{WORD})(?P<trail> {TRAIL})?(?:,"
    rf"| -)? (?:[oa] )?(?P<name>{NAME})(?: \((?P<alias>{NAME})\))?"
)
_NAME_ROLE = re.compile(
    rf"(?P<name>{NAME}), (?P<mine>{_MINE}) (?P<adj>(?:{ADJ} )*)(?P<role>{WORD})(?P<trail> {TRAIL})?(?=[,.]|$"
    rf"| (?:is|was|has|é|foi|tem))"
)
_HAS_NAMED = re.compile(
    rf"\b(?i:have|has|had|got|got (?:myself|ourselves)|adopted|rescued|bought|tenho|tem|temos|ganhei|ganhamos|adotei"
    rf"|adotamos|adotou"
    rf"|tinha|resgatei|resgatamos|comprei|compramos|peguei|pegamos) (?:an? |uma? "
    rf"|(?P<many>[a-zê0-9]+) )(?P<adj>(?:{WORD} ){{0,2}}?)(?P<role>{WORD})(?:,|:)?"
    rf"(?: (?:called|named|chamad[oa]s?|cham(?:a|am)"
    rf"|que se chamam?))?,? (?:[oa] )?(?P<name>{NAME})(?P<more>(?:(?:,| and| e|, and|, e) (?:[oa] )?{NAME})*)"
)
_BRACKET = re.compile(rf"(?P<name>{NAME}) \((?P<inner>[^()]{{1,60}})\)")
_AKA = re.compile(
    rf"(?P<name>{NAME}),? (?:aka|a\.k\.a\.|also known as|better known as|mais conhecid[oa] como"
    rf"|tamb[eé]m conhecid[oa] como|vulgo),? (?:[oa] )?(?P<alias>{NAME})"
)


def group_names(sentence: str, state: Reading) -> RolePhrases:
    """Meet the names that a sentence introduces by role or bracket; brackets give way to the fullest name."""
    result = RolePhrases(_resolve_brackets(_join_pairs(sentence, state), state))
    for pattern in (_ROLE_NAME, _NAME_ROLE):
        for m in pattern.finditer(result.text):
            role = role_of(f"{m['role']}{m['trail'] or ''}") or role_of(m["role"])
            name = re.sub(r"^(?:[OoAa]|The) ", "", trim(m["name"], state.known_names()))
            if role is None or is_plural(m["role"]) or not is_name_word(name.split()[0]):
                continue
            canonical = state.meet(state.canonical(name), role.kind, gender=_gender(role, m["mine"]))
            state.role_holders[role.english] = canonical
            word = f"{_kept_adjective(m['adj'])}{m['role'].lower()}{m['trail'] or ''}"
            result.phrases.append(RolePhrase(role, word, canonical, state.speaker))
            if canonical != name:
                result.text = result.text.replace(name, canonical, 1)
    _meet_owned(result.text, state)
    return result


_PAIR = re.compile(
    rf"(?P<n>{NAME}) (?P<and>and|e) (?:her|his|seu|sua|o|a) (?P<role>{WORD}),? (?P<n2>{NAME})",
)
_NAMED_LATER = re.compile(
    rf"\b(?P<a>an?) (?P<noun>(?:{WORD} )?{WORD})(?P<mid>(?: (?:on|in|last|this|at) \w+){{0,2}})(?:,| and"
    rf"|, and)(?: we| I)? "
    rf"(?:named|called) (?:her|him|it) (?P<name>{NAME})"
)


_APPOSED = re.compile(
    rf"^(?:[OoAa] )?(?P<n>{NAME}), (?:(?:[oa] )?(?P<role>{WORD}) d[aeo] (?P<owner>{NAME})|(?P<owner2>{NAME})'s "
    rf"(?P<role2>{WORD})), (?=\S)"
)


def _apposed(sentence: str, state: Reading) -> str:
    """ "O Zé, marido da Marta, é advogado": the role is a fact of its own."""
    m = _APPOSED.match(sentence)
    role = role_of(m["role"] or m["role2"]) if m else None
    if m is None or role is None or not is_name_word(m["n"].split()[0]):
        return sentence
    name = re.sub(r"^(?:[OoAa]|The) ", "", m["n"])
    owner = state.meet(state.canonical(m["owner"] or m["owner2"]), "person")
    role_fact(state.canonical(name), (m["role"] or m["role2"]).lower(), role, owner, state)
    return f"{name} {sentence[m.end() :]}"


def _join_pairs(sentence: str, state: Reading) -> str:
    """ "Emma and her husband Paul" are two and a role; "a puppy and named her Luna" is one called Luna."""
    sentence = _apposed(sentence, state)

    def put(m: re.Match[str]) -> str:
        role = role_of(m["role"])
        if role is None:
            return m.group()
        owner = state.meet(state.canonical(m["n"]), "person")
        role_fact(state.canonical(m["n2"]), m["role"].lower(), role, owner, state)
        return f"{m['n']} {m['and']} {m['n2']}"

    return _NAMED_LATER.sub(r"\g<a> \g<noun> called \g<name>\g<mid>", _PAIR.sub(put, sentence))


def _kept_adjective(adjectives: str) -> str:
    """Only what changes the role itself: "best friend" stays, "dear wife" is "wife"."""
    kept = [
        a
        for a in adjectives.split()
        if fold(a)
        in word_set(
            "best older oldest younger youngest elder eldest little big middle only closest melhor twin late former"
        )
    ]
    return "".join(f"{a} " for a in kept)


def _gender(role: Role, mine: str) -> str:
    return role.gender or {"minha": "f", "nossa": "f", "meu": "m", "nosso": "m"}.get(mine.lower(), "")


def _resolve_brackets(sentence: str, state: Reading) -> str:
    """ "Dave (David Okafor)" and "X, aka Y" are one person, the fullest name first; "Carol (my sister)" is a role."""

    def put(m: re.Match[str]) -> str:
        inner = m["inner"].strip()
        if hint := re.fullmatch(rf"{_MINE} (?P<role>{WORD})", inner):
            return f"{inner} {m['name']}" if role_of(hint["role"]) else m["name"]
        if hint := re.fullmatch(rf"(?P<role>{WORD}) d[aoe] (?P<owner>{NAME})", inner):
            return m["name"]
        if not re.fullmatch(NAME, inner) or kind_of(m["name"]) == "place":
            return m.group()
        return state.meet(m["name"], "person", aliases=(inner,))

    def known_as(m: re.Match[str]) -> str:
        return state.meet(m["name"], kind_of(m["name"], default="person"), aliases=(m["alias"],))

    return _AKA.sub(known_as, _BRACKET.sub(put, sentence))


_HAS_UNNAMED = re.compile(
    rf"(?:^|\b)(?:I|[Ww]e|I've|[Ww]e've|[Aa] gente|[Ee]u)? ?(?i:have|got|have got|adopted|bought|rescued|found|hired"
    rf"|'ve got|tenho|temos|ganhei"
    rf"|ganhamos|adotei|adotamos|comprei|compramos|arrumei|arranjei|conheci|contratei) (?:an? |uma? )(?:new |little "
    rf"|{ADJ} )*(?P<role>{WORD})\b"
    rf"(?!,? (?:called|named|chamad|[oa] [A-ZÀ-Ý]|[A-ZÀ-Ý]))"
)
_AND_NAMED = re.compile(
    rf"^,? (?:and|e) (?:an? |uma? |[a-zê0-9]+ )(?P<adj>(?:{WORD} ){{0,2}}?)(?P<role>{WORD})(?:,|:)?"
    rf"(?: (?:called|named|chamad[oa]s?))?,? (?:[oa] )?(?P<name>{NAME})(?P<more>(?:(?:,| and| e) (?:[oa] )?{NAME})*)"
)


def _owned_role(m: re.Match[str]) -> Role | None:
    """The role of what somebody has; "a baby boy called Sam" is a child."""
    if fold(m["role"]) in (
        "boy",
        "girl",
        "boys",
        "girls",
        "menino",
        "menina",
        "meninos",
        "meninas",
        "garoto",
        "garota",
    ):
        return ROLES["child"]
    return as_mine(m["role"])


def _meet_owned(text: str, state: Reading) -> None:
    """ "has a daughter named Emilia", "temos dois filhos, o Davi e a Luísa": edges; the clause itself is the fact."""
    if (m := _HAS_UNNAMED.search(text)) and (role := role_of(m["role"])) and not is_plural(m["role"]):
        state.unnamed_role = m["role"].lower()
    for m in _HAS_NAMED.finditer(text):
        role = _owned_role(m)
        if role is not None and role.kind == "pet" and re.match(r"(?:had|tinha)\b", m.group(), re.I):
            continue  # "we had a parrot called Pepe" is over
        if role is None or re.search(r"\b(?:he|she|they|ela|ele|his|her|their) $", text[: m.start()]):
            continue
        lead = text[: m.start()].strip().lower().split()
        first = (
            not lead
            or lead[-1] in ("i", "we", "i've", "we've", "eu", "nós", "e", "and", "also", "já", "gente", "just")
            or portuguese.first_person(m.group().split()[0]) is not None
        )
        if not first:
            continue
        _link_owned(m, role, state)
        if (more := _AND_NAMED.match(text[m.end() :])) and (other := _owned_role(more)):
            _link_owned(more, other, state)


def _link_owned(m: re.Match[str], role: Role, state: Reading) -> None:
    for name in [m["name"], *find_names(m["more"] or "", state.known_names())]:
        canonical = state.meet(state.canonical(name), role.kind, gender=role.gender)
        state.link(*role_edge(role, canonical, state.speaker))
        if not is_plural(m["role"]):
            state.role_holders[role.english] = canonical


_GONE = re.compile(
    r"\b(?:put (?:\w+ ){0,5}(?:to sleep|down)|passed away|died|lost (?:my|our)|rehomed|ran away|morreu|faleceu"
    r"|sacrificad[ao]|perdi"
    r"|perdemos|fugiu|partiu|doei|doamos|foi embora)\b"
)


def tell_roles(found: RolePhrases, state: Reading, *, told: bool) -> None:
    """The facts and edges of the roles; only where the sentence told something, or was nothing but the role itself."""
    for phrase in found.phrases:
        if told and phrase.role.kind == "pet" and _GONE.search(plain(found.text)):
            continue  # "we had to put our dog Max to sleep": nobody has Max any more
        _tell_role(phrase, state, told=told)


def _tell_role(phrase: RolePhrase, state: Reading, *, told: bool) -> None:
    if not told:
        return
    role_fact(phrase.name, phrase.word, phrase.role, phrase.owner, state)


_OWN_NAME = re.compile(
    rf"^(?:(?:[Mm]y (?:full )?name(?: is|'s)|[Mm]eu nome(?: completo)? é|(?:[Ee]u )?[Mm]e chamo|I(?: am"
    rf"|'m) called|I(?: am|'m) named|[Aa]qui é (?:o|a)) (?P<name>{NAME}|{_ANY_CASE}(?: {_ANY_CASE})?)"
    rf"|(?:I'm|I am|[Ss]ou [oa]|[Ee]u sou [oa]) (?P<intro>{NAME}))$"
)
_NICKNAME = re.compile(
    rf"^(?:(?:[Pp]lease )?(?:(?:[Ee]verybody|[Ee]veryone|[Pp]eople|(?:[Mm]y |[Aa]ll my )?(?:[Ff]riends|[Ff]amily"
    rf"|colleagues)|[Tt]hey)(?: \w+ly| all| just)? calls? me|[Yy]ou can call me|[Cc]all me|I go by"
    rf"|[Mm]y nickname is|I'm known as|I am known as)"
    rf"|(?:[Tt]odo mundo|[Tt]odos|[Oo]s amigos|[Mm]eus amigos|[Aa] família|[Mm]inha família|[Oo] pessoal"
    rf"|[Aa]s pessoas|[Aa] galera|[Mm]eus? \w+|[Mm]inhas? \w+|[Nn]a \w+)? ?[Mm]e chamam? de|[Pp]odem? me chamar de"
    rf"|[Mm]eu apelido é"
    rf"|[Ss]ou conhecid[oa] como|(?:[Ee]les )?[Mm]e conhecem como) (?P<name>{NAME}|{_ANY_CASE})(?P<rest>.*)$"
)
_ROLE_CALLED = re.compile(
    rf"^(?:[oaOA] )?(?P<mine>{_MINE}) (?P<adj>(?:{ADJ} )*)(?P<role>{WORD})(?P<trail> {TRAIL})?"
    rf"(?:'s (?:full )?name is| is (?:called|named)|'s called|,? (?:called|named)| is| se chama| chama-se| chama"
    rf"| tem o nome de| é(?: [oa])?) (?P<name>{NAME}|(?<=called ){_ANY_CASE}|(?<=chama ){_ANY_CASE}"
    rf"|(?<=name is ){_ANY_CASE})(?: \((?P<alias>{NAME})\))?$"
)
_NAME_OF_ROLE = re.compile(
    rf"^(?:[Tt]he name of (?P<mine1>{_MINE}) (?P<role1>{WORD}) is"
    rf"|[Oo] nome d[oa] (?P<mine2>{_MINE}) (?P<role2>{WORD}) é) (?P<name>{NAME})$"
)
_NOT_THAT = re.compile(r",? (?:and )?(?:not|e não|não) [^\s,]+(?: [^\s,]+)?$")
_IS_ROLE = re.compile(
    rf"^(?:[oaOA] )?(?P<name>{NAME}) (?:is|'s"
    rf"|é)(?: [oa])? (?P<mine>{_MINE}) (?P<adj>(?:{ADJ} )*)(?P<role>{WORD})(?P<trail> {TRAIL})?$"
)
_PET_IS = re.compile(
    rf"^[OoAa] (?P<role>{WORD}) é [oa] (?P<name>{NAME})$|^[Tt]he (?P<role2>{WORD}) is (?:called "
    rf"|named )?(?P<name2>{NAME})$"
)
_NATIONALITY = re.compile(
    r"(?:ian|ean|ish|ese|can|german|french|greek|dutch|swiss|czech|thai|iraqi|pakistani|israeli|catholic"
    r"|christian|muslim|jewish|buddhist|an)$"
)


def read_naming(clause: str, state: Reading) -> bool:
    """Clauses that give a name; True if the clause was one."""
    clause = _NOT_THAT.sub("", clause)
    return (
        _own_name(clause, state)
        or _nickname(clause, state)
        or _role_called(clause, state)
        or name_of_another(clause, state)
        or named_at_last(clause, state)
    )


def _own_name(clause: str, state: Reading) -> bool:
    m = _OWN_NAME.match(clause)
    if not m:
        return False
    name = m["name"] or m["intro"]
    if m["intro"] and (_NATIONALITY.search(fold(name)) or kind_of(name) != "other"):
        return False
    if name.islower():
        name = name.title() if not english.base(name.split()[0]) else name
    state.meet(state.speaker, "person", aliases=() if fold(name) == fold(state.speaker) else (name,))
    state.subject = state.speaker
    if fold(name) != fold(state.speaker):
        text = (
            f"{state.speaker} se chama {name}" if state.lang == "pt" else f"{possessive(state.speaker)} name is {name}"
        )
        state.add(Fact(state.speaker, text, category="biographical_milestone", attribute_key="person.name", value=name))
    return True


def _nickname(clause: str, state: Reading) -> bool:
    m = _NICKNAME.match(clause)
    if not m or len(m["rest"].split()) > 6:
        return False
    name = m["name"] if not m["name"].islower() else m["name"].capitalize()
    state.meet(state.speaker, "person", aliases=(name,))
    if state.lang == "pt":
        text = (
            f"{state.speaker} é conhecido como {name}"
            if "conhec" in plain(clause)
            else f"{state.speaker} é chamado de {name}"
        )
    else:
        text = f"{state.speaker} is also called {name}"
    state.add(Fact(state.speaker, text, category="biographical_milestone", attribute_key="person.nickname", value=name))
    return True


def _role_called(clause: str, state: Reading) -> bool:
    for pattern in (_ROLE_CALLED, _NAME_OF_ROLE, _IS_ROLE, _PET_IS):
        m = pattern.match(clause)
        if not m:
            continue
        groups = m.groupdict()
        word = groups.get("role") or groups.get("role1") or groups.get("role2") or ""
        role = role_of(word)
        if role is None or is_plural(word) or (pattern is _PET_IS and role.kind != "pet"):
            continue
        name = groups.get("name") or groups.get("name2") or ""
        name = name.title() if name.islower() else trim(name, state.known_names())
        if not is_name_word(name.split()[0]):
            continue
        aliases = (groups["alias"],) if groups.get("alias") else ()
        canonical = state.meet(state.canonical(name), role.kind, gender=role.gender, aliases=aliases)
        shown = f"{_kept_adjective(groups.get('adj') or '')}{word.lower()}{groups.get('trail') or ''}"
        role_fact(canonical, shown, role, state.speaker, state)
        state.subject = canonical
        return True
    return False


def same_person(a: str, b: str) -> bool:
    """Whether two names can be the same person's."""
    return compatible(a, b) or mentions(a, b) or mentions(b, a)
