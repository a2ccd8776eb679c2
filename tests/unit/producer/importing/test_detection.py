"""Formats are told apart by content; archives are not trusted."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from producer.contract import RequestError
from producer.importing import Notes, Options, Speaker, UnreadableExport, load_speakers, preview, read
from producer.importing.json_stream import walk
from producer.importing.sources import Entry
from tests.unit.producer.importing.exports import FIXTURES, messages, said, written, zipped


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        ("Dear diary, today\nI went out.\n", "text whose lines do not begin like those of a chat"),
        ('{"song": "x", "year": 3}', "a JSON object with the keys song, year"),
        ('[{"song": 1}]', "a JSON list of objects with the keys song"),
        ("a,b\n1,2\n", "a table with the columns a, b"),
        ("", "an empty file"),
        (b"\x89PNG\0\0", "a file that is no text"),
        ('{"text": "hi"}\n{"text": "ho"}\n', "a JSON object with the keys text"),
    ],
)
def test_an_unknown_shape_is_an_error_that_says_what_was_seen(tmp_path: Path, content: Any, seen: str) -> None:
    with pytest.raises(UnreadableExport, match="is no export known here; seen: " + seen):
        messages(written(tmp_path, "file.txt", content))


def test_a_folder_of_side_files_says_what_lies_there(tmp_path: Path) -> None:
    written(tmp_path, "notes.md", "# hello")
    with pytest.raises(UnreadableExport, match="holds no files"):
        messages(written(tmp_path, "empty/.keep", "").parent)
    with pytest.raises(UnreadableExport, match="do not begin like those of a chat"):
        messages(tmp_path)


def test_two_platforms_in_one_folder_are_asked_about(tmp_path: Path) -> None:
    written(tmp_path, "a.txt", "25/04/24 10:00 - R: oi\n")
    written(tmp_path, "b.json", (FIXTURES / "discord_channel.json").read_text("utf-8"))
    with pytest.raises(UnreadableExport, match=r"whatsapp \(1, such as a.txt\) and discord \(1"):
        messages(tmp_path)
    assert said(messages(tmp_path, format="whatsapp")) == [("R", "oi")]


def test_a_format_that_is_none_and_one_that_does_not_fit(tmp_path: Path) -> None:
    chat = written(tmp_path, "a.txt", "25/04/24 10:00 - R: oi\n")
    with pytest.raises(UnreadableExport, match="did you mean 'whatsapp'"):
        messages(chat, format="whatsap")
    with pytest.raises(UnreadableExport, match="nothing in it is of the format slack"):
        messages(chat, format="slack")


def test_an_export_needs_an_agent_but_its_preview_does_not(tmp_path: Path) -> None:
    chat = written(tmp_path, "a.txt", "25/04/24 10:00 - R: oi\n")
    with pytest.raises(RequestError, match="--agent"):
        list(read(chat))
    assert preview(chat)["messages"] == 1


def test_since_and_until_hold_whole_days_of_the_zone(tmp_path: Path) -> None:
    chat = written(tmp_path, "a.txt", "".join(f"{day}/04/24 23:30 - R: {day}\n" for day in range(24, 29)))
    kept = messages(chat, timezone="America/Recife", since="2024-04-25", until="2024-04-27")
    assert [item.message for item in kept] == ["25", "26", "27"]
    with pytest.raises(RequestError, match="neither a date nor a time"):
        messages(chat, since="yesterday")


def test_a_zone_that_is_none_is_refused_and_the_environment_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = written(tmp_path, "a.txt", "25/04/24 10:00 - R: oi\n")
    with pytest.raises(RequestError, match="America/Sao_Paulo"):
        messages(chat, timezone="Brasilia")
    assert str(messages(chat, timezone="-03:00")[0].occurred_at) == "2024-04-25 10:00:00-03:00"
    notes = Notes()
    monkeypatch.setenv("MANDUA_TIMEZONE", "Asia/Tokyo")
    assert str(messages(chat, notes=notes)[0].occurred_at) == "2024-04-25 10:00:00+09:00"
    assert notes.warnings == []


def test_the_speaker_map_renames_gives_roles_and_leaves_out(tmp_path: Path) -> None:
    chat = written(tmp_path, "a.txt", "".join(f"25/04/24 10:00 - {who}: oi\n" for who in ("R", "Bot", "Spam", "Z")))
    people = {"R": "Rita Souza", "Bot": {"role": "assistant"}, "Spam": None, "Z": "assistant"}
    file = written(tmp_path, "map.json", people)
    found = messages(chat, speakers=load_speakers(file))
    assert [(item.speaker_name, item.role) for item in found] == [
        ("Rita Souza", "user"), ("Bot", "assistant"), ("assistant", "assistant"),
    ]  # fmt: skip
    plain = messages(chat)
    assert [item.message_id for item in found] == [plain[0].message_id, plain[1].message_id, plain[3].message_id]
    with pytest.raises(RequestError, match="'R': give a name"):
        load_speakers(written(tmp_path, "bad.json", {"R": 3}))
    with pytest.raises(RequestError, match="is not JSON"):
        load_speakers(written(tmp_path, "bad.json", "R = Rita"))


def test_names_in_an_archive_point_nowhere(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", {"../../evil.txt": "25/04/24 10:00 - R: oi\n", "/abs.md": "x"})
    assert said(messages(archive)) == [("R", "oi")]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.zip"], "nothing is ever unpacked"


def test_an_archive_that_unpacks_to_far_too_much_is_refused(tmp_path: Path) -> None:
    bomb = zipped(tmp_path / "bomb.zip", {"_chat.txt": b"25/04/24 10:00 - R: oi\n" + b"0" * 16 * 1024**2})
    with pytest.raises(UnreadableExport, match="taken for a trap"):
        messages(bomb)


def test_a_damaged_archive_is_one_line(tmp_path: Path) -> None:
    good = zipped(tmp_path / "a.zip", {"_chat.txt": os.urandom(40_000).hex()}).read_bytes()
    with pytest.raises(UnreadableExport, match="damaged"):
        messages(written(tmp_path, "cut.zip", good[: len(good) // 2]))
    middle = len(good) // 2
    broken = written(tmp_path, "broken.zip", good[:middle] + bytes(200) + good[middle + 200 :])
    with pytest.raises(UnreadableExport, match="damaged"):
        messages(broken)


def test_an_encrypted_entry_says_so(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {"_chat.txt": "25/04/24 10:00 - R: oi\n"})
    raw = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        start = archive.start_dir
    raw[start + 8] |= 1
    raw[6] |= 1
    with pytest.raises(UnreadableExport, match="is encrypted"):
        messages(written(tmp_path, "locked.zip", bytes(raw)))


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    secret = written(tmp_path, "elsewhere/b.txt", "25/04/24 10:00 - R: secret\n")
    chat = written(tmp_path, "export/a.txt", "25/04/24 10:00 - R: oi\n")
    (chat.parent / "link.txt").symlink_to(secret)
    (chat.parent / "folder").symlink_to(secret.parent)
    assert said(messages(chat.parent)) == [("R", "oi")]


def test_options_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="DMY, MDY or YMD"):
        Options(date_order="DYM")  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="blank"):
        Options(agent_id=" ")
    assert Speaker().left_out is False


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None)
@given(items=st.lists(_JSON, max_size=6), indent=st.sampled_from([None, 1]), block=st.integers(1, 7))
def test_json_read_bit_by_bit_is_the_same_as_at_once(items: list[Any], indent: int | None, block: int) -> None:
    import contextlib
    from collections.abc import Iterator

    text = json.dumps({"before": 1, "items": items, "after": [items]}, indent=indent, ensure_ascii=False)

    class Cut(Entry):
        @contextlib.contextmanager
        def text(self) -> Iterator[Iterator[str]]:
            yield (text[at : at + block] for at in range(0, len(text), block))

    found = list(walk(Cut("x", lambda: None), lambda path: path in ((), ("items",))))  # type: ignore[arg-type, return-value]
    assert [value for _, path, value in found if path == ("items", "*")] == items
    assert [value for _, path, value in found if path == ("after",)] == [[items]]
    if indent is not None and items:
        assert found[1][0] == 4
