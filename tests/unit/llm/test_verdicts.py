"""Replies in which a model chooses: resolution, reconciliation, merges, summaries."""

from __future__ import annotations

import json
from typing import Any

import pytest

from worker.llm.items import Decision, ParsedDecisions, ParsedResolutions
from worker.llm.provider import Cause, ModelError
from worker.llm.verdicts import (
    parse_cluster_summary,
    parse_decisions,
    parse_entity_merge,
    parse_fact_merge,
    parse_observations,
    parse_resolutions,
    parse_text,
)


def decide(reply: Any, existing: dict[int, list[int]] | None = None) -> ParsedDecisions:
    return parse_decisions(reply if isinstance(reply, str) else json.dumps(reply), existing or {1: [1]})


def resolve(reply: Any, candidates: dict[int, list[int]] | None = None) -> ParsedResolutions:
    return parse_resolutions(reply if isinstance(reply, str) else json.dumps(reply), candidates or {1: [1, 2]})


@pytest.mark.parametrize(
    ("reply", "action", "existing_number"),
    [
        ('action="UPDATE"', "UPDATE", 1),
        ('{"decision":"Update "}', "UPDATE", 1),
        ('{"decision":"MERGE"}', "ADD", None),
        ("action=keep", "ADD", None),
        ("```\nNOOP\n```", "NOOP", 1),
        ('{"action": "no-op", "existing_number": "1"}', "NOOP", 1),
        ('{"action": "delete", "existing_number": "#1"}', "DELETE", 1),
        ('{"action": null}', "ADD", None),
        ('{"decisions": [{"fact_number": 1, "action": "Merge ", "existing_number": 1}]}', "ADD", None),
    ],
)
def test_jsn_10_drifting_actions(reply: str, action: str, existing_number: int | None) -> None:
    (decision,) = decide(reply).decisions
    assert (decision.action, decision.existing_number) == (action, existing_number)


def test_jsn_10_an_unknown_action_is_counted() -> None:
    assert decide('{"decision":"MERGE"}').repairs["unknown_action"] == 1


def test_decisions_are_matched_by_number_and_missing_ones_are_add() -> None:
    reply = {
        "decisions": [
            {"fact_number": 3, "reason": "same", "action": "NOOP", "existing_number": 2},
            {"fact_number": 1, "reason": "moved", "action": "UPDATE", "existing_number": 1},
            {"fact_number": 9, "reason": "?", "action": "DELETE", "existing_number": 1},
            None,
        ]
    }
    parsed = decide(reply, {1: [1], 2: [1], 3: [1, 2]})
    assert parsed.decisions == [
        Decision(fact_number=1, action="UPDATE", existing_number=1, reason="moved"),
        Decision(fact_number=2, action="ADD"),
        Decision(fact_number=3, action="NOOP", existing_number=2, reason="same"),
    ]
    assert parsed.repairs == {"missing_decision": 1, "item_dropped": 1}
    assert [reject.reason for reject in parsed.rejects] == ["unknown_fact_number"]
    assert ParsedDecisions.model_validate_json(parsed.model_dump_json()) == parsed


@pytest.mark.parametrize(
    ("action", "number", "expected"),
    [
        ("UPDATE", None, ("ADD", None)),
        ("NOOP", None, ("ADD", None)),
        ("DELETE", None, ("DELETE", None)),
        ("UPDATE", 7, ("ADD", None)),
        ("NOOP", "none", ("ADD", None)),
        ("DELETE", 7, ("DELETE", None)),
        ("ADD", 1, ("ADD", None)),
    ],
)
def test_a_target_that_does_not_exist(action: str, number: Any, expected: tuple[str, Any]) -> None:
    reply = {"decisions": [{"fact_number": 1, "action": action, "existing_number": number}]}
    (decision,) = decide(reply, {1: [1, 2]}).decisions
    assert (decision.action, decision.existing_number) == expected


def test_a_missing_target_is_guessed_only_where_there_is_one() -> None:
    assert decide({"fact_number": 1, "action": "UPDATE"}).decisions[0].existing_number == 1
    assert decide({"fact_number": 1, "action": "UPDATE"}, {1: [1, 2]}).decisions[0].action == "ADD"
    assert decide({"fact_number": 1, "action": "UPDATE"}, {1: [1], 2: [1]}).decisions[0].action == "ADD"


def test_decisions_as_a_map_or_a_bare_list() -> None:
    items = {"1": {"action": "NOOP", "existing_number": 1}, "2": {"action": "ADD"}}
    assert [d.action for d in decide({"decisions": items}, {1: [1], 2: [1]}).decisions] == ["NOOP", "ADD"]
    listed = [{"fact_number": 2, "action": "NOOP", "existing_number": 1}]
    assert [d.action for d in decide(listed, {1: [1], 2: [1]}).decisions] == ["ADD", "NOOP"]


