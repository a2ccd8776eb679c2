"""Reads a message: sentences to clauses, clauses to facts, facts to edges."""

from __future__ import annotations

import re
from datetime import date

from worker.llm.offline import english, naming, noise, portuguese
from worker.llm.offline.dates import find_date
from worker.llm.offline.edges import PAST_JOB, close_enough, note_edges
from worker.llm.offline.frames import Frame, frame_of
from worker.llm.offline.names import NAME, capitalise_known, find_names
from worker.llm.offline.openings import without_openings
from worker.llm.offline.ordering import lead_last, plain_order
from worker.llm.offline.roles import WORD, role_of
from worker.llm.offline.sentences import (
    addresses_reader,
    language,
    split_clauses,
    split_sentences,
    states,
    without_fillers,
)
from worker.llm.offline.state import Fact, Reading, Told
from worker.llm.offline.subjects import settle
from worker.llm.offline.text import fold, plain, squeeze, words

_HEDGES = (
    (re.compile(r"^(?:i (?:think|believe|guess|suppose|feel like)|(?:eu )?(?:acho|creio|acredito|penso)(?: que)"
                r"|parece que|it seems(?: that)?|apparently|"
                r"aparentemente|pelo jeito|acho que)(?: that)?,? +"), "weak_inference"),
    (re.compile(r"^(?:maybe|perhaps|talvez|possibly|provavelmente|probably|quem sabe|i'm not sure but"
                r"|nao tenho certeza,? mas) *,? *"), "speculation"),
)  # fmt: skip
_REPORT = re.compile(
    r"^(?P<who>.{1,60}?) (?:just |also |ja |also )?(?:(?:told|tells) (?:me|us)|said(?: to me)?|says"
    r"|mentioned(?: to me)?|announced|confirmed|revealed|"
    r"(?:me )?(?:contou|disse|falou|avisou|confirmou|revelou|comentou|diz)(?: pra mim| para mim)?)(?:,? (?:that"
    r"|que)\b| (?=(?:she|he|ela|ele|they|it)\b)),? *(?P<what>.+)$"
)
_DOUBLE_NEGATION = re.compile(r"^nao (?:e|foi) que\b|^it's not that\b|^it is not that\b|^not that\b")
_INNER_UNSURE = re.compile(r"\b(?:might|may be|could be|talvez|maybe|perhaps|possibly|quem sabe)\b")


def read(message: str, state: Reading) -> None:
    """Read one message into ``state``."""
    if fold(state.speaker) in ("assistant", "assistente", "system", "bot", "ai", "model"):
        return
    text = noise.speech(message)
    state.lang = language(text, state.lang)
    for sentence in split_sentences(text):
        if noise.is_order(sentence):
            return  # what follows an order to the reader is part of it
        _read_sentence(sentence, state)


def _read_sentence(sentence: str, state: Reading) -> None:
    state.lang = language(sentence, state.lang)
    sentence = plain_order(without_openings(without_fillers(sentence)), state.lang)
    if not sentence or not states(sentence) or noise.SECRET in sentence or _DOUBLE_NEGATION.match(fold(sentence)):
        return
    body = squeeze(sentence)
    if state.lang == "en":
        body = re.sub(r"^i\b", "I", body)
    body = capitalise_known(body)
    role_phrases = naming.group_names(body, state)
    body = role_phrases.text
    before = len(state.facts)
    parts = _without_relative(body)
    for index, clause in enumerate(c for part in parts for c in split_clauses(part, state.lang)):
        _read_clause(clause, state, continues=index > 0)
    naming.tell_roles(role_phrases, state, told=len(state.facts) > before)


_RELATIVE = re.compile(r"^(?P<s>[^,]+), (?:who|que) (?P<a>[^,]+), (?P<b>.+)$")


# "I live with my boyfriend, who's a dentist".
_TRAILING_WHO = re.compile(
    rf"^(?P<s>.+ (?P<who>(?:my|our|meu|minha|nosso|nossa) (?:{WORD} )?{WORD}(?: {NAME})?|{NAME})), (?:who"
    rf"|que)(?P<r>'s .+"
    rf"| (?!I\b|we\b|eu\b).+)$"
)


def _without_relative(sentence: str) -> list[str]:
    """ "Tom, who lives in Leeds, is a chef" as "Tom lives in Leeds" and "is a chef"."""
    m = _RELATIVE.match(sentence)
    if m and (inner := re.match(rf"^(?P<i>I|[Ww]e|eu) (?P<v>(?:(?:have|had|used to|já) )?{WORD})(?P<r>.*)$", m["a"])):
        # "Lucy, who I met at uni, is a chef"
        return [f"{inner['i']} {inner['v']} {m['s']}{inner['r']}", f"{m['s']} {m['b']}"]
    if m and portuguese.first_person(head := m["a"].split()[0]) and not portuguese.third_person(head):
        who = m["s"][0].lower() + m["s"][1:] if m["s"][1:2] == " " else m["s"]
        return [f"{head} {who}{m['a'][len(head) :]}", f"{m['s']} {m['b']}"]  # "a Lúcia, que conheci na escola, é…"
    if m:
        return [f"{m['s']} {m['a']}", m["b"]]
    if (m := _TRAILING_WHO.match(sentence)) and (role_of(m["who"].split()[-1]) or re.search(rf"{NAME}$", m["who"])):
        rest = re.sub(r"^'s ", "is ", m["r"].strip())
        return [m["s"], f"{m['who'][0].upper()}{m['who'][1:]} {rest}"]
    return [sentence]


