"""What is done with one new fact: the rules around the model's word (behaviour: 7 and 14). Pure.

The model decides; these rules keep it from closing what it may not close and from losing what is new. Where it is
unsure or wrong the answer is ADD: a near-duplicate beats a lost fact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal
from uuid import UUID

from worker.llm.items import CONFIDENCE_LEVELS, Decision
from worker.write.attributes import same_matter
from worker.write.candidates import Candidate
from worker.write.evidence import Draft
from worker.write.matters import of_another_matter
from worker.write.polarity import numbers_and_dates, polarity
from worker.write.timeline import moment
from worker.write.wording import bare_ending, ends, says_more, says_over, stays_over

Action = Literal["ADD", "UPDATE", "NOOP", "DELETE"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """An action and its target: a stored fact, or an earlier fact of the message by index (``target_fact``)."""

    action: Action
    target: UUID | None = None
    target_fact: int | None = None
    closed_by: UUID | None = None
    reason: str = ""
    similarity: float | None = None
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """Something that a new fact can be about, as the model saw it: a stored fact or an earlier one of the message."""

    text: str
    attribute_key: str | None
    value: str | None
    similarity: float | None
    stored: Candidate | None = None
    index: int | None = None


def settled(
    fact: Draft,
    candidates: Sequence[Candidate],
    at: datetime | None,
    floor: float,
    names: Sequence[str],
    *,
    compared: bool,
) -> Verdict | None:
    """The verdict where no model is needed: the same text, or nothing similar. None: ask.

    ``compared``: the fact has a vector. Without one an ending stays visible, because what it ends was not looked for.
    """
    twin = _twin_in_reach(fact, candidates, at, floor, names)
    if twin is not None:
        verdict = Verdict("NOOP", twin.id, reason="identical", similarity=twin.similarity)
        return over_late(fact, verdict, candidates, at, names)
    if choices(fact, candidates, at, floor, names):
        return None
    best = max((c.similarity for c in candidates if c.similarity is not None), default=None)
    verdict = Verdict("ADD", reason="nothing similar" if compared else "not compared", similarity=best)
    verdict = of_nothing(fact, verdict) if compared else verdict
    return over_late(fact, verdict, candidates, at, names)


def choices(
    fact: Draft, candidates: Sequence[Candidate], at: datetime | None, floor: float, names: Sequence[str]
) -> list[Candidate]:
    """What the model is asked about: the near ones; of a late fact that is said again long after, those before that."""
    found, twin = near(fact, candidates, at, floor, names), _twin(candidates, at)
    if twin is None or _twin_in_reach(fact, candidates, at, floor, names) is not None:
        return found
    return [candidate for candidate in found if moment(candidate.valid_from) < moment(twin.valid_from)]


def _twin(candidates: Iterable[Candidate], at: datetime | None) -> Candidate | None:
    """What says the very same: what held at the fact's time before what came later, the earliest first."""
    twins = [candidate for candidate in candidates if candidate.identical and candidate.kind == "fact"]
    return min(twins, key=lambda c: (c.later_than(at), moment(c.valid_from), str(c.id)), default=None)


def _twin_in_reach(
    fact: Draft, candidates: Sequence[Candidate], at: datetime | None, floor: float, names: Sequence[str]
) -> Candidate | None:
    """The twin, unless something begins between a late fact and it: an ending of the fact, or a near one, which may
    say the same in other words. Then the fact is another stretch of time, and the model has to tell what it follows."""
    twin = _twin(candidates, at)
    if twin is None or not twin.later_than(at):
        return twin
    between = _between(candidates, twin, at)
    same = [c for c in near(fact, between, at, floor, names) if not of_another_matter(fact.text, c.text, names)]
    return None if same or _ended(fact, between, names) else twin


def _between(candidates: Iterable[Candidate], twin: Candidate, at: datetime | None) -> list[Candidate]:
    return [c for c in candidates if c.later_than(at) and moment(c.valid_from) < moment(twin.valid_from)]


def _ended(fact: Draft, between: Iterable[Candidate], names: Sequence[str]) -> bool:
    return any(ends(candidate.text, fact.text, names) for candidate in between)


def of_nothing(fact: Draft, verdict: Verdict) -> Verdict:
    """ADD, unless the fact is a bare ending ("no longer …"): of something unknown yet, it is kept as a retraction."""
    if fact.confidence <= CONFIDENCE_LEVELS["speculation"]:
        return verdict
    if verdict.action == "ADD" and not verdict.warning and bare_ending(fact.text):
        return replace(verdict, action="DELETE", reason="an ending of something unknown")
    return verdict


