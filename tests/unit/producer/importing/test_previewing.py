from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from producer.importing import preview
from producer.importing.pricing import tokens_of
from tests.unit.producer.importing.exports import written
from tests.unit.producer.importing.test_jsonl import row


def of(folder: Path, *items: Any) -> dict[str, Any]:
    lines = (item if isinstance(item, str) else json.dumps(item) for item in items)
    return preview(written(folder, "history.jsonl", "\n".join(lines)))


def test_a_preview_counts_and_hands_nothing_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MANDUA_LLM_MODEL", raising=False)
    undated = row("12345678")
    del undated["occurred_at"]
    seen = of(tmp_path, row("a" * 40), row(" "), "{", "{", undated, row("x", "2019-05-01T00:00:00+02:00"))
    assert seen["messages"] == 3
    assert seen["speakers"] == {"S": 3}
    assert seen["roles"] == {"S": "user"}
    assert seen["first"] == "2019-05-01T00:00:00+02:00"
    assert seen["last"] == datetime(2020, 1, 1, tzinfo=UTC).isoformat()
    assert sum(seen["skipped"].values()) == 3
    assert seen["skipped"]["is blank"] == 1
    assert (seen["rejected"], seen["tokens"], seen["calls"]) == (2, 12, 3)
    assert (seen["cost_usd"], seen["per_sec"], seen["seconds"]) == (None, None, None)
    assert len(seen["warnings"]) == 1
    assert preview(tmp_path / "history.jsonl", per_sec=0.01)["seconds"] == 300


def test_the_price_follows_the_list_of_the_model_and_people_alone_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (json.dumps(row("I moved to Leeds")), json.dumps(row("ok", role="assistant")))
    file = written(tmp_path, "h.jsonl", "\n".join(lines))
    seen = preview(file, model="gpt-4o-mini")
    assert seen["calls"] == 1
    assert 0.0001 < seen["cost_usd"] < 0.01
    assert preview(file, model="no-such-model")["cost_usd"] is None
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)  # a base install
    assert preview(file, model="gpt-4o-mini")["cost_usd"] is None


def test_who_is_read_alone_costs_more_than_who_shares_a_call(tmp_path: Path) -> None:
    file = written(tmp_path, "h.jsonl", "\n".join(json.dumps(row(f"I moved to City{n}")) for n in range(8)))
    alone, eight, usual = (
        preview(file, batch=batch, model="gpt-4o-mini")["cost_usd"] for batch in (1, 8, None)
    )
    assert usual == eight < alone < 3 * eight


def test_nearly_all_messages_at_one_time_are_suspicious_and_so_are_the_future_and_1970(tmp_path: Path) -> None:
    same = [row(f"m{number}") for number in range(40)]
    assert any("suspicious" in warning for warning in of(tmp_path, *same, row("x", "2021-01-01T00:00:00Z"))["warnings"])
    assert of(tmp_path, *(row("x", f"2020-01-{day:02}T00:00:00Z") for day in range(1, 31)))["warnings"] == []
    odd = of(tmp_path, row("x", "1970-01-01T00:00:00Z"), row("y", "2190-01-01T00:00:00Z"))
    assert odd["warnings"] == ["timestamps are suspicious: 2 lie before 1995 or in the future"]


def test_scripts_without_spaces_come_to_more_tokens() -> None:
    assert tokens_of("abcdefgh") == 2
    assert tokens_of("昨日東京に引っ越した") == 10
