from __future__ import annotations

import json
from pathlib import Path

from producer.importing import Notes, Options, rows
from producer.importing.run import in_order
from tests.unit.producer.importing.exports import written
from tests.unit.producer.importing.test_jsonl import row


def test_history_is_handed_in_in_the_order_in_which_it_happened(tmp_path: Path) -> None:
    now = row("now")
    del now["occurred_at"]
    mixed = [row("b", "2021-01-01T00:00:00Z"), now, row("a", "2020-12-31T23:30:00-03:00"), row("?", None),
             row("c", "2021-01-01T03:00:00+01:00")]  # fmt: skip
    file = written(tmp_path, "history.jsonl", "\n".join(json.dumps(item) for item in mixed))
    found, rejected = in_order(rows(file, Options(), Notes()))
    assert [item.request.message for item in found] == ["?", "b", "c", "a", "now"]
    assert rejected == []


def test_what_is_no_message_by_nature_is_no_reject(tmp_path: Path) -> None:
    chat = "25/04/24 10:00 - Rita: oi\n25/04/24 10:01 - Rita entrou\n25/04/24 10:02 - Rita: \n25/04/24 99:02 - Rita: x"
    found, rejected = in_order(rows(written(tmp_path, "c.txt", chat), Options(agent_id="a"), Notes()))
    assert [item.request.message for item in found] == ["oi"]
    assert [item.line for item in rejected] == [4]
