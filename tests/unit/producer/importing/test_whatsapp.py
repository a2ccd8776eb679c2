from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from producer.importing import Notes, Skipped, UnreadableExport, preview, read
from tests.unit.producer.importing.exports import FIXTURES, messages, said, skipped, when, written, zipped

NARROW, LTR = "\u202f", "\u200e"


def test_an_iphone_chat_with_marks_captions_notices_and_several_lines() -> None:
    found = messages(FIXTURES / "whatsapp_ios_pt.txt", timezone="America/Araguaina")
    assert said(found) == [
        ("Nilza", "Gente, mudei para Palmas\n\ncomeço no hospital segunda: 8h"),
        ("Otto", "que bom!"),
        ("Nilza", "olha a vista da varanda"),
        ("+55 63 90000-0000", "@Nilza parabéns!"),
    ]
    assert str(when(found[2])) == "2024-04-25 23:59:59-03:00"
    reasons = skipped(FIXTURES / "whatsapp_ios_pt.txt")
    assert reasons.count("system line") == 2
    assert reasons.count("picture, file or the like without a caption") == 3
    assert (reasons.count("deleted message"), reasons.count("place on a map")) == (1, 1)


def test_an_android_chat_with_a_clock_of_twelve_hours_and_the_month_first() -> None:
    notes = Notes()
    found = messages(FIXTURES / "whatsapp_android_en.txt", notes=notes)
    assert said(found) == [
        ("Petra", "The hull is dry - finally: good"),
        ("Ivo Blum", "my new workshop in Split"),
        ("Petra", "I like 4/5/24, 9:00 better"),
    ]
    assert [at.isoformat()[:16] for at in map(when, found)] == [
        "2024-04-03T10:01", "2024-04-25T00:10", "2024-04-25T21:04",
    ]  # fmt: skip
    assert notes.date_order == "MDY"
    assert any("UTC" in warning for warning in notes.warnings), "a time without zone counts as UTC, and that is said"


def test_imp_07_day_and_month_are_told_from_the_whole_file(tmp_path: Path) -> None:
    chat = written(tmp_path, "c.txt", "03/04/24 10:00 - Rita: oi\n25/04/24 10:00 - Rita: ok\n")
    assert [when(item).date().isoformat() for item in messages(chat)] == ["2024-04-03", "2024-04-25"]


def test_imp_07_a_file_that_can_mean_two_things_asks_for_the_flag(tmp_path: Path) -> None:
    chat = written(tmp_path, "c.txt", "03/04/24 10:00 - Rita: oi\n05/06/24 10:00 - Rita: ok\n")
    with pytest.raises(UnreadableExport, match=r"3/4/24 is 2024-04-03 \(DMY\) or 2024-03-04 \(MDY\).*--date-order"):
        messages(chat)
    assert [when(item).month for item in messages(chat, date_order="DMY")] == [4, 6]
    assert [when(item).month for item in messages(chat, date_order="MDY")] == [3, 5]


def test_the_order_of_time_tells_where_no_day_is_above_twelve(tmp_path: Path) -> None:
    chat = written(tmp_path, "c.txt", "11/03/24 10:00 - R: a\n12/03/24 10:00 - R: b\n01/04/24 10:00 - R: c\n")
    assert [when(item).date().isoformat() for item in messages(chat)] == ["2024-03-11", "2024-03-12", "2024-04-01"]


def test_a_quoted_chat_of_another_country_does_not_decide(tmp_path: Path) -> None:
    days = [f"{day:02}/04/24 10:00 - R: {day}" for day in range(1, 31)]
    chat = written(tmp_path, "c.txt", "\n".join([*days, "30/04/24 11:00 - R: look:", "04/25/24 10:00 - Zed: hi", ""]))
    found = list(read(chat, agent_id="a"))
    assert [item.reason for item in found if isinstance(item, Skipped) and item.rejected] == [
        "its date or time does not fit the order DMY"
    ]


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("[2024-04-25, 7:58:30 AM] Tom: x", "2024-04-25T07:58:30"),
        ("2024-04-25, 3:02 p.m. - Tom: x", "2024-04-25T15:02:00"),
        ("25/4/2024, 9:29 p. m. - Tom: x", "2024-04-25T21:29:00"),
        (f"25/4/2024, 9:29{NARROW}p.\u00a0m. - Tom: x", "2024-04-25T21:29:00"),
        ("[25.04.24, 21:22:39] Tom: x", "2024-04-25T21:22:39"),
        ("25.04.24, 21:22 – Tom: x", "2024-04-25T21:22:00"),
        ("25-04-2024 21:22 - Tom: x", "2024-04-25T21:22:00"),
        ("25.4.2024 klo 9.05 - Tom: x", "2024-04-25T09:05:00"),
        ("25/04/2024 à 09:05 - Tom: x", "2024-04-25T09:05:00"),
        ("2024. 4. 25. 오후 3:05 - Tom: x", "2024-04-25T15:05:00"),
        ("2024年4月25日 下午3:05 - Tom: x", "2024-04-25T15:05:00"),
        ("2024/4/25 上午12:05 - Tom: x", "2024-04-25T00:05:00"),
        ("2024/04/25 15:05 - Tom: x", "2024-04-25T15:05:00"),
        ("[\u200f٢٥\u200f/٤\u200f/٢٠٢٤، ١٠:٠٥:٠٠ م] Tom: x", "2024-04-25T22:05:00"),
        ("25/4/2567 10:05 - Tom: x", "2024-04-25T10:05:00"),
        (f"{LTR}[25/04/2024, 10:05:00] ~{NARROW}Tom: x", "2024-04-25T10:05:00"),
        ("25/04/2024 10:05:00: Tom: x", "2024-04-25T10:05:00"),
    ],
)
def test_heads_of_lines_in_many_countries(tmp_path: Path, line: str, at: str) -> None:
    (found,) = messages(written(tmp_path, "c.txt", line + "\n"))
    assert (found.speaker_name, found.message, when(found).isoformat()[:19]) == ("Tom", "x", at)


