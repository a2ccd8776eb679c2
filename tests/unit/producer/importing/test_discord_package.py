from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from producer.importing import preview
from tests.unit.producer.importing.exports import FIXTURES, messages, said, when, zipped

PACKAGE = FIXTURES / "discord_package"


def test_the_owners_messages_are_read_the_oldest_first() -> None:
    found = messages(PACKAGE)
    assert said(found) == [
        ("rita", "primeira :peixe:"), ("rita", "segunda, com vírgula\ne linha"), ("rita", "em json"),
    ]  # fmt: skip
    assert [item.message_id for item in found] == ["discord:200", "discord:300", "discord:400"]
    assert [item.session_id for item in found] == ["20", "20", "21"]
    assert when(found[0]) == datetime(2024, 5, 1, 12, tzinfo=UTC), "the package writes UTC without saying so"


def test_the_archive_and_a_single_table(tmp_path: Path) -> None:
    files = {str(path.relative_to(PACKAGE)): path.read_text("utf-8") for path in PACKAGE.rglob("*") if path.is_file()}
    assert preview(zipped(tmp_path / "package.zip", files))["side_files"] == 5
    alone = messages(PACKAGE / "messages" / "c20" / "messages.csv", speaker="Rita")
    assert [item.speaker_name for item in alone] == ["Rita", "Rita"]