def near(
    fact: Draft, candidates: Iterable[Candidate], at: datetime | None, floor: float, names: Sequence[str]
) -> list[Candidate]:
    """The candidates at or above the floor (with a float32's tolerance), and those about the same matter.

    An ending is not about other endings, and a bare one not about what began after it or is denied anyway ("does not
    like tea" is not over because she no longer likes it). A later ending that plainly is this fact's needs no answer
    (``over_late``); the model has but one, and it is for what was true before.
    """
    over = says_over(fact.text)
    return [
        candidate
        for candidate in candidates
        if (candidate.related or (candidate.similarity is not None and candidate.similarity >= floor - 1e-6))
        and not (over and (candidate.kind == "retraction" or _beyond(fact, candidate, at)))
        and not (polarity(fact.text) and bare_ending(candidate.text))
        and not (candidate.later_than(at) and ends(candidate.text, fact.text, names))
    ]


def _beyond(ending: Draft, candidate: Candidate, at: datetime | None) -> bool:
    return (candidate.later_than(at) or polarity(candidate.text)) and bare_ending(ending.text)


def judged(
    fact: Draft,
    decision: Decision,
    option: Option | None,
    options: Sequence[Option],
    candidates: Sequence[Candidate],
    at: datetime | None,
    names: Sequence[str],
) -> Verdict:
    """The verdict on a fact that the model was asked about; ``option`` is what its decision cites.

    ``options`` are what it could choose from, ``candidates`` all that was found.
    """
    verdict = _first_to_come(_guarded(fact, decision, option, names), option, options, at)
    twin = _twin(candidates, at)
    if verdict.action == "ADD" and twin is not None and not _ended(fact, _between(candidates, twin, at), names):
        verdict = Verdict("NOOP", twin.id, reason="identical", similarity=twin.similarity)  # what lay between is not it
    if verdict.action == "ADD" and not verdict.warning:
        verdict = of_nothing(fact, _plain_reversal(fact, verdict, options, at, names))
    if option is not None and option.stored is not None and option.stored.kind == "retraction":
        verdict = _about_retraction(verdict, option.stored, at)
    return over_late(fact, _modest(fact, verdict, options), candidates, at, names)


def _first_to_come(verdict: Verdict, option: Option | None, options: Sequence[Option], at: datetime | None) -> Verdict:
    """Of later facts that are as good a target as the one cited, a late fact is about the first: of the same words
    ("lives in Quito", twice), or, to go before it, of those that a person has one of at a time."""
    cited = option.stored if option is not None else None
    if cited is None or not cited.later_than(at) or verdict.target != cited.id:
        return verdict
    later = [o.stored for o in options if o.stored is not None and o.stored.later_than(at)]
    if verdict.action == "UPDATE" and cited.related:
        later = [candidate for candidate in later if candidate.related]
    else:
        later = [candidate for candidate in later if candidate.text == cited.text]
    return replace(verdict, target=min(later, key=lambda c: (moment(c.valid_from), str(c.id))).id)


def _modest(fact: Draft, verdict: Verdict, options: Sequence[Option]) -> Verdict:
    """What is no more than speculation replaces and ends nothing that is surer, whoever speculates."""
    if fact.confidence > CONFIDENCE_LEVELS["speculation"] or verdict.action not in ("UPDATE", "DELETE"):
        return verdict
    target = next((o.stored for o in options if o.stored is not None and o.stored.id == verdict.target), None)
    if target is not None and target.confidence <= fact.confidence:
        return verdict
    warning = f"{verdict.action} by a speculation is refused; ADD"
    return Verdict("ADD", reason=verdict.reason, similarity=verdict.similarity, warning=warning)


def over_late(
    fact: Draft, verdict: Verdict, candidates: Sequence[Candidate], at: datetime | None, names: Sequence[str]
) -> Verdict:
    """A late fact that stored, later endings end: it is closed at the first of them, whatever lies beyond.

    What it replaces may lie beyond: then its place is before the ending, in the same chain. An ending is a
    retraction, a fact that tells of an event ("sold the car"), or what it replaces, true again.
    """
    beyond = next((c for c in candidates if c.id == verdict.target), None)
    replaced = beyond if verdict.action == "UPDATE" and beyond is not None and not beyond.later_than(at) else None
    enders = [c for c in candidates if c.later_than(at) and _is_ended_by(fact, c, verdict, replaced, names)]
    if not enders or verdict.action == "DELETE":
        return verdict
    first = min(enders, key=lambda c: (moment(c.valid_from), str(c.id)))
    if beyond is not None and verdict.action == "NOOP" and moment(beyond.valid_from) > moment(first.valid_from):
        return Verdict("ADD", closed_by=first.id, reason=verdict.reason, similarity=verdict.similarity)
    return replace(verdict, closed_by=first.id) if verdict.action != "NOOP" else verdict


