"""Who a clause is about: the speaker, a named thing, somebody's wife, a pronoun, or the last clause's subject."""

from __future__ import annotations

import re

from worker.llm.offline import belongings, english, pairs, portuguese, rewriting
from worker.llm.offline.lexicon import is_common_word, is_person_noun
from worker.llm.offline.names import NAME, is_name_word, kind_of, trim
from worker.llm.offline.roles import ADJ, MINE, TRAIL, WORD, Role, role_of
from worker.llm.offline.sentences import has_verb
from worker.llm.offline.state import Fact, Reading, Told, possessive, role_edge, role_sentence
from worker.llm.offline.text import fold, words

_BARE_KIN = re.compile(
    r"^(?P<k>Mum|Mom|Mummy|Mommy|Dad|Daddy|Grandma|Grandpa|Grandad|Granny|Nan|Nana|Gran|Mãe|Mamãe|Pai|Papai|Vovó"
    r"|Vovô|Vó|Vô)"
    r"(?= (?!e\b|and\b))"
)
_BARE_MINE = {"mae": "Minha", "mamae": "Minha", "vovo": "Minha", "vo": "Minha", "pai": "Meu", "papai": "Meu"}


def settle(clause: str, state: Reading, *, continues: bool) -> Told | None:
    """Find the subject of ``clause`` and put its predicate into the third person; None where no subject is sure.

    ``continues``: the clause follows another one of its sentence, so its subject may be left out.
    """
    clause = rewriting.expand_contractions(clause)
    if (m := _BARE_KIN.match(clause)) and all(fold(t.name) != fold(m["k"]) for t in state.known):
        clause = f"{_BARE_MINE.get(fold(m['k']), 'My')} {m['k'].lower()}{clause[m.end() :]}"  # "Mum is retiring"
    readers = (
        _caseless,
        pairs.with_speaker,
        _speaker,
        _their_role,
        belongings.is_mine,
        belongings.group_of_mine,
        pairs.several_in_a_role,
        pairs.couple,
        _role,
        _somebodys_role,
        belongings.somebodys_thing,
        _person_of_speaker,
        _thing_of_speaker,
        _pronoun,
        belongings.affects,
        belongings.definite,
        _named,
        _left_out,
    )
    for reader in readers:
        told = reader(clause, state, continues)
        if told is not None:
            return told if told.predicate else None
    return None


def _caseless(clause: str, state: Reading, _continues: bool) -> Told | None:
    """Chinese "我…": the first person is one sign, and nothing else needs to change."""
    if clause.startswith("我") and not clause.endswith(("吗", "呢")):
        rest = clause[1:].lstrip("们")
        return Told(state.speaker, f"{state.speaker}{rest}", " ") if rest else None
    return None


def _speaker(clause: str, state: Reading, _continues: bool) -> Told | None:
    if state.lang == "pt":
        m = re.match(r"^(?P<s>eu|nós|a gente)\b,? (?P<r>.+)$", clause, re.I)
        if not m:
            return None
        if m["s"].lower() == "a gente":
            predicate: str | None = rewriting.portuguese_predicate(
                m["r"], state.speaker, guess=False
            ) or rewriting.spoken(rewriting.portuguese_own(m["r"], state.speaker))
        else:
            predicate = rewriting.portuguese_predicate(m["r"], state.speaker, guess=True)
    else:
        m = re.match(r"^(?:I|we|i|We)\b,? (?:both |all )?(?P<r>.+)$", clause)
        if not m:
            return None
        predicate = rewriting.english_predicate(m["r"], state.speaker)
    return Told(state.speaker, state.speaker, predicate or "")


_ROLE_HEAD = re.compile(
    rf"^(?:[oaOA] )?(?P<det>{MINE}|[Tt]he|[OoAa]s?|[Hh]is"
    rf"|[Hh]er) (?P<adj>(?:{ADJ} )*)(?P<role>{WORD})(?P<trail> {TRAIL})?"
    rf"(?:,? (?:[oa] )?(?P<name>{NAME})(?: \((?P<alias>{NAME})\))?)?(?P<r>,? .+)$"
)


