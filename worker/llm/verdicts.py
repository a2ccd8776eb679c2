"""Readers of the replies in which a model chooses or writes: resolution, reconciliation, merges, profiles, summaries.

As with extractions: a bad item costs itself only, everything is cited by number and nothing by position, and what is
no reply at all raises ModelError(BAD_REPLY) (details as in ``worker.llm.replies``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from worker.llm import coerce
from worker.llm.items import (
    ClusterSummary,
    Decision,
    EntityMerge,
    FactMerge,
    Observation,
    ParsedDecisions,
    ParsedObservations,
    ParsedResolutions,
    Reject,
    ResolutionChoice,
)
from worker.llm.prompts import holds_canary
from worker.llm.provider import Cause, ModelError
from worker.llm.reply_json import Reply, read_json

_BARE_ACTION = re.compile(r"^\W*(?:action|decision)?\W*?[=:]?\W*([A-Za-z_-]+)\W*$")
_ACTION_KEYS = ("action", "decision", "event", "operation")
_EXISTING_KEYS = ("existing_number", "existing", "target_number", "replaces")
_Numbered = TypeVar("_Numbered", ResolutionChoice, Decision)


def parse_resolutions(text: str, candidates: Mapping[int, Collection[int]]) -> ParsedResolutions:
    """Return one choice for each name of ``candidates`` (numbers of the candidates by number of the name), in order.

    A candidate that does not exist is none; a name that the reply leaves out gets none, too, and both are counted.
    """
    reply = read_json(text)
    repairs, rejects = reply.repairs, list[Reject]()
    choices: dict[int, ResolutionChoice] = {}
    for index, item in enumerate(_items(reply, "resolutions", "name_number", "candidate_number")):
        number = _own_number(item, ("name_number", "number", "name"), candidates)
        if number is None or number not in candidates:
            rejects.append(Reject(kind="resolution", reason="unknown_name_number", index=index))
            continue
        value = coerce.first_of(item, "candidate_number", "candidate", "match", "choice", repairs=repairs)
        chosen = coerce.whole_number(value)
        if value is not None and chosen not in candidates[number]:
            if not (isinstance(value, str) and coerce.is_degenerate(value)):
                repairs["unknown_candidate"] += 1
            chosen = None
        choices.setdefault(number, ResolutionChoice(name_number=number, candidate_number=chosen, reason=_reason(item)))
    _refuse_unanswered(choices, candidates)
    for number in candidates:
        if number not in choices:
            repairs["missing_choice"] += 1
            choices[number] = ResolutionChoice(name_number=number)
    ordered = [choices[number] for number in candidates]
    return ParsedResolutions(choices=ordered, repairs=dict(repairs), rejects=rejects)


def parse_decisions(text: str, existing: Mapping[int, Collection[int]]) -> ParsedDecisions:
    """Return one decision for each fact of ``existing`` (numbers of its existing facts by its own number), in order.

    A fact that the reply leaves out is ADD. NOOP and UPDATE that name no fact, or one that does not exist, are ADD;
    DELETE without one stays DELETE: a bare retraction. Each such change is counted.
    """
    if len(existing) == 1 and (bare := _bare_decision(text, existing)) is not None:
        return bare
    reply = read_json(text)
    repairs, rejects = reply.repairs, list[Reject]()
    decisions: dict[int, Decision] = {}
    for index, item in enumerate(_items(reply, "decisions", "fact_number", *_ACTION_KEYS)):
        number = _own_number(item, ("fact_number", "number", "fact"), existing)
        if number is None or number not in existing:
            rejects.append(Reject(kind="decision", reason="unknown_fact_number", index=index))
            continue
        action = coerce.decision_action(coerce.first_of(item, *_ACTION_KEYS, repairs=repairs), repairs)
        decision = _decision(number, action, _target(item, existing, number, repairs), _reason(item), repairs)
        known = decisions.setdefault(number, decision)
        if known is not decision:
            repairs["duplicate_decision"] += 1
    _refuse_unanswered(decisions, existing)
    for number in existing:
        if number not in decisions:
            repairs["missing_decision"] += 1
            decisions[number] = Decision(fact_number=number)
    ordered = [decisions[number] for number in existing]
    return ParsedDecisions(decisions=ordered, repairs=dict(repairs), rejects=rejects)


def parse_text(text: str) -> str:
    """Return the text of a reply to ``entity_profile`` or ``entity_summary``, on one line."""
    item = _single(read_json(text), "text", "profile_text", "summary_text", "summary", "profile")
    return _needed(item, "text", "profile_text", "summary_text", "summary", "profile")


def parse_fact_merge(text: str) -> FactMerge:
    """Return the reply to ``fact_merge``; ``text`` may be blank where the facts are not the same."""
    reply = read_json(text)
    item = _single(reply, "same")
    return FactMerge(same=_same(item), reason=_reason(item), text=coerce.one_line(item.get("text")) or "")


def parse_entity_merge(text: str) -> EntityMerge:
    """Return the reply to ``entity_merge``."""
    item = _single(read_json(text), "same")
    return EntityMerge(same=_same(item), reason=_reason(item))


def parse_cluster_summary(text: str) -> ClusterSummary:
    """Return the reply to ``cluster_summary``."""
    item = _single(read_json(text), "label", "text")
    return ClusterSummary(label=_needed(item, "label", "title"), text=_needed(item, "text", "summary"))


def parse_observations(text: str, fact_numbers: Collection[int]) -> ParsedObservations:
    """Return the reply to ``meta_observations``. One that no fact of ``fact_numbers`` holds up is dropped."""
    reply = read_json(text)
    rejects: list[Reject] = []
    observations: list[Observation] = []
    for index, item in enumerate(_items(reply, "observations", "text", "fact_numbers")):
        body = coerce.one_line(item.get("text")) or ""
        cited = item.get("fact_numbers")
        numbers = [coerce.whole_number(n) for n in (cited if isinstance(cited, list) else [cited])]
        known = sorted({number for number in numbers if number in fact_numbers and number is not None})
        if coerce.is_degenerate(body) or not known:
            reason = "no_evidence" if not coerce.is_degenerate(body) else "empty_text"
            rejects.append(Reject(kind="observation", reason=reason, index=index))
            continue
        observations.append(
            Observation(
                title=coerce.one_line(item.get("title")) or body[:80],
                text=body,
                kind=coerce.key_name(coerce.one_line(item.get("kind")) or "observation"),
                fact_numbers=known,
                confidence=coerce.confidence(item, reply.repairs),
            )
        )
    return ParsedObservations(observations=observations, repairs=dict(reply.repairs), rejects=rejects)


# -- what they share -------------------------------------------------------------------------------------------------


def _items(reply: Reply, section: str, *item_keys: str) -> list[dict[str, Any]]:
    """Return the objects of a list section, found under its name, at the top, or in a wrapper.

    Raises ModelError(BAD_REPLY, wrong_shape) where there is no such list.
    """
    found = _find_items(reply.value, section, frozenset(item_keys), 0)
    if found is None and not reply.loose:
        raise ModelError(Cause.BAD_REPLY, "wrong_shape")
    items = [coerce.with_plain_keys(item) for item in found or [] if isinstance(item, dict)]
    for loose in map(coerce.with_plain_keys, reply.loose):
        if loose not in items and frozenset(item_keys) & loose.keys():
            reply.repairs["salvaged"] += 1
            items.append(loose)
    if found and len(items) < len(found):
        reply.repairs["item_dropped"] += len(found) - len(items)
    return items


def _find_items(value: Any, section: str, item_keys: frozenset[str], depth: int) -> list[Any] | None:
    if depth > 3:
        return None
    if isinstance(value, list):
        if any(isinstance(item, dict) and item_keys & coerce.with_plain_keys(item).keys() for item in value):
            return value
        found = [inner for item in value if (inner := _find_items(item, section, item_keys, depth + 1)) is not None]
        return [item for inner in found for item in inner] if found or value else []
    if not isinstance(value, dict):
        return None
    plain = coerce.with_plain_keys(value)
    if section in plain:
        inner = plain[section]
        return _map_items(inner, item_keys) if isinstance(inner, dict) else inner if isinstance(inner, list) else None
    if item_keys & plain.keys():
        return [plain]
    for inner in plain.values():
        if isinstance(inner, (dict, list)) and inner:
            found_inside = _find_items(inner, section, item_keys, depth + 1)
            if found_inside is not None:
                return found_inside
    return None


def _map_items(value: dict[str, Any], item_keys: frozenset[str]) -> list[Any]:
    """Return the items of ``{"1": {…}}`` or ``{"1": 2}`` with their numbers inside, or a single item as a list."""
    if item_keys & coerce.with_plain_keys(value).keys():
        return [value]
    answer = "candidate_number" if "candidate_number" in item_keys else "action"
    return [
        {"number": key, **item} if isinstance(item, dict) else {"number": key, answer: item}
        for key, item in value.items()
    ]


def _own_number(item: Mapping[str, Any], keys: tuple[str, ...], asked: Mapping[int, Collection[int]]) -> int | None:
    """Return the number that an item is about; where only one was asked about, an item without a number is about it."""
    value = coerce.first_of(item, *keys)
    if value is None and len(asked) == 1:
        return next(iter(asked.keys()))
    return coerce.whole_number(value)


def _target(
    item: Mapping[str, Any], existing: Mapping[int, Collection[int]], number: int, repairs: Counter[str]
) -> int | None:
    """Return the existing fact that a decision is about, None where it names none that exists.

    A key that is missing, unlike one that is null, leaves no doubt where one fact has one candidate.
    """
    value = coerce.first_of(item, *_EXISTING_KEYS, repairs=repairs)
    if value is None:
        unsaid = not any(key in item for key in _EXISTING_KEYS)
        if unsaid and len(existing) == 1 and len(existing[number]) == 1:
            return next(iter(existing[number]))
        return None
    target = coerce.whole_number(value)
    if target in existing[number]:
        return target
    if not (isinstance(value, str) and coerce.is_degenerate(value)):
        repairs["unknown_existing"] += 1
    return None


def _decision(number: int, action: str, target: int | None, reason: str, repairs: Counter[str]) -> Decision:
    if action in ("NOOP", "UPDATE") and target is None:
        repairs["no_target"] += 1
        return Decision(fact_number=number, action="ADD", reason=reason)
    if action == "ADD":
        return Decision(fact_number=number, action="ADD", reason=reason)
    return Decision.model_validate(
        {"fact_number": number, "action": action, "existing_number": target, "reason": reason}
    )


def _bare_decision(text: str, existing: Mapping[int, Collection[int]]) -> ParsedDecisions | None:
    """Return the decision of a reply that is nothing but a word (``action="UPDATE"``), None for any other reply."""
    stripped = re.sub(r"```\w*", "", text).strip()
    match = _BARE_ACTION.match(stripped)
    if (
        match is None
        or stripped[:1] in ("{", "[")
        or not ("=" in stripped or ":" in stripped or match.group(1).isupper())
    ):
        return None
    (number, candidates), *_ = existing.items()
    repairs: Counter[str] = Counter(bare_word=1)
    action = coerce.decision_action(match.group(1), repairs)
    target = next(iter(candidates)) if len(candidates) == 1 else None
    decision = _decision(number, action, target, "", repairs)
    return ParsedDecisions(decisions=[decision], repairs=dict(repairs))


def _single(reply: Reply, *keys: str) -> dict[str, Any]:
    """Return the one object of a reply that has any of ``keys``, whatever it is wrapped in."""
    found = _find_items(reply.value, "", frozenset(keys), 0)
    for item in [*(found or []), *reply.loose]:
        if isinstance(item, dict) and frozenset(keys) & (plain := coerce.with_plain_keys(item)).keys():
            return plain
    if isinstance(reply.value, str) and "text" in keys:
        return {"text": reply.value}
    raise ModelError(Cause.BAD_REPLY, "wrong_shape")


def _needed(item: Mapping[str, Any], *keys: str) -> str:
    value = coerce.one_line(coerce.first_of(item, *keys))
    if value is None:
        raise ModelError(Cause.BAD_REPLY, "wrong_shape")
    if coerce.is_degenerate(value):
        raise ModelError(Cause.BAD_REPLY, "empty_text")
    return value


def _same(item: Mapping[str, Any]) -> bool:
    same = coerce.truth(item.get("same"))
    if same is None:
        raise ModelError(Cause.BAD_REPLY, "wrong_shape")
    return same


def _reason(item: Mapping[str, Any]) -> str:
    reason = coerce.one_line(coerce.first_of(item, "reason", "reasoning", "explanation")) or ""
    return "" if holds_canary(reason) else reason  # copied from the prompt's example, so it explains nothing


def _refuse_unanswered(answers: Mapping[int, _Numbered], asked: Mapping[int, Any]) -> None:
    """Raise where a reply answers none of the questions: ADD for all would be a guess that nobody made."""
    if asked and not answers:
        raise ModelError(Cause.BAD_REPLY, "no_answer")
