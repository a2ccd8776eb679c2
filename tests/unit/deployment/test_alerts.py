"""deploy/alerts.yml is well-formed and names only metrics that exist; so does the README."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from worker.metrics import NAMES

TOP = Path(__file__).parents[3]
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((TOP / "deploy" / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_a_rule_says_what_when_and_what_to_do(rule: dict[str, Any]) -> None:
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in ("info", "warning", "critical")
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["action"]
    assert re.fullmatch(r"\d+[smhd]", rule.get("for", "1m"))
    assert [rule["expr"].count(opening) - rule["expr"].count(closing) for opening, closing in ("()", "{}", "[]")] == [
        0, 0, 0,
    ]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_a_rule_asks_for_metrics_that_exist(rule: dict[str, Any]) -> None:
    asked = set(re.findall(r"\bmandua_\w+", rule["expr"]))
    assert asked
    assert asked <= NAMES


def test_what_must_be_alerted_is() -> None:
    asked = " ".join(rule["expr"] for rule in RULES)
    for name in (
        'mandua_lag_seconds{lane="live"}', "mandua_runs_parked_total", 'mandua_workers{state="alive"} == 0',
        "mandua_last_sweep_age_seconds", 'mandua_waiting_runs{cause="model_unavailable"}', "mandua_cost_today_usd",
    ):  # fmt: skip
        assert name in asked


def test_the_readme_names_only_metrics_that_exist() -> None:
    named = set(re.findall(r"`(mandua_\w+)`", (TOP / "README.md").read_text()))
    assert named <= NAMES | {"mandua_producer", "mandua_worker", "mandua_operator"}