def _role(clause: str, state: Reading, _continues: bool) -> Told | None:
    """ "my sister (Ana) …", "meu vizinho Antônio …"; a bare "the dog" is the speaker's as well."""
    m = _ROLE_HEAD.match(clause)
    role = role_of(m["role"]) if m else None
    if not m or role is None:
        return None
    mine = re.fullmatch(MINE, m["det"]) is not None
    if not mine and (role.kind != "pet" or m["det"].lower() in ("his", "her")):
        return None
    if m["name"] and is_name_word(m["name"].split()[0]):
        name = state.canonical(trim(m["name"], state.known_names()))
        rest = clause[m.start("name") + len(trim(m["name"], state.known_names())) :] if not m["alias"] else m["r"]
        return _told_of(name, name, rest, state)
    rest = clause[m.end("trail") if m["trail"] else m.end("role") :]
    holder = state.holder(m["role"])
    if holder:
        return _told_of(holder, holder, rest, state)
    return _placeholder(m, role, rest, state)


def _placeholder(m: re.Match[str], role: Role, rest: str, state: Reading) -> Told | None:
    """Nobody known has this role yet: the role's own word is the entity's name, the sentence says whose it is."""
    word = m["role"]
    noun = f"{m['adj']}{word}{m['trail'] or ''}"
    if state.lang == "pt":
        article = {"m": "O", "f": "A"}.get(role.gender) or ("A" if m["det"].lower() in ("minha", "nossa", "a") else "O")
        if fold(m["det"]).endswith("s"):
            article += "s"
        shown = f"{article} {noun} de {state.speaker}"
    else:
        shown = f"{possessive(state.speaker)} {noun}"
    told = _told_of(word.lower(), shown, rest, state)
    if told and told.predicate:
        state.shown[word.lower()] = shown
        state.meet(word.lower(), role.kind, gender=role.gender)
    return told


def _somebodys_role(clause: str, state: Reading, _continues: bool) -> Told | None:
    """ "Ana's brother lives in…", "o irmão da Ana mora em…": the role's holder has no name, so the fact is Ana's."""
    named = re.match(rf"^(?P<n>{NAME})'s (?P<role>{WORD}),? (?P<name>{NAME}),? (?P<r>.+)$", clause) or re.match(
        rf"^(?:[oaOA] )?(?P<role>{WORD}) d[aoe] (?P<n>{NAME}),? (?:[oa] )(?P<name>{NAME}),? (?P<r>.+)$", clause
    )
    if named and (role := role_of(named["role"])):
        owner, name = state.canonical(named["n"]), state.canonical(named["name"])
        state.meet(owner, "person")
        state.meet(name, role.kind, gender=role.gender)
        state.add(Fact(name, role_sentence(name, named["role"], owner, state.lang), category="relationship_change"))
        state.link(*role_edge(role, name, owner))
        return _told_of(name, name, named["r"], state)
    m = re.match(rf"^(?P<n>{NAME})'s (?P<role>{WORD}) (?P<r>.+)$", clause)
    if m and not english.starts_predicate([m["role"], *m["r"].split()]):
        name = state.canonical(m["n"])
        state.meet(name, kind_of(name, default="person"))
        return Told(name, f"{possessive(name)} {m['role']}", rewriting.english_other(m["r"], state.speaker))
    m = re.match(rf"^(?:[oaOA] )(?P<role>{WORD}) d[oae] (?P<n>{NAME}) (?P<r>.+)$", clause)
    if m and role_of(m["role"]):
        name = state.canonical(trim(m["n"], state.known_names()))
        state.meet(name, "person")
        return Told(name, clause[: m.start("n")] + name, rewriting.portuguese_other(m["r"], state.speaker))
    return None