def test_a_cut_reply_keeps_the_whole_decisions() -> None:
    reply = (
        '{"decisions": [{"fact_number": 1, "action": "NOOP", "existing_number": 1}, {"fact_number": 2, "action": "DEL'
    )
    assert [d.action for d in decide(reply, {1: [1], 2: [1]}).decisions] == ["NOOP", "ADD"]


@pytest.mark.parametrize(
    ("reply", "detail"),
    [
        ("I would update it.", "no_json"),
        ({"decisions": []}, "no_answer"),
        ({"facts": []}, "wrong_shape"),
        ({"decisions": [{"fact_number": 8, "action": "ADD"}]}, "no_answer"),
        ({"decisions": {"type": "array", "items": {"type": "object"}}}, "schema_echo"),
    ],
)
def test_no_decision_at_all_is_a_failure(reply: Any, detail: str) -> None:
    with pytest.raises(ModelError) as caught:
        decide(reply, {1: [1], 2: [1]})
    assert (caught.value.cause, caught.value.detail) == (Cause.BAD_REPLY, detail)


def test_resolutions() -> None:
    reply = {
        "resolutions": [
            {"name_number": 2, "reason": "new", "candidate_number": None},
            {"name_number": 1, "reason": "short form", "candidate_number": "2"},
            {"name_number": 3, "reason": "?", "candidate_number": 9},
        ]
    }
    parsed = resolve(reply, {1: [1, 2], 2: [1], 3: [1], 4: [1]})
    assert [(c.name_number, c.candidate_number) for c in parsed.choices] == [(1, 2), (2, None), (3, None), (4, None)]
    assert parsed.choices[0].reason == "short form"
    assert parsed.repairs == {"unknown_candidate": 1, "missing_choice": 1}


@pytest.mark.parametrize(
    "reply",
    [
        {"candidate_number": 2},
        {"resolutions": {"1": 2}},
        {"resolutions": {"1": {"candidate_number": 2}}},
        [{"name_number": 1, "match": 2}],
        '```json\n{"resolutions": [{"name_number": 1, "candidate_number": 2}]}\n``` done',
        {"result": {"resolutions": [{"name_number": "1", "candidate_number": "candidate 2"}]}},
    ],
)
def test_resolutions_in_other_shapes(reply: Any) -> None:
    assert resolve(reply).choices[0].candidate_number == 2


@pytest.mark.parametrize("none", [None, "none", "null", 0, -1, True, [2]])
def test_no_candidate(none: Any) -> None:
    assert resolve({"resolutions": [{"name_number": 1, "candidate_number": none}]}).choices[0].candidate_number is None


def test_texts() -> None:
    assert parse_text('{"text": "Ana is a\\n doctor."}') == "Ana is a doctor."
    assert parse_text('```json\n{"profile_text": "Ana is a doctor."}\n```') == "Ana is a doctor."
    assert parse_text('"Ana is a doctor."') == "Ana is a doctor."
    for bad in (
        '{"text": ""}',
        '{"text": null}',
        "{}",
        "I cannot do that.",
        '{"text": "..."}',
        '{"text": {"type": "string"}}',
    ):
        with pytest.raises(ModelError):
            parse_text(bad)


def test_merges() -> None:
    merge = parse_fact_merge('{"reason": "both", "same": "yes", "text": "Ana works at Orion"}')
    assert (merge.same, merge.reason, merge.text) == (True, "both", "Ana works at Orion")
    assert parse_fact_merge('{"same": false, "text": null}').text == ""
    assert parse_entity_merge('[{"same": 0}]').same is False
    for bad in ('{"same": "perhaps"}', '{"reason": "x"}', "no"):
        with pytest.raises(ModelError):
            parse_entity_merge(bad)


def test_summaries_and_observations() -> None:
    summary = parse_cluster_summary('{"label": "Work", "text": "Ana changed jobs."}')
    assert (summary.label, summary.text) == ("Work", "Ana changed jobs.")
    reply = {
        "observations": [
            {
                "title": "Moves",
                "text": "Ana moves often.",
                "kind": "Habit",
                "fact_numbers": [1, "2", 9],
                "confidence": 0.7,
            },
            {"title": "Lost", "text": "Nobody says so.", "fact_numbers": [9]},
            {"title": "Empty", "text": "", "fact_numbers": [1]},
        ]
    }
    parsed = parse_observations(json.dumps(reply), [1, 2, 3])
    (only,) = parsed.observations
    assert (only.title, only.kind, only.fact_numbers, only.confidence) == ("Moves", "habit", [1, 2], 0.7)
    assert [reject.reason for reject in parsed.rejects] == ["no_evidence", "empty_text"]