def _is_ended_by(
    fact: Draft, later: Candidate, verdict: Verdict, replaced: Candidate | None, names: Sequence[str]
) -> bool:
    if replaced is not None and later.kind == "fact" and later.text == replaced.text:
        return True  # what it replaces is said anew
    if later.id == verdict.target and verdict.action == "UPDATE":
        return False  # it takes its place before that one anyway
    return later.id == verdict.closed_by or ends(later.text, fact.text, names)


def reconciled(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Verdicts that fit together: an old fact is replaced once, UPDATE goes before DELETE, NOOP follows an UPDATE."""
    result = list(verdicts)
    updated: dict[UUID | int, int] = {}
    for index, verdict in enumerate(result):
        target = _target(verdict)
        if verdict.action != "UPDATE" or target is None:
            continue
        if target in updated:
            result[index] = Verdict(
                "ADD", closed_by=verdict.closed_by, reason=verdict.reason, similarity=verdict.similarity,
                warning="the old fact is replaced by another fact of the message already; ADD",
            )  # fmt: skip
        else:
            updated[target] = index
    for index, verdict in enumerate(result):
        target = _target(verdict)
        if target is None or target not in updated:
            continue
        if verdict.action == "DELETE":
            warning = "the old fact is replaced by another fact of the message; UPDATE wins"
            result[index] = replace(verdict, target=None, target_fact=None, warning=warning)
        elif verdict.action == "NOOP":
            result[index] = replace(verdict, target=None, target_fact=updated[target])
    return result


def _target(verdict: Verdict) -> UUID | int | None:
    return verdict.target if verdict.target is not None else verdict.target_fact


def _guarded(fact: Draft, decision: Decision, option: Option | None, names: Sequence[str]) -> Verdict:
    """The model's decision, refused where it may not have its way."""
    action: Action = decision.action
    plain = Verdict("ADD", reason=decision.reason, similarity=option.similarity if option else None)
    if action == "ADD":
        return plain
    if option is None:
        return replace(plain, action="DELETE") if action == "DELETE" else replace(plain, warning="no target; ADD")
    cited = replace(plain, target=option.stored.id if option.stored else None, target_fact=option.index, action=action)
    if action != "NOOP" and not same_matter(fact.attribute_key, option.attribute_key):
        return replace(plain, warning=f"{action} of another attribute is refused; ADD")
    if of_another_matter(fact.text, option.text, names):
        return replace(plain, warning=f"{action} of another matter is refused; ADD")
    if action == "NOOP":
        if polarity(fact.text) != polarity(option.text):
            return replace(cited, action="UPDATE", warning="opposite polarity is never NOOP; UPDATE")
        mine, theirs = numbers_and_dates(fact.text), numbers_and_dates(option.text)
        if mine and theirs and mine != theirs:
            return replace(plain, warning="other numbers are never NOOP; ADD")
        return cited
    if stays_over(option.text, fact.text, names):
        return replace(plain, warning=f"{action} of an ending by something else is refused; ADD")
    if action == "DELETE" and says_more(fact.text, option.text, names):
        return replace(cited, action="UPDATE")
    return cited


def _plain_reversal(
    fact: Draft, verdict: Verdict, options: Sequence[Option], at: datetime | None, names: Sequence[str]
) -> Verdict:
    """A safety net under weak models: ADD for a plain reversal closes what it reverses ("sold the car")."""
    for option in options:
        stored = option.stored
        if stored is not None and stored.kind == "retraction":
            continue
        if stored is not None and stored.later_than(at):
            if ends(stored.text, fact.text, names):
                return replace(verdict, action="UPDATE", target=stored.id, warning="a later fact ends it; UPDATE")
        elif ends(fact.text, option.text, names):
            over = says_over(fact.text) and not says_more(fact.text, option.text, names)
            return replace(
                verdict,
                action="DELETE" if over else "UPDATE",
                target=stored.id if stored else None,
                target_fact=option.index,
                warning=f"ADD of a plain reversal; {'DELETE' if over else 'UPDATE'}",
            )
    return verdict


def _about_retraction(verdict: Verdict, retraction: Candidate, at: datetime | None) -> Verdict:
    """What cites a retraction: a late fact ends there, another ending stands beside it, all else is new."""
    if verdict.action in ("DELETE", "NOOP"):
        return replace(verdict, action="DELETE", target=None)
    ended = retraction.id if retraction.later_than(at) else None
    return replace(verdict, action="ADD", target=None, closed_by=ended)
