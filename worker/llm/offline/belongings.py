"""Clauses about things: the wedding, somebody's company, "chess is my thing", "coffee gives me migraines"."""

from __future__ import annotations

import re

from worker.llm.offline import english, portuguese, rewriting
from worker.llm.offline.dates import find_date
from worker.llm.offline.lexicon import EVENTS, HOUSEHOLD, ORGANISATIONS, SHARED, is_person_noun
from worker.llm.offline.names import NAME, is_name_word, kind_of, trim
from worker.llm.offline.roles import role_of
from worker.llm.offline.state import Reading, Told, possessive
from worker.llm.offline.text import fold, plain

_WORD = r"[^\W\d_]+(?:-[^\W\d_]+)*"
_MINE = r"(?:my|our|[Mm]eu|[Mm]inha|[Nn]osso|[Nn]ossa)"
_IS_MINE = re.compile(
    rf"^(?P<what>[^,;]{{2,50}}?) (?P<be>(?:(?:is|are|'s|was|were|isn't|aren't|é|são|era|foi|sempre foi|nunca foi"
    rf"|não é|has (?:always )?been|will always be|remains?)(?: (?:not|never|really|still|also|always|just|now"
    rf"|definitely"
    rf"|by far|hands down|ainda|também|sempre|mesmo|simplesmente|definitivamente))*)) (?:[oa]s? )?(?P<mine>{_MINE}) "
    rf"(?P<adj>(?:{_WORD} ){{0,2}}?)(?P<noun>{_WORD})(?P<r>(?: .*)?)$"
)
_AFFECTS = re.compile(
    r"^(?P<what>(?:[OoAa]s? )?[^\W\d_][\w'-]*(?: [a-zà-ú][\w'-]*){0,3}?) (?P<v>(?:(?:really|always|still|just|never"
    r"|usually|can|do|does|doesn't|don't|não|sempre|também|ainda|só) )*(?:gives?|makes?|keeps?|scares?|terrif(?:y|ies)"
    r"|bores?|upsets?|helps?|relaxes|relax|calms?|triggers?|brings?|drives?|stresses|stress|annoys?|bothers?|hurts?"
    r"|saved|changed|cheers?|puts?|sends?|wrecks?|ruins?|disagrees? with|agrees? with|freaks?|fascinates?"
    r"|inspires?|excites?)) (?P<r>(?:me|my)\b.*)$",
    re.I,
)
_AFFECTS_PT = re.compile(
    r"^(?:(?P<art>[OoAa]s?) )?(?P<what>[^\W\d_]+(?: (?:de |em |muito )?[a-zà-ú][\w-]*){0,3}?) (?P<adv>(?:não |sempre "
    r"|também |ainda |só |já )*)me (?P<v>dá|dão|faz|fazem|deixa|deixam|irrita|irritam|acalma|acalmam|relaxa|relaxam"
    r"|ajuda|ajudam|incomoda|incomodam|assusta|assustam|apavora|apavoram|cansa|cansam|estressa|estressam|anima|animam"
    r"|entedia|fascina|fascinam|encanta|encantam|causa|causam|tira|tiram|traz|trazem|salvou|mudou) ?(?P<r>.*)$"
)
_AFFECTS_MINE_PT = re.compile(
    r"^(?:(?P<art>[OoAa]s?) )?(?P<what>[^\W\d_]+(?: (?:de |em |muito )?[a-zà-ú][\w-]*){0,3}?) (?P<adv>(?:não "
    r"|sempre |também )*)"
    r"(?P<v>irrita|irritam|acalma|acalmam|ajuda|ajudam|incomoda|incomodam|assusta|assustam|apavora|apavoram|cansa"
    r"|cansam"
    r"|estressa|faz|fazem|deixa|deixam|ataca|atacam|piora|pioram|melhora|melhoram) (?P<r>(?:[oa]s? )?(?:meus?"
    r"|minhas?) .+)$"
)
_GROUP = re.compile(
    rf"^(?P<g>[Ee]veryone|[Ee]verybody|[Nn]obody|[Nn]o one|[Nn]one|[Mm]ost|[Aa]ll|[Hh]alf|[Bb]oth|[Oo]ne|[Tt]wo"
    rf"|[Ss]ome|[Ss]omeone"
    rf"|[Nn]either) (?P<of>(?:people )?(?:of|in|at|on) )?(?:my|our) (?P<n>(?:{_WORD} ){{0,3}}?{_WORD}) (?P<r>.+)$"
)
_GROUP_PT = re.compile(
    rf"^(?P<g>[Tt]odo mundo|[Tt]od[oa]s(?: os?| as?)?|[Nn]inguém|[Mm]etade|[Uu]m|[Uu]ma|[Nn]enhuma?|[Aa]lguns"
    rf"|[Aa]lgumas|[Dd]ois|[Dd]uas"
    rf"|[Aa] maioria) (?P<of>(?:n[ao]s?|d[aeo]s?|em|lá em) )?(?P<mine>(?:meus?|minhas?|nossos?"
    rf"|nossas?) {_WORD}) (?P<r>.+)$"
)
_DEFINITE = re.compile(  # on folded text
    rf"^(?P<art>the|[oa]s?) (?P<adj>{_WORD} )??(?P<n>{'|'.join(sorted(EVENTS | HOUSEHOLD, key=len, reverse=True))})"
    rf"(?P<trail> (?:nov[ao]|antig[ao]|d[aeo] {_WORD}))? (?P<r>.+)$"
)
_OPINION = re.compile(
    r"^(?:(?:is|was|are|were|went|looks?|looked|'s|e|foi|esta|ta|ficou|ficaram|estava|sao|eram|foram|deu) )"
    r"(?:(?:so|very|really|quite|pretty|just|muito|super|tao|bem|mais) )*(?:good|great|lovely|nice|fine|well|ok|okay"
    r"|amazing|terrible|awful|fun|boring|cool|bad|perfect|beautiful|wonderful|ready|over|here|there|happy|excited"
    r"|bom|boa|otim[ao]|lind[ao]s?|legal|legais|chat[ao]s?|maravilhos[ao]|perfeit[ao]|pessim[ao]|pront[ao]|bonit[ao]"
    r"|bem|certo"
    r"|errado|incrivel|dificil|facil|horrivel|aqui|ai)\W*(?:today|hoje)?$"
)
_OWNED_EN = re.compile(rf"^(?:[Tt]he )?(?P<n>{NAME})'s (?P<thing>(?:{_WORD} ){{0,2}}?{_WORD}) (?P<r>.+)$")
_OWNED_PT = re.compile(
    rf"^(?P<art>[OoAa]s?) (?P<thing>{_WORD}(?: (?:nov[ao]|antig[ao]|velh[ao]|de {_WORD}))?) d[oae]s? "
    rf"(?P<n>(?P<mine>meus?|minhas?|noss[oa]s?) (?:{_WORD} )(?:{NAME} )?|{NAME} )(?P<r>.+)$"
)