@pytest.mark.parametrize(
    "words",
    [
        "<Media omitted>", "<Mídia oculta>", "<Medien ausgeschlossen>", "<Médias omis>", "<Multimedia omitido>",
        "<メディアなし>", "<Файл пропущен>", "image omitted", "Bild weggelassen", "imagen omitida", "image absente",
        "PTT-20240425-WA0001.opus (archivo adjunto)", "DOC-1.pdf (Datei angehängt)", "<Anhang: 0001-VCARD.vcf>",
        "This message was deleted", "Diese Nachricht wurde gelöscht.", "Ce message a été supprimé",
        "Se eliminó este mensaje.", "Waiting for this message. This may take a while.", "", "null",
    ],
)  # fmt: skip
def test_placeholders_are_no_messages(tmp_path: Path, words: str) -> None:
    chat = written(tmp_path, "c.txt", f"25/04/24 10:00 - R: real <3\n25/04/24 10:01 - R: {words}\n")
    assert said(messages(chat)) == [("R", "real <3")]


@pytest.mark.parametrize(
    "words",
    [
        "<3", "<sigh deeply>", "see report.pdf (the final one)", "see https://x.y/a.pdf",
        "Meeting: 10:00 - Bob: bring it", "I sent the poll: yes", "is the image omitted?",
        "I deleted this message was my mistake",
    ],
)  # fmt: skip
def test_what_people_write_is_not_taken_for_a_placeholder(tmp_path: Path, words: str) -> None:
    assert said(messages(written(tmp_path, "c.txt", f"25/04/24 10:00 - R: {words}\n"))) == [("R", words)]


def test_a_line_that_is_no_utf8_is_told_with_its_number(tmp_path: Path) -> None:
    raw = b"25/04/24 10:00 - R: fine\n25/04/24 10:01 - R: caf\xe9\n25/04/24 10:02 - R: more\nol\xe9\nend\n"
    found = list(read(written(tmp_path, "c.txt", raw), agent_id="a"))
    assert [item.line for item in found if isinstance(item, Skipped) and item.rejected] == [2, 4]
    assert said([item for item in found if not isinstance(item, Skipped)]) == [("R", "fine"), ("R", "more\nend")]


def test_a_chat_in_utf16_is_read(tmp_path: Path) -> None:
    raw = "25/04/24 10:00 - Zoë: olé\n25/04/24 10:01 - Zoë: já\n".encode("utf-16")
    assert said(messages(written(tmp_path, "c.txt", raw))) == [("Zoë", "olé"), ("Zoë", "já")]


def test_equal_messages_stay_apart_and_a_longer_or_renamed_export_adds_only_what_is_new(tmp_path: Path) -> None:
    lines = ["25/04/24 10:00 - R: ok", "25/04/24 10:00 - R: ok", "25/04/24 10:05 - R: ok"]
    short = messages(written(tmp_path, "c.txt", "\n".join(lines)))
    more = written(tmp_path, "d.txt", "\n".join([*lines, "26/04/24 10:00 - R: new"]))
    longer = messages(more, timezone="Asia/Tokyo")
    ids = [item.message_id for item in short]
    assert len(set(ids)) == 3
    assert [item.message_id for item in longer][:3] == ids


def test_earlier_messages_of_the_chat_go_along_as_context(tmp_path: Path) -> None:
    chat = written(tmp_path, "c.txt", "25/04/24 10:00 - R: tea or coffee?\n25/04/24 10:01 - Ana: both\n")
    assert messages(chat)[1].recent_messages == ("R: tea or coffee?",)
    assert messages(chat, context=0)[1].recent_messages == ()


def test_the_archive_of_a_phone_is_read_and_its_pictures_passed_over(tmp_path: Path) -> None:
    chat = "[25/04/24, 10:00:00] R: oi\n"
    files = {"_chat.txt": chat, "0001-PHOTO.jpg": b"\xff\xd8\0", "0002.txt": "a shopping list"}
    archive = zipped(tmp_path / "WhatsApp Chat - R.zip", files)
    (found,) = messages(archive)
    assert (found.session_id, found.source) == ("whatsapp:WhatsApp Chat - R", "import:whatsapp")
    assert preview(archive)["side_files"] == 2