def _thing_of_speaker(clause: str, state: Reading, _continues: bool) -> Told | None:
    """ "my favourite band is…", "minha comida favorita é…": a thing of the speaker's is told of the speaker."""
    m = re.match(rf"^(?:[oaOA]s? )?(?P<det>{MINE})\b (?P<r>.+)$", clause)
    if not m:
        return None
    tokens = m["r"].split()
    for index, token in enumerate(tokens[1:8], start=1):
        bare = token.strip(",").lower()
        if state.lang == "pt":
            if portuguese.third_person(bare) or re.search(r"(?:ou|eu|iu)$", bare):
                while index > 1 and tokens[index - 1].lower() in portuguese.ADVERBS | {"se", "me"}:
                    index -= 1  # "o nome não é": what stands before the verb goes with it
                noun = " ".join(tokens[:index])
                if "," in noun or re.search(r"\b(?:meus?|minhas?|noss[oa]s?)\b", noun):
                    shown = rewriting.owned(f"{m['det']} {noun}", state.speaker)
                else:  # the owner behind the whole of it: "a prova do Detran de Bruna"
                    shown = f"{rewriting.ARTICLE[m['det'].lower()]} {noun} de {state.speaker}"
                shown = shown[0].upper() + shown[1:]
                return Told(state.speaker, shown, rewriting.portuguese_other(" ".join(tokens[index:]), state.speaker))
        elif english.is_finite(bare) and (
            bare in english.AUX or bare in english.MODALS or english.is_third(bare) or english.is_past(bare)
        ):
            shown = f"{possessive(state.speaker)} {' '.join(tokens[:index])}"
            return Told(state.speaker, shown, rewriting.english_other(" ".join(tokens[index:]), state.speaker))
    return Told(state.speaker, "", "")


def _pronoun(clause: str, state: Reading, _continues: bool) -> Told | None:
    m = re.match(r"^(?P<p>he|she|ele|ela)\b,? (?P<r>.+)$", clause, re.I)
    if not m:
        if re.match(r"^(?:it|they|you|this|that|there|these|those|eles|elas|isso|isto|você|vocês|tu)\b", clause, re.I):
            return Told("", "", "")
        return None
    gender = "m" if m["p"].lower() in ("he", "ele") else "f"
    spoken_of = state.find(state.subject) if fold(state.subject) not in ("", fold(state.speaker)) else None
    if (
        spoken_of
        and spoken_of in state.things
        and spoken_of.kind in ("person", "pet")
        and spoken_of.gender in ("", gender)
    ):
        person: str | None = spoken_of.name
    else:
        person = state.last_person(gender)
    return _told_of(person, person, m["r"], state) if person else Told("", "", "")


_NAMED = re.compile(
    rf"^(?P<lead>(?:[^,]{{2,40}}, )?)(?:(?P<art>[OoAa]|[Tt]he) )?(?P<n>{NAME})(?: (?:and|e) (?:[oa] )?(?P<n2>{NAME}))?"
    rf"(?P<apposition>, (?:{MINE}) [^,]+,)?(?P<r>,? .+)$"
)


def _named(clause: str, state: Reading, _continues: bool) -> Told | None:
    m = _NAMED.match(clause)
    if not m:
        return None
    name = trim(m["n"], state.known_names())
    if not is_name_word(name.split()[0]) or (m["lead"] and has_verb(m["lead"], state.lang)):
        return None
    rest = m["r"] if name == m["n"] else clause[m.start("n") + len(name) :]
    if " " not in name and not m["art"] and state.find(name) is None and _is_no_name(name, rest, m["n2"]):
        return None
    tokens = [w for w in words(rest) if w]
    if state.lang == "pt":
        verbs = [t for t in tokens if t.lower() not in portuguese.ADVERBS | {"me", "se"}][:1]
        article = m["art"] or ""
        if not verbs or not (portuguese.third_person(verbs[0]) or (article and _like_a_verb_pt(verbs[0]))):
            return None
        if not article and portuguese.is_verb(name.lower()) and state.find(name) is None:
            return None
    else:
        if not re.match(r"'s ", rest.strip()) and not english.starts_predicate(tokens):
            return None
        if english.base(name) and state.find(name) is None and " " not in name:
            return None
    return _named_told(m, name, rest, state)


def _is_no_name(name: str, rest: str, other: str | None) -> bool:
    """A capital at the head of a sentence is no evidence: "Right, carry on", "Never been to Asia"."""
    if is_common_word(name):
        return True
    return rest.startswith(",") and not other and not re.match(r"^, (?:who|que|my|meu|minha|our|[oa]) ", rest)


_PERSON_HEAD = re.compile(
    rf"^(?:[oaOA] )?(?P<det>{MINE}) (?P<adj>(?:{WORD} ){{0,2}}?)(?P<noun>{WORD})(?P<trail> {TRAIL}| d[aeo] {WORD}"
    rf"| from {WORD})?"
    rf"(?:,? (?:[oa] )?(?P<name>{NAME}))(?P<r>,? .+)$"
)


