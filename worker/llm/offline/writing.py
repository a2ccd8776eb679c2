"""English texts from facts: profiles, summaries, merged facts, labels and observations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from worker.llm.offline.decisions import same_meaning, two_values
from worker.llm.offline.frames import frame_of
from worker.llm.offline.glossary import english_of
from worker.llm.offline.names import NAME, compatible
from worker.llm.offline.roles import role_of
from worker.llm.offline.sentences import language
from worker.llm.offline.text import clean, fold, folded_words, item, items, word_set, words

Json = dict[str, Any]

# How an English sentence says what a Portuguese fact says; facts of other kinds are left out of English texts.
_SENTENCES = {
    "residence": "lives in {v}",
    "employer": "works at {v}",
    "occupation": "works as {v}",
    "age": "is {v} years old",
    "name": "is called {v}",
    "nickname": "is also known as {v}",
    "birthplace": "was born in {v}",
    "origin": "comes from {v}",
    "studies": "studies {v}",
    "graduated": "graduated in {v}",
    "spouse": "is married to {v}",
    "partner": "is in a relationship with {v}",
    "engaged": "is engaged to {v}",
    "civil": "is {v}",
    "allergy": "is allergic to {v}",
    "diet": "is {v}",
    "condition": "has {v}",
    "taste": "likes {v}",
    "language": "speaks {v}",
    "has": "has {v}",
    "member": "is a member of {v}",
    "founded": "runs {v}",
}
_PAST = {
    "residence": "no longer lives in {v}",
    "employer": "no longer works at {v}",
    "taste": "does not like {v}",
    "has": "no longer has {v}",
}


def _in_english(name: str, text: str) -> str | None:
    """One fact as an English sentence, or None if it cannot be said."""
    text = text.strip().rstrip(".")
    if language(text) != "pt":
        return text + "."
    if not fold(text).startswith(fold(name)):
        return None
    if m := re.match(rf"^ é (?P<role>[\w ]+?) d[aeo] (?P<owner>{NAME})$", text[len(name) :]):
        known = role_of(m["role"].split()[0])
        role = known.english if known else None
        return f"{name} is {m['owner']}'s {role}." if role else None
    frame = frame_of(text[len(name) :].strip())
    if frame is None:
        return None
    value = english_of(frame.value)
    if value and frame.kind.name in ("has", "occupation") and value.split()[-1].islower() and not value.endswith("s"):
        value = f"{'an' if value[0] in 'aeiou' else 'a'} {value}"
    table = _PAST if frame.negative or frame.ended else _SENTENCES
    pattern = table.get(frame.kind.name)
    return f"{name} {pattern.format(v=value)}." if pattern and value else None


def profile(name: str, facts: list[str], *, limit: int = 12) -> str:
    """A profile in English, from facts in either language; empty if none of them can be said in English."""
    said = [s for s in (_in_english(name, text) for text in facts) if s]
    return " ".join(dict.fromkeys(said[:limit]))


def _texts(payload: Mapping[str, Any]) -> list[str]:
    return [t for t in (squeeze_item(f) for f in items(payload.get("facts"))) if t]


def squeeze_item(fact: object) -> str:
    """A fact's text, whether it comes as an object or as a plain string."""
    return (item(fact, "text") or item(fact, "fact_text") or (clean(fact) if isinstance(fact, str) else "")).strip()


def entity_text(payload: Mapping[str, Any]) -> Json:
    """``entity_profile`` and ``entity_summary``: the facts that can be said in English, one sentence each."""
    entity = payload.get("entity")
    name = (
        item(entity, "name") or item(entity, "display_name") or (clean(entity) if isinstance(entity, str) else "")
    ).strip() or "This entity"
    facts = _texts(payload)
    text = profile(name, facts, limit=24)
    return {"text": text or f"{name} is known from {len(facts)} recorded fact{'' if len(facts) == 1 else 's'}."}


def fact_merge(payload: Mapping[str, Any]) -> Json:
    """``fact_merge``: one fact if all say the same; then the one that says most, dates included."""
    facts = _texts(payload)
    if len(facts) < 2:
        return {"reason": "there is nothing to merge with", "same": False, "text": facts[0] if facts else ""}
    same = all(same_meaning(facts[0], other) for other in facts[1:])
    best = max(facts, key=lambda t: (bool(re.search(r"\d{4}", t)), len(set(folded_words(t))), len(t)))
    return {
        "reason": "they state the same thing" if same else "they state different things",
        "same": same,
        "text": best if same else "",
    }


def entity_merge(payload: Mapping[str, Any]) -> Json:
    """``entity_merge``: only where names (or aliases) are compatible, the types do not differ, and the facts fit one
    life (not two birthplaces, nor two employers)."""
    pair = items(payload.get("entities")) or [payload.get("first"), payload.get("second")]
    pair = pair if len(pair) == 2 else [payload.get("a"), payload.get("b")]
    names = [
        [n for n in (item(e, "name") or item(e, "display_name"), *(clean(a) for a in _aliases(e))) if n] for e in pair
    ]
    if not all(names):
        return {"reason": "one of them has no name", "same": False}
    kinds = {item(e, "type") or item(e, "entity_type") for e in pair}
    if len(kinds - {""}) > 1:
        return {"reason": "they are of different types", "same": False}
    if not any(compatible(a, b) for a in names[0] for b in names[1]):
        return {"reason": "no name of one fits the other", "same": False}
    facts = [_texts(e) if isinstance(e, dict) else [] for e in pair]
    if any(two_values(a, b) for a in facts[0] for b in facts[1]):
        return {"reason": "what is known of them does not fit one", "same": False}
    return {"reason": "one name is a form of the other, and nothing speaks against it", "same": True}


def _aliases(entity: object) -> list[object]:
    return items(entity.get("aliases")) if isinstance(entity, dict) else []


_STOP = word_set(
    "the a an of in on at and is are was to for with her his their has lives works o a os as de da do em no na e "
    "um uma que"
)


def cluster_summary(payload: Mapping[str, Any]) -> Json:
    """``cluster_summary``: the words that the facts share as label, their English sentences as text."""
    facts = _texts(payload)
    counts = Counter(w for text in facts for w in dict.fromkeys(words(text)) if fold(w) not in _STOP and len(w) > 2)
    label = ", ".join(w for w, _n in counts.most_common(3)) or "Facts"
    said = [s for s in (_in_english(text.split(" ")[0], text) for text in facts) if s]
    return {"label": label, "text": " ".join(said[:12]) or f"{len(facts)} related facts."}


def observations(payload: Mapping[str, Any]) -> Json:
    """``meta_observations``: only what can be counted, a kind of statement that repeats."""
    groups: dict[str, list[tuple[int, str]]] = {}
    for index, fact in enumerate(items(payload.get("facts")), start=1):
        text = squeeze_item(fact)
        number = fact.get("number") if isinstance(fact, dict) else None
        subject = text.split(" ")[0] if text else ""
        frame = frame_of(text[len(subject) :].strip())
        if frame is not None:
            groups.setdefault(frame.kind.name, []).append((number if isinstance(number, int) else index, text))
    found = [
        {
            "title": f"Several facts about {name}",
            "text": f"{len(rows)} facts tell about {name}.",
            "kind": "pattern",
            "fact_numbers": [n for n, _t in rows],
            "confidence": 0.6,
        }
        for name, rows in groups.items()
        if len(rows) >= 3
    ]
    return {"observations": found}