def _read_clause(clause: str, state: Reading, *, continues: bool) -> None:
    clause = without_openings(clause)
    if continues:
        clause = lead_last(clause, state.lang)
    level = "explicit_statement"
    for pattern, hedge in _HEDGES:
        if m := pattern.match(plain(clause)):
            clause, level = clause[m.end() :], hedge
    if continues and (not clause or not states(clause, continues=True)):
        return
    if not clause or addresses_reader(clause) or (_INNER_UNSURE.search(fold(clause)) and level == "explicit_statement"):
        return
    clause = _date_last(clause, state)
    state.level = level
    if naming.read_naming(clause, state):
        return
    if _read_report(clause, state):
        return
    told = settle(clause, state, continues=continues)
    if told is not None:
        _keep(told, state)


def _date_last(clause: str, state: Reading) -> str:
    """ "Ontem assinei o contrato" as "assinei o contrato ontem": then the subject and its verb stand first."""
    dated = find_date(clause, state.today or _SOME_DAY)
    lead = re.match(r"^(?:on |in |em |no |na )?$", plain(clause)[: dated.start].lower()) if dated else None
    if dated is None or lead is None or len(clause) - dated.end < 4:
        return clause
    when, rest = clause[: dated.end].strip(), clause[dated.end :].strip(" ,")
    return f"{rest} {when[0].lower() + when[1:] if not when[:1].isdigit() else when}"


_SOME_DAY = date(2000, 1, 3)  # only to find where a date stands when the message has none


def _read_report(clause: str, state: Reading) -> bool:
    """ "Selma told me that she is moving": what is told is about Selma, not about the speaker."""
    m = _REPORT.match(plain(clause))
    if not m:
        return False
    who, what = clause[: m.end("who")], clause[m.start("what") :]
    teller = settle(f"{who} {'disse' if state.lang == 'pt' else 'said'} x", state, continues=False)
    if teller is None or not teller.subject:
        return True
    state.subject = teller.subject
    if re.match(r"^(?:he|she|ele|ela)\b", what, re.I):
        what = re.sub(r"^\w+", lambda _m: teller.shown, what, count=1)
        told: Told | None = Told(
            teller.subject,
            teller.shown,
            what[len(teller.shown) :].strip().replace("'s ", "is ", 1)
            if what[len(teller.shown) :].startswith("'s ")
            else what[len(teller.shown) :].strip(),
        )
    else:
        told = settle(what, state, continues=True)
    if told is not None and told.subject:
        _keep(told, state)
    return True


# "I snore", "ronco": a verb alone says a habit only where it is one.
_HABIT_ALONE = re.compile(
    r"(?:snore|smoke|drink|drive|cook|paint|draw|sing|dance|swim|stutter|meditate|surf|ski|knit|bake|cycle)s|fuma"
    r"|bebe|ronca"
    r"|dirige|cozinha|danca|canta|pinta|desenha|nada|surfa|medita|gagueja|costura|borda"
)


def _as_one(told: Told, lang: str) -> str:
    """The predicate in the singular, in which statements are recognised: "Rui e Ana moram em X" tells of Rui."""
    if told.shown == told.subject:
        return told.predicate
    head, _, rest = told.predicate.partition(" ")
    if lang == "pt":
        lead = "se " if head == "se" else ""
        if lead:
            head, _, rest = rest.partition(" ")
        return f"{lead}{portuguese.singular(head)} {rest}".strip()
    plural_be = {"are": "is", "were": "was", "have": "has", "do": "does"}
    if head in plural_be:
        return f"{plural_be[head]} {rest}"
    return (
        f"{english.third(head)} {rest}" if english.base(head) == head and not english.is_past(head) else told.predicate
    )


def _attribute(frame: Frame, state: Reading) -> tuple[str | None, str | None]:
    """The attribute's key and value: the bare name where the value is a named thing; none where it should be one."""
    if frame.kind.target not in ("place", "organization", "person") or frame.kind.name in ("name", "nickname"):
        return frame.kind.attribute, frame.value
    names = find_names(frame.value, state.known_names())
    if not names or not close_enough(frame.value, names[0]):
        return None, None
    return frame.kind.attribute, names[0]


def _keep(told: Told, state: Reading) -> None:
    """Turn a settled clause into a fact with its date, category and attribute, and note the edges it shows."""
    text = squeeze(told.text)
    if (
        len(words(text)) < 3
        and not _HABIT_ALONE.fullmatch(fold(told.predicate))
        and not re.search(r"[\u3040-\u9fff]", text)
    ):
        return
    state.subject = told.subject
    frame = frame_of(_as_one(told, state.lang))
    dated = find_date(told.predicate, state.today) or find_date(text, state.today)
    fact = Fact(told.subject, text, level=state.level, category=frame.kind.category if frame else "conversational")
    if frame is None:
        fact.category = "specific_event" if dated else "routine_activity"
    if re.search(r"\b(?:favou?rite|favorit|preferid|predilet)", fold(told.shown)):
        fact.category = "stable_preference"
    elif frame and frame.ended and frame.kind.name == "has":
        fact.category = "specific_event"
    if dated and not (frame and frame.kind.name == "age" and dated.precision == "year"):
        fact.event_date, fact.precision = dated.iso, dated.precision
    if frame and frame.kind.attribute and not frame.negative and not frame.ended and told.shown == told.subject:
        fact.attribute_key, fact.value = _attribute(frame, state)
    thing = state.find(told.subject)
    past_job = frame and frame.kind.name == "employer" and PAST_JOB.match(fold(told.predicate))
    if past_job or (frame and frame.kind.name == "occupation" and thing is not None and thing.kind == "pet"):
        fact.attribute_key = fact.value = None
    if fold(told.subject) == fold(state.speaker):
        state.meet(state.speaker, "person")
    elif role_of(told.subject) is None:
        state.meet(told.subject, "person")
    state.add(fact)
    if state.level == "explicit_statement":
        note_edges(told, frame, text, state)
