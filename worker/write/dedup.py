"""Semantic dedup: facts of one message that say the same thing (behaviour: 5)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from worker.embedding.provider import Vectors
from worker.llm.items import ExtractedFact
from worker.write.calls import VectorCache
from worker.write.extraction.claims import stems
from worker.write.extraction.normalise import richer_of
from worker.write.names import fold
from worker.write.plans import Dropped
from worker.write.polarity import same_claim_possible

# A fact whose words all stand, in order, in another one is an earlier breath of it ("paints the room", "paints the room
# green"); its vector may then be this much further away.
ELABORATION_ALLOWANCE = 0.15
_WORD = re.compile(r"\w+")


def semantic_dedup(
    facts: Sequence[ExtractedFact], vectors: VectorCache | Mapping[str, Vectors], threshold: float
) -> tuple[list[ExtractedFact], list[Dropped]]:
    """``facts`` without near-duplicates, in order, and what was dropped for which.

    Two facts are one where their cosine is above ``threshold``, they have the same subject and nothing in their words
    forbids it (polarity, numbers, dates, opposites). The more informative one stays, at the place of the first, with
    the date and attribute of both. A fact without a vector is kept.
    """
    kept: list[ExtractedFact | None] = list(facts)
    dropped: list[Dropped] = []
    for places in _by_subject(facts, vectors).values():
        similar = _cosines([vectors[facts[place].text] for place in places])
        for later in range(1, len(places)):
            for earlier in range(later):
                one, other = kept[places[earlier]], kept[places[later]]
                if one is None or other is None:
                    continue
                cosine = float(similar[earlier, later])
                if not _same(one, other, cosine, threshold):
                    continue
                stays, goes = (other, one) if informativeness(other) > informativeness(one) else (one, other)
                kept[places[earlier]], kept[places[later]] = richer_of(stays, goes), None
                dropped.append(Dropped(text=goes.text, kept=stays.text, similarity=round(cosine, 4)))
                if stays is other:
                    similar[earlier], similar[:, earlier] = similar[later], similar[:, later]
                break
    return [fact for fact in kept if fact is not None], dropped


def informativeness(fact: ExtractedFact) -> tuple[int, int, float]:
    """By what one of two duplicates is kept: content words, then a date and an attribute, then confidence."""
    return len(stems(fact.text)), (fact.event_date is not None) + (fact.attribute_key is not None), fact.confidence


def _by_subject(facts: Sequence[ExtractedFact], vectors: VectorCache | Mapping[str, Vectors]) -> dict[str, list[int]]:
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, fact in enumerate(facts):
        if fact.text in vectors:
            places[fold(fact.subject)].append(place)
    return {subject: found for subject, found in places.items() if len(found) > 1}


def _cosines(rows: Sequence[Vectors]) -> Vectors:
    matrix = np.stack(rows).astype(np.float32)
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit = (matrix / np.where(norms == 0, 1, norms)).astype(np.float32)
    return np.asarray(unit @ unit.T, dtype=np.float32)


def _same(one: ExtractedFact, other: ExtractedFact, cosine: float, threshold: float) -> bool:
    if cosine <= threshold - ELABORATION_ALLOWANCE:
        return False
    if cosine <= threshold and not (_elaborates(one.text, other.text) or _elaborates(other.text, one.text)):
        return False
    if one.event_date and other.event_date and one.event_date != other.event_date:
        return False
    if one.value and other.value and one.attribute_key == other.attribute_key and fold(one.value) != fold(other.value):
        return False
    return same_claim_possible(one.text, other.text)


def _elaborates(short: str, long: str) -> bool:
    """Whether all words of ``short`` stand in ``long``, in the same order."""
    rest = iter(_WORD.findall(fold(long)))
    return all(word in rest for word in _WORD.findall(fold(short)))
