from __future__ import annotations

from pathlib import Path

import pytest

from producer.importing import Notes, Skipped, UnreadableExport, read
from tests.unit.producer.importing.exports import FIXTURES, messages, said, when, written

TABLE = FIXTURES / "table.csv"


def test_columns_go_by_many_names_and_dates_in_numbers_follow_the_whole_file() -> None:
    notes = Notes()
    found = list(read(TABLE, agent_id="a", timezone="America/Recife", notes=notes))
    kept = [item for item in found if not isinstance(item, Skipped)]
    assert [(item.speaker_name, item.role, item.message, item.session_id) for item in kept] == [
        ("Rita", "user", "Olá; tudo\nbem?", "c1"),
        ("Bot", "assistant", "claro", "c1"),
        ("Rita", "user", "sem data", "c1"),
    ]
    assert [str(item.occurred_at) for item in kept] == [
        "2024-04-03 21:05:00-03:00", "2024-04-25 09:00:00-03:00", "unknown",
    ]  # fmt: skip
    assert notes.date_order == "DMY"
    assert [(item.line, item.reason, item.rejected) for item in found if isinstance(item, Skipped)] == [
        (6, "is blank", False),
        (7, "its time cannot be read; write it like 2025-06-15T23:30:00-03:00", True),
    ]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_any_of_the_usual_marks_separates(tmp_path: Path, mark: str) -> None:
    rows = (("message", "speaker_name", "occurred_at", "message_id"), ("hi", "Ana", "2024-05-01T10:00:00Z", "7"))
    (found,) = messages(written(tmp_path, "t.csv", "\ufeff" + "\r\n".join(mark.join(row) for row in rows)))
    assert (found.speaker_name, found.message_id, str(when(found))) == ("Ana", "csv::7", "2024-05-01 10:00:00+00:00")


@pytest.mark.parametrize(
    ("written_as", "at"),
    [
        ("4/25/2024 3:05 PM", "2024-04-25 15:05:00+00:00"), ("2024-04-25 15:05:09", "2024-04-25 15:05:09+00:00"),
        ("1714057500", "2024-04-25 15:05:00+00:00"), ("2024-04-25", "2024-04-25 00:00:00+00:00"),
        ("2024-04-25T15:05:00+02:00", "2024-04-25 15:05:00+02:00"), ("25.04.2024", "2024-04-25 00:00:00+00:00"),
    ],
)  # fmt: skip
def test_times_as_tables_have_them(tmp_path: Path, written_as: str, at: str) -> None:
    (found,) = messages(written(tmp_path, "t.csv", f"text,author,date\nhi,Ana,{written_as}\n"))
    assert str(when(found)) == at


def test_a_row_names_an_agent_of_its_own_and_bad_bytes_cost_their_row(tmp_path: Path) -> None:
    raw = b"agent_id,text,author,date\nb,one,Ana,2024-05-01T10:00:00Z\nb,caf\xe9,Ana,2024-05-01T10:00:00Z\n"
    one, bad = read(written(tmp_path, "t.csv", raw))
    assert not isinstance(one, Skipped)
    assert one.agent_id == "b"
    assert isinstance(bad, Skipped)
    assert (bad.line, bad.reason, bad.rejected) == (3, "line 3 is not UTF-8", True)


def test_dates_that_can_mean_two_things_ask_for_the_flag(tmp_path: Path) -> None:
    table = written(tmp_path, "t.csv", "text,author,date\nhi,Ana,03/04/2024\nho,Ana,05/06/2024\n")
    with pytest.raises(UnreadableExport, match="--date-order"):
        messages(table)
    assert said(messages(table, date_order="MDY")) == [("Ana", "hi"), ("Ana", "ho")]
