"""Whether what the model wrote stands in what it was given (issue 3.6; cases HAL, SEC, ATT-02).

Strict on names and numbers, lenient on words: a name or number that is nowhere in the message, the recent messages or
the stored context was made up; other words may be a paraphrase. What is all made up is rejected. What is doubtful
stays as speculation (0.40 at most, below what readers see by default), and a rejected "confidence" says why.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime

from worker.llm.items import ExtractedEntity, ExtractedFact, ExtractedProfile, ExtractedRelation
from worker.llm.prompts import CANARIES
from worker.write.extraction.claims import Kind, Sentence, has_instructions, kind_behind, overlap, stems
from worker.write.extraction.reading import Reading
from worker.write.names import fold
from worker.write.negators import MONTHS, WEEKDAYS
from worker.write.polarity import languages_of, numbers_and_dates

SPECULATION = 0.40
_NAME = re.compile(r"(?<![^\W_])[^\W\d_][\w'’\-]*")


@dataclass(frozen=True, slots=True)
class Ground:
    """What a reply may be made of: the message, the recent messages, the known entities and the speaker."""

    folded: str
    words: frozenset[str]
    stems: frozenset[str]
    numbers: frozenset[str]
    speaker: str
    languages: frozenset[str]
    scripts: frozenset[str]
    claims: tuple[Sentence, ...]
    sent: datetime | None

    @classmethod
    def of(
        cls, message: str, others: Iterable[str], speaker: str, claims: Iterable[Sentence], sent: datetime | None
    ) -> Ground:
        """The ground of one message; ``others`` are all other texts that the model was given."""
        whole = "\n".join((message, *others, speaker))
        folded = fold(whole)
        return cls(
            folded=folded,
            words=frozenset(folded.split()),
            stems=stems(whole),
            numbers=numbers_and_dates(whole),
            speaker=fold(speaker),
            languages=languages_of(message),
            scripts=_script(message),
            claims=tuple(claims),
            sent=sent,
        )


def ground(reading: Reading, given: Ground) -> Reading:
    """``reading`` without what was made up or copied from the prompt, and with doubtful facts marked down.

    Entities stay where they are given or carry a fact; relations where both ends stay and a claim stands behind them.
    """
    facts = [fact for fact in (_checked_fact(fact, given, reading) for fact in reading.facts) if fact is not None]
    subjects = {fold(fact.subject) for fact in facts}
    entities: list[ExtractedEntity] = []
    for entity in reading.entities:
        if _copied((entity.name,), given):
            reading.reject("entity", "copied_from_prompt", entity.name)
        elif fold(entity.name) in subjects or _given_name(entity, given):
            entities.append(_with_given_aliases(entity, given))
        else:
            reading.reject("entity", "not_in_message", entity.name)
    names = {fold(entity.name) for entity in entities}
    relations: list[ExtractedRelation] = []
    for relation in reading.relations:
        if fold(relation.source) not in names or fold(relation.target) not in names:
            reading.reject("relation", "end_not_in_message", f"{relation.source} → {relation.target}")
        elif (kind := _kind_of_relation(relation, given)) is not Kind.CLAIM:
            reading.reject("relation", kind.value, f"{relation.source} → {relation.target}")
        else:
            relations.append(relation)
    return replace(
        reading, entities=entities, facts=facts, relations=relations, profiles=_profiles(reading, given, names)
    )


def _profiles(reading: Reading, given: Ground, names: set[str]) -> list[ExtractedProfile]:
    # A profile cannot be marked down, and it is shown as known from then on: only a message of claims may seed one.
    if has_instructions(list(given.claims)) or not any(item.kind is Kind.CLAIM for item in given.claims):
        return []
    return [
        profile
        for profile in reading.profiles
        if fold(profile.name) in names and not _copied((profile.name, profile.profile_text), given)
    ]


# -- facts ---------------------------------------------------------------------------------------------------------


def _checked_fact(fact: ExtractedFact, given: Ground, reading: Reading) -> ExtractedFact | None:
    if _copied((fact.subject, fact.text, fact.value or ""), given):
        reading.reject("fact", "copied_from_prompt", fact.text)
        return None
    subject = _stands(fact.subject, given)
    own = frozenset(stems(fact.subject)) | frozenset(given.speaker.split())
    shared = overlap(stems(fact.text) - own, given.stems)
    if not subject and not shared:
        reading.reject("fact", "not_in_message", fact.text)
        return None
    reason = _doubt(fact, given, subject=subject, shared=bool(shared), own=own)
    if reason is None or fact.confidence <= SPECULATION:
        return fact
    reading.reject("confidence", reason, fact.text)
    return fact.model_copy(update={"confidence": SPECULATION})


def _doubt(fact: ExtractedFact, given: Ground, *, subject: bool, shared: bool, own: frozenset[str]) -> str | None:
    """Why a fact is no more than speculation, or None."""
    kind = kind_behind(fact.text, list(given.claims), own)
    if kind is not Kind.CLAIM and (kind is not Kind.SPEECH or fold(fact.subject) == given.speaker):
        return kind.value
    if not subject:
        return "subject_not_in_message"
    if invented := _invented_names(fact, given):
        return "name_not_in_message" if len(invented) == 1 else "names_not_in_message"
    if _invented_numbers(fact, given):
        return "number_not_in_message"
    if not shared and _ought_to_share(fact, given, own):
        return "words_not_in_message"
    return None


def _ought_to_share(fact: ExtractedFact, given: Ground, own: frozenset[str]) -> bool:
    """Whether a fact must have a word of the message: an explicit statement must; an inference, a computed number and a
    sentence in another language need not."""
    if fact.confidence <= 0.80 or not stems(fact.text) - own or numbers_and_dates(fact.text):
        return False
    return bool(languages_of(fact.text) & given.languages) and not _other_script(fact.text, given)


def _invented_names(fact: ExtractedFact, given: Ground) -> list[str]:
    """Capitalised words within the text (not at its beginning) that stand nowhere in what was given."""
    if _other_script(fact.text, given):
        return []
    found = []
    subject = set(fold(fact.subject).split())
    for match in _NAME.finditer(fact.text):
        word = match.group()
        folded = fold(word)
        if match.start() == 0 or not word[0].isupper() or folded in subject or folded in MONTHS or folded in WEEKDAYS:
            continue
        if not _stands(word, given):
            found.append(word)
    # German writes every noun with a capital: there a capital says nothing.
    return [] if "de" in languages_of(fact.text) else found


def _invented_numbers(fact: ExtractedFact, given: Ground) -> frozenset[str]:
    written = numbers_and_dates(fact.text)
    allowed = given.numbers | _date_numbers(fact.event_date) | _derived_years(given)
    return frozenset(item for item in written - allowed if ":" not in item)


def _date_numbers(day: date | None) -> frozenset[str]:
    return (
        frozenset() if day is None else frozenset({str(day.year), str(day.month), str(day.day), f"month:{day.month}"})
    )


def _derived_years(given: Ground) -> frozenset[str]:
    """Numbers that follow from the message's day: years around it, and those of "34 years old", "3 years ago"."""
    if given.sent is None:
        return frozenset()
    year = given.sent.year
    around = {year - 1, year, year + 1}
    for number in given.numbers:
        if number.isdigit() and len(number) <= 4:
            value = int(number)
            around |= {year - value - 1, year - value, year + value}
    return frozenset(str(value) for value in around if value >= 0) | {str(given.sent.day), str(given.sent.month)}