def _person_of_speaker(clause: str, state: Reading, _continues: bool) -> Told | None:
    """ "My lad Callum …", "minha comadre Neide …": a word for a person, and whose name it is."""
    m = _PERSON_HEAD.match(clause)
    role = role_of(m["noun"]) if m else None
    if not m or not (role or is_person_noun(m["noun"])) or not is_name_word(m["name"].split()[0]):
        return None
    name = trim(m["name"], state.known_names())
    if kind_of(name) != "other" or english.is_finite(name.lower()):
        return None
    rest = clause[m.start("name") + len(name) :]
    canonical = state.meet(state.canonical(name), "person")
    noun = f"{m['adj'] or ''}{m['noun']}{m['trail'] or ''}"
    told = _told_of(canonical, canonical, rest, state)
    if told.predicate and role:
        state.link(*role_edge(role, canonical, state.speaker))
    if told.predicate:
        state.add(
            Fact(canonical, role_sentence(canonical, noun, state.speaker, state.lang), category="relationship_change")
        )
    return told


def _named_told(m: re.Match[str], name: str, rest: str, state: Reading) -> Told | None:
    gender = {"o": "m", "a": "f"}.get((m["art"] or "").lower(), "")
    if (m["art"] or "").lower() == "the":
        gender = ""
    canonical = state.canonical(name)
    known = state.find(canonical)
    canonical = state.meet(canonical, known.kind if known else kind_of(name, default="person"), gender=gender)
    shown = canonical
    if m["n2"] and name == m["n"] and is_name_word(m["n2"]):
        other = state.meet(state.canonical(m["n2"]), kind_of(m["n2"], default="person"))
        shown = f"{canonical} {'e' if state.lang == 'pt' else 'and'} {other}"
    lead = m["lead"] if not re.search(r"\b(?:well|actually|bom|olha|oi|hey|na verdade)\b", fold(m["lead"])) else ""
    return _told_of(canonical, f"{lead}{shown}", rest, state)


def _like_a_verb_pt(word: str) -> bool:
    return re.search(r"(?:ou|eu|iu|aram|eram|iram|ava|avam|a|e)$", word.lower()) is not None and word[0].islower()


def _left_out(clause: str, state: Reading, continues: bool) -> Told | None:
    """Portuguese leaves subjects out; English does so after "and", and in diary style ("Sold my car yesterday")."""
    if state.lang == "pt":
        predicate = rewriting.portuguese_predicate(clause[0].lower() + clause[1:], state.speaker, guess=not continues)
        tokens = [t.strip(",").lower() for t in clause.split()]
        heads = [t for t in tokens if t not in portuguese.ADVERBS | {"me", "se"}][:1]
        only_third = (
            bool(heads) and portuguese.third_person(heads[0]) and predicate in (None, clause[0].lower() + clause[1:])
        )
        others = state.subject and fold(state.subject) != fold(state.speaker)
        if only_third and others:
            return _told_of(state.subject, state.subject, clause[0].lower() + clause[1:], state)
        if predicate is not None:
            return Told(state.speaker, state.speaker, predicate)
        if only_third and continues and state.subject:
            return Told(state.speaker, state.speaker, clause)
        return None
    tokens = words(clause)
    first = tokens[0].lower() if tokens else ""
    if continues and state.subject and english.starts_predicate(tokens, last=True):
        if fold(state.subject) == fold(state.speaker):
            return Told(state.speaker, state.speaker, rewriting.english_predicate(clause, state.speaker) or "")
        return _told_of(state.subject, state.subject, clause, state)
    if (english.is_past(first) or first in ("love", "hate", "can't", "don't", "just", "never")) and len(tokens) > 1:
        predicate = rewriting.english_predicate(clause[0].lower() + clause[1:], state.speaker)
        return Told(state.speaker, state.speaker, predicate or "")
    return None