def is_mine(clause: str, state: Reading, _continues: bool) -> Told | None:
    """ "Chess is my passion", "lasanha é meu prato favorito": told of the speaker, unless it is who somebody is."""
    m = _IS_MINE.match(clause)
    if m is None or fold(m["what"]) in ("he", "she", "it", "this", "that", "ele", "ela", "isso", "they", "we", "i"):
        return None
    noun = m["noun"]
    if role_of(noun) or is_person_noun(noun) or re.match(rf"^(?:{NAME}'s|my|our|meu|minha)\b", m["what"], re.I):
        return None
    change = rewriting.portuguese_other if state.lang == "pt" else rewriting.english_other
    what = rewriting.owned(m["what"], state.speaker) if state.lang == "pt" else m["what"]
    return Told(state.speaker, what, change(clause[m.start("be") :], state.speaker))


def affects(clause: str, state: Reading, _continues: bool) -> Told | None:
    """ "Coffee gives me migraines", "altura me dá pânico": what something does to the speaker is theirs."""
    m = _AFFECTS_PT.match(clause) if state.lang == "pt" else _AFFECTS.match(clause)
    if (
        m is None
        and state.lang == "pt"
        and (mine := _AFFECTS_MINE_PT.match(clause))
        and not _is_somebody(mine["what"], state)
    ):
        shown = f"{mine['art']} {mine['what']}" if mine["art"] else mine["what"]
        rest = rewriting.portuguese_other(mine["r"], state.speaker)
        return Told(state.speaker, shown, f"{mine['adv']}{mine['v']} {rest}")
    if m is None or re.match(
        r"^(?:i|we|he|she|it|this|that|they|you|my|eu|ele|ela|isso|meus?|minhas?)\b", m["what"], re.I
    ):
        return None
    if _is_somebody(m["what"], state):
        return None
    if state.lang != "pt":
        return Told(state.speaker, m["what"], rewriting.english_other(clause[m.start("v") :], state.speaker))
    if m["art"] and m["what"][:1].isupper():
        return None  # "a Paula me ajuda": an article and a name
    shown = f"{m['art']} {m['what']}" if m["art"] else m["what"]
    rest = rewriting.portuguese_other(m["r"], state.speaker)
    bare = fold(m["v"])
    if bare in ("faz", "fazem", "da", "dao", "causa", "causam", "traz", "trazem"):
        return Told(state.speaker, shown, f"{m['adv']}{m['v']} {rest} a {state.speaker}".replace("  ", " "))
    return Told(state.speaker, shown, f"{m['adv']}{m['v']} {state.speaker} {rest}".strip())


def _is_somebody(what: str, state: Reading) -> bool:
    tokens = what.split()
    return bool(role_of(tokens[-1]) or state.find(tokens[0]) or is_person_noun(tokens[-1]))


def group_of_mine(clause: str, state: Reading, _continues: bool) -> Told | None:
    """ "Everyone in my family is left-handed", "nenhum dos meus irmãos fuma"."""
    m = (_GROUP_PT if state.lang == "pt" else _GROUP).match(clause)
    if m is None or not _predicate_follows(m["r"], state.lang):
        return None
    if state.lang == "pt":
        mine = rewriting.owned(m["mine"], state.speaker).split(" ", 1)[1]
        shown = f"{m['g']} {m['of'] or ''}{mine}"
        return Told(state.speaker, shown, rewriting.portuguese_other(m["r"], state.speaker))
    shown = f"{m['g']} {m['of'] or ''}{possessive(state.speaker)} {m['n']}"
    return Told(state.speaker, shown, rewriting.english_other(m["r"], state.speaker))


