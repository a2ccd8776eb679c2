"""Whether what the model wrote stands in what it was given (issue 3.6; cases HAL, SEC, ATT-02).

Strict on names and numbers, lenient on words: a name or number that is nowhere in the message, the recent messages or
the stored context was made up; other words may be a paraphrase. What is all made up is rejected, and so is what the
message does not claim (it asks, quotes, orders, or only the context says it). What is doubtful stays as speculation
(0.40 at most, below what readers see by default), and a rejected "confidence" says why.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

import numpy as np

from worker.embedding.provider import Vectors
from worker.llm.items import ExtractedEntity, ExtractedFact, ExtractedProfile, ExtractedRelation
from worker.llm.prompts import holds_canary
from worker.write.calls import VectorCache
from worker.write.extraction.claims import Kind, Sentence, has_instructions, kind_behind, overlap, stems
from worker.write.extraction.reading import Reading
from worker.write.names import fold
from worker.write.negators import MONTHS, WEEKDAYS
from worker.write.polarity import cancelled, languages_of, numbers_and_dates, polarity

SPECULATION = 0.40
NO_WORD_OF_IT = "words_not_in_message"
# Measured with the local embeddings: inferences from a message lie from 0.37 up, inventions at 0.35 and below; in two
# languages, inferences from 0.29 up and inventions at 0.14 and below.
SAYS_THE_SAME = 0.37
TRANSLATES = 0.25
_FULL_NAME = re.compile(r"(?<![^\W_])(?:[A-ZÀ-Þ][\w'’\-]+)(?: (?:d[aeio]s? |von |van )?[A-ZÀ-Þ][\w'’\-]+)+")
_ANSWER = re.compile(
    r"(?:yes|yeah|yep|yup|no|nope|nah|sure|right|correct|exactly|agreed|deal|of course|sim|nao|claro|isso|exato|"
    r"correto|concordo|fechado|pode|verdade|aham|uhum|si|correcto|de acuerdo|vale|oui|non|exact|d accord|ja|"
    r"nein|genau|stimmt|esatto|certo|da|да|нет|是|对|對|不|好|没错|はい|いいえ|うん|そう|네|아니|맞|نعم|لا|हाँ|नहीं)(?![a-z])"
)
_NAME = re.compile(r"(?<![^\W_])[^\W\d_][\w'’\-]*")


@dataclass(frozen=True, slots=True)
class Ground:
    """What a reply may be made of: the message, the recent messages, the known entities and the speaker."""

    text: str
    folded: str
    words: frozenset[str]
    stems: frozenset[str]
    said: frozenset[str]  # of the stems, those of the message itself
    answers: bool  # the message says yes or no to what stands in the recent messages
    numbers: frozenset[str]
    speaker: str
    languages: frozenset[str]
    scripts: frozenset[str]
    claims: tuple[Sentence, ...]
    denied: tuple[Sentence, ...]  # of the claims, those that negate a negation and so claim neither side
    sent: datetime | None

    @classmethod
    def of(
        cls, message: str, others: Iterable[str], speaker: str, claims: Iterable[Sentence], sent: datetime | None
    ) -> Ground:
        """The ground of one message, with its ``claims``; ``others`` are all other texts that the model was given."""
        whole = "\n".join((message, *others, speaker))
        claims = tuple(claims)
        folded = fold(whole)
        return cls(
            text=whole,
            folded=folded,
            words=frozenset(folded.split()),
            stems=stems(whole),
            said=stems(message),
            answers=_ANSWER.match(fold(message)) is not None,
            numbers=numbers_and_dates(whole),
            speaker=fold(speaker),
            languages=_languages(message),
            scripts=_script(message),
            claims=claims,
            denied=tuple(item for item in claims if cancelled(item.text)),
            sent=sent,
        )


def ground(reading: Reading, given: Ground) -> Reading:
    """``reading`` without what was made up, copied from the prompt or not claimed, and with doubtful facts marked down.

    Entities stay where they are given or carry a fact; relations where both ends stay and a claim stands behind them.
    """
    facts = [fact for fact in (_checked_fact(fact, given, reading) for fact in reading.facts) if fact is not None]
    carrying = {fold(fact.subject) for fact in facts}
    entities: list[ExtractedEntity] = []
    for entity in reading.entities:
        if _copied((entity.name, entity.type), given):
            reading.reject("entity", "copied_from_prompt")
        elif fold(entity.name) in carrying or _given_name(entity, given):
            entities.append(_with_given_aliases(entity, given))
        else:
            reading.reject("entity", "not_in_message", entity.name)
    aliases = {fold(entity.name): entity.aliases for entity in entities}
    relations: list[ExtractedRelation] = []
    for relation in reading.relations:
        if _copied((relation.source, relation.rel_type, relation.target), given):
            reading.reject("relation", "copied_from_prompt")
        elif (reason := _against_relation(relation, given, aliases)) is not None:
            reading.reject("relation", reason, f"{relation.source} → {relation.target}")
        else:
            relations.append(relation)
            carrying |= {fold(relation.source), fold(relation.target)}
    entities = [entity for entity in entities if _needed(entity, carrying, facts, given, reading)]
    names = {fold(entity.name) for entity in entities}
    profiles = _profiles(reading, given, names)
    return replace(reading, entities=entities, facts=facts, relations=relations, profiles=profiles)


def _needed(
    entity: ExtractedEntity, carrying: set[str], facts: Sequence[ExtractedFact], given: Ground, reading: Reading
) -> bool:
    """Whether an entity stays. A name in another script than the message cannot be looked up in it, so it stays only
    where something hangs on it."""
    if fold(entity.name) in carrying or not _other_script(entity.name, given):
        return True
    if any(fold(entity.name) in fold(fact.text) for fact in facts):
        return True
    reading.reject("entity", "not_in_message", entity.name)
    return False


def _profiles(reading: Reading, given: Ground, names: set[str]) -> list[ExtractedProfile]:
    # A profile cannot be marked down, and it is shown as known from then on: only a message of claims may seed one.
    if has_instructions(list(given.claims)) or not any(item.kind is Kind.CLAIM for item in given.claims):
        return []
    kept = []
    for profile in reading.profiles:
        if fold(profile.name) not in names:
            continue
        if _copied((profile.name, profile.profile_text), given):
            reading.reject("profile", "copied_from_prompt")
        elif _invents_somebody(profile.profile_text, given):
            reading.reject("profile", "names_not_in_message", profile.profile_text)
        else:
            kept.append(profile)
    return kept


# -- facts ---------------------------------------------------------------------------------------------------------


def _checked_fact(fact: ExtractedFact, given: Ground, reading: Reading) -> ExtractedFact | None:
    if _copied((fact.subject, fact.text, fact.value or "", fact.attribute_key or ""), given):
        reading.reject("fact", "copied_from_prompt")
        return None
    subject = _stands(fact.subject, given)
    own = frozenset(stems(fact.subject)) | frozenset(given.speaker.split())
    if not subject and not overlap(stems(fact.text) - own, given.stems):
        reading.reject("fact", "not_in_message", fact.text)
        return None
    if (reason := _unclaimed(fact, given, own)) is not None:
        reading.reject("fact", reason, fact.text)
        return None
    reason = _doubt(fact, given, subject=subject, own=own)
    if reason is None or fact.confidence <= SPECULATION:
        return fact
    if reason == NO_WORD_OF_IT:
        foreign = _other_script(fact.text, given) or not _languages(fact.text) & given.languages
        reading.unsaid[fact.text] = (fact.confidence, TRANSLATES if foreign else SAYS_THE_SAME)
    reading.reject("confidence", reason, fact.text)
    return fact.model_copy(update={"confidence": SPECULATION})


def _unclaimed(fact: ExtractedFact, given: Ground, own: frozenset[str]) -> str | None:
    """Why the message does not claim this at all, or None: it asks, supposes, quotes, orders, denies it, or only the
    context says so. Such a fact goes: even as speculation it would confirm or end what is stored."""
    content = stems(fact.text) - own
    kind = kind_behind(fact.text, list(given.claims), own)
    if kind is not Kind.CLAIM and (kind is not Kind.SPEECH or fold(fact.subject) == given.speaker):
        return kind.value
    if any(overlap(content, item.stems) for item in given.denied) and polarity(fact.text):
        return "opposite_in_message"
    if content and not given.answers and not overlap(content, given.said) and content <= overlap(content, given.stems):
        return "only_in_context"
    return None


def _doubt(fact: ExtractedFact, given: Ground, *, subject: bool, own: frozenset[str]) -> str | None:
    """Why a fact is no more than speculation, or None."""
    if not subject:
        return "subject_not_in_message"
    if invented := _invented_names(fact, given):
        return "name_not_in_message" if len(invented) == 1 else "names_not_in_message"
    if _invented_numbers(fact, given):
        return "number_not_in_message"
    content = stems(fact.text) - own
    # Numbers were checked: "born in 1991" follows from "34 years old" and needs no word of it.
    if not content or given.answers or numbers_and_dates(fact.text) or overlap(content, given.said):
        return None
    return NO_WORD_OF_IT


def _languages(text: str) -> frozenset[str]:
    # Those in scripts of their own are always among them, and say nothing here.
    return languages_of(text) - {"ru", "ar", "hi"}


def believed_again(reading: Reading, vectors: Mapping[str, Vectors] | VectorCache, message: str) -> None:
    """Give back their confidence to facts without a word of the message that are near it all the same.

    "I quit" says that she left her job, and no word tells. ``vectors`` hold the message's and the facts'.
    """
    for place, fact in enumerate(reading.facts):
        if fact.text not in reading.unsaid or fact.text not in vectors or message not in vectors:
            continue
        before, near = reading.unsaid[fact.text]
        one, other = vectors[message], vectors[fact.text]
        length = float(np.linalg.norm(one) * np.linalg.norm(other))
        if length and float(one @ other) / length >= near:
            reading.facts[place] = fact.model_copy(update={"confidence": before})
            reading.rejected = [
                item for item in reading.rejected if (item.reason, item.item) != (NO_WORD_OF_IT, fact.text)
            ]


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


def _invents_somebody(text: str, given: Ground) -> bool:
    """Whether a profile has a name of two words or more of which none was given. One word may be a translation
    ("London"), or the beginning of a sentence."""
    for match in _FULL_NAME.finditer(text):
        if not any(_word_stands(word, given) or word in MONTHS or word in WEEKDAYS for word in fold(match[0]).split()):
            return not _other_script(text, given)
    return False


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
    return any(holds_canary(text, given.text) for text in texts)


def _against_relation(relation: ExtractedRelation, given: Ground, aliases: Mapping[str, Sequence[str]]) -> str | None:
    """Why a relation is not taken, or None. ``aliases`` are those of the entities that stay, by folded name."""
    ends = (fold(relation.source), fold(relation.target))
    if not all(end in aliases for end in ends):
        return "end_not_in_message"
    if (kind := _kind_of_relation(relation, given)) is not Kind.CLAIM:
        return kind.value
    others = [end for end in ends if end != given.speaker]
    spelled = [name for end in others for name in (end, *aliases[end])]
    if given.answers or any(overlap(stems(name), given.said) or _other_script(name, given) for name in spelled):
        return None
    # Pronouns stand for what was said before, but not for both ends at once.
    return "only_in_context"


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