def _told_of(subject: str, shown: str, rest: str, state: Reading) -> Told:
    """A clause about somebody else than the speaker: only the speaker's own pronouns change."""
    shown = state.shown.get(shown, shown)
    rest = re.sub(r"^\s*,\s*(?=(?:who|que) )", " ", rest).strip(" ,")
    rest = re.sub(r"^(?:who|que) ", "", rest)
    rest = _with_object(rest, subject, state)
    if fold(subject) == fold(state.speaker):
        predicate = (
            rewriting.portuguese_predicate(rest, state.speaker, guess=False) if state.lang == "pt" else None
        ) or rest
        return Told(subject, shown, predicate)
    change = rewriting.portuguese_other if state.lang == "pt" else rewriting.english_other
    return Told(subject, shown, change(rest, state.speaker))


_CLITIC_OBJECT = re.compile(r"^(?P<a>(?:não |já |nunca |também )?)(?P<p>[oa]) (?P<v>[^\W\d_]+)(?=$| )")
_ENGLISH_OBJECT = re.compile(
    r"\b(?P<p>him|her)(?=$|[.,]| (?:\w+ly|in|at|to|for|with|on|as|and|when|because|about|last|yesterday|today"
    r"|personally)\b)"
)


def _with_object(rest: str, subject: str, state: Reading) -> str:
    """ "a contratou", "hired her": the object pronoun as the name of the last person who can be meant."""
    m = _CLITIC_OBJECT.match(rest) if state.lang == "pt" else _ENGLISH_OBJECT.search(rest)
    if m is None or (state.lang == "pt" and not portuguese.third_person(m["v"])):
        return rest
    person = state.last_person("m" if m["p"] in ("o", "him") else "f", other_than=subject)
    if person is None:
        return rest
    if state.lang == "pt":
        return f"{m['a']}{m['v']} {person}{rest[m.end() :]}"
    return f"{rest[: m.start()]}{person}{rest[m.end() :]}"


_THEIR_NAMED = re.compile(
    rf"^(?:(?:[Hh]is|[Hh]er) (?:{ADJ} )*(?P<role>{WORD}),? (?P<name>{NAME}),? (?P<r>.+)"
    rf"|[OoAa] (?P<role_>{WORD}) del[ea],? (?:[oa] )?(?P<name_>{NAME}),? (?P<r_>.+))$"
)


def _their_named(m: re.Match[str], owner: str, state: Reading) -> Told | None:
    """ "Her son Paul is four", after a clause about Nora."""
    word, called, rest = (m["role"], m["name"], m["r"]) if m["role"] else (m["role_"], m["name_"], m["r_"])
    role = role_of(word)
    if role is None or not is_name_word(called.split()[0]):
        return None
    name = state.meet(state.canonical(called), role.kind, gender=role.gender)
    state.add(Fact(name, role_sentence(name, word, owner, state.lang), category="relationship_change"))
    state.link(*role_edge(role, name, owner))
    return _told_of(name, name, rest, state)


def _their_role(clause: str, state: Reading, continues: bool) -> Told | None:
    """ "mas a mãe a inscreveu": after a clause about Selma, "the mother" is Selma's."""
    m = re.match(rf"^(?P<art>[oa]) (?P<role>{WORD}) (?P<r>.+)$", clause) or re.match(
        rf"^(?P<art>his|her) (?P<role>{WORD}) (?P<r>.+)$", clause, re.I
    )
    if fold(state.subject) in ("", fold(state.speaker)) or state.subject in state.shown:
        return None
    owner = state.subject
    if (named := _THEIR_NAMED.match(clause)) and (told := _their_named(named, owner, state)):
        return told
    if not m or not (continues or m["art"].lower() in ("his", "her") or re.match(r"del[ea] ", m["r"])):
        return None
    role = role_of(m["role"])
    if role is None or role.kind != "person":
        return None
    if state.lang == "pt":
        shown = f"{m['art'].upper()} {m['role']} de {owner}"
        rest = re.sub(r"^del[ea] ", "", m["r"])
        rest = _CLITIC_OBJECT.sub(lambda c: f"{c['a']}{c['v']} {owner}", rest)
        return Told(owner, shown, rewriting.portuguese_other(rest, state.speaker))
    rest = _ENGLISH_OBJECT.sub(lambda _c: owner, m["r"])
    return Told(owner, f"{possessive(owner)} {m['role']}", rewriting.english_other(rest, state.speaker))
