"""DAT: when it was. A fact's date is the message's own, or none."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from tests.cases.conftest import AT, Memory
from tests.cases.replies import entity, extraction, fact, on_every


def dated(
    memory: Memory, said: str, text: str, day: str | None, precision: str | None = "day", *, at: str | None = AT
) -> tuple[Any, Any]:
    """The event date and precision that a fact is stored with, where the model gave it ``day``."""
    memory.model.on(
        "informed_extraction",
        extraction([fact("Bruna", text, event_date=day, event_date_precision=precision)], [entity("Bruna")]),
    )
    memory.write(said, at=at)
    (stored,) = memory.rows("SELECT * FROM memory_facts WHERE agent_id = :agent")
    return stored["event_date"], stored["event_date_precision"]


@pytest.mark.parametrize("given", ["2023-05-07", "2026-11-29", "2023-05-08", "2023-05-06"])
def test_dat_01_yesterday_is_the_day_before_the_message(memory: Memory, given: str) -> None:
    said, at = "Ontem assinei o contrato do apê novo.", "2023-05-08T13:56:00+00:00"
    assert dated(memory, said, "Bruna assinou o contrato do apê novo", given, at=at) == (date(2023, 5, 7), "day")
    (stored,) = memory.facts()
    assert stored["valid_from"] == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    sent = memory.model.calls[0].payload["message_date"]
    assert sent == "2023-05-08T13:56:00+00:00 Monday"


def test_dat_01_read_by_the_offline_reader(memory: Memory) -> None:
    memory.write("Ontem assinei o contrato do apê novo.", at="2023-05-08T13:56:00+00:00")
    (stored,) = memory.facts()
    assert (stored["event_date"], stored["event_date_precision"]) == (date(2023, 5, 7), "day")


@pytest.mark.parametrize(
    ("said", "text", "day"),
    [
        ("I signed the lease three days ago.", "Bruna signed the lease", "2023-05-05"),
        ("Assinei o contrato anteontem.", "Bruna assinou o contrato", "2023-05-06"),
        ("Ayer firmé el contrato.", "Bruna firmó el contrato", "2023-05-07"),
        ("Hace dos días firmé el contrato.", "Bruna firmó el contrato", "2023-05-06"),
        ("J'ai signé le bail avant-hier.", "Bruna a signé le bail", "2023-05-06"),
        ("Gestern habe ich den Vertrag unterschrieben.", "Bruna hat den Vertrag unterschrieben", "2023-05-07"),
        ("Ho firmato il contratto due giorni fa.", "Bruna ha firmato il contratto", "2023-05-06"),
        ("Я вчера подписала договор.", "Bruna подписала договор", "2023-05-07"),
        ("我昨天签了合同。", "Bruna签了合同", "2023-05-07"),
        ("3日前に契約した。", "Brunaは契約した", "2023-05-05"),
        ("Viajo para Lima depois de amanhã.", "Bruna viaja para Lima", "2023-05-10"),
    ],
)
def test_dat_01_days_are_counted_in_other_languages(memory: Memory, said: str, text: str, day: str) -> None:
    # The model counted from another day than the message's.
    assert dated(memory, said, text, "2026-11-29", at="2023-05-08T13:56:00+00:00") == (date.fromisoformat(day), "day")


@pytest.mark.parametrize(
    ("at", "day"),
    [
        ("2025-06-15T23:30:00-03:00", "2025-06-14"),
        ("2025-06-16T00:30:00+09:00", "2025-06-15"),
        ("2025-01-01T00:10:00+13:00", "2024-12-31"),
        ("2024-03-01T00:05:00+05:30", "2024-02-29"),
        ("2025-06-15T23:59:59+00:00", "2025-06-14"),
    ],
)
@pytest.mark.parametrize("reader", ["scripted", "offline"])
def test_the_local_day_counts_near_midnight(memory: Memory, at: str, day: str, reader: str) -> None:
    said = "Ontem comprei um sofá."
    if reader == "scripted":
        in_utc = datetime.fromisoformat(at).astimezone(UTC).date().isoformat()
        assert dated(memory, said, "Bruna comprou um sofá", in_utc, at=at) == (date.fromisoformat(day), "day")
    else:
        memory.write(said, at=at)
        assert [row["event_date"] for row in memory.facts()] == [date.fromisoformat(day)]


@pytest.mark.parametrize("reader", ["scripted", "offline"])
def test_dat_03_fiction_without_a_time_gets_none(memory: Memory, reader: str) -> None:
    said = "No romance, o capitão Elmo perdeu a perna em uma tempestade."
    if reader == "scripted":
        text = "O capitão Elmo perdeu a perna em uma tempestade no romance"
        assert dated(memory, said, text, "2025-03-18", at=None) == (None, None)
    else:
        memory.write(said, at=None)
    stored = memory.facts(0)
    assert [row["event_date"] for row in stored] == [None] * len(stored)
    assert [row["valid_from_known"] for row in stored] == [False] * len(stored)
    assert memory.rows("SELECT occurred_at FROM memory_events WHERE agent_id = :agent") == [{"occurred_at": None}]


def test_dat_03_a_date_that_is_written_out_needs_no_time_of_the_message(memory: Memory) -> None:
    assert dated(memory, "Casei em 2019.", "Bruna se casou", "2019-01-01", "year", at=None) == (
        date(2019, 1, 1),
        "year",
    )


@pytest.mark.parametrize(
    "said",
    [
        "Há 250 mil anos já se fazia fogueira, vi num documentário.",
        "Dinosaurs died out 66 million years ago.",
        "Hace 300 mil años ya había fuego.",
        "Vor 40 tausend Jahren malte man Höhlen aus.",
        "Il y a 20 mille ans on peignait des grottes.",
        "恐龙灭绝于6500万年前。",
    ],
)
@pytest.mark.parametrize("given", ["1775-01-01", "0001-01-01", "-248000", "2025-03-18"])
def test_dat_08_times_out_of_the_calendar_are_none_and_no_crash(memory: Memory, said: str, given: str) -> None:
    assert dated(memory, said, said, given, "year") == (None, None)


def test_dat_08_read_by_the_offline_reader(memory: Memory) -> None:
    result = memory.write("Há 250 mil anos já se fazia fogueira, vi num documentário.")
    assert result.success
    assert all(row["event_date"] is None for row in memory.facts(0))


@pytest.mark.parametrize(
    ("said", "given"),
    [
        ("O servidor responde na porta 8421 e o apê é o 1904.", "1904-01-01"),
        ("The server answers on port 2019.", "2019-01-01"),
        ("Mi piso es el número 1987.", "1987-01-01"),
        ("Meu carro é um Peugeot 2008.", "2008-01-01"),
        ("Ich habe 1999 Euro bezahlt.", "1999-01-01"),
        ("J'habite au numéro 1905.", "1905-01-01"),
        ("My locker PIN ends in 2014 and the model is X-2020.", "2020-01-01"),
        ("部屋は1904号室です。", "1904-01-01"),
    ],
)
def test_dat_09_bare_numbers_are_no_years(memory: Memory, said: str, given: str) -> None:
    assert dated(memory, said, said, given, "year") == (None, None)


def test_dat_09_read_by_the_offline_reader(memory: Memory) -> None:
    memory.write("O servidor responde na porta 8421 e o apê é o 1904.")
    assert memory.facts()
    assert all(row["event_date"] is None for row in memory.facts(0))


@pytest.mark.parametrize(
    "said",
    [
        "Casamos em 27 de agosto de 2023.",
        "We married on August 27, 2023.",
        "We got married on 27 August 2023.",
        "Nos casamos el 27 de agosto de 2023.",
        "Nous nous sommes mariés le 27 août 2023.",
        "Wir haben am 27. August 2023 geheiratet.",
        "Ci siamo sposati il 27 agosto 2023.",
        "Casamos em 27/08/2023.",
        "Married on 2023-08-27.",
        "我们2023年8月27日结婚。",
    ],
)
@pytest.mark.parametrize("given", [("2023-08-01", "month"), ("2023-01-01", "year"), ("2023-08-27", "day"),
                                   ("2023-08-28", "day")])  # fmt: skip
def test_dat_10_a_full_date_keeps_its_day(memory: Memory, said: str, given: tuple[str, str]) -> None:
    assert dated(memory, said, said, *given) == (date(2023, 8, 27), "day")


def test_dat_10_read_by_the_offline_reader(memory: Memory) -> None:
    memory.write("Casamos em 27 de agosto de 2023.")
    assert [(row["event_date"], row["event_date_precision"]) for row in memory.facts()] == [(date(2023, 8, 27), "day")]


@pytest.mark.parametrize(
    ("said", "given", "expected"),
    [
        ("Nasci em 1990.", ("1990-05-12", "day"), (date(1990, 1, 1), "year")),
        ("I moved in August 2019.", ("2019-08-15", "day"), (date(2019, 8, 1), "month")),
        ("Me mudei em agosto de 2019.", ("2019-08-01", "month"), (date(2019, 8, 1), "month")),
    ],
)
def test_dat_10_nor_is_a_finer_date_made_up(memory: Memory, said: str, given: Any, expected: Any) -> None:
    assert dated(memory, said, f"Bruna: {said}", *given) == expected


def test_dates_of_two_sentences_are_not_mixed_up(memory: Memory) -> None:
    memory.model.on(
        "informed_extraction",
        extraction(
            [
                fact("Bruna", "Bruna se casou com o Caio", event_date="2025-03-17", event_date_precision="day"),
                fact("Bruna", "Bruna se mudou para Recife", event_date="2019-01-01", event_date_precision="year"),
            ],
            [entity("Bruna")],
        ),
    )
    memory.write("Casei com o Caio em 2019. Ontem me mudei para Recife.")
    assert {row["fact_text"]: row["event_date"] for row in memory.facts()} == {
        "Bruna se casou com o Caio": None,
        "Bruna se mudou para Recife": None,
    }


@pytest.mark.parametrize(
    ("said", "given", "expected"),
    [
        ("No sábado pintei a sala.", "2025-03-14", "2025-03-15"),
        ("I painted the room on Saturday.", "2025-03-16", "2025-03-15"),
        ("Next Friday I fly to Lima.", "2025-03-21", "2025-03-21"),
        ("上周六我粉刷了房间。", "2025-03-16", "2025-03-15"),
    ],
)
def test_a_weekday_missed_by_one_is_put_right(memory: Memory, said: str, given: str, expected: str) -> None:
    assert dated(memory, said, said, given) == (date.fromisoformat(expected), "day")


def test_dat_11_what_stays_of_a_repetition_keeps_the_date(memory: Memory) -> None:
    text = "Bruna adotou o gato Nilo"
    memory.model.queue(
        "informed_extraction",
        extraction([fact("Bruna", text, event_date="2025-02-02", event_date_precision="day")], [entity("Bruna")]),
        extraction([fact("Bruna", "Bruna já adotou o gato Nilo")], [entity("Bruna")]),
    )
    memory.model.on("reconciliation", on_every("NOOP"))
    memory.write("Adotei o gato Nilo no dia 02/02/2025.")
    memory.write("Como eu disse, adotei o Nilo.", at="2025-03-20T10:00:00+00:00")
    assert [(row["fact_text"], row["event_date"]) for row in memory.facts()] == [(text, date(2025, 2, 2))]
