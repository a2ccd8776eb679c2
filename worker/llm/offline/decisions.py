"""Reconciliation: what a new fact does to the facts that stand, decided on what both say, in either language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from worker.llm.offline import english, portuguese
from worker.llm.offline.frames import Frame, frame_of
from worker.llm.offline.glossary import concept, concepts
from worker.llm.offline.names import NAME_RE
from worker.llm.offline.sentences import language
from worker.llm.offline.text import clean, fold, folded_words, item, items, word_set, words

Json = dict[str, Any]

_LOVE = frozenset({"spouse", "partner", "engaged", "civil"})
# These kinds are told by their verb ("smokes", "can eat"), so their values alone compare nothing.
_BY_WORDS = frozenset({"habit", "ability", "milestone", "runs"})
_FUNCTION = word_set(
    "the a an of in on at to and is are was be been has have had for with from as by he she they it his her their "
    "its also very really o os as um uma de do da dos das no na nos nas em e que com por para pra pelo pela se "
    "seu sua ele ela ao tambem muito esta ser estar already still now currently ja ainda agora atualmente just "
    "more mais so only does do did"
)
_NEGATORS = word_set(
    "not no never nao nunca jamais nem cannot can't doesn't don't didn't isn't wasn't hasn't without sem longer "
    "anymore ja_nao"
)
_SAYS_MORE = re.compile(r"\b(?:and|but|e|mas|prefers?|prefere|now|agora|instead|switched|passou a)\b|,\s*\w")
_BARE_END = re.compile(
    r"\b(?:no longer|any ?more|ja nao|nao \w+ mais|nao .{1,40} mais|deixou de|parou de|stopped|gave up)\b"
)
_FAVOURITE = re.compile(r"(?:favou?rite|favorit[ao]|preferid[ao]|predilet[ao])")
_FAVOURITE_EN = re.compile(r"favou?rite (?P<n>\w+)(?: is| are|:)\s*(?P<v>.+)$")
_FAVOURITE_PT = re.compile(r"(?P<n>\w+) (?:favorit|preferid|predilet)[ao]s?(?: d[aeo] [^=]*?)? (?:e|sao) (?P<v>.+)$")


@dataclass(frozen=True, slots=True)
class Verdict:
    """An action towards one standing fact, and why."""

    action: str
    reason: str


def reconcile(payload: Mapping[str, Any]) -> Json:
    """``reconciliation``: one decision per fact, reason first."""
    decisions = []
    for position, fact in enumerate(items(payload.get("facts")), start=1):
        if not isinstance(fact, dict):
            continue
        number = fact.get("number")
        verdict, cited = _decide(fact)
        decisions.append(
            {
                "fact_number": number if isinstance(number, int) else position,
                "reason": verdict.reason,
                "action": verdict.action,
                "existing_number": cited,
            }
        )
    return {"decisions": decisions}


_RANK = {"NOOP": 0, "UPDATE": 1, "DELETE": 1}


def _decide(fact: Json) -> tuple[Verdict, int | None]:
    text, subject = item(fact, "text"), item(fact, "subject")
    best: tuple[int, int, Verdict, int] | None = None
    for position, entry in enumerate(items(fact.get("existing")), start=1):
        if not isinstance(entry, dict):
            continue
        verdict = compare(text, item(entry, "text"), subject)
        if verdict is None:
            continue
        number = entry.get("number")
        cited = number if isinstance(number, int) else position
        # An exact restatement wins; then the closest words; the order of the list decides nothing.
        closeness = len(set(concepts(text)) & set(concepts(item(entry, "text"))))
        rank = (_RANK[verdict.action], -closeness, verdict, cited)
        if best is None or rank[:2] < best[:2]:
            best = rank
    if best is not None:
        return best[2], best[3]
    if _BARE_END.search(" ".join(folded_words(text))) and not _SAYS_MORE.search(fold(text)):
        return Verdict("DELETE", "it only says that something ended, and nothing here is what ended"), None
    return Verdict("ADD", "none of the existing facts says this or the opposite"), None


def same_meaning(a: str, b: str) -> bool:
    """Whether two facts say the same of the same subject."""
    first = a.split(" ")[0]
    verdict = compare(a, b, first)
    back = compare(b, a, first)
    return (verdict is not None and verdict.action == "NOOP") or (back is not None and back.action == "NOOP")


def two_values(a: str, b: str) -> bool:
    """Whether two facts, each of a subject of its own, give two values of what anybody has one of at a time."""
    f_a, f_b = frame_of(_predicate(a, "")), frame_of(_predicate(b, ""))
    if f_a is None or f_b is None or f_a.kind.name != f_b.kind.name or not f_a.kind.single:
        return False
    return not any((f_a.negative, f_a.ended, f_b.negative, f_b.ended)) and not _matches(_value(f_a), _value(f_b))


def compare(new: str, old: str, subject: str) -> Verdict | None:
    """What ``new`` does to ``old``; None if they do not touch each other."""
    if " ".join(folded_words(new)) == " ".join(folded_words(old)):
        return Verdict("NOOP", "it is the same sentence")
    if verdict := _favourites(new, old):
        return verdict if verdict.action else None
    p_new, p_old = _predicate(new, subject), _predicate(old, subject)
    f_new, f_old = frame_of(p_new), frame_of(p_old)
    if f_new and f_old and f_new.kind.name not in _BY_WORDS and f_old.kind.name not in _BY_WORDS:
        return _by_frames(f_new, f_old, p_new, p_old)
    if f_new and f_new.kind.name == "partner" and f_new.ended and _love_role(old):
        return Verdict("DELETE", "the relationship that it tells of is over")
    return _by_words(p_new, p_old)


def _love_role(text: str) -> bool:
    return bool(
        re.search(
            r"\b(?:girlfriend|boyfriend|wife|husband|fiance\w*|namorad[ao]|espos[ao]|marido|noiv[ao]|companheir[ao])\b",
            fold(text),
        )
    )


def _favourites(new: str, old: str) -> Verdict | None:
    if not (_FAVOURITE.search(fold(new)) and _FAVOURITE.search(fold(old))):
        return None
    found = [_FAVOURITE_EN.search(fold(t)) or _FAVOURITE_PT.search(fold(t)) for t in (new, old)]
    if not all(found):
        return None
    (n1, v1), (n2, v2) = [(concept(m["n"]), set(concepts(m["v"]))) for m in found if m]
    if n1 != n2:
        return Verdict("", "")
    return (
        Verdict("NOOP", "the same favourite") if v1 == v2 else Verdict("UPDATE", "another favourite of the same kind")
    )


def _predicate(text: str, subject: str) -> str:
    """The sentence without its subject: the given name, else whatever name stands first."""
    text = clean(text).strip().rstrip(".!")
    lead = fold(subject)
    if lead and fold(text).startswith(lead) and len(fold(text)) == len(text):
        return text[len(lead) :].strip()
    text = re.sub(r"^(?:[OoAa]|The|the) (?=[^\W\d_a-z])", "", text)
    m = NAME_RE.match(text)
    return text[m.end() :].strip() if m and m.end() < len(text) else text


def _value(frame: Frame) -> set[str]:
    return {c for c in concepts(frame.value) if c not in _FUNCTION}


def _matches(a: set[str], b: set[str]) -> bool:
    """Equal values, or one a part of the other ("Fusca", "blue Fusca")."""
    return bool(a) and bool(b) and (a <= b or b <= a)


def _by_frames(new: Frame, old: Frame, p_new: str, p_old: str) -> Verdict | None:
    if new.kind.name in _LOVE and old.kind.name in _LOVE:
        return _love(new, old)
    if new.kind.name != old.kind.name:
        return None
    same = _matches(_value(new), _value(old))
    if not same:
        if new.kind.single and not (new.negative or new.ended or old.negative or old.ended):
            return Verdict("UPDATE", f"another value of what there is one of at a time ({new.kind.name})")
        return None
    if new.ended and not old.ended:
        return _ending(new, p_new)
    if old.ended and not new.ended:
        return Verdict("UPDATE", "it holds again") if old.negative or not new.event else None
    if new.negative != old.negative:
        return Verdict("UPDATE", "it says the opposite of the same thing")
    if _value(new) > _value(old) or _adds(p_new, p_old):
        return Verdict("UPDATE", "it says the same and more")
    return Verdict("NOOP", "it says what is known already")


def _ending(new: Frame, predicate: str) -> Verdict:
    if new.kind.name == "has" and not _BARE_END.search(fold(predicate)):
        return Verdict("UPDATE", "what was owned is gone, and how it went is worth keeping")
    rest = predicate[predicate.find(new.value) + len(new.value) :] if new.value else ""
    if _SAYS_MORE.search(fold(rest)):
        return Verdict("UPDATE", "it ends the old state and tells the new one")
    return Verdict("DELETE", "it says that this is over")


def _love(new: Frame, old: Frame) -> Verdict | None:
    if new.ended and not old.ended:
        known = (
            not new.value
            or _matches(_value(new), _value(old))
            or old.kind.name == "civil"
            or re.search(r"girlfriend|boyfriend|wife|husband|namorad|espos|marido", fold(new.value))
        )
        return Verdict("DELETE", "the relationship that it tells of is over") if known else None
    if old.ended or new.negative or old.negative:
        return None
    if new.kind.name == old.kind.name and _matches(_value(new), _value(old)):
        return Verdict("NOOP", "it says what is known already")
    return Verdict("UPDATE", "the relationship has changed")


def _content(text: str) -> list[str]:
    """Content words as concepts, verbs as lemmas, so that tense and language do not matter."""
    lang = language(text)
    out = []
    for raw in words(text):
        folded = fold(raw)
        if folded in _FUNCTION or folded in _NEGATORS:
            continue
        lemma = portuguese.lemma(raw) if lang == "pt" else (english.base(raw) or folded)
        out.append(concept(lemma))
    return [w for w in out if w not in ("be", "have", "ser", "estar", "ter", "do")]


# Verbs and time words that the frame already stands for: they add nothing by themselves.
_FRAME_WORDS = word_set(
    "live work move morar trabalhar mudar like love enjoy gostar adorar amar curtir viver join entrar casar "
    "married marry buy comprar adopt adotar get start comecar começar own possuir go ir hate odiar detestar "
    "dislike prefer preferir speak falar study estudar born nascer year old ano years anos ago yesterday ontem "
    "called chamado chamada name call"
)


def _adds(new: str, old: str) -> bool:
    extra = set(_content(new)) - set(_content(old))
    if language(new) != language(old):
        return False
    return bool(extra - _FRAME_WORDS) and not set(_content(old)) - set(_content(new)) - _FRAME_WORDS


def _negated(text: str) -> bool:
    return sum(w in _NEGATORS for w in folded_words(text)) % 2 == 1


def _by_words(new: str, old: str) -> Verdict | None:
    """Facts of no known kind: the same content words say the same, with another polarity the opposite."""
    a, b = set(_content(new)), set(_content(old))
    if not a or not b:
        return None
    overlap = len(a & b) / min(len(a), len(b))
    alike = len(a & b) / len(a | b)
    numbers = {w for w in a ^ b if any(c.isdigit() for c in w)}
    if _negated(new) != _negated(old):
        return Verdict("UPDATE", "it says the opposite of the same thing") if overlap == 1 or alike >= 0.6 else None
    if alike >= 0.8 and not numbers:
        return Verdict("NOOP", "it says what is known already")
    if alike >= 0.75 and numbers:
        return Verdict("UPDATE", "the same with another figure")
    if b < a and len(b) >= 2:
        return Verdict("UPDATE", "it says the same and more")
    if a < b and len(a) >= 2:
        return Verdict("NOOP", "it says less than what is known already")
    return None