def test_times_that_a_clock_skipped_or_showed_twice(tmp_path: Path) -> None:
    notes = Notes()
    lines = ["31/03/24 02:30 - R: gap", "27/10/24 02:50 - R: first", "27/10/24 02:10 - R: second"]
    found = messages(written(tmp_path, "c.txt", "\n".join(lines)), timezone="Europe/Berlin", notes=notes)
    assert [str(when(item)) for item in found] == [
        "2024-03-31 03:30:00+02:00", "2024-10-27 02:50:00+02:00", "2024-10-27 02:10:00+01:00",
    ]  # fmt: skip
    assert notes.shifted == 1


def test_the_log_of_a_program_is_no_chat(tmp_path: Path) -> None:
    log = "2024-04-25 10:00:00 - INFO: started\n2024-04-25 10:00:01 - ERROR: stopped\n"
    with pytest.raises(UnreadableExport, match="is no export known here"):
        messages(written(tmp_path, "log.txt", log))


def _half(at: datetime) -> tuple[int, str]:
    return at.hour % 12 or 12, "AM" if at.hour < 12 else "PM"


LOCALES: dict[str, Callable[[datetime], str]] = {
    "Android, Brazil": lambda at: f"{at:%d/%m/%Y %H:%M} - ",
    "Android, Britain": lambda at: f"{at:%d/%m/%Y, %H:%M} - ",
    "Android, US": lambda at: f"{at.month}/{at.day}/{at:%y}, {_half(at)[0]}:{at:%M}{NARROW}{_half(at)[1]} - ",
    "Android, Mexico": lambda at: (
        f"{at.day}/{at.month}/{at.year}, {_half(at)[0]}:{at:%M} {_half(at)[1][0].lower()}.\u00a0m. - "
    ),
    "Android, Germany": lambda at: f"{at:%d.%m.%y, %H:%M} - ",
    "Android, Netherlands": lambda at: f"{at:%d-%m-%Y %H:%M} - ",
    "Android, Sweden": lambda at: f"{at:%Y-%m-%d %H:%M} - ",
    "Android, Japan": lambda at: f"{at:%Y/%m/%d %H:%M} - ",
    "Android, Korea": lambda at: (
        f"{at.year}. {at.month}. {at.day}. {'오전' if at.hour < 12 else '오후'} {_half(at)[0]}:{at:%M} - "
    ),
    "Android, Finland": lambda at: f"{at.day}.{at.month}.{at.year} klo {at.hour}.{at:%M} - ",
    "iPhone, Brazil": lambda at: f"[{at:%d/%m/%y %H:%M:%S}] ",
    "iPhone, US": lambda at: f"{LTR}[{at.month}/{at.day}/{at:%y}, {_half(at)[0]}:{at:%M:%S}{NARROW}{_half(at)[1]}] ",
    "iPhone, Germany": lambda at: f"[{at:%d.%m.%y, %H:%M:%S}] ",
    "iPhone, Taiwan": lambda at: (
        f"[{at.year}/{at.month}/{at.day} {'上午' if at.hour < 12 else '下午'}{_half(at)[0]}:{at:%M:%S}] "
    ),
}

_LETTERS = "abcdefghijklmnopqrstuvwxyzáéíçãßжд日本0123456789 ,;.!?()'🙂"
_WORD = st.text(_LETTERS, min_size=1, max_size=20).filter(str.strip)
_LINES = st.lists(_WORD.map(lambda text: "m " + text.strip()), min_size=1, max_size=3).map("\n".join)
_CHAT = st.lists(
    st.tuples(st.integers(0, 40 * 24 * 60), st.sampled_from(["Rita", "Zé Lima", "+55 11 90000-0000"]), _LINES),
    min_size=1, max_size=12,
)  # fmt: skip


@pytest.mark.parametrize("locale", LOCALES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(start=st.datetimes(datetime(2012, 1, 1), datetime(2025, 1, 1)), chat=_CHAT)  # noqa: DTZ001
def test_a_chat_written_as_a_country_writes_it_reads_back_equal(
    locale: str, start: datetime, chat: list[tuple[int, str, str]]
) -> None:
    # A day above twelve, and a second one after it, make every file's order certain.
    at = start.replace(day=28, second=0, microsecond=0)
    told = [(at, "Rita", "first")]
    for minutes, speaker, text in chat:
        at += timedelta(minutes=minutes)
        told.append((at, speaker, text))
    rendered = "".join(f"{LOCALES[locale](at)}{speaker}: {text}\n" for at, speaker, text in told)
    with tempfile.TemporaryDirectory() as folder:
        found = messages(written(Path(folder), "chat.txt", rendered))
    assert [(when(item).replace(tzinfo=None), item.speaker_name, item.message) for item in found] == told