# -- names ---------------------------------------------------------------------------------------------------------


def _stands(name: str, given: Ground) -> bool:
    """Whether ``name`` or a telling part of it is in what was given; a beginning counts (Carol, Carolina)."""
    folded = fold(name)
    if not folded or folded == given.speaker or f" {folded} " in f" {given.folded} ":
        return True
    if _other_script(name, given):
        return True
    return any(_word_stands(word, given) for word in folded.split())


def _word_stands(word: str, given: Ground) -> bool:
    if word in given.words:
        return len(word) >= 3 or not word.isascii()
    if word[0] >= "\u0e00":  # no gaps between words there
        return word in given.folded
    return len(word) >= 4 and any(
        len(other) >= 3 and (word.startswith(other) or other.startswith(word)) for other in given.words
    )


def _other_script(text: str, given: Ground) -> bool:
    """Whether ``text`` is in a script that was not given (王芳 written as Wang Fang): nothing to compare."""
    script = _script(text)
    return bool(script) and not (script & given.scripts)


def _script(text: str) -> frozenset[str]:
    return frozenset(unicodedata.name(char, "?").split(" ")[0] for char in set(text) if char.isalpha())


def _given_name(entity: ExtractedEntity, given: Ground) -> bool:
    return any(_stands(name, given) for name in (entity.name, *entity.aliases))


def _with_given_aliases(entity: ExtractedEntity, given: Ground) -> ExtractedEntity:
    kept = [alias for alias in entity.aliases if _stands(alias, given) and not _copied((alias,), given)]
    return entity if len(kept) == len(entity.aliases) else entity.model_copy(update={"aliases": kept})


def _copied(texts: Iterable[str], given: Ground) -> bool:
    whole = " ".join(texts)
    return any(name in whole and fold(name) not in given.folded for name in CANARIES)


def _kind_of_relation(relation: ExtractedRelation, given: Ground) -> Kind:
    """The kind of the sentence that both ends stand in, the speaker being in every one; a claim where none has both."""
    claims = [item for item in given.claims if item.text]
    if not any(item.kind is Kind.CLAIM for item in claims):
        return claims[0].kind if claims else Kind.CLAIM
    wanted = [stems(end) for end in (relation.source, relation.target) if fold(end) != given.speaker]
    behind = [item.kind for item in claims if all(overlap(end, item.stems) for end in wanted if end)]
    if len(wanted) == 2:  # what is quoted of others is theirs
        behind = [Kind.CLAIM if kind is Kind.SPEECH else kind for kind in behind]
    return Kind.CLAIM if not behind or Kind.CLAIM in behind else behind[0]
