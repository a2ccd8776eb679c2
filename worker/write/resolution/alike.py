"""The fuzzy phase and the question to the model (behaviour: 6.2 and 6.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from rapidfuzz import fuzz

from worker.llm.items import ParsedResolutions
from worker.llm.provider import Completion
from worker.llm.verdicts import parse_resolutions
from worker.write.calls import Calls
from worker.write.message import Message
from worker.write.names import fold
from worker.write.persons import evidence, may_be_same
from worker.write.resolution.cast import Cast, Node
from worker.write.resolution.exact import real_names, settle
from worker.write.resolution.known import Known

SHOWN_TO_MODEL = 3
_RATIOS = 40  # candidates whose exact ratio is computed, the best by a faster one


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stored entity that a name may mean. ``evidence``: what in the spelling speaks for it, if anything."""

    known: Known
    score: float
    evidence: str | None


def judge(
    cast: Cast, node: Node, found: Sequence[tuple[Known, float | None]], several: Sequence[Known]
) -> list[Candidate]:
    """Settle ``node`` where the likeness leaves no doubt; else return the candidates for the model, best first.

    ``several``: those that fit by first name, where that was not unique; then likeness alone decides nothing.
    """
    config = cast.message.config
    judged = [one for known, cosine in _reduced(node, found) if (one := _candidate(cast, node, known, cosine))]
    judged.sort(key=lambda one: (-one.score, one.known.key))
    sure = [one for one in judged if one.score >= config.fuzzy_threshold and one.evidence]
    if len(sure) == 1 and not several:
        best = sure[0]
        why = f"likeness {best.score:.2f} to {best.known.display!r}, {best.evidence}"
        settle(node, best.known, "fuzzy", score=round(best.score, 4), why=why)
        return []
    # A nickname may lie far from the full name ("Guili", "Guilherme Maturana"); its spelling still makes it a question.
    ambiguous = [one for one in judged if one.score >= config.fuzzy_floor or one.evidence]
    scores = {one.known.key: one for one in judged}
    fitting = [scores.get(one.key) or Candidate(one, 0.0, "prefix") for one in several]
    merged = {one.known.key: one for one in (*fitting, *ambiguous)}
    return list(merged.values())[:SHOWN_TO_MODEL]


def ask(message: Message, ambiguous: Mapping[int, tuple[Node, list[Candidate]]], calls: Calls) -> ParsedResolutions:
    """Ask the model about all ambiguous names in one call, and settle those that it recognises. Raises ModelError."""
    names = [_question(number, node, candidates) for number, (node, candidates) in ambiguous.items()]
    numbers = {number: range(1, len(candidates) + 1) for number, (_, candidates) in ambiguous.items()}

    def parse(completion: Completion) -> ParsedResolutions:
        return parse_resolutions(completion.text, numbers)

    payload = {"message": message.text, "speaker": message.speaker, "names": names}
    answer = calls.ask("entity_resolution", payload, parse)
    for choice in answer.choices:
        node, candidates = ambiguous[choice.name_number]
        if choice.candidate_number is None:
            node.why = "the model recognises none of the candidates"
            continue
        chosen = candidates[choice.candidate_number - 1]
        why = f"the model chose {chosen.known.display!r}"
        settle(node, chosen.known, "role" if node.phrase else "llm", score=round(chosen.score, 4), why=why)
    return answer


# -- parts -------------------------------------------------------------------------------------------------------------


def _reduced(node: Node, found: Sequence[tuple[Known, float | None]]) -> list[tuple[Known, float | None]]:
    """Those that have a cosine, and of the others the few that are spelled most alike."""
    rest = [one for one in found if one[1] is None]
    if len(rest) <= _RATIOS:
        return list(found)
    folded = fold(node.shown)
    rest.sort(key=lambda one: -max(fuzz.ratio(folded, fold(name)) for name in one[0].names()))
    return [*(one for one in found if one[1] is not None), *rest[:_RATIOS]]


def _candidate(cast: Cast, node: Node, known: Known, cosine: float | None) -> Candidate | None:
    """The candidate with its score, None where a guard forbids that it is the same."""
    if any(other.key == known.key and cast.are_apart(node, other) for other in cast.nodes):
        return None
    names = real_names(known) or [known.display]
    kinds = (node.entity_type, known.entity_type)
    if may_be_same(node.shown, known.display, *kinds) is not None:
        return None
    if any(may_be_same(node.shown, name, *kinds) == "surname" for name in names):
        return None
    score = cosine if cosine is not None else max(_ratio(node.shown, name) for name in names)
    kind = node.entity_type if node.typed else known.entity_type
    found = next((why for name in names if (why := evidence(node.shown, name, kind))), None)
    return Candidate(known, score, found)


def _ratio(one: str, other: str) -> float:
    return SequenceMatcher(None, fold(one), fold(other), autojunk=False).ratio()


def _question(number: int, node: Node, candidates: Sequence[Candidate]) -> dict[str, Any]:
    return {
        "number": number,
        "name": node.shown,
        "type": node.entity_type,
        "candidates": [
            {
                "number": place,
                "name": one.known.display,
                "type": one.known.entity_type,
                "aliases": list(one.known.aliases[:6]),
                "profile": one.known.profile,
            }
            for place, one in enumerate(candidates, start=1)
        ],
    }