def definite(clause: str, state: Reading, _continues: bool) -> Told | None:
    """ "The wedding is on June 14th", "o aluguel subiu": there is one such thing in the life that is spoken of."""
    m = _DEFINITE.match(plain(clause))
    if m is None or _OPINION.match(fold(m["r"])):
        return None
    rest = clause[m.start("r") :]
    is_event, at_home = m["n"] in EVENTS, m["n"] in HOUSEHOLD
    if not _predicate_follows(rest, state.lang) or (is_event and not at_home and not _is_concrete(rest, state)):
        return None
    owner = state.subject if is_event and _about_another(state) else state.speaker
    noun_phrase = clause[: m.start("r")].strip()
    state.level = "strong_inference" if state.level == "explicit_statement" else state.level
    shown = f"{noun_phrase[0].upper()}{noun_phrase[1:]}"
    if m["n"] in SHARED:  # whose funeral it is, is not said
        owner = state.speaker
        shown += f" que {owner} mencionou" if state.lang == "pt" else f" that {owner} mentioned"
    elif state.lang == "pt":
        shown += f" de {owner}"
    else:
        shown = f"{possessive(owner)} {noun_phrase.split(' ', 1)[1]}"
    change = rewriting.portuguese_other if state.lang == "pt" else rewriting.english_other
    return Told(owner, shown, change(rest, state.speaker))


def _about_another(state: Reading) -> bool:
    """Whether the clause before was about a named somebody else."""
    return bool(state.subject) and fold(state.subject) != fold(state.speaker) and state.subject not in state.shown


def _predicate_follows(rest: str, lang: str) -> bool:
    first = rest.split()[0].strip(",")
    if lang == "pt":
        heads = [t.strip(",") for t in rest.split()[:3] if t.lower() not in portuguese.ADVERBS | {"me", "se"}][:1]
        past = bool(heads) and re.search(r"(?:[aeo]u|iu|[aei]ram|avam?)$", heads[0]) is not None
        return bool(heads) and (portuguese.third_person(heads[0]) or past)
    return first == "'s" or english.starts_predicate(rest.replace("'s", "is").split(), last=True)


def _is_concrete(rest: str, state: Reading) -> bool:
    """An event counts where the sentence says when, where, or that it was put off."""
    if find_date(rest, state.today) or re.search(r"\d", rest):
        return True
    return bool(
        re.search(r"\b(?:in|at|on|no|na|em|dia|moved|postponed|cancelled|canceled|brought|rescheduled|booked|adiad[ao]"
                  r"|cancelad[ao]|marcad[ao]|remarcad[ao]|vai ser|will be)\b", fold(rest))
    )  # fmt: skip


def somebodys_thing(clause: str, state: Reading, _continues: bool) -> Told | None:
    """ "A empresa do Murilo faz software", "Paula's car broke down", "o filho do meu vizinho quebrou a perna"."""
    if state.lang == "en":
        m = _OWNED_EN.match(clause)
        if m is None or not is_name_word(m["n"].split()[0]) or not _predicate_follows(m["r"], "en"):
            return None
        if english.starts_predicate([*m["thing"].split(), *m["r"].split()]) and not role_of(m["thing"].split()[-1]):
            return None
        shown = f"{possessive(m['n'])} {m['thing']}"
        return _of_owner(m["n"], m["thing"], shown, rewriting.english_other(m["r"], state.speaker), state)
    m = _OWNED_PT.match(clause)
    if m is None or not _predicate_follows(m["r"], "pt"):
        return None
    predicate = rewriting.portuguese_other(m["r"], state.speaker)
    if m["mine"]:
        shown = rewriting.owned(clause[: m.start("r")].strip(), state.speaker)
        return Told(state.speaker, shown[0].upper() + shown[1:], predicate)
    name = trim(m["n"].strip(), state.known_names())
    if not is_name_word(name.split()[0]) or name != m["n"].strip() or kind_of(name) == "place":
        return None
    shown = clause[: m.start("r")].strip()
    return _of_owner(name, m["thing"], shown[0].upper() + shown[1:], predicate, state)


def _of_owner(owner: str, thing: str, shown: str, predicate: str, state: Reading) -> Told | None:
    """A company is a thing of its own; what else somebody has (a car, a mother) is told of them."""
    name = state.canonical(owner)
    if any(fold(w) in ORGANISATIONS for w in (thing.split()[0], thing.split()[-1])):
        subject = re.sub(r"^[OoAa]s? ", "", shown)
        state.meet(subject, "organization")
        state.meet(name, kind_of(name, default="person"))
        return Told(subject, shown, predicate)
    if state.lang == "pt" and thing[:1].isupper():
        return None
    state.meet(name, kind_of(name, default="person"))
    return Told(name, shown, predicate)
